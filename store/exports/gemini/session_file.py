"""Makes the lines of a session file for ``gemini --resume``.

A header with a new id and one complete record per message. Tool results are part of their
calls and not separate records, which would send them twice.

Source: the Gemini CLI format page, section 4.5, also for the file's name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from store.exports.agent_file import NamedFile, title_of, written
from store.exports.gemini.records import PROMPT, Records
from store.exports.reading import SessionReading
from store.exports.turns import iso
from store.exports.typed import typed
from store.text.exact_json import encode_for_output


def write_gemini(reading: SessionReading) -> Iterator[str]:
    """Yield the lines of a session file, whose id is the reading's ``export_id``."""
    yield from written(gemini_file(reading), reading)


def file_name(session_id: str, created_at: int) -> str:
    """Return the required name of a session's file.

    Gemini CLI finds a session only if the last eight characters before the suffix are the
    first ones of its id.

    Args:
        session_id: A UUID.
        created_at: Epoch ms; the UTC minute is in the name.
    """
    minute = datetime.fromtimestamp(created_at / 1000, UTC).strftime("%Y-%m-%dT%H-%M")
    return f"session-{minute}-{session_id[:8]}.jsonl"


def gemini_file(reading: SessionReading, *, cwd: str | None = None) -> NamedFile:
    """Return a session as a file that Gemini CLI can resume.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
    """
    reading = typed(reading)
    folder = cwd or reading.session["workspace_root"] or "/"
    records = list(Records(reading, _model(reading)).of(reading.messages))
    prompt = None
    if records and records[-1].get(PROMPT):
        prompt = records.pop()[PROMPT]
    for record in records:
        record.pop(PROMPT, None)
    created = int(reading.session["created_at"])
    header: dict[str, Any] = {
        "sessionId": reading.export_id,
        "projectHash": hashlib.sha256(folder.encode("utf-8", "surrogateescape")).hexdigest(),
        "startTime": iso(created),
        "lastUpdated": records[-1]["timestamp"] if records else iso(created),
        "kind": "main",
    }
    lines = [encode_for_output(line) for line in (header, *records)] if records else []
    title = title_of(reading.session)
    if title and lines:
        lines.append(encode_for_output({"$set": {"summary": title}}))
    name = file_name(reading.export_id, created)
    return NamedFile(reading.export_id, name, lines, prompt)


def _model(reading: SessionReading) -> str:
    model = reading.session["model"]
    found = model.get("model_id") if isinstance(model, dict) else None
    return str(found or "unknown")
