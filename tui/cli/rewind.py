"""Rewind a session: hide the messages after one. Files are not changed.

Nothing is deleted: `restore` shows the hidden messages again, and `undo` undoes the rewind.
--preview prints what would be hidden.

--json prints {"session_id", "hidden_at", "messages"}, with --preview {"session_id",
"messages", "tool_calls", "tokens"}.
"""

from __future__ import annotations

import argparse

from store.verbs.rewind import preview_rewind, rewind
from tui.cli.verbs import Work, add_json, add_message, add_session, answer, working

EXAMPLES = (
    ("backscroll rewind 4f1c 9ab2 --preview", "what would be hidden"),
    ("backscroll rewind 4f1c 9ab2", "hide what follows this message"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    add_message(parser)
    parser.add_argument("--preview", action="store_true", help="only print what would be hidden")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Rewind the session, or print what would be hidden."""
    with working(options) as work:
        session = work.session(options.session)
        message = work.message(session, options.message)
        if options.preview:
            _preview(options, work, session, message)
            return 0
        batch = work.do(rewind, session, message, now=work.now)
    value = {"session_id": session, "hidden_at": batch.hidden_at, "messages": batch.messages}
    messages = "message" if batch.messages == 1 else "messages"
    answer(options, value, f"hidden: {batch.messages} {messages}; files were not changed")
    return 0


def _preview(options: argparse.Namespace, work: Work, session: str, message: str) -> None:
    found = preview_rewind(work.database, session, message)
    value = {
        "session_id": session,
        "messages": found.messages,
        "tool_calls": found.tool_calls,
        "tokens": found.tokens,
    }
    answer(
        options,
        value,
        f"would hide {found.messages} messages with {found.tool_calls} tool calls"
        f" ({found.tokens:,} tokens); files would not be changed",
    )
