"""However a store was written, its statistics equal a full count."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import tempfile
from dataclasses import fields
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from store.engine.database import Database, in_transaction
from store.engine.opening import open_target
from store.errors import Refused
from store.language.query import parse
from store.prices.table import Price, PriceTable
from store.stats import counting, tables
from store.stats.checking import check
from store.stats.keeping import Counter
from store.stats.rollups import Coverage, Rollups
from store.stats.statistics import DIMENSIONS, Figures, Span, figures, open_rollups
from store.stats.tables import STATISTICS
from store.sync.forget import forget
from store.verbs.fork import fork
from store.verbs.marks import rename
from store.verbs.rewind import rewind
from store.verbs.undo import undo
from tests.store.engines import ServerStores
from tests.store.talks import Talk, make_store

pytestmark = pytest.mark.long

ZONES = [UTC, *map(ZoneInfo, ("Europe/Berlin", "America/New_York", "Asia/Kolkata",
                              "Asia/Kathmandu", "Australia/Lord_Howe"))]  # fmt: skip
PRICES = PriceTable([[Price(input=1.0, output=10.0, cache_read=0.5, pattern="m")]])
USAGE = st.dictionaries(st.sampled_from(["input", "output", "cache_read", "cache_write"]),
                        st.integers(0, 300_000), max_size=4)  # fmt: skip
STEPS = st.sampled_from([0, 1_000, 700_000, 899_999, 3_600_000, 86_400_000, 200 * 86_400_000])


def full_count(db: Database) -> Rollups:
    """Count a store without its file of statistics."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    tables.make_tables(connection)
    counting.count_all(db, connection)
    return Rollups(connection, Coverage(0, 0), PRICES)


def rounded(found: Figures) -> dict[str, Any]:
    values = {each.name: getattr(found, each.name) for each in fields(Figures)}
    return {name: round(value, 6) if isinstance(value, float) else value
            for name, value in values.items()}  # fmt: skip


def asked(db: Database, stats: Rollups, chance: random.Random) -> dict[str, Any]:
    """Return the figures of every dimension, over a span and in a zone that are drawn."""
    zone: tzinfo = chance.choice(ZONES)
    times = [row[0] for row in db.connection.execute("SELECT created_at FROM chat_messages")]
    times = sorted(chance.choices([*times, 0], k=2)) if chance.random() < 0.6 else []
    span = Span(times[0] + chance.choice((0, 1)), times[1]) if times else Span()
    query = parse(chance.choice(["", "model:m", "tool:bash", "-tool:bash", "agent:build"]), now=0)
    found: dict[str, Any] = {}
    for by in DIMENSIONS:
        answer = figures(db, stats, by=by, span=span, query=query, zone=zone)
        found[by] = rounded(answer.whole), {
            group.key: rounded(group.figures) for group in answer.groups}
        if by != "tool":
            for name in ("turns", "answers", "copies", "calls", "active_ms", "tool_ms", "total"):
                parts = sum(getattr(group.figures, name) for group in answer.groups)
                assert parts == getattr(answer.whole, name), (by, name)
    return found


