"""Read the sessions of your agents into the store, newest first; only what changed is read.

SOURCE is an agent's folder or file, the name of a source (claude-code, codex, ...), or the
postgresql:// URL of a hub or of lionagi. Without it, the usual places of all agents are read.
Sources are never written. Ctrl+C stops it; what was read is kept.

--watch keeps reading what agents write, until Ctrl+C. A store has one watcher at a time: a second
one waits and takes over when the first ends.

--store postgresql://... brings your sessions to the store of a team: first into your own library,
as without it, then what changed there to the server, with [team] owner of the config as its owner.
Keys, tokens, passwords and what [masks] names are masked before anything leaves this machine;
--no-mask keeps them. A session that another person has brought, too, is there once for each of
you. What others change there (titles, tags, the archive, rewinds) stays. What is removed here
stays there; `backscroll forget --store URL` removes it. If the server is gone, your library has
everything, and the next run goes on; with --watch that is as soon as the server is back.

At the end the search index is brought up to date, for ten seconds at most, with --watch after each
change; this may be stopped at any time too. The browser and the next sync go on with it, and what
is not in it yet is searched row by row.

The exit code is 1 if a place exists and nothing could be read from it, if one of its folders
cannot be listed, or if a server that you named cannot be read whole.

--json prints one object: {"units", "read", "new", "updated", "problems", "stopped",
"seconds", "unreadable": ["PATH REASON", ...]}, with a server also "shared": {"total", "new",
"updated", "unchanged", "skipped": {id: reason}, "failed": {id: reason}, "stopped"}; units are the
files that were listed, read those that changed, new and updated count sessions. With --watch it
prints one object per line, each with an "event": "summary" with those fields, "watching" or
"standby", {"event": "shared"} with those of "shared" where something was brought to a server, then
{"event": "synced", "synced", "session", "at"} for each commit (number of changed sessions, the
id of one, epoch ms), {"event": "activity", "session", "state", "at"} when the activity of a
running session changes (null when it ends), {"event": "server", "server", "reason", "since"} when
a server cannot be read or lets wait (a null reason once it is read again), and {"event":
"trouble", "message"} when a commit failed and will be tried again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from store.engine.opening import as_path
from store.engine.server_url import Root, ServerUrl, as_root
from store.errors import StoreError
from store.search.index.reading import open_index
from store.sync.process import (
    Activity,
    Event,
    Server,
    Standby,
    Synced,
    SyncProcess,
    Trouble,
    event_as_dict,
    start_sync,
)
from store.sync.progress import Progress, Summary
from store.system.locations import library_path
from store.text import figures
from store.upkeep.process import Indexed, UpkeepStandby, UpkeepTrouble, start_upkeep
from tui.cli.output import Printer, UsageError, note, print_json

if TYPE_CHECKING:
    from tui.cli.team import Team

EXAMPLES = (
    ("backscroll sync", "all agents, in their usual places"),
    ("backscroll sync codex ~/backup/.claude", "one agent, and a copy of another's folder"),
    ("backscroll sync --watch", "keep reading until Ctrl+C"),
    ("backscroll sync --store postgresql://db.example/team", "and bring it to your team's store"),
)


INDEXING_S = 10.0
"""Seconds of indexing after which a sync ends."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="what to read")
    parser.add_argument("--watch", action="store_true", help="keep following changes")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--no-mask", action="store_true", help="with a server: keep keys, tokens and passwords")


def run(options: argparse.Namespace) -> int:
    """Sync once, or with ``--watch`` keep syncing."""
    path = as_path(options.store or library_path())
    team: Team | None = None
    if path is None:
        # Only here: what is masked takes a while to load.
        from tui.cli.team import Team

        path = library_path()
        team = Team(str(options.store), path, mask=not options.no_mask)
    elif options.no_mask:
        raise UsageError("--no-mask is for --store postgresql://...: nothing else is masked")
    kinds, roots = _sorted_out(options.sources)
    for root in roots:
        if isinstance(root, ServerUrl) and root.left_out:
            note(f"{root}: {root.left_out}")
    if options.watch:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_watch(path, roots, kinds, as_json=options.json, team=team))
        return 0
    summary = asyncio.run(_sync(path, roots, kinds))
    if summary is None:
        note("Stopped. What was read is kept.")
        return 1
    if not options.json:
        printer = Printer()
        printer.line(printer.paint(_sentence(summary)))
        sys.stdout.flush()
    shared = team.share_shown() if team is not None else None
    if options.json:
        print_json(summary.as_dict() | ({} if shared is None else {"shared": shared.as_dict()}))
    elif shared is not None and team is not None:
        printer.line(printer.paint(team.sentence(shared)))
    for place in summary.unreadable:
        note(place)
    if summary.problems:
        store = f" --store {shlex.quote(options.store)}" if options.store and not team else ""
        count = figures.count_of(summary.problems, "problem")
        note(f"{count}; see: backscroll sources --problems{store}")
    return 1 if summary.unreadable or (shared is not None and not shared.is_whole) else 0


def _sorted_out(names: list[str]) -> tuple[list[str], list[Root]]:
    """Return the source kinds and the roots among some names.

    Raises:
        UsageError: A name is empty.
    """
    from store.sources.registry import all_sources

    if "" in names:
        # An empty name, as from an unset variable, would mean the current folder.
        raise UsageError("the name of a source is empty")
    known = {source.kind for source in all_sources()}
    kinds = [name for name in names if name in known and not os.path.exists(name)]
    return kinds, [as_root(name) for name in names if name not in kinds]


