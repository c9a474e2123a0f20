"""Lines of Codex's ``history.jsonl``: ``{session_id, ts, text}``, ts in seconds."""

from __future__ import annotations

from typing import Any

from store.sources.base.prompt_history import TypedLine, is_log
from store.sources.base.values import string, utc_ms

_KEYS = ("session_id", "ts", "text")


def is_history(path: str) -> bool:
    """Return whether a file is the agent's log of typed lines."""
    return is_log(path, _KEYS)


def typed_line(entry: dict[str, Any]) -> TypedLine | None:
    """Return what an entry says was typed, if it says that."""
    session, text = string(entry.get("session_id")) or "", string(entry.get("text"))
    if text is None or "/" in session:
        return None
    return TypedLine(session.lower(), text, utc_ms(entry.get("ts")) or 0)
