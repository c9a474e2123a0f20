"""``python -m store.sync``: runs one sync, or a watcher, and prints progress as JSON lines."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from store.config import Config, load_config
from store.engine import schema
from store.engine.database import Database, cannot_be_made, open_database
from store.engine.opening import NO_SERVER_STORE
from store.engine.server_url import Root, ServerUrl, server_url
from store.engine.transactions import explained
from store.errors import BackscrollError, StoreError
from store.sources import registry
from store.sources.base.protocol import Source
from store.sync import units
from store.sync.engine import Sync
from store.sync.jsontext import json_text
from store.sync.progress import Progress, Summary
from store.sync.roots import roots_from_arguments
from store.sync.server_places import last_place
from store.sync.settings import Settings
from store.sync.targets import StoreTarget, Target, classify, default_targets
from store.sync.wanted import Wanted
from store.system.collection import rare_collection
from store.system.locations import library_path
from store.system.stopping import Stop, stop_with_parent
from store.system.streams import guard_streams
from store.text.neutral import escaped

REPORT_INTERVAL_S = 0.1


def main(arguments: Sequence[str] | None = None) -> int:
    """Sync once, or with ``--watch`` keep syncing; return the exit code.

    Returns:
        0 when the sync ran, even with problems in single files; 1 when the store or a
        named target cannot be used; 2 for wrong usage.
    """
    guard_streams()
    options = _parser().parse_args(arguments)
    options.wanted = Wanted()
    if options.nice and hasattr(os, "nice"):
        os.nice(options.nice)
    stop = Stop()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
    if options.until_stdin_closes:
        hearing = (stop, options.wanted.heard)
        threading.Thread(target=stop_with_parent, args=hearing, daemon=True).start()
    try:
        options.roots = roots_from_arguments(options.roots)
        if options.watch:
            _watch(options, stop)
            return 0
        summary = _sync(options, stop)
    except BackscrollError as error:
        if options.json:
            _print({"event": "error", "message": str(error)})
        print(error, file=sys.stderr)
        return 1
    if options.json:
        _print({"event": "summary", **summary.as_dict()})
    else:
        print(_sentence(summary))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m store.sync", description=__doc__)
    parser.add_argument("roots", nargs="*", metavar="ROOT", help="folder, file or server to read")
    parser.add_argument("--store", type=_file, default=None, help="the library to write to")
    parser.add_argument("--kind", action="append", default=[], help="read only this source")
    parser.add_argument("--json", action="store_true", help="print progress as JSON lines")
    parser.add_argument("--watch", action="store_true", help="keep running and sync changes")
    parser.add_argument("--nice", type=int, default=0, help="add this to the process's nice value")
    parser.add_argument("--helpers", type=int, default=None, help="number of helper processes")
    parser.add_argument(
        "--until-stdin-closes", action="store_true",
        help="end when standard input closes; sessions named there, one a line, are read first",
    )
    return parser


def _file(words: str) -> Path:
    if server_url(words) is not None:
        raise argparse.ArgumentTypeError(NO_SERVER_STORE)
    return Path(words)


def _sync(options: argparse.Namespace, stop: Stop) -> Summary:
    config = load_config()
    targets = _targets(options, config)()
    database = open_for_sync(options.store or library_path())
    try:
        settings = _settings(options, config)
        report = _Reporter() if options.json else lambda progress: None
        return Sync(
            database, settings, on_progress=report, stopped=stop.is_set,
            wanted=options.wanted.take, named=bool(options.roots),
        ).run(targets)  # fmt: skip
    except sqlite3.Error as error:
        raise explained(error, database.path) from error
    finally:
        database.close()


def _watch(options: argparse.Namespace, stop: Stop) -> None:
    from store.sync.watch import Watch

    config = load_config()
    targets = _targets(options, config)
    database = open_for_sync(options.store or library_path())
    try:
        Watch(
            database,
            _settings(options, config),
            targets,
            stop,
            say=_print if options.json else _tell,
            on_progress=_Reporter() if options.json else lambda progress: None,
            scope=_scope(options),
            wanted=options.wanted.take,
            poll=config.sources.poll_files,
        ).run()
    except sqlite3.Error as error:
        raise explained(error, database.path) from error
    finally:
        database.close()


def _settings(options: argparse.Namespace, config: Config) -> Settings:
    settings = Settings(
        keep_originals=config.sources.keep_originals,
        keep_deleted=config.sources.keep_deleted,
        excludes=config.sources.excludes,
    )
    if options.helpers is not None:
        settings.helpers = options.helpers
    return settings


def _scope(options: argparse.Namespace) -> str:
    """Return a digest of the watched roots and kinds; "" for the default places."""
    if not options.roots and not options.kind:
        return ""
    names = [*sorted(options.kind), "", *sorted(_name(root) for root in options.roots)]
    text = "\0".join(names).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=6).hexdigest()


def _name(root: Root) -> str:
    return str(root.absolute()) if isinstance(root, Path) else str(root)


def open_for_sync(path: Path) -> Database:
    """Return the opened library that sync writes to; create it if it is missing.

    Raises:
        StoreError: It is not a Backscroll library, or a newer version wrote it.
    """
    try:
        database = open_database(path, create=True)
    except OSError as error:
        raise StoreError(cannot_be_made(path, error)) from error
    reason = None
    if database.form.name != "own":
        reason = f"{path} belongs to another program; sync writes only to Backscroll libraries"
    elif database.form.version > schema.CURRENT_VERSION:
        reason = f"{path} was written by a newer version of Backscroll; update to sync into it"
    if reason is not None:
        database.close()
        raise StoreError(reason)
    return database


def _targets(options: argparse.Namespace, config: Config) -> Callable[[], list[Target]]:
    """Return a function that lists the targets: the named roots, or the default places."""
    sources = registry.all_sources()
    if options.kind:
        unknown = set(options.kind) - {source.kind for source in sources}
        if unknown:
            raise StoreError(f"no source named {', '.join(sorted(unknown))}")
        sources = tuple(source for source in sources if source.kind in options.kind)
    if not options.roots:
        home = Path.home()
        return lambda: default_targets(config.sources, sources, os.environ, home)
    targets = []
    for root in options.roots:
        target = _known_server(options, root, sources) or classify(root, sources)
        if isinstance(target, StoreTarget):
            raise StoreError(
                f"{root} is not the database of a known agent; to browse it as a store, "
                f"run 'backscroll {root}'"
            )
        if not isinstance(target, Target):
            raise StoreError(f"{root} has no sessions of a known agent")
        targets.append(target)
    return lambda: targets


def _known_server(
    options: argparse.Namespace, root: Root, sources: Sequence[Source]
) -> Target | None:
    """Return a server's target by what the library has from there; None where that is nothing.

    A watcher of it need not wait until the server answers.
    """
    path = options.store or library_path()
    if not options.watch or not isinstance(root, ServerUrl) or not path.exists():
        return None
    with contextlib.closing(open_database(path, write=False)) as database:
        own = database.form.name == "own"
        kinds = units.kinds_of(database, last_place(database, root)) if own else set()
    return next((Target(one, root) for one in sources if one.kind in kinds), None)


class _Reporter:
    """Prints progress at most ten times a second, and always the first and last state."""

    def __init__(self) -> None:
        self._last = -1.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        done = progress.files_done == progress.files_total
        if done or now - self._last >= REPORT_INTERVAL_S:
            self._last = now
            _print({"event": "progress", **progress.as_dict()})


def _print(line: dict[str, object]) -> None:
    try:
        sys.stdout.write(escaped(json_text(line)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader is gone. Committed transactions are kept.
        os._exit(1)


def _sentence(summary: Summary) -> str:
    problems = f", {summary.problems} problems" if summary.problems else ""
    return (
        f"{summary.new} new and {summary.updated} changed sessions from {summary.read} of "
        f"{summary.units} files in {summary.seconds:.1f} s{problems}"
    )


def _tell(event: dict[str, Any]) -> None:
    """Print a watcher's event for people."""
    kind = event.pop("event")
    if kind == "summary":
        print(_sentence(Summary(**event)), flush=True)
    elif kind == "synced":
        noun = "session" if event["synced"] == 1 else "sessions"
        print(f"{event['synced']} {noun} changed ({event['session']})", flush=True)
    elif kind == "activity":
        print(f"{event['state'] or 'ended'}: {event['session']}", flush=True)
    elif kind == "trouble":
        print(event["message"], file=sys.stderr, flush=True)
    elif kind == "server":
        said = event["reason"] or "is read again"
        print(f"{event['server']} {said}", file=sys.stderr, flush=True)
    else:
        print(_WATCHING[kind], flush=True)


_WATCHING = {"standby": "another watcher is running; waiting for it to end", "watching": "watching"}


if __name__ == "__main__":
    rare_collection()
    sys.exit(main())
