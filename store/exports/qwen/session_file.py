"""Makes the lines of a session file for Qwen Code: one chain of records.

Source: the Qwen Code format page, section 7 (hand-made sessions were resumed).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.exports.agent_file import NamedFile, title_of, written
from store.exports.qwen.records import Record, Records
from store.exports.reading import SessionReading
from store.exports.typed import typed
from store.text.exact_json import encode_for_output

VERSION = "0.24.4"
"""The version whose records these are."""


def write_qwen(reading: SessionReading) -> Iterator[str]:
    """Yield the lines of a session file, whose id is the reading's ``export_id``."""
    yield from written(qwen_file(reading), reading)


def qwen_file(reading: SessionReading, *, cwd: str | None = None) -> NamedFile:
    """Return a session as a file that Qwen Code can resume.

    Args:
        reading: The session in its context view.
        cwd: The folder; None for the session's workspace.
    """
    reading = typed(reading)
    session = reading.session
    model = session["model"] if isinstance(session["model"], dict) else {}
    records = Records(reading, str(model.get("model_id") or "unknown"))
    records.take(reading.messages)
    made = records.made
    title = title_of(session, given_only=True)
    if made and title:
        payload = {"customTitle": title, "titleSource": "manual"}
        made = [*made, {"uuid": reading.export_id, "timestamp": made[-1]["timestamp"],
                        "type": "system", "subtype": "custom_title", "systemPayload": payload}]
    common: dict[str, Any] = {
        "sessionId": reading.export_id, "cwd": cwd or session["workspace_root"] or "/",
        "version": VERSION,
    }  # fmt: skip
    lines = [encode_for_output(line) for line in _chained(made, common)]
    return NamedFile(reading.export_id, f"{reading.export_id}.jsonl", lines, records.prompt)


def _chained(records: list[Record], common: dict[str, Any]) -> Iterator[Record]:
    """Yield the records, each with the previous one as its parent."""
    parent: str | None = None
    for record in records:
        yield {"uuid": record["uuid"], "parentUuid": parent, **common, **record}
        parent = record["uuid"]
