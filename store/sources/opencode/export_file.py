"""A file that ``opencode export`` printed and ``opencode import`` takes: one session.

Source: the opencode format page, section 2.10: ``{info, messages: [{info, parts}]}``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from store.sources.base.values import mapping, ms_or_0, string
from store.sources.opencode.stored import StoredMessage, StoredPart, StoredSession, in_order, parsed
from store.system.paths import open_regular, read_regular

_HEAD = 4096


def exported_version(path: Path) -> str | None:
    """Return the version that an exported session names, "" for none; None for other files."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD).lstrip()
    except OSError:
        return None
    if not head.startswith(b"{") or b'"info"' not in head or b'"ses_' not in head:
        return None
    try:
        exported = _checked(parsed(read_regular(path)))
    except (OSError, ValueError):
        return None
    return string(exported["info"].get("version")) or "" if exported else None


def _checked(value: Any) -> dict[str, Any]:
    info = mapping(mapping(value).get("info"))
    named = (string(info.get("id")) or "").startswith("ses_") and "time" in info
    return value if named and isinstance(value.get("messages"), list) else {}


def read_export(path: Path) -> StoredSession:
    """Read an exported session.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds no exported session.
    """
    exported = _checked(parsed(read_regular(path)))
    if not exported:
        raise ValueError("holds no exported session")
    info = exported["info"]
    stored = StoredSession(info["id"], info, str(path))
    stored.keep(info)
    messages = []
    for place, one in enumerate(exported["messages"]):
        data = mapping(mapping(one).get("info"))
        name = string(data.get("id"))
        if name is None:
            stored.complain(f"message {place + 1} has no id")
            continue
        times = mapping(data.get("time"))
        at = ms_or_0(times.get("created"))
        moved = max(at, ms_or_0(times.get("completed")))
        message = StoredMessage(name, data, at, moved, (stored.keep(data),))
        for part in one.get("parts") or ():
            if isinstance(part, dict):
                message.parts.append(_part(stored, message, part))
        messages.append(message)
    stored.messages = in_order(messages, lambda one: one.id, lambda one: one.created_at)
    return stored


def _part(stored: StoredSession, message: StoredMessage, part: dict[str, Any]) -> StoredPart:
    times = mapping(part.get("time")) or mapping(mapping(part.get("state")).get("time"))
    at = ms_or_0(times.get("start")) or message.created_at
    name = string(part.get("id")) or f"{message.id}:{len(message.parts):06}"
    return StoredPart(name, part, at, ms_or_0(times.get("end")) or at, stored.keep(part))
