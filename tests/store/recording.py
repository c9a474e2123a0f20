"""Helpers for tests of the recorder: the SDK's streams, and a store to record into."""

from __future__ import annotations

import copy
import json
from itertools import count
from pathlib import Path
from typing import Any

from store.engine.database import Database
from store.engine.json_edits import set_json
from store.recorder.policy import SavePolicy
from store.recorder.procedures import drive
from store.recorder.reading import read_ui_message
from store.recorder.recorder import Recorder
from store.recorder.recording import Recording
from store.recorder.reducer import MessageState

DATA = Path(__file__).parents[1] / "data"
VECTORS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((DATA / "ai-sdk-v6").glob("*.json"))
}
REFUSED = "protocol-error-delta-without-start"
"""The stream that the SDK's reader refuses in its middle; a store keeps its rest."""
ACTIONS: list[dict[str, Any]] = json.loads((DATA / "ai-sdk-v6-client-actions.json").read_text())
AT_ONCE = SavePolicy(save_buffer_ms=0)


def plain(message: object) -> Any:
    """Return a message as JSON has it."""
    return json.loads(json.dumps(message))


def new_state(sdk: Any = 6) -> MessageState:
    numbers = count()
    return MessageState(lambda: f"prt_{next(numbers)}", lambda: 0, sdk)


def record(
    db: Database, chunks: list[dict[str, Any]], *, session: str | None = None,
    policy: SavePolicy = AT_ONCE, sdk: Any = 6, **options: Any,
) -> tuple[Recording, str]:
    """Record a stream; return the recording, still open, and the id of its last message."""
    recording = Recording(policy=policy, sdk=sdk, **options)
    drive(db, recording.start(session))
    return recording, feed(db, recording, chunks)


def feed(db: Database, recording: Recording, chunks: list[dict[str, Any]]) -> str:
    message_id = ""
    for chunk in copy.deepcopy(chunks):
        if drive(db, recording.receive(chunk)):
            drive(db, recording.save())
        message_id = recording.message.id if recording.message else message_id
    return message_id


def leave_without_a_word(db: Database, recording: Recording) -> None:
    """Leave the session as a process does that is killed once everything is flushed."""
    drive(db, recording.save(exact=True))
    running = db.connection.execute(
        f"SELECT s.id FROM chat_sessions s WHERE {db.form.fact('s', 'activity.state')} = 'running'"
    ).fetchall()
    for (session_id,) in running:
        set_json(db, "chat_sessions", session_id, "json_set($json, '$.activity.pid', $pid)",
                 {"pid": 999_999_999})


def stored(db: Database, message_id: str) -> dict[str, Any]:
    found = read_ui_message(db, message_id)
    assert found is not None
    return found


def session_row(db: Database, session_id: str) -> dict[str, Any]:
    cursor = db.connection.execute("SELECT * FROM chat_sessions WHERE id = ?", (session_id,))
    names = [column[0] for column in cursor.description]
    row = dict(zip(names, cursor.fetchone(), strict=True))
    return row | {"metadata": json.loads(row["metadata_json"])}


def messages(db: Database, session_id: str) -> list[dict[str, Any]]:
    rows = db.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY created_at, id", (session_id,)
    )
    return [stored(db, row[0]) for row in rows]


def metadata(db: Database, message_id: str) -> dict[str, Any]:
    sql = "SELECT metadata_json FROM chat_messages WHERE id = ?"
    found: dict[str, Any] = json.loads(db.connection.execute(sql, (message_id,)).fetchone()[0])
    return found


async def feed_output(recorder: Recorder, output: object) -> None:
    """Record a call whose output comes twice, and is saved each time."""
    await recorder.feed({"type": "tool-input-available", "toolCallId": "c",
                         "toolName": "t", "input": {}})
    for preliminary in (True, False):
        await recorder.feed({"type": "tool-output-available", "toolCallId": "c",
                             "output": output, "preliminary": preliminary})
        await recorder.flush()