class CountedStore(RuleBasedStateMachine):
    """A store that is written while a keeper works in any order with it."""

    @initialize(form=st.sampled_from(["own", "contract"]))
    def begin(self, form: str) -> None:
        self.folder = contextlib.ExitStack()
        folder = self.folder.enter_context(tempfile.TemporaryDirectory())
        self.talk = Talk(make_store(Path(folder) / "store.db", form))
        self.path = self.talk.db.path
        self.counter = Counter(self.path)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.catch_up()
            self.counter.close()
            self.talk.db.close()
            self.folder.close()

    @property
    def sessions(self) -> list[str]:
        rows = self.talk.db.connection.execute("SELECT id FROM chat_sessions ORDER BY id")
        return [row[0] for row in rows.fetchall()]

    def messages(self, session: str) -> list[str]:
        rows = self.talk.db.connection.execute(
            "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY id", (session,)
        )
        return [row[0] for row in rows.fetchall()]

    def noted(self, session: str, message: str | None) -> None:
        """Write what each writer of a library writes to its log."""
        if self.talk.db.form.name == "own":
            self.talk.db.connection.execute(
                "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, 0)",
                (session, message),
            )

    @rule(agent=st.sampled_from(["build", "plan"]), folder=st.sampled_from([None, "/a", "/b"]))
    def add_session(self, agent: str, folder: str | None) -> None:
        self.noted(self.talk.session(agent=agent, workspace_root=folder), None)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), step=STEPS, usage=USAGE, cost=st.sampled_from([None, 0.25]),
          kind=st.sampled_from(["prompt", "answer", "call", "shared"]))  # fmt: skip
    def add_message(
        self, data: st.DataObject, step: int, usage: dict[str, int], cost: float | None, kind: str
    ) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        self.talk.now += step
        facts: dict[str, Any] = {} if cost is None else {"cost_usd": cost}
        if kind == "prompt":
            message = self.talk.message(session)
        elif kind == "call":
            state = data.draw(st.sampled_from(["output-available", "output-error"]))
            message = self.talk.call(session, data.draw(st.sampled_from(["Bash", "Read"])), state)
        else:
            if kind == "shared":
                facts["source"] = {"answer": [data.draw(st.sampled_from(["a", "b"])), "r"]}
            message = self.talk.message(session, "assistant", usage=usage, **facts)
        self.noted(session, message)

    @precondition(lambda self: any(self.messages(each) for each in self.sessions))
    @rule(data=st.data(), usage=USAGE, kind=st.sampled_from(["edit", "delete", "move", "share"]))
    def write_to_message(self, data: st.DataObject, usage: dict[str, int], kind: str) -> None:
        session = data.draw(st.sampled_from([s for s in self.sessions if self.messages(s)]))
        message = data.draw(st.sampled_from(self.messages(session)))
        write = self.talk.db.connection.execute
        if kind == "delete":
            write("DELETE FROM chat_messages WHERE id = ?", (message,))
        elif kind == "move":
            write("UPDATE chat_messages SET created_at = created_at + 900000 WHERE id = ?",
                  (message,))  # fmt: skip
        else:
            facts = {"usage": usage} | (
                {"source": {"answer": ["a", "r"]}} if kind == "share" else {})
            write("UPDATE chat_messages SET metadata_json = ? WHERE id = ?",
                  (json.dumps(facts), message))  # fmt: skip
        self.noted(session, message)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), verb=st.sampled_from(["rename", "fork", "rewind", "undo", "delete"]))
    def do(self, data: st.DataObject, verb: str) -> None:
        session = data.draw(st.sampled_from(self.sessions))
        messages, db, now = self.messages(session), self.talk.db, self.talk.now + 1
        try:
            if verb == "rename":
                in_transaction(db, rename, session, "x", now=now)
            elif verb == "fork" and messages:
                in_transaction(db, fork, session, messages[-1], ids=self.talk.ids, now=now)
                if db.form.name != "own" and data.draw(st.booleans()):
                    # As a host forks: its copies tell of no original.
                    db.connection.execute("UPDATE chat_messages SET metadata_json ="
                                          " json_remove(metadata_json, '$.inherited_from')")
            elif verb == "rewind" and messages:
                in_transaction(db, rewind, session, messages[0], now=now)
            elif verb == "undo":
                in_transaction(db, undo, now=now)
            elif verb == "delete":
                db.connection.execute("DELETE FROM chat_sessions WHERE id = ?", (session,))
                self.noted(session, None)
        except Refused:
            pass

    @precondition(lambda self: self.talk.db.form.name == "own" and self.sessions)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        forget(self.talk.db, [data.draw(st.sampled_from(self.sessions))])

    @precondition(lambda self: self.talk.db.form.name == "own")
    @rule(kept=st.integers(1, 3))
    def trim_the_log(self, kept: int) -> None:
        """Trim it as writers do: the newest entry stays."""
        self.talk.db.connection.execute(
            "DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - ?", (kept,))

    @rule()
    def look(self) -> None:
        self.counter.look()

    @rule()
    def step(self) -> None:
        self.counter.step()

    @rule()
    def end_and_begin_again(self) -> None:
        self.counter.close()
        self.counter = Counter(self.path)

    @precondition(lambda self: self.talk.db.form.name == "own")
    @rule(seed=st.integers(0, 2**32))
    def read_now(self, seed: int) -> None:
        """A reader counts what the keeper has not counted yet."""
        true = full_count(self.talk.db)
        with open_rollups(self.talk.db, PRICES) as stats:
            assert STATISTICS.path(self.path).exists()
            db = self.talk.db
            assert asked(db, stats, random.Random(seed)) == asked(db, true, random.Random(seed))
        true.connection.close()

    @rule()
    def catch_up(self) -> None:
        self.counter.look()
        self.counter.resume()
        while self.counter.step() or not self.counter.idle:
            self.counter.look()
            self.counter.resume()
        assert check(self.path) == []


CountedStore.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
TestCountedStore = cast("Any", CountedStore.TestCase)


def test_a_store_on_a_server(server_stores: ServerStores) -> None:
    class OnServer(CountedStore):
        @initialize()
        def begin(self) -> None:
            self.folder = contextlib.ExitStack()
            url = self.folder.enter_context(server_stores.lent())
            self.talk = Talk(open_target(url, write=True))
            self.path = self.talk.db.path
            # Of the example before, whose store had the same name.
            STATISTICS.path(self.path).unlink(missing_ok=True)
            self.counter = Counter(self.path)

    run_state_machine_as_test(OnServer, settings=settings(
        CountedStore.TestCase.settings, max_examples=10))
