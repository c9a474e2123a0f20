"""Star sessions, or take their star off with --off.

--json prints {"session_ids", "star"}.
"""

from __future__ import annotations

import argparse

from store.database import Database
from store.verbs.marks import star
from tui.cli.verbs import add_json, add_sessions, answer, working


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_sessions(parser)
    parser.add_argument("--off", action="store_true", help="take the star off")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Star them; all of them or none."""

    def star_all(db: Database, sessions: list[str], now: int) -> None:
        for session in sessions:
            star(db, session, on=not options.off, now=now)

    with working(options) as work:
        sessions = list(dict.fromkeys(work.session(name) for name in options.sessions))
        work.do(star_all, sessions, work.now)
    word = "star off" if options.off else "starred"
    value = {"session_ids": sessions, "star": not options.off}
    answer(options, value, *(f"{word}  {session}" for session in sessions))
    return 0
