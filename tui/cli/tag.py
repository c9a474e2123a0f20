"""Add tags to a session, and remove some with --remove.

--json prints {"session_id", "tags"}: the tags that it has now.
"""

from __future__ import annotations

import argparse

from store.verbs.marks import tag
from tui.cli.output import UsageError
from tui.cli.verbs import add_json, add_session, answer, working

EXAMPLES = (
    ("backscroll tag 4f1c bug api", "add two tags"),
    ("backscroll tag 4f1c --remove bug", "remove one"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    parser.add_argument("tags", metavar="TAG", nargs="*", default=[], help="tags to add")
    parser.add_argument(
        "--remove", metavar="TAG", action="append", default=[], help="a tag to remove"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Change the tags and print them."""
    if not options.tags and not options.remove:
        raise UsageError("name a tag to add, or one to remove with --remove")
    with working(options) as work:
        session = work.session(options.session)
        tags = work.do(tag, session, add=options.tags, remove=options.remove, now=work.now)
    answer(options, {"session_id": session, "tags": tags}, f"tags: {', '.join(tags) or 'none'}")
    return 0
