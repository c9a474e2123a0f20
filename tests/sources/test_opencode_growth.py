"""Sessions of opencode that grow: following one gives what reading it whole gives.

A writer of its own adds, changes and deletes rows at random, as the program does and as it
never would: without a new ``time_updated``, several times in one millisecond, with ids that
come back.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.sources.base.protocol import Unit
from store.sources.opencode import OpencodeSource
from store.sources.opencode.source import Kept, SessionFollower
from store.sync import gone, grown
from store.sync.engine import Sync
from store.sync.session_rows import PreparedSession
from store.sync.settings import Settings
from store.sync.targets import Target
from store.sync.watch_readers import Followers
from tests.sources.opencode_rows import Rows, finish, opencode_id, text, tool
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

pytestmark = pytest.mark.long

SEEDS = int(os.environ.get("BACKSCROLL_GROWTH_SEEDS", "6"))
SESSION = "ses_grows"
EVERYTHING = (*TABLES, *SIDE_TABLES)
TABLE_NAMES = ("message", "part", "session_message")


class Writer:
    """Writes to one session at random."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows, self.random = rows, random.Random(seed)
        self.rows.session(SESSION)
        self.rows.connection.execute("PRAGMA foreign_keys = OFF")
        self.deleted: list[tuple[str, dict[str, Any]]] = []

    def sql(self, statement: str, *values: object) -> list[Any]:
        return self.rows.connection.execute(statement, values).fetchall()

    def any_id(self, table: str) -> str | None:
        found = self.sql(f"SELECT id FROM {table} WHERE session_id = ? ORDER BY id", SESSION)
        return str(self.random.choice(found)[0]) if found else None

    def content(self) -> Any:
        word = f"word {self.random.randrange(1000)}"
        tail = self.any_id("message")
        return self.random.choice([
            text(word), text(word, synthetic=True), {"type": "reasoning", "text": word},
            tool(f"call{self.random.randrange(9)}", status="running", input={"command": word}),
            tool(f"call{self.random.randrange(9)}", status="completed", input={}, output=word,
                 metadata={"outputPath": f"/x/tool_{self.random.randrange(3)}"}),
            finish(input=self.random.randrange(99)), {"type": "step-start", "snapshot": word},
            {"type": "compaction", "auto": True, "tail_start_id": tail}, "no object", word,
            {"type": "subtask", "agent": "a", "prompt": word},
        ])  # fmt: skip

    def write(self) -> str:
        """Do something; return what."""
        what = self.random.choice([
            "message", "message", "part", "part", "part", "stream", "stream", "silent", "silent",
            "delete", "delete", "return", "move", "time", "session", "second", "input", "todo",
            "summary", "output", "orphan", "column",
        ])  # fmt: skip
        getattr(self, f"_{what}")()
        self.rows.tell(SESSION)
        return what

    def _message(self) -> None:
        role = self.random.choice(["user", "assistant", "assistant", "odd"])
        parts = [self.content() for _ in range(self.random.randrange(4))]
        at = self.rows.now - self.random.randrange(300) if self.random.random() < 0.2 else 0
        self.rows.message(SESSION, role, *parts, at=at, system=self.random.choice(["", "Be good"]))

    def _part(self) -> None:
        message = self.any_id("message")
        if message is not None:
            name = opencode_id("prt", self.rows.now - self.random.randrange(100), self.rows.count)
            self.rows.part(SESSION, message, self.content(), name + self.random.choice("abc"))

    def _stream(self) -> None:
        """Change a row; sometimes in the millisecond in which it was changed last."""
        at = self.rows.now if self.random.random() < 0.5 else self.rows.tick()
        self._change(self.random.choice(TABLE_NAMES), at)

    def _silent(self) -> None:
        self._change(self.random.choice(TABLE_NAMES), None)

    def _change(self, table: str, at: int | None) -> None:
        name = self.any_id(table)
        if name is None:
            return
        ((data,),) = self.sql(f"SELECT data FROM {table} WHERE id = ?", name)
        if self.random.random() < 0.5:
            # As long as before.
            data = data.replace("word", self.random.choice(["ward", "wood", "worm"]))
        elif table == "part":
            data = json.dumps(self.content())
        else:
            data = data.replace("{", f'{{"agent": "a{self.random.randrange(9)}", ', 1)
        self.sql(f"UPDATE {table} SET data = ? WHERE id = ?", data, name)
        if at is not None:
            self.sql(f"UPDATE {table} SET time_updated = ? WHERE id = ?", at, name)

    def _delete(self) -> None:
        table = self.random.choice(TABLE_NAMES)
        name = self.any_id(table)
        if name is not None:
            cursor = self.rows.connection.execute(f"SELECT * FROM {table} WHERE id = ?", (name,))
            names = [column[0] for column in cursor.description]
            self.deleted.append((table, dict(zip(names, cursor.fetchone(), strict=True))))
            self.sql(f"DELETE FROM {table} WHERE id = ?", name)
            if table == "message" and self.random.random() < 0.7:
                self.sql("DELETE FROM part WHERE message_id = ?", name)

    def _return(self) -> None:
        if self.deleted:
            table, values = self.deleted.pop()
            names = {row[1] for row in self.sql(f"PRAGMA table_info({table})")}
            values = {name: value for name, value in values.items() if name in names}
            marks = ", ".join("?" * len(values))
            self.sql(f"INSERT OR IGNORE INTO {table}({', '.join(values)}) VALUES ({marks})",
                     *values.values())  # fmt: skip

    def _move(self) -> None:
        part, message = self.any_id("part"), self.any_id("message")
        if part is not None and message is not None:
            self.sql("UPDATE part SET message_id = ? WHERE id = ?", message, part)

    def _time(self) -> None:
        table = self.random.choice(TABLE_NAMES)
        at = self.rows.now - self.random.randrange(500)
        self.sql(f"UPDATE {table} SET time_created = ? WHERE id = ?", at, self.any_id(table))

    def _session(self) -> None:
        revert = {"messageID": self.any_id("message"), "partID": self.any_id("part")}
        if self.random.random() < 0.5:
            del revert["partID"]
        found = json.dumps(revert) if self.random.random() < 0.5 else None
        self.sql("UPDATE session SET revert = ?, title = ?, time_updated = ? WHERE id = ?",
                 found, f"Talk {self.random.randrange(9)}", self.rows.tick(), SESSION)  # fmt: skip

    def _second(self) -> None:
        kind = self.random.choice(["user", "assistant", "model-switched", "shell", "compaction"])
        content = [{"type": "text", "text": f"word {self.random.randrange(99)}"}]
        self.rows.second(SESSION, kind, {"text": "word", "content": content, "summary": "word"})

    def _input(self) -> None:
        name = opencode_id("inp", self.rows.tick(), self.rows.count)
        self.rows.insert("session_input", id=name, session_id=SESSION, prompt={"text": "word"},
                         delivery="queue", admitted_seq=self.rows.count,
                         time_created=self.rows.now)  # fmt: skip

    def _todo(self) -> None:
        self.rows.insert("todo", session_id=SESSION, position=self.rows.count, content="word",
                         status="pending", priority="high", time_created=self.rows.tick(),
                         time_updated=self.rows.now)  # fmt: skip

    def _summary(self) -> None:
        asked = self.rows.message(SESSION, "user", {"type": "compaction", "auto": False})
        self.rows.message(SESSION, "assistant", text("So far"), summary=True, parentID=asked)

    def _output(self) -> None:
        folder = self.rows.path.parent / "tool-output"
        folder.mkdir(exist_ok=True)
        name = folder / f"tool_{self.random.randrange(3)}"
        if self.random.random() < 0.2:
            name.unlink(missing_ok=True)
        else:
            staged = name.with_suffix(".staged")
            staged.write_text("line\n" * self.random.randrange(9))
            os.utime(staged, ns=(self.rows.tick(), self.rows.now))
            staged.replace(name)

    def _orphan(self) -> None:
        self.rows.part(SESSION, "msg_nowhere", self.content())

    def _column(self) -> None:
        table = self.random.choice(TABLE_NAMES)
        names = [row[1] for row in self.sql(f"PRAGMA table_info({table})")]
        if names[-1].startswith("more"):
            self.sql(f"ALTER TABLE {table} RENAME COLUMN {names[-1]} TO more{self.rows.tick()}")
        else:
            self.sql(f"ALTER TABLE {table} ADD COLUMN more TEXT DEFAULT 'm'")


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    folder = tmp_path / "opencode"
    folder.mkdir()
    made = Rows(folder / "opencode.db")
    yield made
    made.connection.close()


