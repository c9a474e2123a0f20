"""Remove sessions and their subagents from the store permanently.

This cannot be undone, and no later sync adds them again. The agent's own files are not changed, and
backups of the store still have them.
Asks first; scripts use --yes.

--json prints {"forgotten": [id, ...]}.
"""

from __future__ import annotations

import argparse

from store.engine.database import Database
from store.queries.sessions import resolve
from store.rows import SessionRow
from store.sync.forget import forget
from tui.cli.confirming import confirm
from tui.cli.output import NAME_HELP, Printer, print_json
from tui.cli.stores import store_for_writing

EXAMPLES = (
    ("backscroll forget 4f1c", "remove a session for good, after a question"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "sessions", metavar="SESSION", nargs="+",
        help=NAME_HELP,
    )  # fmt: skip
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Remove the sessions, after confirmation."""
    with store_for_writing(options) as database:
        rows = [resolve(database, name) for name in options.sessions]
        if not options.yes:
            confirm([f"{row.id}  {row.title or 'untitled'}" for row in rows],
                    "Remove permanently?", otherwise="nothing was removed")
        gone = _forget(database, rows)
    if options.json:
        print_json({"forgotten": gone})
    else:
        printer = Printer()
        for session_id in gone:
            printer.line(printer.paint("forgotten  "), printer.paint(session_id, "faint"))
    return 0


def _forget(database: Database, rows: list[SessionRow]) -> list[str]:
    return forget(database, [row.id for row in rows])

