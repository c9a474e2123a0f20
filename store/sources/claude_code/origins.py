"""What a user row says: a person's words, a command, a shell line, or the program's own."""

from __future__ import annotations

import re
from typing import Any

from store.sources.claude_code.rows import Row, mapping

INTERRUPTED = "[Request interrupted by user"
_STARTS = (
    ("<command-name>", "command"),
    ("<command-message>", "command"),
    ("<local-command-stdout>", "command"),
    ("<local-command-stderr>", "command"),
    ("<local-command-caveat>", "meta"),
    ("<bash-input>", "shell"),
    ("<bash-stdout>", "shell"),
    ("<bash-stderr>", "shell"),
    ("<task-notification>", "notification"),
    ("<agent-notification>", "notification"),
    ("<bash-notification>", "notification"),
    ("<teammate-message", "notification"),
    ("<cross-session-message", "notification"),
    ("<channel ", "notification"),
    (INTERRUPTED, "meta"),
)
_OUTPUTS = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<bash-stdout>",
    "<bash-stderr>",
)
_PUT_BEFORE = re.compile(
    r"\s*<(ide_opened_file|ide_selection|ide_diagnostics|system-reminder)>.*?</\1>\s*", re.S
)
"""What an editor or the program puts before a person's words, in the same row."""
_TAG = re.compile(r"<(command-name|command-args|bash-input)>(.*?)</\1>", re.S)


def own_words(text: str) -> str:
    """Return a prompt without what was put before it; nothing where that is all."""
    while found := _PUT_BEFORE.match(text):
        text = text[found.end() :]
    return text


def origin_of(row: Row, text: str) -> str:
    """Return ``human``, ``command``, ``shell``, ``notification`` or ``meta``."""
    if row.data.get("isMeta"):
        return "meta"
    kind = mapping(row.data.get("origin")).get("kind")
    if kind == "task-notification":
        return "notification"
    start = text.lstrip()
    if start.startswith(("<", "[")):
        if not own_words(start):
            return "meta"
        for beginning, origin in _STARTS:
            if start.startswith(beginning):
                return origin
    return "human" if kind in (None, "human") else "meta"


def origin_details(row: Row, origin: str, text: str) -> dict[str, Any]:
    """Return what the inspector and the transcript want to know beside the origin.

    Returns:
        ``command`` ({name, args}) or ``shell`` (the line) of what was typed, ``output``
        for what it printed, ``interrupt`` for the mark of an interruption.
    """
    start = text.lstrip()
    if origin in ("command", "shell"):
        if start.startswith(_OUTPUTS):
            return {"output": True}
        tags = dict(_TAG.findall(text))
        if origin == "shell":
            return {"shell": tags.get("bash-input", "")}
        return {"command": {"name": tags.get("command-name"), "args": tags.get("command-args", "")}}
    if start.startswith(INTERRUPTED):
        of_message = row.data.get("interruptedMessageId")
        return {"interrupt": of_message if isinstance(of_message, str) else True}
    return {}
