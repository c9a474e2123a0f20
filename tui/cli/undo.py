"""Undo the last change in this store, whoever made it.

A fork that has new messages is kept: the exit code is 1, and the next undo undoes the change
before it. --json prints {"verb", "summary", "session_id"}.
"""

from __future__ import annotations

import argparse

from store.errors import Refused
from store.verbs.undo import undo
from tui.cli.verbs import add_json, answer, working

EXAMPLES = (
    ("backscroll undo", "take the newest change back"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Undo the last change and print it."""
    with working(options) as work:
        step = work.do(undo, now=work.now)
    if step.kept is not None:
        raise Refused(f"{step.summary}: {step.kept}; undo again to undo the change before it")
    value = {"verb": step.verb, "summary": step.summary, "session_id": step.session_id}
    answer(options, value, f"undone: {step.summary}")
    return 0
