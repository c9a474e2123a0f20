"""Show the messages that a rewind hid: of the newest rewind, or of the one that --batch names.

--list prints the rewinds. --json prints {"session_id", "hidden_at",
"messages"}, with --list an array of {"hidden_at", "messages", "by_user"}.
"""

from __future__ import annotations

import argparse

from store.verbs.rewind import batches, restore
from tui.cli.output import local_time
from tui.cli.verbs import add_json, add_session, answer, working

EXAMPLES = (
    ("backscroll restore 4f1c", "undo the newest rewind"),
    ("backscroll restore 4f1c --list", "list the rewinds"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    parser.add_argument(
        "--batch", type=int, metavar="MS", help="the time of the rewind (default: the newest)"
    )
    parser.add_argument("--list", action="store_true", help="list the rewinds")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Restore the messages, or list the rewinds."""
    with working(options) as work:
        session = work.session(options.session)
        if options.list:
            found = batches(work.database, session)
            rows = [
                {"hidden_at": b.hidden_at, "messages": b.messages, "by_user": b.by_user}
                for b in found
            ]
            lines = [
                f"{b.hidden_at}  {local_time(b.hidden_at)}  {b.messages} messages" for b in found
            ]
            answer(options, rows, *lines)
            return 0
        batch = work.do(restore, session, batch=options.batch, now=work.now)
    value = {"session_id": session, "hidden_at": batch.hidden_at, "messages": batch.messages}
    messages = "message" if batch.messages == 1 else "messages"
    answer(options, value, f"restored: {batch.messages} {messages}")
    return 0
