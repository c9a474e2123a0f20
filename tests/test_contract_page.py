"""docs/contract.md names tests that are there, and says in bold what does not hold."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLAUSES = 60
SYSTEMS = {"y-agent": 16, "lionagi": 16, "viben": 11, "hub": 11}
"""How many rows each table has at least; none of them may go."""
_TEST = re.compile(r"`(tests/[\w/.-]+\.py)::([\w:]+)`")


def tables() -> dict[str, list[list[str]]]:
    """The rows of each table by the heading above it."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in (ROOT / "docs" / "contract.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif re.match(r"\| \d+ \|", line):
            found.setdefault(heading, []).append([cell.strip() for cell in line.split("|")[1:-1]])
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    """The tests of a module, as pytest names them."""
    found = set[str]()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body
                      if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return frozenset(found)


def test_each_clause_has_a_row() -> None:
    rows = tables()
    contract = rows["The three-table contract"]
    assert [int(row[0]) for row in contract] == list(range(1, CLAUSES + 1))
    for system, count in SYSTEMS.items():
        found = rows[f"What is kept of {system}"]
        assert [int(row[0]) for row in found] == list(range(1, len(found) + 1))
        assert len(found) >= count
    assert all(len(row) == 4 for found in rows.values() for row in found)


def test_the_tests_that_are_named_are_there() -> None:
    gone = []
    for found in tables().values():
        for number, clause, _, shown_by in found:
            tests = _TEST.findall(shown_by)
            assert shown_by == "<br>".join(f"`{path}::{name}`" for path, name in tests), number
            gone += [(clause, path, name) for path, name in tests
                     if not (ROOT / path).is_file() or name not in names_in(path)
                     or not name.rpartition("::")[2].startswith("test_")]
    assert gone == []


def test_a_clause_without_a_test_does_not_hold() -> None:
    for heading, found in tables().items():
        for number, clause, holds, shown_by in found:
            assert shown_by or holds.startswith("**"), (heading, number, clause)
            assert shown_by or not heading.startswith("The three"), (number, clause)
