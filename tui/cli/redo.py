"""Redo the last undone change, unless there was a new change since.

--json prints {"verb", "summary", "session_id"}.
"""

from __future__ import annotations

import argparse

from store.verbs.undo import redo
from tui.cli.verbs import add_json, answer, working

EXAMPLES = (
    ("backscroll redo", "make it again"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Redo the change and print it."""
    with working(options) as work:
        step = work.do(redo, now=work.now)
    value = {"verb": step.verb, "summary": step.summary, "session_id": step.session_id}
    answer(options, value, f"redone: {step.summary}")
    return 0
