"""Tells by content whether a file or folder is Codex's."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from store.sources.base.json_lines import LINE_LIMIT, LineError, parse_line, read_head, records_of
from store.sources.base.prompt_history import NAME
from store.sources.base.values import mapping, string
from store.sources.codex.discovery import ARCHIVED, IN_USE, rollout_stamps
from store.sources.codex.names import DOCUMENT, PACKED, rollout_name
from store.sources.codex.typed import is_history
from store.system.paths import open_regular

FILES_LOOKED_AT = 20
_HEAD = 262_144
_TYPES = frozenset(
    ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"]
)


def is_rollout(path: Path) -> bool:
    """Return whether a file's first lines are a rollout's."""
    if path.name.endswith(PACKED):
        return rollout_name(path.name) is not None
    if path.suffix not in (".jsonl", DOCUMENT):
        return False
    try:
        with open_regular(path) as file:
            head = read_head(file, LINE_LIMIT if path.suffix == DOCUMENT else _HEAD)
    except OSError:
        return False
    if path.suffix == DOCUMENT:
        return _is_document(head)
    return any(_is_line(data) for data in records_of(head, 20))


def _is_document(body: bytes) -> bool:
    try:
        data, _ = parse_line(body)
    except LineError:
        return False
    session = mapping(data.get("session"))
    return isinstance(data.get("items"), list) and {"id", "timestamp"} <= session.keys()


def _is_line(data: dict[str, Any]) -> bool:
    payload = data.get("payload")
    if isinstance(payload, dict):
        return string(data.get("type")) in _TYPES and "timestamp" in data
    first = {"id", "timestamp", "instructions"} <= data.keys() and "type" not in data
    return first and string(data.get("id")) is not None and mapping(data) is data


def recognise(path: Path) -> Path | None:
    """Return the root to read: a home, ``sessions``, a folder below it, or one file."""
    if path.is_file():
        return path if is_rollout(path) else None
    if not path.is_dir():
        return None
    stamps = islice(rollout_stamps(path, []), FILES_LOOKED_AT)
    if any(is_rollout(Path(stamp.path)) for stamp in stamps):
        return path
    parts = (path / IN_USE).is_dir() or (path / ARCHIVED).is_dir()
    is_home = path.name == ".codex" and (parts or is_history(str(path / NAME)))
    return path if is_home else None
