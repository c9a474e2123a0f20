"""Import sessions that were exported with --to jsonl or --to json.

Sessions keep their ids, so importing twice changes nothing. A session is imported completely or
not at all: a damaged one is reported with its line and skipped, and one that the store has with
different content is not changed. The exit code is 1 then.

--json prints one array: [{"session_id", "title", "outcome": "added"|"unchanged"|"refused",
"messages", "parts", "problems": [text, ...]}, ...]
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from store.imports.reading import Imported, import_file
from tui.cli.output import Printer, file_or_stdin, note, print_json
from tui.cli.stores import store_for_writing

EXAMPLES = (
    ("backscroll import session.jsonl", "what `export` wrote"),
    ("backscroll import - < session.jsonl", "from stdin"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="the exported file; - reads stdin")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def run(options: argparse.Namespace) -> int:
    """Import the file or stdin."""
    with file_or_stdin(options.file) as (path, name):
        return _import(options, path, name)


def _import(options: argparse.Namespace, path: Path, name: str) -> int:
    printer, results = Printer(), list[Imported]()
    with store_for_writing(options) as database:
        for result in import_file(database, path, name=name):
            results.append(result)
            for problem in result.problems:
                note(problem)
            if not options.json:
                _print(printer, result)
    if options.json:
        print_json([asdict(result) for result in results])
    return 1 if any(result.outcome == "refused" for result in results) else 0


def _print(printer: Printer, result: Imported) -> None:
    style = {"added": "ok", "unchanged": "faint", "refused": "error"}[result.outcome]
    title = " ".join((result.title or "").split())
    printer.line(
        printer.paint(f"{result.outcome:<9} ", style),
        printer.paint(f"{result.session_id or '(no session)'}  ", "faint"),
        printer.paint(f"{result.messages:>5} msgs  "),
        printer.paint(title, "bold"),
    )
