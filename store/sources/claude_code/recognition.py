"""Tells by content whether a file or folder is Claude Code's."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

from store.sources.base.json_lines import LINE_LIMIT, read_head, records_of
from store.sources.base.prompt_history import NAME
from store.sources.base.values import mapping
from store.sources.claude_code.rows import string
from store.sources.claude_code.typed import is_history
from store.system.paths import open_regular

FILES_LOOKED_AT = 20
HEAD_BYTES = 256 * 1024
_KEYS_OF_ROW = (b"parentUuid", b"sessionId", b"uuid", b"message")
_TYPE_OF_ROW = re.compile(rb'(?<!\\)"type"\s*:\s*"(?:user|assistant|system|attachment|progress)"')
_OF_QWEN = re.compile(rb'(?<!\\)"(?:systemPayload|provenance|parts)"\s*:')
_NOTES = frozenset(
    [
        "summary",
        "ai-title",
        "custom-title",
        "agent-name",
        "mode",
        "permission-mode",
        "last-prompt",
        "queue-operation",
        "file-history-snapshot",
        "cost-state",
        "atis-latch",
        "tools-used",
    ]
)


def is_session_file(path: Path) -> bool:
    """Return whether a file's first lines are rows or notes of a session."""
    if path.suffix != ".jsonl":
        return False
    try:
        with open_regular(path) as file:
            head = read_head(file, HEAD_BYTES)
            if len(head) >= LINE_LIMIT and b"\n" not in head:
                file.seek(-HEAD_BYTES, os.SEEK_END)
                return _is_of_long_row(head[:HEAD_BYTES] + b"\n" + (file.read() or b""))
            if len(head) > HEAD_BYTES:
                head += file.read(HEAD_BYTES) or b""
    except OSError:
        return False
    found = records_of(head, 50)
    return any(map(_is_of_session, found)) or (not found and _is_of_long_row(head))


def _is_of_long_row(ends: bytes) -> bool:
    """Return whether the ends of a file whose first line is very long are of a row.

    A quote within a text of the row has a backslash before it, so what is found is a key.

    Args:
        ends: The file's first and last bytes.
    """
    keys = (re.search(rb'(?<!\\)"%s"\s*:' % key, ends) for key in _KEYS_OF_ROW)
    return (
        ends.lstrip().startswith(b"{")
        and all(keys)
        and _TYPE_OF_ROW.search(ends) is not None
        and _OF_QWEN.search(ends) is None
    )


def _is_of_session(data: dict[str, Any]) -> bool:
    kind = string(data.get("type"))
    if kind == "summary":
        return string(data.get("leafUuid")) is not None
    if kind in _NOTES:
        return string(data.get("sessionId")) is not None or "snapshot" in data
    rows = ("user", "assistant", "system", "attachment", "progress")
    return (
        kind in rows
        # Qwen Code's rows, which are near to these, have Gemini's messages or payloads.
        and not data.keys() & {"systemPayload", "provenance"}
        and mapping(data.get("message")).get("role") != "model"
        and "parts" not in mapping(data.get("message"))
        and string(data.get("uuid")) is not None
        and "parentUuid" in data
        and ("isSidechain" in data or string(data.get("sessionId")) is not None)
    )


def recognise(path: Path) -> Path | None:
    """Return the root to read: a config folder, ``projects``, one project, or one file."""
    if path.is_file():
        return path if is_session_file(path) else None
    if not path.is_dir():
        return None
    if _holds_session(path):
        return path
    projects = path / "projects"
    base = projects if projects.is_dir() else path
    folders = [Path(entry.path) for entry in _entries(base) if entry.is_dir()]
    if any(_holds_session(folder) for folder in folders[: FILES_LOOKED_AT * 10]):
        return path
    is_config = path.name == ".claude" and (projects.is_dir() or is_history(str(path / NAME)))
    return path if is_config or _is_session_folder(path) else None


def _is_session_folder(path: Path) -> bool:
    """Return whether a folder is the one of a session's side files."""
    return (path / "subagents").is_dir() and _holds_session(path / "subagents")


def _holds_session(folder: Path) -> bool:
    files = (Path(entry.path) for entry in _entries(folder) if entry.name.endswith(".jsonl"))
    return any(is_session_file(file) for file in islice(files, FILES_LOOKED_AT))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
