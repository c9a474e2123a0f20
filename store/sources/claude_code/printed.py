"""Shell lines and what commands printed, without the tags that the program puts around them.

The program escapes ``&``, ``<`` and ``>`` in what a shell line printed; earlier versions did not.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import replace

from store.sources.base.drafts import PartDraft

_PRINTED = re.compile(
    r"\s*<((?:bash|local-command)-std(?:out|err))>(.*?)</\1>\s*", re.S
)
_ESCAPED = re.compile(r"(?:[^<>&]|&(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)*")


def unescaped(text: str) -> str:
    """Return a text as it was before it was put between tags.

    One that has a bare ``&``, ``<`` or ``>`` was not escaped and stays as it is.
    """
    return html.unescape(text) if "&" in text and _ESCAPED.fullmatch(text) else text


def printed(text: str) -> str:
    """Return what a command printed, errors last; a text of another form stays as it is."""
    said, at = [], 0
    while block := _PRINTED.match(text, at):
        said.append(unescaped(block[2]).strip("\n"))
        at = block.end()
    if not said or at < len(text):
        return text
    return "\n".join(filter(None, said))


def printed_parts(parts: Iterable[PartDraft]) -> list[PartDraft]:
    """Return a message's parts with each text as ``printed`` gives it."""
    return [
        replace(part, data={**part.data, "text": printed(part.data["text"])})
        if part.type == "text" else part
        for part in parts
    ]
