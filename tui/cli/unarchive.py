"""Restore archived sessions to the list, with the subagents that were archived with them.

--json prints {"unarchived": [id, ...]}: those that were archived, subagents last.
"""

from __future__ import annotations

import argparse

from store.verbs.shelf import unarchive
from tui.cli.verbs import add_json, add_sessions, answer, working

EXAMPLES = (
    ("backscroll unarchive 4f1c", "back into the list"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_sessions(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Restore the sessions, as one step of undo."""
    with working(options) as work:
        sessions = [work.session(name) for name in options.sessions]
        changed = work.do(unarchive, sessions, now=work.now)
    answer(options, {"unarchived": changed}, *(f"unarchived  {session}" for session in changed))
    return 0
