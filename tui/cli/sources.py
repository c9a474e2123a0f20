"""Show where sessions were found, and what could not be read.

With --all also the places where sessions are looked for and nothing is.

--json prints one array: [{"kind", "label", "path", "found": bool, "enabled": bool, "files",
"sessions", "size_bytes", "changed_at": epoch ms or null, "problems": number}, ...]; sessions
counts those in the store from there; with --store postgresql://... those that `sync --store` has
brought to it from your library. The path of a server is its URL without the password, and a
server that cannot be read has a "reason". With --problems each has also
"problem_list": [{"path", "line": 0 for the whole file, "reason", "seen_at": epoch ms}, ...].
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.text import figures
from tui.cli.output import Printer, home_path, local_time, print_json
from tui.cli.stores import store_for_reading
from tui.kit.text import cells

if TYPE_CHECKING:
    from store.sync.problems import StoredProblem

MOST_PATH_COLUMNS = 32
"""A longer path does not widen the column."""
Place = dict[str, Any]

EXAMPLES = (
    ("backscroll sources", "where sessions were found"),
    ("backscroll sources --all", "where sessions are looked for"),
    ("backscroll sources --problems", "what could not be read, and why"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--all", action="store_true", help="list places with nothing there too")
    parser.add_argument("--problems", action="store_true", help="list what could not be read")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


def run(options: argparse.Namespace) -> int:
    """Print the places."""
    from store.copying.places import places_of
    from tui.words.places import more_places, sorted_out

    with store_for_reading(options) as database:
        looked, problems = places_of(database, os.environ, Path.home())
    shown, empty = (looked, []) if options.all else sorted_out(looked)
    found = [place.as_dict() for place in shown]
    if options.problems:
        _add_problems(problems, found)
    if options.json:
        print_json(found)
        return 0
    printer = Printer()
    paths = [home_path(place["path"]) for place in found]
    width = max((cells(path) for path in paths if cells(path) <= MOST_PATH_COLUMNS), default=0)
    labels = max((cells(place["label"]) for place in found), default=0)
    for place, path in zip(found, paths, strict=True):
        place["label"] += " " * (labels - cells(place["label"]))
        _print_place(printer, place, path + " " * (width - cells(path)))
    if empty:
        printer.line(printer.paint(f"{more_places(len(empty))}; --all lists them", "faint"))
    if options.problems and not any(place["problems"] for place in found):
        printer.line(printer.paint("no problems found"))
    return 0


def _add_problems(stored: Sequence[StoredProblem], found: list[Place]) -> None:
    for place in found:
        place["problem_list"] = [
            {"path": one.path, "line": one.line, "reason": one.reason, "seen_at": one.seen_at}
            for one in stored
            if (one.kind, one.root) == (place["kind"], place["path"])
        ]


def _print_place(printer: Printer, place: Place, path: str) -> None:
    style = "ok" if place["found"] else "faint"
    pieces = [
        printer.paint("● " if place["found"] else "○ ", style),
        printer.paint(f"{place['label']} ", "bold"),
        printer.paint(f"{path}  ", "faint"),
    ]
    if not place["enabled"]:
        pieces.append(printer.paint("disabled in the configuration", "faint"))
    elif "reason" in place:
        pieces.append(printer.paint(
            f"{figures.count_of(place['sessions'], 'session')}; it {place['reason']}"
        ))
    elif not place["found"]:
        pieces.append(printer.paint("nothing there", "faint"))
    else:
        pieces.append(printer.paint(
            f"{figures.count_of(place['sessions'], 'session')}, "
            f"{figures.count_of(place['files'], 'file')}, "
            f"{figures.size(place['size_bytes'])}"
        ))  # fmt: skip
    if place["changed_at"] is not None:
        pieces.append(printer.paint(f", last change {local_time(place['changed_at'])}", "faint"))
    if place["problems"]:
        count = figures.count_of(place["problems"], "problem")
        pieces.append(printer.paint(f"  ✗ {count}", "error"))
    printer.line(*pieces)
    for problem in place.get("problem_list", ()):
        where = f"{problem['path']}:{problem['line']}" if problem["line"] else problem["path"]
        printer.line(printer.paint(f"    {home_path(where)}  ", "faint"),
                     printer.paint(problem["reason"], "error"))
