"""Print sessions with their forks, subagents and continuations.

Without SESSION, prints every session that has any. Runs that agents started for themselves are
omitted unless --helpers or the setting ui.helpers is given. --json prints an array of {"id",
"title", "kind": "root"|"fork"|"subagent"|"continuation"|"unknown", "depth", "parent_id",
"parent_message_id", "fork_turn", "turns": null if not read yet, "total_tokens", "archived_at",
"labels": {message id: text}}.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from store.config import load_config
from store.engine.database import Database
from store.queries.lineage import FamilyNode, families, family, turn_counts, turn_number
from store.queries.sessions import resolve
from store.queries.user_marks import user_marks
from store.system.streams import Painted, joined
from store.text import figures
from tui.cli.output import Printer, note, print_json
from tui.cli.stores import needs_store, store_for_reading

GLYPHS = {"fork": "↱", "subagent": "↳", "continuation": "→", "unknown": "·", "root": ""}

EXAMPLES = (
    ("backscroll tree 4f1c", "the session's family"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help="any session of the family")
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    parser.add_argument(
        "--helpers", action="store_true",
        help="also runs that agents started for themselves (setting: ui.helpers)",
    )


def run(options: argparse.Namespace) -> int:
    """Print the families."""
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        current = resolve(database, options.session).id if options.session else None
        helpers = options.helpers or load_config().ui.helpers
        roots = [current] if current else families(database, helpers=helpers)
        groups = [family(database, root, helpers=helpers) for root in roots]
        if options.json:
            print_json([fact for nodes in groups for fact in _facts(database, nodes)])
            return 0
        if not groups:
            note("No session has forks, subagents or continuations.")
        printer = Printer()
        for nodes in groups:
            for line in _lines(database, nodes, current, printer):
                printer.line(line)
    return 0


def _facts(db: Database, nodes: list[FamilyNode]) -> Iterator[dict[str, Any]]:
    turns = turn_counts(db, [node.id for node in nodes])
    for node in nodes:
        yield {
            "id": node.id,
            "title": node.title,
            "kind": node.kind,
            "depth": node.depth,
            "parent_id": node.parent_id,
            "parent_message_id": node.parent_message_id,
            "fork_turn": _fork_turn(db, node),
            "turns": None if node.outline else turns[node.id],
            "total_tokens": node.total_tokens,
            "archived_at": node.archived_at,
            "labels": user_marks(db, node.id).get("labels", {}) if node.labels else {},
        }


def _fork_turn(db: Database, node: FamilyNode) -> int | None:
    if node.parent_id is None or node.parent_message_id is None:
        return None
    return turn_number(db, node.parent_id, node.parent_message_id)


def _lines(
    db: Database, nodes: list[FamilyNode], current: str | None, printer: Printer
) -> Iterator[Painted]:
    turns = turn_counts(db, [node.id for node in nodes])
    open_lines: list[bool] = []
    for node in nodes:
        del open_lines[max(node.depth - 1, 0) :]
        stem = "".join("│  " if more else "   " for more in open_lines)
        if node.depth:
            stem += "└─ " if node.last_of_parent else "├─ "
            open_lines.append(not node.last_of_parent)
        glyph = f"{GLYPHS[node.kind]} " if GLYPHS[node.kind] else ""
        at = _fork_turn(db, node)
        facts = ["not read yet"] if node.outline else [
            figures.count_of(turns[node.id], "turn"), figures.tokens(node.total_tokens)]
        facts += [f"at turn {at}"] if at else []
        facts += ["archived"] if node.archived_at is not None else []
        title = " ".join((node.title or "untitled").split())
        style = ("bold",) if node.id == current else ()
        yield joined((
            printer.paint(stem, "rule"), printer.paint(glyph, "fork"),
            printer.paint(title, *style), printer.paint(f"  {' · '.join(facts)}", "faint"),
            printer.paint(f"  {node.id}", "faint"),
            printer.paint("  ← this one" if node.id == current else "", "ok"),
        ))  # fmt: skip
