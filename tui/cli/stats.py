"""Print the tokens and cost of sessions, each answer counted once.

--json prints {"spent": group, "by": NAME, "groups": [group, ...], "context": {...}}, where
a group is {"group", "sessions", "answers", "copies", "spent": {"input", "output",
"reasoning", "cache_read", "cache_write"}, "total", "cost_usd"}. With sessions named,
"context" has the tokens in the context of each now, by id (null if unknown). A cost is what the
agent recorded, 0 if it recorded none.
"""

from __future__ import annotations

import argparse
from typing import Any

from store.queries.sessions import resolve
from store.queries.stats import GROUPINGS, Spending, context_tokens, spending
from tui.cli.output import Printer, home_path, print_json
from tui.cli.stores import needs_store, store_for_reading
from tui.words.spending import CELL, HEADS, copies_of, row_of

EXAMPLES = (
    ("backscroll stats", "tokens and cost by model"),
    ("backscroll stats --by day --json", "by day, for a script"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="only these sessions")
    parser.add_argument("--by", choices=GROUPINGS, default="model", help="what to group by")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Print tokens and cost."""
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        ids = [resolve(database, name).id for name in options.sessions] or None
        whole = spending(database, session_ids=ids)
        spent = whole[0] if whole else Spending("")
        groups = spending(database, by=options.by, session_ids=ids)
        context = {name: context_tokens(database, name) for name in ids or ()}
    if options.json:
        print_json(
            {
                "spent": _json(spent),
                "by": options.by,
                "groups": [_json(group) for group in groups],
                "context": context,
            }
        )
        return 0
    _table(Printer(), spent, groups if options.by != "all" else [])
    for name, tokens in context.items():
        printer = Printer()
        words = "unknown" if tokens is None else f"{tokens:,} tokens"
        printer.line(printer.paint(f"in context now  {words}  "), printer.paint(name, "faint"))
    return 0


def _json(group: Spending) -> dict[str, Any]:
    return {
        "group": group.group,
        "sessions": group.sessions,
        "answers": group.answers,
        "copies": group.copies,
        "spent": group.spent,
        "total": group.total,
        "cost_usd": round(group.cost_usd, 6),
    }


def _table(printer: Printer, spent: Spending, groups: list[Spending]) -> None:
    names = [home_path(group.group) or "(none)" for group in groups]
    width = max([len(name) for name in names] + [len("all")])
    printer.line(printer.paint(" " * width + "".join(f"{head:>{CELL}}" for head in HEADS), "faint"))
    for name, group in zip(names, groups, strict=True):
        printer.line(printer.paint(f"{name:<{width}}"), printer.paint(row_of(group)))
    printer.line(printer.paint(f"{'all':<{width}}", "bold"), printer.paint(row_of(spent), "bold"))
    if spent.copies:
        printer.line(
            printer.paint(copies_of(spent.copies), "faint")
        )
