"""What to search for everywhere: a query for selected text, a path, a command, an error."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from store.language.query import quoted
from store.rows import is_tool_type
from tui.kit.text import one_line
from tui.words.calls import describe
from tui.words.copying import copyables

LONGEST = 300
"""Characters of a text that are searched for."""
SHORT_TEXT = 120
"""A text without a selection is searched for as a whole up to this length."""
_WORD = re.compile(r"[\w./][\w./-]*")
_PATHS = frozenset({
    "path", "file", "file_path", "filePath", "filename", "absolute_path", "notebook_path",
})
_COMMANDS = frozenset({"command", "cmd", "argv"})
_ERROR = re.compile(r"error|fail|exception|denied|refused|not found|cannot|panic|fatal", re.I)


class Wanted(NamedTuple):
    """Something that can be searched for.

    Attributes:
        name: What it is, such as ``command``.
        text: As it is shown.
        query: What is searched for.
    """

    name: str
    text: str
    query: str


def text_query(text: str) -> str:
    """Return the query for a text: its first line that is not blank, as a phrase."""
    first = (line.strip() for line in text.lstrip()[: 4 * LONGEST].splitlines())
    line = next(first, "")[:LONGEST]
    if _WORD.fullmatch(line):
        return line
    return '"' + line.replace('"', '""') + '"' if line else ""


def value_query(name: str, text: str) -> str:
    """Return the query for a named value: a path is a file's, a command what a call was given.

    Args:
        name: Its name, such as ``command`` or ``input.file_path``.
        text: The value.
    """
    last = name.rpartition(".")[2]
    if last in _PATHS and "\n" not in text.strip():
        return f"file:{quoted(text.strip()[:LONGEST])}" if text.strip() else ""
    words = text_query(text)
    return f"in:input {words}" if last in _COMMANDS and words else words


def wanted_of_part(data: dict[str, Any]) -> list[Wanted]:
    """Return what of a part can be searched for, the likeliest first.

    Args:
        data: The part, decoded.
    """
    text = data.get("text")
    if isinstance(text, str):
        short = text.strip()
        whole = 0 < len(short) <= SHORT_TEXT and "\n" not in short
        return [Wanted("text", one_line(short), text_query(short))] if whole else []
    kind = str(data.get("type") or "")
    if not is_tool_type(kind):
        return []
    found = [
        Wanted(piece.name, one_line(piece.text, LONGEST), value_query(piece.name, piece.text))
        for piece in copyables(data)[:1]
    ]
    error = error_line(data)
    if error:
        found.append(Wanted("error", one_line(error), f"in:output {text_query(error)}"))
    return [wanted for wanted in found if wanted.query]


def error_line(data: dict[str, Any]) -> str:
    """Return the line of a failed call that names the error; "" where the call did not fail."""
    call = describe(data)
    if call.status != "failed":
        return ""
    body = call.result or (call.body if isinstance(call.body, str) else "")
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.search(line)]
    return (named or lines[-1:] or [""])[-1]
