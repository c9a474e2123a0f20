"""Examine the store and the files that belong to it; --fix mends what loses nothing.

It checks the file's integrity and foreign keys, rows that belong to nothing, the sums of each
session, the search index, the statistics and the event log against the rows, the JSON of each
column, permissions (0600, your library's folder 0700), free space, sessions stored as running whose
process has ended, and files that killed commands left. Each finding says what to do. --quick leaves
out what reads everything.

Of a store on a server it examines the rows in the same way, the search's indexes, what the role may
do, and the statistics on this machine; PostgreSQL examines its own files (pg_amcheck).

The exit code is 1 if something is left that must be seen to.

--json prints {"path", "well", "checks": [name, ...], "findings": [{"check", "words", "way_out",
"count", "fixable", "fixed", "note"}, ...]}. A note does not make the exit code 1.
"""

from __future__ import annotations

import argparse

from store.engine.server_url import server_url
from store.system.locations import library_path
from store.system.paths import expanded
from store.upkeep.doctor import Examined, examine_file
from store.upkeep.doctor_on_server import examine_server
from tui.cli.output import Printer, print_json
from tui.cli.stores import needs_store
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll doctor", "is all well?"),
    ("backscroll doctor --fix", "mend what can be mended without loss"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--fix", action="store_true", help="mend what can be mended without loss")
    parser.add_argument(
        "--dry-run", action="store_true", help="with --fix: only say what would be mended")
    parser.add_argument("--quick", action="store_true", help="do not read every page and text")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Examine the store."""
    url = server_url(str(options.store)) if options.store else None
    path = expanded(options.store or library_path())
    if options.store is None and not path.exists():
        needs_store(None)
    fix = options.fix and not options.dry_run
    with showing() as shown:
        def tell(check: str) -> None:
            shown(f"checking {check}", 0, 0)

        found = (
            examine_file(path, fix=fix, quick=options.quick, telling=tell)
            if url is None else
            examine_server(url, fix=fix, quick=options.quick, telling=tell))
    if options.json:
        findings = [
            {"check": one.check, "words": one.words, "way_out": one.way_out, "count": one.count,
             "fixable": one.mend is not None, "fixed": one.mended, "note": one.is_note}
            for one in found.findings
        ]
        print_json({"path": str(url or path), "well": found.is_well, "checks": found.checks,
                    "findings": findings})
    else:
        _print(found)
    return 0 if found.is_well else 1


def _print(found: Examined) -> None:
    printer = Printer()
    troubled = {one.check for one in found.findings}
    for check in found.checks:
        if check not in troubled:
            printer.line(printer.paint("ok      ", "ok"), printer.paint(check))
            continue
        for one in found.findings:
            if one.check != check:
                continue
            mark, style = ("fixed   ", "ok") if one.mended else (
                ("note    ", "faint") if one.is_note else ("problem ", "error"))
            printer.line(printer.paint(mark, style), printer.paint(f"{check}: {one.words}"))
            if not one.mended:
                printer.line(printer.paint(f"        {one.way_out}", "faint"))
