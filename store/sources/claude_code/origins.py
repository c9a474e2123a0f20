"""What a user row says: a person's words, a command, a shell line, or the program's own."""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.requests import CONTINUED, request_of
from store.sources.claude_code.printed import unescaped
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
    ("Another Claude session sent a message:", "notification"),
    ("<channel ", "notification"),
    ("[SYSTEM NOTIFICATION", "notification"),
    (INTERRUPTED, "meta"),
)
_OUTPUTS = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<bash-stdout>",
    "<bash-stderr>",
)
_TAG = re.compile(r"<(command-name|command-args|bash-input)>(.*?)</\1>", re.S)
_SKILL_LOADS = re.compile(r"<command-message>The \".*?\" skill is |<skill-format>")
_LOCAL = frozenset((
    "add-dir", "agents", "allowed-tools", "approved-tools", "bashes", "branch", "bug", "chrome",
    "clear", "color", "compact", "config", "context", "copy", "cost", "desktop",
    "diff", "doctor", "effort", "exit", "export", "extra-usage", "fast", "feedback", "files",
    "fork", "help", "hooks", "ide", "install-github-app", "install-slack-app", "keybindings",
    "login", "logout", "mcp", "memory", "mobile", "model", "new", "output-style", "passes",
    "permissions", "plugin", "plugins", "privacy-settings", "quit",
    "rate-limit-options", "release-notes", "reload-plugins", "remote-control", "remote-env",
    "rename", "resume", "rewind", "sandbox", "skills", "stats", "status", "statusline",
    "stickers", "tasks", "terminal-setup", "theme", "todos", "upgrade", "usage", "vim", "voice",
    "web-setup",
))  # fmt: skip
"""Names of commands that the program itself carries out, whatever words follow them."""


def is_notification(text: str) -> bool:
    """Return whether queued words are the program's own, about a task that runs beside."""
    start = text.lstrip()
    return any(
        origin == "notification" and start.startswith(beginning) for beginning, origin in _STARTS
    )


def is_summary(row: Row) -> bool:
    """Return whether a user row is the summary that a conversation continues from."""
    if row.data.get("isCompactSummary"):
        return True
    only = row.blocks[0].get("text") if len(row.blocks) == 1 else None
    return isinstance(only, str) and only.lstrip().startswith(CONTINUED)


def is_local(metadata: dict[str, Any]) -> bool:
    """Return whether a message's command is one that the program itself carries out."""
    name = mapping(mapping(metadata.get("backscroll")).get("command")).get("name")
    return isinstance(name, str) and is_local_name(name)


def is_local_name(name: str) -> bool:
    """Return whether a slash command is one that the program itself carries out."""
    return name.lstrip("/") in _LOCAL


def asks_model(command: dict[str, Any], text: str) -> bool:
    """Tell by its form whether a command goes to the model, before anything follows it.

    The program puts ``<command-message>`` first where it expands a command into a prompt.
    """
    name = str(command.get("name") or "").lstrip("/")
    return name not in _LOCAL and text.lstrip().startswith("<command-message>")


def command_line(metadata: dict[str, Any]) -> str:
    """Return a command as it was typed."""
    command = mapping(mapping(metadata.get("backscroll")).get("command"))
    return f"{command.get('name') or ''} {command.get('args') or ''}".strip()


def origin_of(row: Row, text: str) -> str:
    """Return ``human``, ``command``, ``shell``, ``notification`` or ``meta``.

    Args:
        row: A user row.
        text: What it says, its texts joined, without what was put around them.
    """
    if row.data.get("isMeta"):
        return "meta"
    kind = mapping(row.data.get("origin")).get("kind")
    if kind == "task-notification":
        return "notification"
    start = text.lstrip()
    if start and not any(map(_asks, row.blocks)):
        return "meta"
    for beginning, origin in _STARTS:
        if start.startswith(beginning):
            skill = origin == "command" and _SKILL_LOADS.search(start)
            return "meta" if skill and "<command-name>/" not in start else origin
    return "human" if kind in (None, "human") else "meta"


def _asks(block: dict[str, Any]) -> bool:
    """Return whether a block is a person's: words of theirs, or a file."""
    if block.get("type") != "text":
        return block.get("type") in ("image", "document")
    text = block.get("text")
    return isinstance(text, str) and bool(request_of(text))


def origin_details(row: Row, origin: str, text: str) -> dict[str, Any]:
    """Return what the inspector and the transcript want to know beside the origin.

    Args:
        row: A user row.
        origin: Its origin (``origin_of``).
        text: Its words.

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
            return {"shell": unescaped(tags.get("bash-input", ""))}
        name = tags.get("command-name", "").strip()
        if not name:
            return {"command": {"name": None, "args": tags.get("command-args", "")}}
        name = name if name.startswith("/") else f"/{name}"
        return {"command": {"name": name, "args": tags.get("command-args", "").strip()}}
    if start.startswith(INTERRUPTED):
        of_message = row.data.get("interruptedMessageId")
        return {"interrupt": of_message if isinstance(of_message, str) else True}
    return {}