def unit_of(source: OpencodeSource, rows: Rows) -> Unit:
    units = source.units(rows.path.parent, [])
    return next(unit for unit in units if unit.key.endswith(SESSION))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_follower_reads_what_a_new_source_reads(rows: Rows, seed: int) -> None:
    writer, done, source = Writer(rows, seed), list[str](), OpencodeSource()
    follower = source.follower(rows.path.parent, unit_of(source, rows))
    for _ in range(120):
        done.append(writer.write())
        if writer.random.random() < 0.3:
            continue
        unit = unit_of(source, rows)
        assert follower.read(unit) == OpencodeSource().read(rows.path.parent, unit), done


@pytest.mark.parametrize("seed", range(max(1, SEEDS // 5)))
@pytest.mark.parametrize("keeps", [True, False])
def test_a_followed_library_is_as_one_that_reads_everything(
    rows: Rows, tmp_path: Path, seed: int, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept messages hang on what was there before, so both see every step."""
    in_place = gone.changed_in_place

    def checked(connection: Any, before: PreparedSession, now: PreparedSession) -> bool:
        says = in_place(connection, before, now)
        if says and keeps:
            merged = gone.merged(connection, now)
            assert merged.prepared is now and not merged.moved
        return says

    monkeypatch.setattr(grown, "changed_in_place", checked)
    writer, followers, done = Writer(rows, 1000 + seed), Followers(), list[str]()
    settings = Settings(helpers=0, keep_deleted=keeps)
    root = rows.path.parent
    followed = open_database(tmp_path / "followed.db", create=True)
    whole = open_database(tmp_path / "whole.db", create=True)
    target = Target(OpencodeSource(), root)
    for step in range(60):
        done.append(writer.write())
        Sync(followed, settings, reading=followers.reading).run([target])
        Sync(whole, settings).run([Target(OpencodeSource(), root)])
        if step % 6 == 5:
            assert dump(followed, EVERYTHING) == dump(whole, EVERYTHING), done
    if not keeps:
        fresh = open_database(tmp_path / "fresh.db", create=True)
        Sync(fresh, settings).run([Target(OpencodeSource(), root)])
        assert messages(followed) == messages(fresh), done
        fresh.close()
    followed.close()
    whole.close()


def messages(database: Database) -> dict[str, list[Any]]:
    return dump(database, ("chat_messages", "chat_parts", "record_refs"))


def test_only_rows_that_differ_are_decoded(rows: Rows) -> None:
    source = OpencodeSource()
    rows.session(SESSION)
    for number in range(50):
        rows.message(SESSION, "assistant", text(f"words {number}"), finish(output=1))
    kept = Kept()
    unit = unit_of(source, rows)
    first = source.read_with(unit, kept)
    assert kept.rows.decoded == 150
    name = rows.message(SESSION, "assistant", text("more"))
    second = source.read_with(unit_of(source, rows), kept)
    assert kept.rows.decoded == 152
    rows.connection.execute("UPDATE part SET data = replace(data, 'more', 'less')"
                            " WHERE message_id = ?", (name,))  # fmt: skip
    source.read_with(unit_of(source, rows), kept)
    assert kept.rows.decoded == 153
    before, after = first.sessions[0].messages, second.sessions[0].messages
    assert all(one is other for one, other in zip(before, after, strict=False))


def test_a_part_that_is_streamed_is_written_without_a_look_at_all_that_is_stored(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.session(SESSION)
    message = rows.message(SESSION, "assistant", text("first"), finish(output=1))
    part = rows.part(SESSION, message, text("begins"))
    library, followers = open_database(tmp_path / "library.db", create=True), Followers()
    target = Target(OpencodeSource(), rows.path.parent)
    looked: list[str] = []
    merged = gone.merged

    def noted(connection: Any, prepared: PreparedSession, **names: Any) -> Any:
        looked.append(prepared.id)
        return merged(connection, prepared, **names)

    monkeypatch.setattr(gone, "merged", noted)

    def sync() -> list[str]:
        looked.clear()
        Sync(library, Settings(helpers=0), reading=followers.reading).run([target])
        words = "SELECT json_extract(data_json, '$.text') FROM chat_parts WHERE type = 'text'"
        return [row[0] for row in library.connection.execute(f"{words} ORDER BY id")]

    sync()
    for words in ("begins and", "begins and goes on"):
        at = rows.tick()
        data = json.dumps(text(words))
        rows.connection.execute("UPDATE part SET data = ?, time_updated = ? WHERE id = ?",
                                (data, at, part))  # fmt: skip
        rows.connection.execute("UPDATE session SET time_updated = ?", (at,))
        rows.tell(SESSION)
        assert sync() == ["first", words]
        assert not looked
    rows.connection.execute("DELETE FROM part WHERE id = ?", (part,))
    rows.tell(SESSION)
    assert sync() == ["first", "begins and goes on"]
    assert looked
    library.close()


def test_what_a_failed_reading_kept_is_not_used(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = OpencodeSource()
    rows.session(SESSION)
    rows.message(SESSION, "user", text("hi"))
    follower = SessionFollower(source)
    unit = unit_of(source, rows)
    follower.read(unit)
    rows.message(SESSION, "user", text("more"))
    with monkeypatch.context() as broken:
        broken.setattr("store.sources.opencode.source.find_origin", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            follower.read(unit)
    unit = unit_of(source, rows)
    assert follower.read(unit) == OpencodeSource().read(rows.path.parent, unit)
