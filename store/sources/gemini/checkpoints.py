"""Conversations saved by ``/chat save <tag>``, and restore points of edits.

A saved conversation names no session; the typed prompts in ``logs.json`` do. A restore
point names its tool and file and the time before the edit, which is enough to find the
call; what it holds (the whole history again) is not read.

Source: the Gemini CLI format page, section 4.1.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from store.sources.base.drafts import AttachmentDraft, MessageDraft, SessionDraft
from store.sources.base.growing import denial, entries_of, stamped
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.gemini.content import text_of
from store.system.paths import open_regular

_SAVED = re.compile(r"checkpoint-(.+)\.json")
_TYPED = re.compile(r"/(?:chat|resume)\s+save\s+(\S.*?)\s*$")
_POINT = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d)_(\d{3})Z-(.+)-(\w+)\.json")
_PATHS = ("file_path", "absolute_path", "path")
_EARLIER_MS = 600_000
"""How long before its answer was written, at most, a restore point was made for a call."""
_STARTED = re.compile(r"session-(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-")
_SLACK_MS = 600_000
"""How far beyond the time of a session's file its restore points are looked for."""
POINTS = "checkpoints"
"""The folder of a project that has restore points."""
_LOG_LIMIT = 16 * 1024 * 1024


class Point(NamedTuple):
    """A restore point: when it was made, for which file and tool, and its own name."""

    at: int
    file: str
    tool: str
    name: str


def is_checkpoint(path: str) -> bool:
    """Return whether a file of a unit is a saved conversation."""
    return _SAVED.fullmatch(os.path.basename(path)) is not None


def saved_by_session(project: str, problems: list[Problem]) -> dict[str, list[FileStamp]]:
    """Return a project's saved conversations by the id of the session that saved them last."""
    files = {
        unquote(found[1]): entry
        for entry in entries_of(project)
        if (found := _SAVED.fullmatch(entry.name))
    }
    if not files:
        return {}
    by_session: dict[str, list[FileStamp]] = {}
    for tag, session_id in _savers(project, problems).items():
        if tag in files:
            by_session.setdefault(session_id, []).extend(stamped(files[tag], problems))
    return by_session


def _savers(project: str, problems: list[Problem]) -> dict[str, str]:
    path = os.path.join(project, "logs.json")
    try:
        with open_regular(path) as file:
            rows = parse_value(file.read(_LOG_LIMIT))
    except OSError as error:
        problems += denial(path, error)  # Only interactive sessions write it.
        return {}
    except LineError:
        return {}
    found: dict[str, str] = {}
    for row in rows if isinstance(rows, list) else ():
        typed = _TYPED.match(string(mapping(row).get("message")) or "")
        session_id = string(mapping(row).get("sessionId"))
        if typed and session_id:
            found[typed[1]] = session_id
    return found


def add_checkpoints(draft: SessionDraft, bodies: dict[str, bytes], problems: list[Problem]) -> None:
    """Note a session's saved conversations, and keep them as side files.

    Args:
        draft: The session.
        bodies: The saved files by path.
        problems: Takes those that cannot be read.
    """
    noted: list[dict[str, Any]] = []
    for path, body in sorted(bodies.items()):
        name = os.path.basename(path)
        saved = _SAVED.fullmatch(name)
        history = _history(path, body, problems)
        if saved is None or history is None:
            continue
        note: dict[str, Any] = {"tag": unquote(saved[1]), "entries": len(history)}
        message = _last_in(draft.messages, history)
        if message is not None:
            note["message_source_id"] = message.source_id
        noted.append(note | {"attachment": name})
        draft.attachments.append(AttachmentDraft(name, "application/json", body))
    if noted:
        draft.metadata["backscroll"]["checkpoints"] = noted


def _history(path: str, body: bytes, problems: list[Problem]) -> list[Any] | None:
    try:
        data = parse_value(body)
    except LineError as error:
        problems.append(Problem(path, 0, str(error)))
        return None
    # Older versions saved the list alone.
    history = data.get("history") if isinstance(data, dict) else data
    if isinstance(history, list):
        return history
    problems.append(Problem(path, 0, "no saved conversation"))
    return None


def _last_in(messages: list[MessageDraft], history: list[Any]) -> MessageDraft | None:
    """Return the message that the saved conversation ends with."""
    words = next(
        (text for content in reversed(history)
         if (text := text_of(mapping(content).get("parts")).strip())), None
    )  # fmt: skip
    for message in reversed(messages) if words else ():
        said = "".join(part.data["text"] for part in message.parts if part.type == "text")
        if said.strip() == words:
            return message
    return None


def points_at(project: str) -> list[Point]:
    """Return the restore points of a project, by name."""
    names = (entry.name for entry in entries_of(os.path.join(project, POINTS)))
    return [point for name in names if (point := _point(name)) is not None]


def points_within(points: Iterable[Point], files: Iterable[FileStamp]) -> list[str]:
    """Return the names of the restore points that were made while a session's files grew.

    Args:
        points: Those of the project.
        files: The session's files.
    """
    spans = [_span(file) for file in files]
    return [point.name for point in points
            if any(first <= point.at <= last for first, last in spans)]  # fmt: skip


def _span(file: FileStamp) -> tuple[float, float]:
    found = _STARTED.match(os.path.basename(file.path))
    began = epoch_ms(f"{found[1]}:{found[2]}:00Z") if found else None
    written = file.mtime_ns // 1_000_000
    if began is None or written < began:
        # A file that was written before it was begun tells no end.
        return began or 0, math.inf
    return began - _SLACK_MS, written + _SLACK_MS


def mark_restore_points(draft: SessionDraft, points: Sequence[Point]) -> None:
    """Name the restore point of each call that has one, as ``restore_point``."""
    for message in draft.messages if points else ():
        for part in message.parts:
            given = mapping(part.data.get("input"))
            path = next((given[key] for key in _PATHS if string(given.get(key))), "")
            fitting = [
                (at, name)
                for at, file, tool, name in points
                if part.type == f"tool-{tool}"
                and os.path.basename(path) == file
                and part.created_at - _EARLIER_MS <= at <= part.updated_at
            ]
            if fitting:
                bag = part.data.setdefault("resultProviderMetadata", {})
                bag.setdefault("backscroll", {})["restore_point"] = max(fitting)[1]


def _point(name: str) -> Point | None:
    """Return what the name of a restore point tells."""
    found = _POINT.fullmatch(name)
    if found is None:
        return None
    day, hour, minute, second, milli, file, tool = found.groups()
    at = epoch_ms(f"{day}{hour}:{minute}:{second}.{milli}Z")
    return Point(at, file, tool, name) if at is not None else None
