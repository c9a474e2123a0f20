"""Rows of a database that come late, and rows that go away.

As in ``test_arrival`` for files: each session's rows in turn come late, and each session's
rows in turn go away while the other sessions grow by a row.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.queries.shared_answers import shared_answers
from tests.sources.samples import DATA
from tests.sources.test_arrival import (
    ALL,
    Place,
    databases,
    differences,
    differing,
    forget_stamps,
    missing_of,
    shown,
    synced,
)
from tests.store.sync_fakes import TABLES, dump

pytestmark = pytest.mark.long

__all__ = ["databases"]

LATER = 60 * 60 * 1000
MANY = ("kiro", "openai-agents")
"""Kinds with more than one database here."""


@dataclass(frozen=True)
class Rows:
    """A program's database, and how its rows belong together.

    Attributes:
        kind: The source's kind.
        folder: The sample's folder, relative to the folder of all samples.
        root: What is read, relative to a copy of that folder.
        database: Relative to the same.
        sessions: Table and column that names each session.
        others: Tables and columns that name the session of their rows.
        grow: Adds a row to a session.
        prepare: Makes more rows before anything is read.
        clear: Deletes the rows of a session's messages, where these are not ``others``.
        without: A folder that is left out, so that the database alone tells of its sessions.
        wipe: Deletes all rows of a session, where these are not ``sessions`` and ``others``.
        files: Whether sessions are there without their rows, as they have files.
        empty: How many of the rows are no session, or a second one of a session.
    """

    kind: str
    folder: str
    root: str
    database: str
    sessions: tuple[str, str]
    others: tuple[tuple[str, str], ...]
    grow: Callable[[sqlite3.Connection, str], None]
    prepare: Callable[[sqlite3.Connection], None] | None = None
    clear: Callable[[sqlite3.Connection, str], Any] | None = None
    without: str | None = None
    wipe: Callable[[sqlite3.Connection, str], Any] | None = None
    files: bool = False
    empty: int = 0

    @property
    def title(self) -> str:
        name = f"{self.kind} {self.folder} {self.root}" if self.kind in MANY else self.kind
        return name if self.without is None else f"{name} without {self.without}"

    def names(self, connection: sqlite3.Connection) -> list[str]:
        table, column = self.sessions
        sql = f"SELECT DISTINCT {column} FROM {table} ORDER BY 1"
        return [row[0] for row in connection.execute(sql)]

    def delete(self, connection: sqlite3.Connection, name: str) -> None:
        if self.wipe is not None:
            self.wipe(connection, name)
            return
        for table, column in (*self.others, self.sessions):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))

    def delete_messages(self, connection: sqlite3.Connection, name: str) -> None:
        if self.clear is not None:
            self.clear(connection, name)
            return
        for table, column in self.others:
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))


def again(connection: sqlite3.Connection, table: str, where: str, name: str, **now: Any) -> None:
    """Add the last row of a session once more, with other values."""
    cursor = connection.execute(f"SELECT * FROM {table} WHERE {where} = ? ORDER BY rowid", (name,))
    columns = [column[0] for column in cursor.description]
    found = cursor.fetchall()
    if found:
        row = dict(zip(columns, found[-1], strict=True)) | now
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks})", tuple(row.values())
        )


def grow_opencode(connection: sqlite3.Connection, name: str) -> None:
    (at,) = connection.execute(
        "SELECT max(time_created) FROM message WHERE session_id = ?", (name,)
    ).fetchone()
    at += LATER
    data = json.dumps({"role": "user", "time": {"created": at}})
    text = json.dumps({"type": "text", "text": "one more"})
    times = {"time_created": at, "time_updated": at}
    again(connection, "message", "session_id", name, id=f"msg_z{name}", data=data, **times)
    again(connection, "part", "session_id", name, id=f"prt_z{name}", message_id=f"msg_z{name}",
          data=text, **times)  # fmt: skip


def fork_opencode(connection: sqlite3.Connection) -> None:
    """Fork a fork, and its parent once more; the program notes it of neither."""
    forks = [row[0] for row in connection.execute(
        "SELECT id FROM session WHERE title LIKE 'Title for tools%' ORDER BY time_created"
    )]  # fmt: skip
    assert len(forks) == 2
    for number, name in enumerate((forks[1], forks[0]), 1):
        (at,) = connection.execute("SELECT max(time_created) FROM session").fetchone()
        at += 1000
        again(connection, "session", "id", name, id=f"ses_z{number}", slug=f"z{number}",
              title=f"{name} (fork)", time_created=at, time_updated=at)  # fmt: skip
        for table in ("message", "part"):
            rows = connection.execute(
                f"SELECT id FROM {table} WHERE session_id = ? ORDER BY id", (name,)
            ).fetchall()
            for (old,) in rows:
                new: dict[str, Any] = {"id": f"{old[:4]}z{number}{old[4:]}",
                                       "session_id": f"ses_z{number}"}  # fmt: skip
                if table == "part":
                    (message,) = connection.execute(
                        "SELECT message_id FROM part WHERE id = ?", (old,)
                    ).fetchone()
                    new["message_id"] = f"{message[:4]}z{number}{message[4:]}"
                again(connection, table, "id", old, **new)


def grow_crush(connection: sqlite3.Connection, name: str) -> None:
    parts = json.dumps([{"type": "text", "data": {"text": "one more"}}])
    again(connection, "messages", "session_id", name, id=f"z{name}", role="user", parts=parts,
          created_at=1795700000, updated_at=1795700000)  # fmt: skip


def grow_llm(connection: sqlite3.Connection, name: str) -> None:
    (tip,) = connection.execute(
        "SELECT tip_message_hash FROM threads WHERE id = ?", (name,)
    ).fetchone()
    made = f"z{name}"
    connection.execute("INSERT INTO messages VALUES (?, ?, 'user', NULL)", (made, tip))
    connection.execute("INSERT INTO parts(message_hash, position, type, text)"
                       " VALUES (?, 0, 'text', 'one more')", (made,))  # fmt: skip
    connection.execute("UPDATE threads SET tip_message_hash = ? WHERE id = ?", (made, name))


def clear_llm(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("UPDATE threads SET tip_message_hash = NULL WHERE id = ?", (name,))
    connection.execute("DELETE FROM turns WHERE thread_id = ?", (name,))


def stop_clock_of_crush(connection: sqlite3.Connection) -> None:
    """Drop the triggers that note the second of every change."""
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'update_%_updated_at'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")


def grow_hub(connection: sqlite3.Connection, name: str) -> None:
    at = "2026-11-20T10:00:00.000Z"
    times = {"created_at": at, "updated_at": at}
    data = json.dumps({"time": {"created": 1795168800000}})
    again(connection, "messages", "session_id", name, id=f"z{name}", role="user", data=data,
          **times)  # fmt: skip
    again(connection, "parts", "session_id", name, id=f"prt_z{name}", message_id=f"z{name}",
          type="text", data=json.dumps({"text": "one more"}), **times)  # fmt: skip


def grow_y_agent(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "UPDATE session_metadata SET updated_at = '2026-11-20T10:00:00+00:00' WHERE id = ?", (name,)
    )


def grow_lionagi(connection: sqlite3.Connection, name: str) -> None:
    (branch, progression) = connection.execute(
        "SELECT id, progression_id FROM branches WHERE session_id = ? ORDER BY created_at", (name,)
    ).fetchone()
    content = json.dumps({"instruction": "one more"})
    (kind,) = connection.execute(
        "SELECT id FROM messages WHERE role = 'user' ORDER BY id LIMIT 1"
    ).fetchone()
    again(connection, "messages", "id", kind, id=f"z{name}", created_at=1795168800.0,
          content=content, sender=None, recipient=branch)  # fmt: skip
    connection.execute(
        "UPDATE progressions SET collection = json_insert(collection, '$[#]', ?) WHERE id = ?",
        (f"z{name}", progression),
    )


def clear_lionagi(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "DELETE FROM messages WHERE id IN (SELECT j.value FROM branches b JOIN progressions p"
        " ON p.id = b.progression_id, json_each(p.collection) j WHERE b.session_id = ?)", (name,)
    )


def grow_copilot(connection: sqlite3.Connection, name: str) -> None:
    again(connection, "turns", "session_id", name, id=None, turn_index=99,
          user_message="one more", timestamp="2026-11-28T10:00:00.000Z")  # fmt: skip


def grow_codex(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("UPDATE threads SET recency_at = recency_at + 1 WHERE id = ?", (name,))


def grow_goose(connection: sqlite3.Connection, name: str) -> None:
    text = json.dumps([{"type": "text", "text": "one more"}])
    again(connection, "messages", "session_id", name, id=None, message_id=f"z{name}", role="user",
          content_json=text, created_timestamp=1795168800)  # fmt: skip


def grow_zed(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "UPDATE threads SET updated_at = '2026-11-20T10:00:00+00:00' WHERE id = ?", (name,)
    )


def clear_zed(connection: sqlite3.Connection, name: str) -> None:
    thread = json.dumps({"version": "0.3.0", "title": "", "messages": [], "updated_at": ""})
    connection.execute(
        "UPDATE threads SET data_type = 'json', data = ? WHERE id = ?", (thread.encode(), name)
    )


def grow_kiro(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "UPDATE conversations_v2 SET updated_at = updated_at + 1000 WHERE conversation_id = ?",
        (name,),
    )


def clear_kiro(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "UPDATE conversations_v2 SET value = json_set(value, '$.history', json('[]'))"
        " WHERE conversation_id = ?", (name,)
    )  # fmt: skip


def grow_amazon_q(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "UPDATE conversations SET value = json_set(value, '$.model_info.model_id', 'other')"
        " WHERE key = ?", (name,)
    )  # fmt: skip


def clear_amazon_q(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "UPDATE conversations SET value = json_set(value, '$.history', json('[]')) WHERE key = ?",
        (name,),
    )


def grow_cursor(connection: sqlite3.Connection, name: str) -> None:
    connection.execute(
        "UPDATE composerHeaders SET lastUpdatedAt = lastUpdatedAt + 1000, recency = recency + 1000"
        " WHERE composerId = ?", (name,)
    )  # fmt: skip
    connection.execute(
        "UPDATE cursorDiskKV SET value = json_set(value, '$.lastUpdatedAt', 1795168800000)"
        " WHERE key = ?", (f"composerData:{name}",)
    )  # fmt: skip


def clear_cursor(connection: sqlite3.Connection, name: str) -> None:
    connection.execute("DELETE FROM cursorDiskKV WHERE key LIKE ?", (f"bubbleId:{name}:%",))


def wipe_cursor(connection: sqlite3.Connection, name: str) -> None:
    clear_cursor(connection, name)
    connection.execute("DELETE FROM cursorDiskKV WHERE key = ?", (f"composerData:{name}",))
    connection.execute("DELETE FROM composerHeaders WHERE composerId = ?", (name,))


def grow_openai_agents(connection: sqlite3.Connection, name: str) -> None:
    asked = json.dumps({"role": "user", "content": "one more"})
    connection.execute(
        "INSERT INTO agent_messages(session_id, message_data, created_at)"
        " VALUES (?, ?, '2026-11-29 10:00:00')", (name, asked)
    )  # fmt: skip
    connection.execute(
        "UPDATE agent_sessions SET updated_at = '2026-11-29 10:00:00' WHERE session_id = ?",
        (name,),
    )


def grow_langgraph(connection: sqlite3.Connection, name: str) -> None:
    (last,) = connection.execute(
        "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''",
        (name,),
    ).fetchone()
    again(connection, "checkpoints", "thread_id", name, checkpoint_ns="",
          checkpoint_id="1f200000-5746-6d2d-8006-ebba8d9d4ace",
          parent_checkpoint_id=last)  # fmt: skip


def clear_langgraph(connection: sqlite3.Connection, name: str) -> None:
    """Keep the last state alone, as a program does that prunes."""
    connection.execute(
        "DELETE FROM checkpoints WHERE thread_id = ?1 AND checkpoint_id <"
        " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?1)", (name,)
    )  # fmt: skip


ROWS = (
    Rows("opencode", "opencode", "opencode.db", "opencode.db", ("session", "id"),
         (("message", "session_id"), ("part", "session_id"), ("event", "aggregate_id"),
          ("event_sequence", "aggregate_id")), grow_opencode, fork_opencode),
    Rows("kilo", "kilo", "kilo.db", "kilo.db", ("session", "id"),
         (("message", "session_id"), ("part", "session_id"), ("event", "aggregate_id"),
          ("event_sequence", "aggregate_id")), grow_opencode, fork_opencode),
    Rows("crush", "crush/home/mira/code/api/.crush", "crush.db", "crush.db", ("sessions", "id"),
         (("messages", "session_id"), ("files", "session_id")), grow_crush, stop_clock_of_crush),
    Rows("llm", "llm", "logs.db", "logs.db", ("threads", "id"),
         (("turns", "thread_id"),), grow_llm, clear=clear_llm),
    Rows("hub", "hub", "hub.db", "hub.db", ("sessions", "id"),
         (("parts", "session_id"), ("messages", "session_id")), grow_hub),
    Rows("y-agent", "y-agent/data", "", "y-agent.db", ("session_metadata", "id"),
         (("chat_messages", "session_id"), ("chat_checkpoints", "session_id")), grow_y_agent),
    Rows("lionagi", "lionagi", "state.db", "state.db", ("sessions", "id"),
         (("branches", "session_id"), ("session_signals", "session_id")), grow_lionagi,
         clear=clear_lionagi),
    Rows("copilot", "copilot", "", "session-store.db", ("sessions", "id"),
         (("turns", "session_id"), ("session_files", "session_id"),
          ("assistant_usage_events", "session_id")), grow_copilot),
    Rows("copilot", "copilot", "", "session-store.db", ("sessions", "id"),
         (("turns", "session_id"), ("assistant_usage_events", "session_id")), grow_copilot,
         without="session-state"),
    Rows("codex", "codex/home", "", "state_5.sqlite", ("threads", "id"),
         (("thread_spawn_edges", "child_thread_id"), ("thread_spawn_edges", "parent_thread_id")),
         grow_codex, files=True),
    Rows("goose", "goose/sessions", "", "sessions.db", ("sessions", "id"),
         (("messages", "session_id"), ("usage_ledger", "session_id")), grow_goose, empty=1),
    Rows("zed", "zed", "", "threads/threads.db", ("threads", "id"), (), grow_zed,
         clear=clear_zed, empty=1),
    Rows("kiro", "kiro/home/.local/share/kiro-cli", "", "data.sqlite3",
         ("conversations_v2", "conversation_id"), (), grow_kiro, clear=clear_kiro,
         empty=1),
    Rows("kiro", "kiro/home/.local/share/amazon-q", "", "data.sqlite3", ("conversations", "key"),
         (), grow_amazon_q, clear=clear_amazon_q),
    Rows("cursor", "cursor/home/.config/Cursor/User", "", "globalStorage/state.vscdb",
         ("composerHeaders", "composerId"), (), grow_cursor, clear=clear_cursor,
         wipe=wipe_cursor, empty=1),
    Rows("openai-agents", "openai-agents", "agents.db", "agents.db",
         ("agent_sessions", "session_id"), (("agent_messages", "session_id"),),
         grow_openai_agents),
    Rows("openai-agents", "openai-agents", "advanced.db", "advanced.db",
         ("agent_sessions", "session_id"),
         (("turn_usage", "session_id"), ("message_structure", "session_id"),
          ("agent_messages", "session_id")), grow_openai_agents),
    Rows("langgraph", "langgraph", "checkpoints.sqlite", "checkpoints.sqlite",
         ("checkpoints", "thread_id"), (("writes", "thread_id"),), grow_langgraph,
         clear=clear_langgraph),
)  # fmt: skip


class Source:
    """A copy of a sample whose database is written, and put back."""

    def __init__(self, rows: Rows, folder: Path) -> None:
        self.rows = rows
        top = folder / Path(rows.folder).parts[0]
        shutil.copytree(DATA / Path(rows.folder).parts[0], top)
        base = folder / rows.folder
        self.place = Place(rows.kind, base / rows.root if rows.root else base, folder / "away")
        self.path, self._saved = base / rows.database, folder / "saved"
        if rows.without is not None:
            shutil.rmtree(base / rows.without)
        if rows.prepare is not None:
            self.write(rows.prepare)
        shutil.copy2(self.path, self._saved)
        self._at, self._writes = self._saved.stat().st_mtime_ns, 0

    @property
    def has_files(self) -> bool:
        """Whether sessions are there without their rows, as they have files."""
        return self.rows.files or (self.path.parent / "session-state").exists()

    def write(self, change: Callable[[sqlite3.Connection], Any]) -> Any:
        """Change the database as its program would."""
        connection = sqlite3.connect(self.path)
        try:
            connection.execute("PRAGMA foreign_keys = OFF")
            with connection:
                return change(connection)
        finally:
            connection.close()
            if self._saved.exists():
                # A conversation that tells no time is of the time of its file.
                self._writes += 1
                os.utime(self.path, ns=(self._at, self._at + self._writes))

    def names(self) -> list[str]:
        found: list[str] = self.write(self.rows.names)
        return found

    def delete(self, name: str) -> None:
        self.write(lambda connection: self.rows.delete(connection, name))

    def delete_messages(self, name: str) -> None:
        self.write(lambda connection: self.rows.delete_messages(connection, name))

    def grow_all_but(self, name: str) -> None:
        def grow(connection: sqlite3.Connection) -> None:
            for other in self.rows.names(connection):
                if other != name:
                    self.rows.grow(connection, other)

        self.write(grow)

    def put_back(self) -> None:
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        shutil.copy2(self._saved, self.path)


@pytest.fixture(params=ROWS, ids=lambda rows: rows.title)
def rows_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    yield Source(request.param, tmp_path / "sample")


def test_rows_that_come_late_make_no_difference(rows_of: Source, databases: Any) -> None:
    fresh = dump(synced(databases("fresh"), rows_of.place), ALL)
    wrong = {}
    for number, name in enumerate(rows_of.names()):
        database = databases(str(number))
        rows_of.delete(name)
        synced(database, rows_of.place)
        rows_of.put_back()
        synced(database, rows_of.place)
        found = differences(dump(database, ALL), fresh)
        if found:
            wrong[name] = found
    assert wrong == {}


def told(database: Database) -> dict[str, Any]:
    """All that the library says of sessions, and how their answers are counted."""
    found: dict[str, Any] = dump(database, (*TABLES, "attachments", "session_links"))
    once = shared_answers(database)
    found["counted"] = sorted((*once.usage.items(), *once.begun_at.items()), key=repr)
    return found


def test_nothing_is_lost_with_rows(rows_of: Source, databases: Any, tmp_path: Path) -> None:
    """The other sessions come out as if the rows were still there."""
    synced(databases("whole"), rows_of.place).close()
    wrong = {}
    for number, name in enumerate(rows_of.names()):
        both = []
        for goes in (False, True):
            copy = f"{number} {goes}"
            shutil.copy(tmp_path / "whole.db", tmp_path / f"{copy}.db")
            database = databases(copy)
            if goes:
                rows_of.delete(name)
            rows_of.grow_all_but(name)
            forget_stamps(database)
            synced(database, rows_of.place)
            both.append(told(database))
            rows_of.put_back()
        found = differences(both[1], both[0])
        if found:
            wrong[name] = found
    assert wrong == {}


def test_nothing_is_lost_with_the_rows_of_messages(
    rows_of: Source, databases: Any, tmp_path: Path
) -> None:
    """A session's own row stays."""
    whole = synced(databases("whole"), rows_of.place)
    before = shown(whole)
    assert any(session["rows"] for session in before.values())
    whole.close()
    wrong = {}
    for number, name in enumerate(rows_of.names()):
        shutil.copy(tmp_path / "whole.db", tmp_path / f"{number}.db")
        database = databases(str(number))
        rows_of.delete_messages(name)
        forget_stamps(database)
        synced(database, rows_of.place)
        rows_of.put_back()
        found = differing(before, shown(database))
        if found:
            wrong[name] = found
    assert wrong == {}


