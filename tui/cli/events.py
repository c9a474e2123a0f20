"""Log each change of the store, and show the log of a session.

--on begins the log: from then on each change of the three tables is an event, in the same
transaction, whoever makes it. It begins with the present state, which takes about as much space as
the sessions themselves. --off ends it and keeps the events; with --drop they are deleted, after a
question. --trim cuts old events now, by [events] of the config (keep_days, max_mb), as is done once
a day anyway. --dry-run says what both would delete. Only a library has a log, no other program's
store. docs/events.md has it all.

With a SESSION its events are shown, --after those that follow one. --follow goes on until Ctrl+C,
without a SESSION with the new events of all. Without anything, it says whether the log is on.

--json prints the state as {"on", "complete", "version", "since", "events", "size", "trimmed"}, of a
dry run {"sessions", "events", "size", "dry_run"}, and an object per line for events: {"id",
"session_id", "seq", "at", "logged_at", "kind", "message_id", "part_id", "part_index", "whole",
"payload"}. "payload" has the columns that changed by name, or all of them where "whole" is true;
JSON columns are decoded and named without the suffix _json.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from store.config import load_config
from store.engine.database import Database
from store.engine.opening import open_target
from store.engine.server.errors import ServerError
from store.engine.server_url import ServerTrouble
from store.errors import Refused
from store.events.log import log_state, require_events, require_own, switch_off, switch_on
from store.events.paging import session_with_events
from store.events.reading import Event, events_of, events_of_all, newest_event
from store.events.trimming import (
    Bounds,
    Trimmed,
    bounds_of,
    log_size,
    log_streams,
    trim,
    would_trim,
)
from store.recorder.backoff import Backoff
from store.system.locations import library_path
from store.text import figures
from store.text.stored_json import DamagedJson, loads
from tui.cli.confirming import confirm
from tui.cli.output import NAME_HELP, Printer, UsageError, local_time, note, print_json
from tui.cli.stores import library_for_upkeep, needs_store, store_for_reading
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll events --on", "log each change from now on"),
    ("backscroll events 4f1c --follow", "what happens in a session, live"),
    ("backscroll events --off --drop", "no log any more"),
)
POLL_S = 0.1
"""Seconds between two looks for new events."""
_JSON = "_json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help=NAME_HELP)
    switches = parser.add_mutually_exclusive_group()
    switches.add_argument("--on", action="store_true", help="begin the log")
    switches.add_argument("--off", action="store_true", help="end the log")
    switches.add_argument("--trim", action="store_true", help="cut old events now")
    switches.add_argument("--follow", action="store_true", help="show new events until Ctrl+C")
    parser.add_argument("--after", metavar="SEQ", type=_number, default=0,
                        help="only events after this one")
    parser.add_argument("--drop", action="store_true", help="with --off: delete the events")
    parser.add_argument("--dry-run", action="store_true",
                        help="with --trim or --off: only say what would be deleted")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _number(words: str) -> int:
    if not words.isdecimal() or len(words) > 15:
        raise argparse.ArgumentTypeError("give the number of an event, such as 100")
    return int(words)


def run(options: argparse.Namespace) -> int:
    """Do what is asked for."""
    switches = options.on or options.off or options.trim
    if switches and (options.session is not None or options.after):
        raise UsageError("the log is that of the whole store: name no session")
    if options.drop and not options.off:
        raise UsageError("--drop goes with --off")
    if options.dry_run and not (options.trim or options.off):
        raise UsageError("--dry-run goes with --trim or --off")
    if options.after and options.session is None:
        raise UsageError("--after needs a SESSION, whose events have numbers")
    if switches:
        return _switch(options)
    if options.session is None and not options.follow:
        return _print_state(options)
    return _print_events(options)


def _switch(options: argparse.Namespace) -> int:
    with library_for_upkeep(options) as database, showing() as shown:
        if options.on:
            switch_on(database, progress=lambda done, total: shown("reading", done, total))
        elif options.dry_run:
            _print_planned(_planned(database, options), options)
            return 0
        elif options.off:
            _off(database, options)
        else:
            trim(database, _bounds(), progress=lambda done, total: shown("cutting", done, total))
        _print(database, options)
    return 0


def _bounds() -> Bounds:
    """Return what the config says of old events.

    Raises:
        Refused: Nothing.
    """
    bounds = bounds_of(load_config().events)
    if bounds == Bounds():
        raise Refused("nothing says what is old: set keep_days or max_mb in [events] of "
                      f"{load_config().path}")
    return bounds


def _planned(database: Database, options: argparse.Namespace) -> Trimmed:
    """Return what would be deleted."""
    if options.trim:
        return would_trim(database, _bounds())
    require_own(database)
    return Trimmed(len(log_streams(database)), *log_size(database)) if options.drop else Trimmed()


def _print_planned(planned: Trimmed, options: argparse.Namespace) -> None:
    if options.json:
        print_json(asdict(planned) | {"dry_run": True})
        return
    printer = Printer()
    words = "No event would be deleted." if not planned.events else (
        f"{figures.count_of(planned.events, 'event')} of"
        f" {figures.count_of(planned.sessions, 'session')} would be deleted, about"
        f" {figures.size(planned.size)}.")
    printer.line(printer.paint(words))


def _off(database: Database, options: argparse.Namespace) -> None:
    count, size = log_size(database)
    if options.drop and count and not options.yes:
        confirm([f"{figures.count_of(count, 'event')}, {figures.size(size)}"],
                "Delete the event log?", otherwise="nothing was deleted")
    switch_off(database, drop=options.drop)


def _print_state(options: argparse.Namespace) -> int:
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        require_own(database)
        _print(database, options)
    return 0


def _print(database: Database, options: argparse.Namespace) -> None:
    """Print the state of the log."""
    state, (count, size) = log_state(database), log_size(database)
    if options.json:
        print_json({
            "on": bool(state and state.is_on), "complete": bool(state and state.tells_all),
            "version": state.version if state else None,
            "since": state.switched_at if state and state.is_on else None,
            "events": count, "size": size,
            "trimmed": state.trimmed_at or None if state else None,
        })  # fmt: skip
        return
    words = "The event log is off; `backscroll events --on` begins one."
    if state and state.is_on:
        words = f"The event log is on since {local_time(state.switched_at)}."
        if not state.complete:
            words = ("The event log does not have every session yet;"
                     " `backscroll events --on` completes it.")
    printer = Printer()
    printer.line(printer.paint(words))
    if count:
        printer.line(printer.paint(f"{figures.count_of(count, 'event')}, {figures.size(size)}"))


def _print_events(options: argparse.Namespace) -> int:
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        require_events(database)
        session = options.session and session_with_events(database, options.session)
        after = options.after if session is not None else newest_event(database)
        shown = _Shown(options, session, after)
        if session is not None:
            shown.go_on(database)
    if options.follow:
        with contextlib.suppress(KeyboardInterrupt):
            _follow(shown)
    return 0


class _Shown:
    """The events that were printed."""

    def __init__(self, options: argparse.Namespace, session: str | None, after: int) -> None:
        """Begin after an event.

        Args:
            options: The command's.
            session: The session; None for all.
            after: The number of the event.
        """
        self.options = options
        self._session, self._after, self._printer = session, after, Printer()

    def go_on(self, database: Database) -> None:
        """Print the events that follow those that were printed."""
        # Another file may be in the store's place, such as a backup.
        self._after = min(self._after, newest_event(database, self._session))
        found = (events_of_all(database, self._after) if self._session is None
                 else events_of(database, self._session, self._after))
        for event in found:
            if self.options.json:
                print_json(as_json(event))
            else:
                _print_line(event, self._printer, with_session=self._session is None)
            self._after = event.id if self._session is None else event.seq
        sys.stdout.flush()


def _follow(shown: _Shown) -> None:
    """Print new events as they come; where a server was lost, go on once it answers again."""
    backoff = Backoff()
    while True:
        try:
            with contextlib.closing(
                    open_target(shown.options.store or library_path())) as database:
                if backoff.tries:
                    note(f"{database.name} answers again")
                    backoff.went_well()
                seen: int | None = None
                while not database.moved():
                    version = database.data_version()
                    if version != seen:
                        shown.go_on(database)
                        seen = version
                    time.sleep(POLL_S)
        except (ServerError, ServerTrouble) as error:
            if isinstance(error, ServerError):
                is_final, words = not error.is_lost, error.for_user
            else:
                is_final, words = error.is_refusal, str(error)
            if is_final:
                raise
            if not backoff.tries:
                note(f"{words}; trying again until it answers")
            time.sleep(backoff.failed())


def _print_line(event: Event, printer: Printer, *, with_session: bool) -> None:
    pieces = [
        printer.paint(local_time(event.at, "%Y-%m-%d %H:%M:%S  "), "faint"),
        printer.paint(f"{event.seq:>6}  ", "faint"), printer.paint(f"{event.kind:<18}"),
    ]  # fmt: skip
    if with_session:
        pieces.append(printer.paint(f"  {event.session_id}", "faint"))
    if event.message_id is not None:
        part = "" if event.part_index is None else f" [{event.part_index}]"
        pieces.append(printer.paint(f"  {event.message_id}{part}"))
    if not event.is_whole and event.payload:
        pieces.append(printer.paint(f"  {', '.join(_named(event.payload))}", "faint"))
    printer.line(*pieces)


def _named(payload: Iterable[str]) -> list[str]:
    return [name.removesuffix(_JSON) for name in payload]


def as_json(event: Event) -> dict[str, Any]:
    """Return what ``--json`` prints of an event."""
    return {
        "id": event.id, "session_id": event.session_id, "seq": event.seq, "at": event.at,
        "logged_at": event.logged_at, "kind": event.kind, "message_id": event.message_id,
        "part_id": event.part_id, "part_index": event.part_index, "whole": event.is_whole,
        "payload": {
            name.removesuffix(_JSON): _decoded(value) if name.endswith(_JSON) else value
            for name, value in event.payload.items()},
    }  # fmt: skip


def _decoded(value: object) -> object:
    """Return the value of a JSON column; its text where it is none."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except DamagedJson:
        return value
