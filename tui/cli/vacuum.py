"""Write the store's file anew without the space of removed sessions.

Programs that read the store go on meanwhile; what they write waits. The disk needs room for up to
two more copies of the file. If it is interrupted, nothing has changed.

--dry-run says how much space would be given back.

--json prints {"before", "after", "busy"}: bytes of the file and its write-ahead log. "busy" is
true where another program still reads the earlier file; the log shrinks when it ends.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from store.text import figures
from store.upkeep.compacting import Vacuumed, vacuum
from store.upkeep.sizes import size_on_disk, sizes
from tui.cli.output import Printer, note, print_json
from tui.cli.stores import library_for_upkeep, refuse_server
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll vacuum", "give space back to the disk"),
    ("backscroll vacuum --dry-run", "how much that would be"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--dry-run", action="store_true", help="only say how much it would give")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Write the file anew."""
    with library_for_upkeep(options) as database, showing() as shown:
        refuse_server(database, "it gives space back by itself; VACUUM FULL in psql does at once")
        if options.dry_run:
            before = size_on_disk(database.path)
            done = Vacuumed(before, before - sizes(database, shown).free_in_file, False)
        else:
            done = vacuum(database, shown)
    if options.json:
        print_json(asdict(done) | ({"dry_run": True} if options.dry_run else {}))
        return 0
    printer = Printer()
    would = "would take about" if options.dry_run else "takes"
    printer.line(printer.paint(
        f"the store {would} {figures.size(done.after)}; it took {figures.size(done.before)}"))
    if done.busy:
        note("another program reads the store, so its log shrinks only when that ends")
    return 0
