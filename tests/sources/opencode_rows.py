"""Hand-made stores of opencode, with the tables of the genuine sample."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store.sources.base.drafts import SessionDraft
from store.sources.base.protocol import Problem
from store.sources.opencode import OpencodeSource

SAMPLE = Path(__file__).parent.parent / "data" / "opencode" / "opencode.db"
START = 1_700_000_000_000


def opencode_id(prefix: str, at: int, number: int = 0) -> str:
    """Return an id as the program mints it: the stamp wraps at 48 bits."""
    return f"{prefix}_{(at * 4096 + number) & ((1 << 48) - 1):012x}{number:014d}"


@dataclass
class Rows:
    """A database with a clock, to which rows are added.

    Attributes:
        now: Epoch ms; each added row moves it on.
        events: Whether writes are told of in ``event_sequence``, as the program does.
    """

    path: Path
    now: int = START
    events: bool = True
    connection: sqlite3.Connection = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        sample = sqlite3.connect(f"{SAMPLE.as_uri()}?immutable=1", uri=True)
        for (sql,) in sample.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC"
        ):
            self.connection.execute(sql)
        sample.close()
        self.connection.execute(
            "INSERT INTO project(id, worktree, time_created, time_updated, sandboxes)"
            " VALUES ('global', '/', ?, ?, '[]')",
            (START, START),
        )

    def tick(self) -> int:
        self.now += 10
        self.count += 1
        return self.now

    def insert(self, table: str, **values: Any) -> None:
        made = {
            key: json.dumps(value) if isinstance(value, dict | list) else value
            for key, value in values.items()
        }
        marks = ", ".join("?" * len(made))
        self.connection.execute(
            f"INSERT INTO {table}({', '.join(made)}) VALUES ({marks})", tuple(made.values())
        )
        name = made.get("session_id", made["id"] if table == "session" else None)
        if name is not None:
            self.tell(name)

    def tell(self, session_id: str) -> None:
        """Count an event of a session."""
        if self.events:
            self.connection.execute(
                "INSERT INTO event_sequence(aggregate_id, seq) VALUES (?, 0)"
                " ON CONFLICT(aggregate_id) DO UPDATE SET seq = seq + 1",
                (session_id,),
            )

    def session(self, session_id: str, **columns: Any) -> str:
        at = self.tick()
        made = {
            "id": session_id, "project_id": "global", "slug": "s", "directory": "/home/mira/code",
            "title": "Talk", "version": "1.18.33", "time_created": at, "time_updated": at,
        } | columns  # fmt: skip
        self.insert("session", **made)
        return session_id

    def message(
        self, session_id: str, role: str, *parts: dict[str, Any], at: int = 0, **data: Any
    ) -> str:
        at = at or self.tick()
        self.count += 1
        name = opencode_id("msg", at, self.count)
        info: dict[str, Any] = {"role": role, "time": {"created": at}}
        if role == "assistant":
            info |= {"providerID": "p", "modelID": "m", "agent": "build"}
        self.insert("message", id=name, session_id=session_id, time_created=at, time_updated=at,
                    data=info | data)  # fmt: skip
        for part in parts:
            self.part(session_id, name, part)
        return name

    def part(self, session_id: str, message_id: str, data: Any, name: str = "") -> str:
        at = self.tick()
        name = name or opencode_id("prt", at, self.count)
        self.insert("part", id=name, message_id=message_id, session_id=session_id,
                    time_created=at, time_updated=at, data=data)  # fmt: skip
        return name

    def second(self, session_id: str, kind: str, data: Any) -> str:
        """Add a row of the second engine."""
        at = self.tick()
        name = opencode_id("msg", at, self.count)
        self.insert("session_message", id=name, session_id=session_id, type=kind, seq=self.count,
                    time_created=at, time_updated=at, data=data)  # fmt: skip
        return name


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(call_id: str, name: str = "bash", **state: Any) -> dict[str, Any]:
    return {"type": "tool", "tool": name, "callID": call_id, "state": state}


def finish(**tokens: int) -> dict[str, Any]:
    counts = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    return {"type": "step-finish", "reason": "stop", "cost": 0.5, "tokens": counts | tokens}


def read_store(root: Path) -> tuple[dict[str, SessionDraft], list[Problem]]:
    """Read everything at a root; return the sessions by id, and what was complained of."""
    source, problems = OpencodeSource(), list[Problem]()
    found = {}
    for unit in list(source.units(root, problems)):
        reading = source.read(root, unit)
        problems += reading.problems
        found.update({draft.source_id: draft for draft in reading.sessions})
    return found, problems


def texts(draft: SessionDraft) -> list[str]:
    return [p.data["text"] for m in draft.messages for p in m.parts if p.type == "text"]
