"""Copy the store's write-ahead log into its file, and empty the log.

SQLite does this by itself from time to time; a program that reads for long keeps the log large.
The exit code is 1 if another program kept it from finishing.

--json prints {"mode", "busy", "frames", "copied", "before", "after"}; before and after are the
bytes of the log's file.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import get_args

from store.engine.companions import beside, size_of
from store.system.paths import real_path
from store.text import figures
from store.upkeep.compacting import Checkpointed, Mode, checkpoint
from tui.cli.output import Printer, note, print_json
from tui.cli.stores import library_for_upkeep, refuse_server

EXAMPLES = (
    ("backscroll checkpoint", "empty the log"),
    ("backscroll checkpoint --mode passive", "as far as goes without waiting for anybody"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--mode", choices=get_args(Mode), type=str.lower, default="truncate",
        help="as SQLite's wal_checkpoint (default: truncate)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only say how large the log is")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Empty the log."""
    with library_for_upkeep(options) as database:
        refuse_server(database, "the server empties its own log; CHECKPOINT in psql does at once")
        if options.dry_run:
            size = max(0, size_of(beside(real_path(database.path), "-wal")))
            done = Checkpointed(False, 0, 0, size, size)
        else:
            done = checkpoint(database, options.mode)
    if options.json:
        print_json({"mode": options.mode, **asdict(done)})
    else:
        printer = Printer()
        printer.line(printer.paint(
            f"the log has {figures.size(done.after)}; it had {figures.size(done.before)}"))
    if done.busy:
        note("backscroll: another program reads or writes the store, so the log is not empty; try"
             " again when it is done")
    return 1 if done.busy else 0
