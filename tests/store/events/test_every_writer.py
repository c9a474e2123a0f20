"""Whatever writes sessions, a store made of the log equals the three tables."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.errors import BackscrollError, Invalid, NotFound, Refused
from store.events.log import switch_on
from store.events.rebuilding import differing, rebuild
from store.exports.files import prepare
from store.exports.registry import FORMATS
from store.ids import IdMinter
from store.imports.reading import import_file
from store.recorder.policy import SavePolicy
from store.recorder.procedures import drive
from store.recorder.recording import Recording
from store.store import Store
from store.sync.forget import forget
from store.sync.writer import write_session
from store.upkeep.doctor import examine
from store.upkeep.pruning import Wish, prune
from store.verbs import marks
from store.verbs.delete import delete
from store.verbs.fork import fork
from store.verbs.permissions import change_rules, rule_in
from store.verbs.rewind import restore, rewind
from store.verbs.shelf import archive, unarchive
from store.verbs.undo import redo, undo
from tests.store.events.test_log import assert_same
from tests.store.sync_fakes import START, message, session

CHUNKS: list[dict[str, Any]] = [
    {"type": "start"}, {"type": "start-step"}, {"type": "text-start", "id": "t"},
    {"type": "text-delta", "id": "t", "delta": "word " * 20},
    {"type": "text-delta", "id": "t", "delta": "\u6f22\U0001f600\0" * 9},
    {"type": "text-end", "id": "t"},
    {"type": "tool-input-start", "toolCallId": "c", "toolName": "write"},
    {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"text":"' + "ab" * 60},
    {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": 'more \\n"}'},
    {"type": "tool-input-available", "toolCallId": "c", "toolName": "write", "input": {"a": 1}},
    {"type": "tool-output-available", "toolCallId": "c", "output": "x" * 200, "preliminary": True},
    {"type": "tool-output-available", "toolCallId": "c", "output": "x" * 300},
    {"type": "from-the-future", "id": "t"}, {"type": "finish-step"}, {"type": "reset-step"},
    {"type": "finish", "messageMetadata": {"usage": {"inputTokens": 5, "outputTokens": 2}}},
    {"type": "abort"},
]  # fmt: skip


class Writers:
    """Writes to a library in every way, at random."""

    def __init__(self, db: Database, rng: random.Random, folder: Path) -> None:
        self.db, self.rng, self.folder = db, rng, folder
        self.ticks = count(START + 1_000_000, 90_000)
        self.recordings: list[Recording] = []

    def now(self) -> int:
        return next(self.ticks)

    def write(self) -> None:
        """Write in one way; what is refused is no matter."""
        ways: list[Callable[[], object]] = [
            self.record, self.record, self.record, self.mark, self.mark, self.shelve, self.permit,
            self.fork, self.rewind, self.restore, self.delete, self.undo, self.undo, self.redo,
            self.forget, self.export_and_import,
        ]
        if self.db.server is None:
            ways += [self.sync, self.sync, self.mend]
        with contextlib.suppress(BackscrollError):
            self.rng.choice(ways)()

    def session(self) -> str:
        rows = self.db.connection.execute("SELECT id FROM chat_sessions").fetchall()
        return str(self.rng.choice(rows)[0]) if rows else "none"

    def message(self, session_id: str) -> str:
        rows = self.db.connection.execute(
            "SELECT id FROM chat_messages WHERE session_id = ?", (session_id,)).fetchall()
        return str(self.rng.choice(rows)[0]) if rows else "none"

    def do(self, verb: Callable[..., object], *args: object, **options: Any) -> object:
        return in_transaction(self.db, verb, *args, now=self.now(), **options)

    def sync(self) -> None:
        names = self.rng.sample("abcdefgh", self.rng.randrange(1, 8))
        content = [message(name, START + ord(name), self.rng.choice(["same", "\u6f22" * 30, name]))
                   for name in sorted(names)]
        name = self.rng.choice(["one", "two", "three"])
        in_transaction(self.db, write_session, "fake", session(name, *content),
                       keep_gone=self.rng.random() < 0.7)

    def record(self) -> None:
        if not self.recordings or self.rng.random() < 0.3:
            policy = SavePolicy(save_on=self.rng.choice(["chunk", "step", "turn"]),
                                save_buffer_ms=0)
            self.recordings.append(Recording(policy=policy, clock=self.now))
            drive(self.db, self.recordings[-1].start(None, agent="test"))
        recording = self.rng.choice(self.recordings)
        first = self.rng.randrange(len(CHUNKS))
        try:
            for chunk in [CHUNKS[0], *CHUNKS[first : first + 6]]:
                drive(self.db, recording.receive(dict(chunk)))
                drive(self.db, recording.save(exact=True))
        except BackscrollError:
            self.recordings.remove(recording)

    def mark(self) -> None:
        one = self.session()
        way = self.rng.randrange(4)
        if way == 0:
            self.do(marks.rename, one, self.rng.choice(["T", "Title " * 9]))
        elif way == 1:
            self.do(marks.star, one)
        elif way == 2:
            self.do(marks.tag, one, add=["x", "y"])
        else:
            self.do(marks.label, one, self.message(one), "label")

    def shelve(self) -> None:
        self.do(self.rng.choice([archive, unarchive]), [self.session()])

    def permit(self) -> None:
        self.do(change_rules, self.session(), add=[rule_in("allow Bash git *")])

    def fork(self) -> None:
        one = self.session()
        self.do(fork, one, self.message(one), ids=IdMinter(self.now))

    def rewind(self) -> None:
        one = self.session()
        self.do(rewind, one, self.message(one))

    def restore(self) -> None:
        self.do(restore, self.session())

    def delete(self) -> None:
        self.do(delete, self.session())

    def undo(self) -> None:
        self.do(undo)

    def redo(self) -> None:
        self.do(redo)

    def forget(self) -> None:
        if self.rng.random() < 0.3:
            prune(self.db, Wish(keep_newest=4), clock=self.now)
        elif self.rng.random() < 0.5:
            forget(self.db, [self.session()], clock=self.now)

    def mend(self) -> None:
        self.db.connection.execute("UPDATE chat_sessions SET total_tokens = 5 WHERE id = ?",
                                   (self.session(),))
        examine(self.db, fix=True, quick=True, clock=self.now)

    def export_and_import(self) -> None:
        one = self.session()
        path = self.folder / "export.jsonl"
        try:
            path.write_text("".join(prepare(self.db, one, FORMATS["jsonl"]).pieces()), "utf-8")
        finally:
            if self.db.connection.in_transaction:
                self.db.connection.execute("ROLLBACK")
        self.delete()
        list(import_file(self.db, path, clock=self.now))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.one_in(2)
def test_random_writes_of_every_kind(db: Database, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    writers = Writers(db, rng, tmp_path)
    for step in range(70):
        if step == seed * 3 % 20:
            switch_on(db)
        writers.write()
        if step % 23 == 22:
            assert differing(db) == [], step
    made = rebuild(db, tmp_path / "made.db")
    assert made.differing == [] and made.rows["chat_sessions"] > 0
    assert_same(db, made.path)


async def test_the_public_store(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    with contextlib.closing(open_database(path, create=True)) as db:
        switch_on(db)
    async with await Store.open(path) as store:
        made = await store.create_session("agent", "m", metadata={"k": 1})
        async with store.recorder(made) as recorder:
            await recorder.user_message("hello")
            for chunk in CHUNKS[:6]:
                await recorder.feed(chunk)
            await recorder.abort("enough")
        forked = await store.fork(made, (await store.messages(made))[0]["id"])
        await store.rename(made, "title")
        await store.archive(forked)
        await store.delete(made)
        await store.undo()
    with contextlib.closing(open_database(path)) as db:
        assert differing(db) == []
        kinds = {row[0] for row in db.connection.execute("SELECT kind FROM events")}
        assert {"run.aborted", "session.archived", "session.deleted"} <= kinds


async def test_events_of_the_public_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.events.paging.MOST_EVENTS", 3)
    path = tmp_path / "library.db"
    async with Store.open(path, create=True) as store:
        made = await store.create_session("agent")
        with pytest.raises(Refused, match="events --on"):
            await anext(store.events(made))
        with contextlib.closing(open_database(path)) as db:
            switch_on(db)
        with pytest.raises(NotFound):
            await anext(store.events("nothing"))
        for odd in (-1, "1", True, 1 << 63):
            with pytest.raises(Invalid):
                await anext(store.events(made, after=cast(int, odd)))
        for number in range(5):
            await store.rename(made, f"title {number}")
        found = [event async for event in store.events(made)]
        assert [event.seq for event in found] == [1, 2, 3, 4, 5, 6]
        assert [event.seq async for event in store.events(made.id, after=4)] == [5, 6]
        assert [event async for event in store.events(made, after=99)] == []
        other = await store.create_session("agent")
        follower = store.events(after=found[-1].id, follow=True, every=0.001)
        assert (await anext(follower)).session_id == other.id
        coming = asyncio.ensure_future(anext(follower))
        async with await Store.open(path) as another:
            await another.delete(made)
        assert (await coming).kind == "session.deleted"
        assert [event.kind async for event in store.events(made.id, after=6)] == [
            "session.deleted"]
        coming = asyncio.ensure_future(anext(follower))
    with pytest.raises(StopAsyncIteration):
        await coming
