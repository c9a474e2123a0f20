"""Lines of Claude Code's ``history.jsonl``: what was typed in which session.

One is ``{display, pastedContents, timestamp, project, sessionId}``; versions before 2.0.70
name no session. Pasted text is in ``pastedContents`` by its number, and in ``display`` as
``[Pasted text #1 +20 lines]``.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.prompt_history import TypedLine, is_log
from store.sources.claude_code.origins import is_local_name
from store.sources.claude_code.rows import epoch_ms, mapping, string

_PASTED = re.compile(r"\[(?:Pasted text|\.\.\.Truncated text) #(\d{1,9})[^\]\n]{0,40}\]")
_KEYS = ("display", "timestamp")


def is_history(path: str) -> bool:
    """Return whether a file is the agent's log of typed lines."""
    return is_log(path, _KEYS)


def typed_line(entry: dict[str, Any]) -> TypedLine | None:
    """Return what an entry says was typed; None where it names no session."""
    session, text = string(entry.get("sessionId")), string(entry.get("display"))
    if session is None or text is None or "/" in session:
        return None
    pasted = mapping(entry.get("pastedContents"))

    def whole(found: re.Match[str]) -> str:
        return string(mapping(pasted.get(found[1])).get("content")) or found[0]

    at, folder = epoch_ms(entry.get("timestamp")) or 0, string(entry.get("project"))
    origin, details = _kind_of(text)
    return TypedLine(session, _PASTED.sub(whole, text), at, folder, origin, details)


def _kind_of(text: str) -> tuple[str, dict[str, Any]]:
    if text.startswith("!") and text[1:].strip():
        return "shell", {"shell": text[1:].strip()}
    name, _, args = text.strip().partition(" ")
    if name.startswith("/") and is_local_name(name):
        return "command", {"command": {"name": name, "args": args.strip()}}
    return "human", {}
