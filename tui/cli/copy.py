"""Copy sessions from one store to another, and verify them there by count and hash.

FROM and TO are SQLite files or postgresql:// URLs; "library" is your own library, or what
--store names. All sessions are copied, or those that are named, with the sessions of their
subagents, or those that match --query (docs/search.md). TO is made where it is missing.

Each session is copied whole or not at all, and compared by a hash of each of its rows. A copy that
was stopped or killed is continued by the same command: what is there already is left. Sessions
that TO has with other rows are left too, and reported; --replace gives them the rows of FROM.
--mask replaces keys, tokens and passwords, as [masks] in the config says.

The exit code is 1 if TO does not have every session as FROM has it.

--json prints {"total", "copied", "unchanged", "messages", "hashes": {id: hash}, "different": [id,
...], "failed": {id: reason}, "stopped"}; messages counts messages and parts.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Iterator

from store.config import load_config
from store.copying.copying import Copied, copy_sessions
from store.copying.rows import parents_first, starters
from store.engine.database import Database
from store.engine.opening import open_target
from store.errors import Refused
from store.language.query import parse
from store.queries.sessions import SessionFilter, resolve
from store.search.listed import Listed
from store.sharing.settings import checked_masking
from store.system.clock import system_clock
from store.system.locations import library_path
from store.system.stopping import Stop
from store.text.figures import count_of
from tui.cli.output import Printer, UsageError, as_text, named_path, note, print_json
from tui.cli.stores import note_left_out
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll copy library postgresql://db.example/team", "everything, to a server"),
    ("backscroll copy postgresql://db.example/team mine.db --query owner:ada", "some, to a file"),
    ("backscroll copy old.db library 4f1c", "one session"),
)
LIBRARY = "library"
_REPORTED = 5
"""Sessions that are named when they were not copied; all are in the JSON."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "source", metavar="FROM", type=named_path, help="the store that has the sessions")
    parser.add_argument("target", metavar="TO", type=named_path, help="the store that gets them")
    parser.add_argument(
        "sessions", metavar="SESSION", nargs="*", default=[], help="an id, or its beginning or end")
    parser.add_argument("--query", metavar="QUERY", help="only sessions that match")
    parser.add_argument(
        "--replace", action="store_true", help="write over sessions that differ in TO")
    parser.add_argument(
        "--mask", action="store_true", help="replace keys, tokens and passwords")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Copy them."""
    if options.query is not None and options.sessions:
        raise UsageError("give sessions or --query, not both")
    masking = checked_masking(load_config()) if options.mask else None
    note_left_out(options.source)
    note_left_out(options.target)
    with contextlib.ExitStack() as opened:
        source = opened.enter_context(
            contextlib.closing(open_target(_named(options, options.source))))
        ids = _chosen(source, options)
        target = opened.enter_context(contextlib.closing(
            open_target(_named(options, options.target), create=True, write=True)))
        if _is_same(source, target):
            raise Refused(f"{source.name} and {target.name} are the same store")
        stop = opened.enter_context(stopping())
        shown = opened.enter_context(showing())
        found = copy_sessions(
            source, target, ids, replace=options.replace, masking=masking,
            stopped=stop.is_set, on_progress=lambda one: shown("copying", one.done, one.total))
    if options.json:
        print_json(found.as_dict())
    else:
        printer = Printer()
        printer.line(printer.paint(_sentence(found)))
    _report(found)
    return 0 if found.is_whole else 1


def _named(options: argparse.Namespace, name: str) -> str:
    if not name:
        raise UsageError("the name of a store is empty")
    return str(options.store or library_path()) if name == LIBRARY else name


def _is_same(source: Database, target: Database) -> bool:
    if (source.server is None) != (target.server is None):
        return False
    if source.server is None:
        return source.path.samefile(target.path)
    return source.path == target.path


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Yield a flag that Ctrl+C sets, so that what runs ends after the session it is at."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _chosen(source: Database, options: argparse.Namespace) -> list[str]:
    """Return the ids of the sessions that are copied, each after its parent."""
    everything = parents_first(source)
    if options.query is not None:
        wanted = _matching(source, options.query)
        return [one for one in everything if one in wanted]
    if not options.sessions:
        return everything
    family = {resolve(source, name).id for name in options.sessions}
    started = starters(source)
    # A parent comes first, so one pass finds the subagents of subagents.
    for one in everything:
        if started.get(one) in family:
            family.add(one)
    return [one for one in everything if one in family]


def _matching(source: Database, text: str) -> set[str]:
    now = system_clock()
    query = parse(as_text(text).strip(), now=now)
    if query.problems:
        raise UsageError(" ".join(f"{each.message}." for each in query.problems))
    wanted = SessionFilter(archived="include", helpers=True)
    listed = Listed(source, query, wanted, now, is_archived_chosen=True)
    found = {one["id"] for one in listed.page()}
    if listed.why:
        note(f"Not everything was searched: {listed.why}")
    return found


def _sentence(found: Copied) -> str:
    words = f"{count_of(found.copied, 'session')} copied, {found.unchanged:,} already there"
    return f"{words}; {found.messages:,} messages and parts are the same in both stores"


def _report(found: Copied) -> None:
    for session_id, reason in list(found.failed.items())[:_REPORTED]:
        note(f"{session_id} was not copied: {reason}")
    if (more := len(found.failed) - _REPORTED) > 0:
        note(f"{more:,} more were not copied; --json names them")
    if found.different:
        note(f"{count_of(len(found.different), 'session')} there with other rows, left as they are"
             f" ({', '.join(found.different[:_REPORTED])}); --replace writes over them")
    if found.stopped:
        note("Stopped. What was copied is kept; the same command goes on.")