async def _sync(path: Path, roots: list[Root], kinds: list[str]) -> Summary | None:
    process = await start_sync(path, roots, kinds=kinds)
    try:
        await _follow(process)
    except asyncio.CancelledError:
        # On Ctrl+C asyncio cancels this task once and waits for it.
        await process.stop()
        raise
    summary = process.summary
    if summary and (summary.new or summary.updated or not _is_indexed(path)):
        await _index(path)
    return summary


def _is_indexed(path: Path) -> bool:
    """Return whether the search index has been built; it may lack the last changes."""
    index = open_index(path)
    if index is None:
        return False
    try:
        return index.coverage().whole
    except StoreError:
        return False  # It is damaged, and is made again.
    finally:
        index.close()


async def _index(path: Path) -> None:
    """Bring the search index up to date for a while, unless another process does it."""
    process = await start_upkeep(path, once=True)
    on_terminal, printer = sys.stderr.isatty(), Printer(sys.stderr)
    done = Indexed(0, 0, whole=False)
    try:
        async with asyncio.timeout(INDEXING_S):
            async for event in process.events():
                if isinstance(event, UpkeepStandby):
                    break
                if isinstance(event, Indexed):
                    done = event
                    if on_terminal:
                        printer.status(f"indexing {done.messages:,} of {done.total:,} messages")
    except TimeoutError:
        if on_terminal:
            printer.status("")
        note(f"{done.messages:,} of {done.total:,} messages are in the search index; the browser"
             " and the next sync go on with it")
    except StoreError as error:
        note(str(error))
    finally:
        await process.stop()
        if on_terminal:
            with contextlib.suppress(OSError):
                printer.status("")


async def _keep_index(path: Path) -> None:
    """Keep the search index up to date until cancelled; reports trouble on stderr."""
    process = await start_upkeep(path)
    try:
        async for event in process.events():
            if isinstance(event, UpkeepTrouble):
                note(f"the search index or the statistics wait: {event.message}")
    except StoreError as error:
        note(str(error))
    finally:
        await process.stop()


async def _watch(
    path: Path, roots: list[Root], kinds: list[str], *, as_json: bool, team: Team | None
) -> None:
    process = await start_sync(path, roots, kinds=kinds, watch=True)
    printer, indexing, last = Printer(), None, ""
    sharing = None if team is None else asyncio.ensure_future(team.keep_sharing(as_json=as_json))
    try:
        async for event in process.events():
            if team is not None and isinstance(event, Summary | Synced):
                team.changed.set()
            if indexing is None and path.exists():
                indexing = asyncio.ensure_future(_keep_index(path))
            if isinstance(event, Progress):
                continue
            if isinstance(event, Trouble):
                last = event.message
            if as_json:
                print_json(event_as_dict(event))
                sys.stdout.flush()
            elif isinstance(event, Trouble):
                note(event.message)
            elif isinstance(event, Server):
                if (message := _server_note(event)) != last:
                    note(message)
                last = message
            else:
                printer.line(printer.paint(_watch_words(event)))
                sys.stdout.flush()
    except asyncio.CancelledError:
        await process.stop()
        raise
    finally:
        for running in (indexing, sharing):
            if running is not None:
                running.cancel()
                await asyncio.wait([running])


def _server_note(event: Server) -> str:
    """Return what a server's event says."""
    return f"{event.server} {event.reason or 'is read again'}"


def _watch_words(event: Event) -> str:
    if isinstance(event, Summary):
        return _sentence(event)
    if isinstance(event, Standby):
        return "another watcher of this store is running; waiting for it to end"
    if isinstance(event, Synced):
        others = f" and {event.synced - 1:,} more" if event.synced > 1 else ""
        return f"changed: {event.session}{others}"
    if isinstance(event, Activity):
        return f"{event.state or 'ended'}: {event.session}"
    return "watching; Ctrl+C stops it"


async def _follow(process: SyncProcess) -> None:
    on_terminal, printer = sys.stderr.isatty(), Printer(sys.stderr)
    try:
        async for progress in process:
            if on_terminal:
                printer.status(_progress_line(progress))
    finally:
        if on_terminal:
            with contextlib.suppress(OSError):
                printer.status("")


def _progress_line(progress: Progress) -> str:
    if progress.waiting:
        return "another sync of this store is running; waiting for it"
    left = ""
    if progress.eta_s is not None and progress.files_done < progress.files_total:
        minutes, seconds = divmod(round(progress.eta_s), 60)
        left = f", {minutes}:{seconds:02} left"
    rate = f", {figures.size(progress.rate)}/s" if progress.rate else ""
    return (
        f"{progress.files_done:,} of {progress.files_total:,} files, "
        f"{figures.size(progress.bytes_done)} of {figures.size(progress.bytes_total)}{rate}{left}"
    )


def _sentence(summary: Summary) -> str:
    if not summary.units and summary.unreadable:
        return "no sessions could be read"
    if not summary.units:
        return "no sessions found; `backscroll sources --all` shows where it looked"
    return (
        f"{summary.new:,} new and {summary.updated:,} changed sessions from {summary.read:,} of "
        f"{summary.units:,} files in {summary.seconds:.1f} s"
    )
