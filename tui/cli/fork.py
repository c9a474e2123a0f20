"""Copy a session, up to and including a message, into a new one.

Prints the id of the new session on the first line. With --before, the message, which must be a
user's, is not copied; its text is printed after the id, for editing. Its images and files are
listed on stderr.

--json prints {"session_id", "title", "messages", "parts", "tool_calls", "prompt", "files"}.
"""

from __future__ import annotations

import argparse

from store.ids import IdMinter
from store.verbs.fork import fork
from tui.cli.output import note
from tui.cli.verbs import add_json, add_message, add_session, answer, working

EXAMPLES = (
    ("backscroll fork 4f1c 9ab2", "a copy that ends with this message"),
    ("backscroll fork 4f1c 9ab2 --before", "one that ends before this user message"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    add_message(parser)
    parser.add_argument("--before", action="store_true", help="fork before this user message")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Fork the session and print the new id."""
    with working(options) as work:
        session = work.session(options.session)
        message = work.message(session, options.message)
        made = work.do(fork, session, message, before=options.before, ids=IdMinter(), now=work.now)
    preview = made.preview
    value = {
        "session_id": made.session_id,
        "title": preview.title,
        "messages": preview.messages,
        "parts": preview.parts,
        "tool_calls": preview.tool_calls,
        "prompt": preview.prompt,
        "files": list(preview.files),
    }
    if preview.files:
        note(f"not included, attach again: {', '.join(preview.files)}")
    prompt = [preview.prompt] if preview.prompt else []
    answer(options, value, made.session_id, *prompt)
    return 0
