"""Tags around text that an agent would otherwise misinterpret.

An export writes them and the model sees them; the agent's source removes them again.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Literal

Tag = Literal["not_from_user", "prompt"]
"""``not_from_user``: a program's text, in formats that only have user messages for it.
``prompt``: a user's text that begins like a command and would not be sent."""
_WRAPPED = re.compile(r"\A<(not_from_user|prompt)>\n(.*)\n</\1>\s*\Z", re.S)
_FILE = re.compile(
    r'\A<file name="([^"\n]*)" type="([\w.+-]+/[\w.+-]+)">\n(.*)\n</file>\s*\Z', re.S)
_NOT_IN_NAME = re.compile(r'["\x00-\x1f\x7f]+')


def wrapped(text: str, tag: Tag) -> str:
    """Return a text in a tag."""
    return f"<{tag}>\n{text}\n</{tag}>"


def unwrapped(text: str) -> tuple[str | None, str]:
    """Return the tag around a text, or None, and the text without it."""
    found = _WRAPPED.match(text)
    return (found[1], found[2]) if found else (None, text)


def bare_aside(text: str) -> str:
    """Return a text without a ``not_from_user`` tag."""
    tag, inner = unwrapped(text)
    return inner if tag == "not_from_user" else text


def wrapped_file(name: str, media_type: str, text: str) -> str:
    """Return a file's text in a tag with its name, for agents that do not accept such files.

    Args:
        name: The file's name.
        media_type: Its MIME type.
        text: Its content.
    """
    return f'<file name="{_NOT_IN_NAME.sub(" ", name)}" type="{media_type}">\n{text}\n</file>'


def unwrapped_file(text: str) -> dict[str, Any] | None:
    """Return the file part for a text from ``wrapped_file``; None for any other text."""
    found = _FILE.match(text)
    if found is None:
        return None
    name, media_type, inner = found.groups()
    body = base64.b64encode(inner.encode("utf-8", "surrogatepass")).decode("ascii")
    part = {"type": "file", "mediaType": media_type, "url": f"data:{media_type};base64,{body}"}
    return part | ({"filename": name} if name else {})
