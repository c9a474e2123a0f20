"""Makes the lines of a session file for Claude Code: one linear chain."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from store.exports.agent_file import title_of, written
from store.exports.claude_code.turns import Turn, turns
from store.exports.kept_records import KeptRecords
from store.exports.reading import Row, SessionReading
from store.exports.steps import handed_over
from store.exports.typed import typed
from store.text.exact_json import encode_for_output
from store.usage import whole_counts

VERSION = "2.1.332"
"""The newest version whose resume the recipe was tested with."""


_SENT_BY = ("isMeta", "isCompactSummary", "origin")
"""Keys of a row that determine how Claude Code sends it."""


@dataclass(frozen=True, slots=True)
class ClaudeFile:
    """A session file for Claude Code.

    Attributes:
        session_id: A UUID: the file's name and the argument of ``--resume``.
        cwd: The session's folder.
        lines: JSON lines without their newline.
        prompt: An unanswered last prompt, which is not in the file but passed to ``claude``;
            in the file it would be answered at once.
    """

    session_id: str
    cwd: str
    lines: list[str]
    prompt: str | None


def write_claude_code(reading: SessionReading) -> Iterator[str]:
    """Yield the lines of a session file, to be named by the reading's ``export_id``."""
    yield from written(claude_file(reading), reading)


def claude_file(reading: SessionReading, *, cwd: str | None = None) -> ClaudeFile:
    """Return a session as a file that Claude Code can resume.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
    """
    reading = typed(reading)
    name = reading.export_id
    folder = cwd or reading.session["workspace_root"] or "/"
    said = list(turns(reading.messages, KeptRecords(reading, "claude-code")))
    prompt = None
    if said and said[-1].prompt:
        prompt = handed_over(said[-1].content)
        said = said[:-1] if prompt is not None else said
    builder = _Lines(name, folder, reading.session)
    lines = [encode_for_output(line) for line in builder.lines(said)]
    title = title_of(reading.session)
    if title and lines:
        note = {"type": "custom-title", "customTitle": title, "sessionId": name}
        lines.append(encode_for_output(note))
    return ClaudeFile(name, folder, lines, prompt)


class _Lines:
    """Makes linked lines from turns."""

    def __init__(self, name: str, cwd: str, session: Row) -> None:
        self._name, self._cwd = name, cwd
        metadata = session["metadata"] if isinstance(session["metadata"], dict) else {}
        self._branch = metadata.get("git_branch")
        model = session["model"] if isinstance(session["model"], dict) else {}
        self._model = model.get("model_id") or "unknown"
        self._used: set[str] = set()

    def lines(self, said: list[Turn]) -> Iterator[dict[str, Any]]:
        """Yield the lines of a chain; each has the previous one as its parent."""
        parent: str | None = None
        for number, turn in enumerate(said):
            row_id = self._row_id(turn, number)
            line: dict[str, Any] = {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": self._cwd,
                "sessionId": self._name,
                "version": VERSION,
                "type": turn.role,
                "message": self._message(turn),
                "uuid": row_id,
                "timestamp": _iso(turn.at),
            }
            if isinstance(self._branch, str):
                line["gitBranch"] = self._branch
            yield line | _kept(turn)
            parent = row_id

    def _row_id(self, turn: Turn, number: int) -> str:
        """Return the row's own uuid if it is unused, else one derived from its position."""
        wanted = turn.original.get("uuid")
        if not isinstance(wanted, str) or wanted in self._used:
            wanted = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._name} {number}"))
        self._used.add(wanted)
        return wanted

    def _message(self, turn: Turn) -> dict[str, Any]:
        if turn.role == "user":
            content: Any = turn.content
            if len(content) == 1 and content[0]["type"] == "text":
                content = content[0]["text"]
            return {"role": "user", "content": content}
        assert turn.source is not None
        original = turn.original.get("message")
        given = original if isinstance(original, dict) else {}
        metadata = turn.source["metadata"] if isinstance(turn.source["metadata"], dict) else {}
        model = metadata.get("model")
        model_id = model.get("model_id") if isinstance(model, dict) else None
        return {
            "id": given.get("id") or turn.source["id"],
            "type": "message",
            "role": "assistant",
            "model": given.get("model") or model_id or self._model,
            "content": turn.content,
            "stop_reason": "tool_use" if turn.content[-1]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": given.get("usage") or _usage(metadata.get("usage")),
        }


def _kept(turn: Turn) -> dict[str, Any]:
    """Return the kept keys of an original row, and where the turn was copied from."""
    kept = {key: turn.original[key] for key in _SENT_BY if turn.original.get(key)}
    origin, row_id = turn.original.get("sessionId"), turn.original.get("uuid")
    if isinstance(origin, str) and isinstance(row_id, str):
        kept["forkedFrom"] = {"sessionId": origin, "messageUuid": row_id}
    elif turn.source is not None:
        kept["forkedFrom"] = {
            "sessionId": turn.source["session_id"],
            "messageUuid": turn.source["id"],
        }
    return kept


def _usage(usage: object) -> dict[str, int]:
    """Return the five token buckets in the API's form."""
    counts = whole_counts(usage)
    return {
        "input_tokens": counts["input"],
        "output_tokens": counts["output"] + counts["reasoning"],
        "cache_read_input_tokens": counts["cache_read"],
        "cache_creation_input_tokens": counts["cache_write"],
    }


def _iso(at: Any) -> str:
    """Return epoch ms in the agent's form; an invalid value becomes the epoch."""
    try:
        moment = datetime.fromtimestamp(at / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
