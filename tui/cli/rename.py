"""Rename a session. Your title replaces the agent's, also after later syncs.

--json prints {"session_id", "title"}.
"""

from __future__ import annotations

import argparse

from store.verbs.marks import rename
from tui.cli.verbs import add_json, add_session, answer, working

EXAMPLES = (
    ("backscroll rename 4f1c 'Retry loop in the sync worker'", "give a title"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    parser.add_argument("title", metavar="TITLE", help="the new title")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Rename the session and print the title."""
    with working(options) as work:
        session = work.session(options.session)
        title = work.do(rename, session, options.title, now=work.now)
    answer(options, {"session_id": session, "title": title}, f"renamed to “{title}”")
    return 0
