"""Builds stores of each form, message by message, for the tests of the verbs."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store.engine.database import Database, open_database
from store.engine.schema import CONTRACT_INDEXES, CONTRACT_TABLES
from store.ids import IdMinter

DATA = Path(__file__).parent.parent / "data"
START = 1_700_000_000_000
TABLES = ("chat_sessions", "chat_messages", "chat_parts")


def make_store(path: Path, form: str) -> Database:
    """Make an empty store file of a form (own, contract, grida) and open it for writing."""
    if form == "own":
        return open_database(path, create=True)
    connection = sqlite3.connect(path, isolation_level=None)
    if form == "contract":
        connection.executescript(CONTRACT_TABLES + CONTRACT_INDEXES)
    else:
        sample = sqlite3.connect(
            f"{(DATA / 'grida' / 'sessions.db').as_uri()}?immutable=1", uri=True
        )
        for (sql,) in sample.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
            connection.execute(sql)
        sample.close()
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    return open_database(path)


@dataclass
class Talk:
    """A store with a clock, to which sessions and messages are added.

    Attributes:
        now: Epoch ms; each added message moves it on.
    """

    db: Database
    now: int = START
    ids: IdMinter = field(init=False)

    def __post_init__(self) -> None:
        self.ids = IdMinter(lambda: self.now)

    def session(self, title: str = "Talk", **columns: Any) -> str:
        """Add an empty session and return its id."""
        session_id = self.ids.mint("ses")
        values: dict[str, Any] = {
            "id": session_id, "agent": "build", "model_json": '{"provider_id":"p","model_id":"m"}',
            "metadata_json": json.dumps({"kept": {"as": ["it", 1.50]}}),
            "created_at": self.now, "updated_at": self.now,
        }  # fmt: skip
        if self.db.form.title_column:
            values["title"] = title
        else:
            values["metadata_json"] = json.dumps({"kept": {"as": ["it", 1.50]}, "title": title})
        self._insert("chat_sessions", values | columns)
        return session_id

    def message(
        self,
        session_id: str,
        role: str = "user",
        text: str = "hello",
        *,
        usage: dict[str, int] | None = None,
        parts: list[dict[str, Any]] | None = None,
        **metadata: Any,
    ) -> str:
        """Add a message with one text part (or the given parts) and return its id."""
        self.now += 1000
        message_id = self.ids.mint("msg")
        bag = metadata | ({"usage": usage} if usage else {})
        self._insert(
            "chat_messages",
            {
                "id": message_id, "session_id": session_id, "role": role,
                "metadata_json": json.dumps(bag), "created_at": self.now, "updated_at": self.now,
            },
        )  # fmt: skip
        for index, data in enumerate(parts or [{"type": "text", "text": text}]):
            self.part(session_id, message_id, index, data)
        return message_id

    def part(self, session_id: str, message_id: str, index: int, data: dict[str, Any]) -> str:
        """Add a part and return its id."""
        part_id = self.ids.mint("prt")
        self._insert(
            "chat_parts",
            {
                "id": part_id, "message_id": message_id, "session_id": session_id,
                "index": index, "type": data["type"], "data_json": json.dumps(data),
                "tool_call_id": data.get("toolCallId"), "tool_state": data.get("state"),
                "created_at": self.now, "updated_at": self.now,
            },
        )  # fmt: skip
        return part_id

    def call(
        self, session_id: str, name: str = "Bash", state: str = "output-available", **usage: int
    ) -> str:
        """Add an assistant message that is one tool call and return its id."""
        data = {
            "type": f"tool-{name}", "toolCallId": "call_1", "state": state,
            "input": {"command": "ls"}, "output": "README",
        }  # fmt: skip
        return self.message(session_id, "assistant", usage=usage or None, parts=[data])

    def compaction(self, session_id: str, tail: str | None, tokens: int = 42) -> str:
        """Add a compaction marker as its own assistant message and return its id."""
        data = {
            "type": "data-compaction",
            "data": {"summary": "so far", "tail_start_id": tail, "summary_tokens": tokens},
        }
        return self.message(
            session_id, "assistant", parts=[data], usage={"input": tokens}, compaction=True
        )

    def _insert(self, table: str, values: dict[str, Any]) -> None:
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" for _ in values)
        self.db.connection.execute(
            f"INSERT INTO {table}({names}) VALUES ({marks})", list(values.values())
        )

    def set_json(self, table: str, row_id: str, column: str, key: str, value: Any) -> None:
        """Set a key of a JSON column, as another program would."""
        (text,) = self.db.connection.execute(
            f"SELECT {column} FROM {table} WHERE id = ?", [row_id]).fetchone()
        self.db.connection.execute(
            f"UPDATE {table} SET {column} = ? WHERE id = ?",
            [json.dumps(json.loads(text) | {key: value}), row_id])

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of the three tables."""
        return {
            table: self.db.connection.execute(f"SELECT * FROM main.{table} ORDER BY id").fetchall()
            for table in TABLES
        }

    def metadata(self, message_id: str) -> dict[str, Any]:
        """Return a message's decoded metadata."""
        (text,) = self.db.connection.execute(
            "SELECT metadata_json FROM chat_messages WHERE id = ?", [message_id]
        ).fetchone()
        bag: dict[str, Any] = json.loads(text)
        return bag

    def session_row(self, session_id: str) -> dict[str, Any]:
        """Return a session's row by column name."""
        cursor = self.db.connection.execute(
            "SELECT * FROM chat_sessions WHERE id = ?", [session_id]
        )
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))
