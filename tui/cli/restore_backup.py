"""Put a backup in the place of the store.

The backup is checked first, and the present store is kept beside it as a backup of its own, which
the output names; of a damaged store the files are kept as they are. It is refused while another
process has the store open. The search index and the statistics are made again from the backup.

Asks first; scripts use --yes. --dry-run checks everything and changes nothing.

--json prints {"restored": path of the backup, "kept": path or null, "damaged", "rows"}.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from store.system.locations import library_path
from store.system.paths import expanded
from store.upkeep.restoring import Restored, restore_backup
from tui.cli.backup import words_of
from tui.cli.confirming import confirm
from tui.cli.output import Printer, home_path, named_path, print_json
from tui.cli.stores import refuse_url
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll restore-backup ~/backups/sessions.db", "after a question"),
    ("backscroll restore-backup sessions.db --dry-run", "only check the backup"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", type=named_path, help="the backup")
    parser.add_argument("--dry-run", action="store_true", help="check it, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Check the backup, ask, and restore it."""
    refuse_url(options.store, "pg_restore puts a dump of pg_dump into an empty database")
    backup, store = expanded(options.file), expanded(options.store or library_path())
    if not options.dry_run and not options.yes:
        with showing() as shown:
            planned = restore_backup(backup, store, dry_run=True, progress=shown)
        confirm(_plan(planned, store), "Restore it?", otherwise="nothing was restored")
    with showing() as shown:
        done = restore_backup(backup, store, dry_run=options.dry_run, progress=shown)
    if options.json:
        print_json({
            "restored": str(done.backup.path), "kept": None if done.kept is None else
            str(done.kept), "damaged": done.damaged, "rows": dict(done.backup.rows),
            **({"dry_run": True} if options.dry_run else {}),
        })  # fmt: skip
        return 0
    printer = Printer()
    if options.dry_run:
        for line in _plan(done, store):
            printer.line(printer.paint(line))
        return 0
    printer.line(printer.paint(f"restored {home_path(str(backup))}: {words_of(done.backup)}"))
    if done.kept is not None:
        what = "the damaged store" if done.damaged else "what was there"
        printer.line(printer.paint(f"{what} is kept in {home_path(str(done.kept))}", "faint"))
    return 0


def _plan(planned: Restored, store: Path) -> list[str]:
    lines = [f"{home_path(str(planned.backup.path))}: {words_of(planned.backup)}",
             f"goes in the place of {home_path(str(store))}"]
    if planned.kept is not None:
        lines.append(f"what is there now is kept in {home_path(str(planned.kept))}")
    return lines
