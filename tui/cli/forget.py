"""Remove sessions and their subagents from the store permanently.

This cannot be undone, and no later sync adds them again. A session that was deleted is named by its
full id; `backscroll undo` cannot bring it back then. Nothing stays in the event log either. The
agent's own files are not changed, and backups of the store still have them.
Asks first; scripts use --yes.

--json prints {"forgotten": [id, ...]}.
"""

from __future__ import annotations

import argparse

from store.engine.database import Database
from store.errors import NotFound
from store.queries.sessions import resolve
from store.sync.forget import forget
from store.verbs.log import deleted_session
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
        found = [_named(database, name) for name in options.sessions]
        if not options.yes:
            confirm([f"{session_id}  {title}" for session_id, title in found],
                    "Remove permanently?", otherwise="nothing was removed")
        gone = forget(database, [session_id for session_id, _ in found])
    if options.json:
        print_json({"forgotten": gone})
    else:
        printer = Printer()
        for session_id in gone:
            printer.line(printer.paint("forgotten  "), printer.paint(session_id, "faint"))
    return 0


def _named(database: Database, name: str) -> tuple[str, str]:
    """Return the id and the title of a session, also of one that was deleted."""
    try:
        row = resolve(database, name)
    except NotFound:
        kept = deleted_session(database, name)
        if not kept:
            raise
        return kept[0], "deleted; undo could bring it back"
    return row.id, row.title or "untitled"
