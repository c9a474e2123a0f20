"""At each moment a replay shows what the store had then, where it has a log of all changes."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.errors import BackscrollError
from store.events.log import switch_on
from store.events.reading import newest_event
from store.queries.sessions import get
from store.queries.transcript import outline_page, rows_of
from store.store import Store
from store.system.clock import Clock
from tests.store.events.test_every_writer import Writers
from tests.store.sync_fakes import START
from tui.replay.document import ReplayDocument
from tui.replay.reading import ReplayReader, SessionReading
from tui.transcript.item import Setting
from tui.transcript.skeleton import EMPTY_INDEX, HIDDEN, QUEUED, Skeleton, build


class Changing(Writers):
    """Records, runs verbs, queues, edits and deletes, one after the other."""

    def __init__(self, db: Database, rng: random.Random, folder: Path) -> None:
        super().__init__(db, rng, folder)
        self.ticks = count(START + 1_000_000, 400)

    def write(self) -> None:
        ways: list[Callable[[], object]] = [
            *[self.record] * 4, self.rewind, self.rewind, self.restore, self.fork, self.undo,
            self.undo, self.redo, self.delete, self.queue, self.fire, self.cancel,
            self.drop_message, self.drop_part, self.edit, self.edit_message, self.replace_part,
            self.move_part,
        ]
        with contextlib.suppress(BackscrollError):
            self.rng.choice(ways)()

    def run(self, sql: str, *values: object) -> None:
        self.db.connection.execute(sql, values)

    def pick(self, table: str) -> str:
        rows = self.db.connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()
        return str(self.rng.choice(rows)[0]) if rows else "none"

    def queue(self) -> None:
        at, session, name = self.now(), self.session(), f"msg_q{self.now()}"
        if session != "none":
            self.run("INSERT INTO chat_messages VALUES (?, ?, 'user', ?, ?, ?)", name, session,
                     json.dumps({"queued_at": at}), at, at)
            self.run("INSERT INTO chat_parts VALUES (?, ?, ?, 0, 'text', ?, NULL, NULL, ?, ?)",
                     f"prt_{at}", name, session, '{"type":"text","text":"later"}', at, at)

    def queued(self, change: str) -> None:
        at = self.now()
        rows = self.db.connection.execute(
            "SELECT id FROM chat_messages WHERE json_extract(metadata_json, '$.queued_at')"
            " IS NOT NULL").fetchall()
        if rows:
            self.run(f"UPDATE chat_messages SET updated_at = ?1, {change} WHERE id = ?2", at,
                     self.rng.choice(rows)[0])

    def fire(self) -> None:
        self.queued("created_at = ?1, metadata_json = json_remove(metadata_json, '$.queued_at')")

    def cancel(self) -> None:
        self.queued("metadata_json = json_set(metadata_json, '$.queue_canceled_at', ?1,"
                    " '$.hidden_at', ?1)")

    def drop_message(self) -> None:
        self.run("DELETE FROM chat_messages WHERE id = ?", self.pick("chat_messages"))

    def drop_part(self) -> None:
        self.run("DELETE FROM chat_parts WHERE id = ?", self.pick("chat_parts"))

    def edit(self) -> None:
        self.run("UPDATE chat_parts SET data_json = ?, updated_at = ? WHERE id = ?",
                 json.dumps({"type": "text", "text": self.rng.choice("abc")}), self.now(),
                 self.pick("chat_parts"))

    def edit_message(self) -> None:
        self.run("UPDATE chat_messages SET role = ?, metadata_json = json_set(metadata_json,"
                 " '$.note', ?) WHERE id = ?", self.rng.choice(["user", "assistant"]),
                 self.rng.random(), self.pick("chat_messages"))

    def replace_part(self) -> None:
        part = self.pick("chat_parts")
        self.run("UPDATE chat_parts SET id = id || 'x', type = 'text' WHERE id = ?", part)

    def move_part(self) -> None:
        self.run('UPDATE chat_parts SET "index" = "index" + 100, updated_at = ? WHERE id = ?',
                 self.now(), self.pick("chat_parts"))


def shown(skeleton: Skeleton, part: int, message: Any, row: Any) -> tuple[object, ...]:
    """What is compared of a part."""
    number = skeleton.message[part]
    flags = skeleton.flags[number] & (HIDDEN | QUEUED)
    head = (skeleton.key(part), skeleton.roles[number], flags, skeleton.created[number],
            message and (message.role, json.loads(message.metadata_json), message.created_at,
                         message.updated_at))
    if skeleton.index[part] == EMPTY_INDEX:
        return head
    assert row is not None, (skeleton.key(part), skeleton.type_of(part))
    return *head, row.id, row.type, json.loads(row.data_json), row.tool_state, row.tool_call_id


def as_stored(db: Database, session_id: str) -> list[tuple[object, ...]]:
    skeleton = build(outline_page(db, session_id, None, 9_999))
    messages, parts = rows_of(db, [(name, -9, 9_999) for name in skeleton.message_ids])
    by_id = {message.id: message for message in messages}
    rows = {(part.message_id, part.index): part for part in parts}
    return [shown(skeleton, part, by_id.get(skeleton.key(part)[0]), rows.get(skeleton.key(part)))
            for part in range(len(skeleton))]


def has_places(parts: list[tuple[object, ...]]) -> bool:
    """Return whether each part has a place of its own, as the contract asks."""
    return len({part[0] for part in parts}) == len(parts)


def as_replayed(document: ReplayDocument) -> list[tuple[object, ...]]:
    skeleton = document.skeleton
    found = []
    for part in range(len(document)):
        message = document.message_row(part)
        assert message is not None
        found.append(shown(skeleton, part, message[0], document.row(part)))
    return found


def laid_out(document: ReplayDocument) -> list[list[str]]:
    """The lines of each part."""
    blocks = [document.block(part) for part in range(len(document))]
    return [[line.whole_text for line in block.lines] if block is not None else []
            for block in blocks]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with contextlib.closing(open_database(tmp_path / "library.db", create=True)) as database:
        yield database


@pytest.mark.parametrize("seed", [
    0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 40))])
async def test_each_moment_equals_the_store_as_it_was(
    db: Database, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    changing = Changing(db, rng, tmp_path)
    switch_on(db)
    seen: dict[str, dict[int, list[tuple[object, ...]]]] = {}
    for _ in range(60):
        known = newest_event(db)
        changing.write()
        # The log has the time of this computer; the writers have a clock of their own.
        written = changing.now()
        db.connection.execute("UPDATE events SET at = ? WHERE id > ?", (written, known))
        at = changing.now()
        for (session_id,) in db.connection.execute("SELECT id FROM chat_sessions").fetchall():
            seen.setdefault(session_id, {})[at] = as_stored(db, session_id)
    compared = 0
    async with Store.open(tmp_path / "library.db") as store:
        for session_id, moments in seen.items():
            row = await store.read(get, session_id)
            if row is None:
                continue
            reading = SessionReading(store, row, changing.now, lambda: Setting(80, 80))
            document = None
            async for piece in reading.pieces(None):
                document = piece and piece.document
            if document is None:
                continue
            reader = ReplayReader(store, row)
            fresh = deepcopy(document.recording)
            times = list(moments)
            for at in [*times, *rng.sample(times, min(5, len(times)))]:
                if at < document.timeline.begin or not has_places(moments[at]):
                    continue
                document.show_at(at)
                await reader.have(document, range(len(document)))
                assert as_replayed(document) == moments[at], (session_id, at)
                again = ReplayDocument(fresh, Setting(80, 80))
                again.show_at(at)
                await reader.have(again, range(len(again)))
                assert laid_out(document) == laid_out(again), (session_id, at)
                compared += 1
    assert compared > 20


async def pieces(store: Store, session_id: str, now: Clock) -> tuple[SessionReading, Any]:
    """Read a session whole; the last of its pieces."""
    row = await store.read(get, session_id)
    assert row is not None
    reading = SessionReading(store, row, now, lambda: Setting(80, 80))
    return reading, [piece async for piece in reading.pieces(None)][-1]


def shape(piece: Any) -> list[object]:
    """What a session is like at all moments."""
    skeleton, timeline = piece.document.recording
    return [skeleton.message_ids, list(skeleton.index), list(skeleton.created),
            list(timeline.starts), list(timeline.ends), list(timeline.moments), timeline.rewinds,
            [timeline.cut(at) for at in timeline.moments]]


async def test_answers_that_were_deleted_count_until_then(db: Database, tmp_path: Path) -> None:
    switch_on(db)

    def write(at: int, *statements: str) -> None:
        known = newest_event(db)
        for sql in statements:
            db.connection.execute(sql.replace("AT", str(at)))
        db.connection.execute("UPDATE events SET at = ? WHERE id > ?", (at, known))

    def answer(name: str, usage: str) -> tuple[str, str]:
        return (f"INSERT INTO chat_messages VALUES ('{name}', 's', 'assistant', '{usage}', AT, AT)",
                f"INSERT INTO chat_parts VALUES ('p{name}', '{name}', 's', 0, 'text',"
                """ '{"type":"text","text":"x"}', NULL, NULL, AT, AT)""")

    write(START, "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
          " VALUES ('s', 'a', '{}', AT, AT)")
    write(START + 1_000, *answer("a", '{"usage":{"input":1000},"cost":0.5}'))
    write(START + 2_000, *answer("b", '{"usage":{"input":20,"output":5},"cost":0.25}'))
    write(START + 3_000, "DELETE FROM chat_messages WHERE id = 'a'")
    async with Store.open(tmp_path / "library.db") as store:
        reading, piece = await pieces(store, "s", lambda: START + 9_000)
        totals = await reading.totals(piece.document.recording)
        spent = [totals.spent(START + at) for at in (999, 1_000, 2_000, 2_999, 3_000)]
        assert [(one.total, one.cost) for one in spent] == [
            (0, None), (1_000, 0.5), (1_025, 0.75), (1_025, 0.75), (25, 0.25)]
        assert [totals.context(START + at) for at in (1_500, 2_500, 3_500)] == [1_000, 25, 25]
        write(START + 4_000, "DELETE FROM chat_messages WHERE id = 'b'",
              "INSERT INTO changes(changed_at, session_id, message_id) VALUES (1, 's', 'b')")
        row = await store.read(get, "s")
        again = await reading.renewed(row) if row is not None else None
        assert again is not None
        totals = await reading.totals(again.document.recording)
        assert [(one.total, one.cost) for one in map(totals.spent, (START + 3_999, START + 4_000))
                ] == [(25, 0.25), (0, None)]
        assert totals.context(START + 4_000) == 0


@pytest.mark.parametrize("seed", [
    0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 20))])
async def test_what_is_written_later_is_read_as_if_it_were_read_at_once(
    db: Database, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.replay.reading.PAGE", 2)
    changing = Changing(db, random.Random(seed), tmp_path)
    switch_on(db)
    readings: dict[str, SessionReading] = {}
    async with Store.open(tmp_path / "library.db") as store:
        for _ in range(40):
            known = newest_event(db)
            changing.write()
            # As writers do it.
            db.connection.execute(
                "INSERT INTO changes(changed_at, session_id, message_id)"
                " SELECT DISTINCT 1, stream_id, message_id FROM events WHERE id > ?", (known,))
            for (session_id,) in db.connection.execute("SELECT id FROM chat_sessions").fetchall():
                if session_id not in readings:
                    readings[session_id], _piece = await pieces(store, session_id, changing.now)
                    continue
                row = await store.read(get, session_id)
                assert row is not None
                piece = await readings[session_id].renewed(row)
                if piece is not None:
                    _reading, again = await pieces(store, session_id, changing.now)
                    assert shape(piece) == shape(again)
