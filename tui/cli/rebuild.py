"""Make a fresh store of the event log alone, and compare it with the store's rows.

The new store has the sessions, messages and parts, row for row, and nothing else: no original
records, no attachments, nothing to undo, no log. `backscroll backup` keeps these of a file,
pg_dump those of a database. FILE must not exist; it gets its name when it is whole. Or name the
URL of a PostgreSQL database that has no sessions yet: all comes in one transaction. The exit code
is 1 if a session is not as the store has it; `backscroll doctor --fix` mends the log.

The log must be on: `backscroll events --on`.

--json prints {"rebuilt": path, "rows": {table: count}, "differing": [id, ...],
"left": {table: count}}; "left" counts the store's other rows, which no log has.
"""

from __future__ import annotations

import argparse

from store.engine.server_url import server_url
from store.errors import Refused
from store.events.rebuilding import rebuild
from store.system.files import AlreadyThere
from store.system.paths import expanded
from store.text import figures
from tui.cli.output import Printer, home_path, named_path, note, print_json
from tui.cli.stores import needs_store, store_for_reading
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll rebuild fresh.db", "the store as the log has it"),
)


_WORDS = {
    "original_records": "original record", "attachments": "attachment",
    "system_prompts": "system prompt", "verb_log": "undo step", "source_units": "known file",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", type=named_path,
                        help="the store to make, or the URL of a database")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Make the store."""
    path = server_url(options.file) or expanded(options.file)
    with store_for_reading(options) as opened, showing() as shown:
        database = needs_store(opened)
        try:
            made = rebuild(database, path,
                           progress=lambda done, total: shown("reading", done, total))
        except AlreadyThere as error:
            raise Refused(f"{error}; name a new one") from error
    if options.json:
        print_json({"rebuilt": made.name, "rows": made.rows, "differing": made.differing,
                    "left": made.left})
    else:
        printer = Printer()
        counts = ", ".join(
            figures.count_of(made.rows[f"chat_{word}s"], word)
            for word in ("session", "message", "part"))
        printer.line(printer.paint(f"{counts} written to {home_path(made.name)}"))
        if made.left:
            names = ", ".join(figures.count_of(count, _WORDS[table])
                              for table, count in made.left.items())
            keeps = "`backscroll backup FILE`" if database.server is None else "pg_dump"
            note(f"Not in the log, so not in the new store: {names}. {keeps} keeps them.")
    if made.differing:
        some = ", ".join(made.differing[:3])
        note(f"backscroll: {len(made.differing):,} sessions are not as the store has them ({some});"
             " run `backscroll doctor --fix`")
    return 1 if made.differing else 0
