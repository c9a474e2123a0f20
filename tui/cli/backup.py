"""Copy the store to a file: one state of it, checked, while other programs write to it.

The file is private (0600) and one file; it gets its name when its pages and rows have been
checked. It is never written over another one unless --force is given.

--nightly makes the backup that the config wants, if it is due: [backup] folder and keep. The
browser and `backscroll sync` do the same by themselves; with cron, it needs neither.

--dry-run only reads the store and says how large it is.

--json prints {"backup": path, "size", "version", "rows": {table: count}}; with --nightly, null
where none is due.
"""

from __future__ import annotations

import argparse
from typing import Any

from store.config import load_config
from store.engine.snapshots import Snapshot, row_counts
from store.errors import Refused
from store.system.files import AlreadyThere
from store.system.locations import library_path
from store.system.paths import expanded
from store.text import figures
from store.upkeep.backup import back_up, nightly
from store.upkeep.sizes import size_on_disk
from tui.cli.output import Printer, UsageError, home_path, named_path, print_json
from tui.cli.stores import needs_store, refuse_server, refuse_url, store_for_reading
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll backup ~/backups/sessions.db", "a checked copy of your library"),
    ("backscroll backup --nightly", "for cron: what the config wants, if it is due"),
)
_WAY_OUT = (
    "back it up with pg_dump, both of its schemas together (docs/teams.md); `backscroll copy`"
    " writes its sessions to a file"
)
"""Of a store on a server."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=named_path, help="the backup to write")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--nightly", action="store_true", help="the backup that the config wants, if it is due")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Write the backup."""
    if options.nightly == (options.file is not None):
        raise UsageError("name a file, or use --nightly")
    if options.nightly:
        return _nightly(options)
    path = expanded(options.file)
    with store_for_reading(options) as opened, showing() as shown:
        database = needs_store(opened)
        refuse_server(database, _WAY_OUT)
        if options.dry_run:
            made = Snapshot(path, size_on_disk(database.path), row_counts(database.file),
                            database.form.version)
        else:
            try:
                made = back_up(database, path, replace=options.force, progress=shown)
            except AlreadyThere as error:
                raise Refused(f"{error}. Use --force to overwrite it.") from error
    _print(options, made)
    return 0


def _nightly(options: argparse.Namespace) -> int:
    refuse_url(options.store, _WAY_OUT)
    config = load_config()
    if config.backup.folder is None:
        raise Refused(f"No nightly backup is configured: set folder in [backup] of {config.path}")
    store = expanded(options.store or library_path())
    if not store.exists():
        needs_store(None)
    if options.dry_run:
        raise UsageError("--dry-run is for a named file")
    with showing() as shown:
        made = nightly(store, config.backup, progress=shown)
    if made is None:
        if options.json:
            print_json(None)
        else:
            Printer().line(Printer().paint("No backup is due."))
        return 0
    _print(options, made)
    return 0


def _print(options: argparse.Namespace, made: Snapshot) -> None:
    if options.json:
        print_json(as_json(made) | ({"dry_run": True} if options.dry_run else {}))
        return
    printer = Printer()
    verb = "would be written to" if options.dry_run else "written to"
    printer.line(printer.paint(f"{figures.size(made.size)} {verb} {home_path(str(made.path))}"))
    printer.line(printer.paint(words_of(made), "faint"))


def words_of(made: Snapshot) -> str:
    """Return what a backup has, in words."""
    rows = made.rows
    return ", ".join((
        figures.count_of(rows.get("chat_sessions", 0), "session"),
        figures.count_of(rows.get("chat_messages", 0), "message"),
        figures.count_of(rows.get("chat_parts", 0), "part"),
    ))  # fmt: skip


def as_json(made: Snapshot) -> dict[str, Any]:
    """Return what ``--json`` prints of a backup."""
    return {
        "backup": str(made.path), "size": made.size, "version": made.version,
        "rows": dict(made.rows),
    }  # fmt: skip
