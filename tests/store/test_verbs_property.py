"""Random sequences of verbs against a plain model, in every form of store."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from store.engine.database import Database, in_transaction
from store.engine.opening import open_target
from store.errors import Refused
from store.queries.context import context_ids, visible_ids
from store.usage import KEYS
from store.verbs import rollups
from store.verbs.fork import fork
from store.verbs.rewind import batches, restore, rewind
from store.verbs.rollups import count
from store.verbs.shelf import archive, unarchive
from store.verbs.undo import redo, undo
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store
from tests.store.talks import TABLES, Talk, make_store

pytestmark = pytest.mark.long


@dataclass
class Entry:
    """A message as the model sees it."""

    id: str
    role: str
    usage: int = 0
    queued: bool = False
    hidden: int | None = None
    marker: bool = False
    tail: str | None = None

    @property
    def visible(self) -> bool:
        return self.hidden is None and not self.queued


@dataclass
class Model:
    """What the store should hold: sessions with their messages in order."""

    sessions: dict[str, list[Entry]] = field(default_factory=dict)

    def context(self, session: str) -> list[Entry]:
        visible = [entry for entry in self.sessions[session] if entry.visible]
        markers = [n for n, entry in enumerate(visible) if entry.marker]
        if not markers:
            return visible
        at = markers[-1]
        starts = [n for n in range(at) if visible[n].id == visible[at].tail]
        tail = visible[starts[0] : at] if starts else []
        return [visible[at], *tail, *visible[at + 1 :]]

    def total(self, session: str, form: str) -> int:
        counted = self.context(session) if form == "grida" else self.sessions[session]
        return sum(entry.usage for entry in counted if entry.role == "assistant")


class Verbs(RuleBasedStateMachine):
    """Appends, queues, compacts, forks, rewinds, restores, archives, undoes and redoes."""

    form = "own"

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        os.environ["XDG_DATA_HOME"] = self.folder.name
        self.talk = Talk(self.made())
        self.model = Model({self.talk.session(): []})
        self.undone_forks: set[str] = set()
        self.seen: set[str] = set()

    def made(self) -> Database:
        return make_store(Path(self.folder.name) / "store.db", self.form)

    def teardown(self) -> None:
        self.talk.db.close()
        self.folder.cleanup()

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.model.sessions)))

    def host_counts(self, session: str) -> None:
        """A host keeps the rollups of what it writes itself."""
        rollups.write(self.talk.db, session)

    def later(self) -> int:
        self.talk.now += 100_000
        return self.talk.now

    @rule(data=st.data(), role=st.sampled_from(["user", "assistant"]), usage=st.integers(0, 50))
    def append(self, data: st.DataObject, role: str, usage: int) -> None:
        session = self.pick(data)
        message = self.talk.message(session, role, usage={"input": usage} if usage else None)
        self.host_counts(session)
        self.model.sessions[session].append(Entry(message, role, usage))

    @rule(data=st.data())
    def queue(self, data: st.DataObject) -> None:
        session = self.pick(data)
        message = self.talk.message(session, "user", queued_at=self.talk.now)
        self.model.sessions[session].append(Entry(message, "user", queued=True))

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        session = self.pick(data)
        known = [entry.id for entry in self.model.sessions[session] if entry.visible]
        tail = data.draw(st.sampled_from([None, *known]))
        marker = self.talk.compaction(session, tail, 7)
        self.host_counts(session)
        self.model.sessions[session].append(Entry(marker, "assistant", 7, marker=True, tail=tail))

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        session = self.pick(data)
        visible = [entry for entry in self.model.sessions[session] if entry.visible]
        if not visible:
            return
        at = data.draw(st.integers(0, len(visible) - 1))
        made = in_transaction(
            self.talk.db, fork, session, visible[at].id, ids=self.talk.ids, now=self.later()
        )
        copies = visible_ids(self.talk.db, made.session_id)
        renamed = {old.id: new for old, new in zip(visible[: at + 1], copies, strict=True)}
        self.model.sessions[made.session_id] = [
            Entry(renamed[e.id], e.role, e.usage, marker=e.marker,
                  tail=renamed.get(e.tail, e.tail) if e.tail else None)
            for e in visible[: at + 1]
        ]  # fmt: skip
        assert not set(copies) & {e.id for e in self.model.sessions[session]}

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        session = self.pick(data)
        visible = [entry for entry in self.model.sessions[session] if entry.visible]
        if len(visible) < 2:
            return
        at = data.draw(st.integers(0, len(visible) - 2))
        batch = in_transaction(self.talk.db, rewind, session, visible[at].id, now=self.later())
        for entry in visible[at + 1 :]:
            entry.hidden = batch.hidden_at

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        session = self.pick(data)
        known = sorted({e.hidden for e in self.model.sessions[session] if e.hidden is not None})
        if not known:
            return
        chosen = data.draw(st.sampled_from([None, *known]))
        in_transaction(self.talk.db, restore, session, batch=chosen, now=self.later())
        for entry in self.model.sessions[session]:
            if entry.hidden == (chosen or known[-1]):
                entry.hidden = None

    @rule(data=st.data())
    def shelve(self, data: st.DataObject) -> None:
        session = self.pick(data)
        archived = self.talk.session_row(session)["archived_at"] is not None
        in_transaction(
            self.talk.db, unarchive if archived else archive, [session], now=self.later()
        )

    @rule()
    def undo_then_redo(self) -> None:
        before = self.talk.dump()
        try:
            step = in_transaction(self.talk.db, undo, now=self.later())
        except Refused:
            assert self.talk.dump() == before
            return
        if step.kept is not None:
            assert self.talk.dump() == before
            return
        in_transaction(self.talk.db, redo, now=self.later())
        assert self.talk.dump() == before

    @rule()
    def undo(self) -> None:
        try:
            step = in_transaction(self.talk.db, undo, now=self.later())
        except Refused:
            return
        if step.kept is not None:
            return
        if step.verb == "fork":
            (gone,) = set(self.model.sessions) - {
                row[0] for row in self.talk.db.connection.execute("SELECT id FROM chat_sessions")
            }
            self.seen -= {entry.id for entry in self.model.sessions.pop(gone)}
        elif step.verb in ("rewind", "restore"):
            self.read_hidden(step.session_id)

    def read_hidden(self, session: str) -> None:
        rows = dict(
            self.talk.db.connection.execute(
                f"SELECT m.id, {self.talk.db.form.hidden_at('m')} FROM chat_messages m"
                " WHERE m.session_id = ?",
                [session],
            ).fetchall()
        )
        changed = [e for e in self.model.sessions[session] if e.hidden != rows[e.id]]
        batch = {e.hidden if e.hidden is not None else rows[e.id] for e in changed}
        assert len(batch) == 1
        for entry in changed:
            entry.hidden = rows[entry.id]

    @invariant()
    def no_message_is_ever_deleted(self) -> None:
        stored = {row[0] for row in self.talk.db.connection.execute("SELECT id FROM chat_messages")}
        assert self.seen <= stored
        self.seen = stored

    @invariant()
    def context_equals_the_models(self) -> None:
        for session in self.model.sessions:
            expected = [entry.id for entry in self.model.context(session)]
            assert context_ids(self.talk.db, session) == expected

    @invariant()
    def rollups_equal_a_recount(self) -> None:
        for session in self.model.sessions:
            counted = count(self.talk.db, session)
            assert sum(counted) == self.model.total(session, self.form)

    @invariant()
    def batches_are_what_the_model_hid(self) -> None:
        for session, entries in self.model.sessions.items():
            hidden = [e.hidden for e in entries if e.hidden is not None]
            assert [b.hidden_at for b in batches(self.talk.db, session)] == sorted(
                set(hidden), reverse=True
            )

    @invariant()
    def no_row_is_shared(self) -> None:
        for table in TABLES[1:]:
            (rows, distinct) = self.talk.db.connection.execute(
                f"SELECT count(*), count(DISTINCT id) FROM {table}"
            ).fetchone()
            assert rows == distinct


class HostVerbs(Verbs):
    form = "contract"


class GridaVerbs(Verbs):
    form = "grida"


LIMITS = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestOwn = Verbs.TestCase
TestOwn.settings = LIMITS
TestContract = HostVerbs.TestCase
TestContract.settings = LIMITS
TestGrida = GridaVerbs.TestCase
TestGrida.settings = LIMITS


def test_on_a_server(postgres: Server) -> None:
    class OnAServer(Verbs):
        def made(self) -> Database:
            return open_target(new_server_store(postgres), write=True)

    run_state_machine_as_test(OnAServer, settings=LIMITS)


assert set(KEYS) == {"input", "output", "reasoning", "cache_read", "cache_write"}
