"""Take back the newest change that was made in this store, by whom ever.

A fork that has grown stays: the command says so and exits with 1, and the next undo goes on
with what was done before it. --json prints {"verb", "summary", "session_id"}.
"""

from __future__ import annotations

import argparse

from store.errors import Refused
from store.verbs.undo import undo
from tui.cli.verbs import add_json, answer, working


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Do it."""
    with working(options) as work:
        step = work.do(undo, now=work.now)
    if step.kept is not None:
        raise Refused(f"{step.summary}: {step.kept}; undo again for what was done before it")
    value = {"verb": step.verb, "summary": step.summary, "session_id": step.session_id}
    answer(options, value, f"undone: {step.summary}")
    return 0
