"""Tags around what an agent would otherwise take for something else.

An export writes them, for the model to read; the agent's source takes them off again.
"""

from __future__ import annotations

import re
from typing import Literal

Tag = Literal["not_from_user", "prompt"]
"""``not_from_user``: what a program told the model, where a user's message is all there is.
``prompt``: a user's words, where they begin like a command that would not be sent."""
_WRAPPED = re.compile(r"\A<(not_from_user|prompt)>\n(.*)\n</\1>\s*\Z", re.S)


def wrapped(text: str, tag: Tag) -> str:
    """Return a text in a tag."""
    return f"<{tag}>\n{text}\n</{tag}>"


def unwrapped(text: str) -> tuple[str | None, str]:
    """Return the tag around a text, None where there is none, and the text without it."""
    found = _WRAPPED.match(text)
    return (found[1], found[2]) if found else (None, text)


def bare_aside(text: str) -> str:
    """Return a text without the tag that says that a program wrote it."""
    tag, inner = unwrapped(text)
    return inner if tag == "not_from_user" else text
