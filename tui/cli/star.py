"""Star sessions, or remove the star with --off.

--json prints {"session_ids", "star"}.
"""

from __future__ import annotations

import argparse

from store.verbs.marks import star_all
from tui.cli.verbs import add_json, add_sessions, answer, working

EXAMPLES = (
    ("backscroll star 4f1c", "mark a session"),
    ("backscroll star 4f1c --off", "remove the mark"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_sessions(parser)
    parser.add_argument("--off", action="store_true", help="remove the star")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Star all sessions or none, as one step of undo."""
    with working(options) as work:
        sessions = list(dict.fromkeys(work.session(name) for name in options.sessions))
        work.do(star_all, sessions, on=not options.off, now=work.now)
    word = "star off" if options.off else "starred"
    value = {"session_ids": sessions, "star": not options.off}
    answer(options, value, *(f"{word}  {session}" for session in sessions))
    return 0