def test_what_other_rows_held_comes_from_the_library(rows_of: Source, databases: Any) -> None:
    """Each session in turn is read for the first time when the rows of all others are gone."""
    before = shown(synced(databases("whole"), rows_of.place))
    wrong, without = {}, 0
    for number, name in enumerate(rows_of.names()):
        database = databases(str(number))
        rows_of.delete(name)
        others = shown(synced(database, rows_of.place))
        rows_of.put_back()
        for other in rows_of.names():
            if other != name:
                rows_of.delete(other)
        now = shown(synced(database, rows_of.place))
        rows_of.put_back()
        own = {session: facts for session, facts in before.items() if session not in others}
        without += not own
        found = missing_of(own, before, now)
        if found:
            wrong[name] = found
    assert wrong == {} and (without == rows_of.rows.empty or rows_of.has_files)


TITLES = {"opencode": ("title",), "kilo": ("title",), "crush": ("title",), "llm": ("name",),
          "hub": ("title",), "y-agent": ("title", "manual_title"),
          "lionagi": ("name", "user_label"), "codex": ("name", "title")}  # fmt: skip


@pytest.mark.parametrize("rows_of", [r for r in ROWS if r.kind in TITLES], indirect=True,
                         ids=lambda rows: rows.title)  # fmt: skip
def test_a_title_that_a_row_no_longer_has_is_none(rows_of: Source, databases: Any) -> None:
    database = synced(databases("store"), rows_of.place)
    before = {name: session["title"] for name, session in shown(database).items()}
    index = rows_of.place.root / "session_index.jsonl"
    if index.exists():
        index.write_text("")
    table, _ = rows_of.rows.sessions
    columns = ", ".join(f"{column} = ''" for column in TITLES[rows_of.rows.kind])
    rows_of.write(lambda connection: connection.execute(f"UPDATE {table} SET {columns}"))
    now = shown(synced(database, rows_of.place))
    fresh = shown(synced(databases("fresh"), rows_of.place))
    assert now == fresh
    assert before != {name: session["title"] for name, session in now.items()}
