"""Archive sessions: they are hidden from the list and stay in the store.

Their subagents are archived with them; forks are not.

--json prints {"archived": [id, ...]}: those that were not archived before, subagents last.
"""

from __future__ import annotations

import argparse

from store.verbs.shelf import archive
from tui.cli.verbs import add_json, add_sessions, answer, working

EXAMPLES = (
    ("backscroll archive 4f1c 77e0", "two sessions at once"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_sessions(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Archive the sessions, as one step of undo."""
    with working(options) as work:
        sessions = [work.session(name) for name in options.sessions]
        changed = work.do(archive, sessions, now=work.now)
    answer(options, {"archived": changed}, *(f"archived  {session}" for session in changed))
    return 0
