"""What is left of a log that is cut makes the same store."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.events.log import log_state, switch_on
from store.events.reading import events_of_all, newest_event
from store.events.rebuilding import differing, rebuild
from store.events.trimming import (
    DAY_MS,
    Bounds,
    Trimmed,
    is_due,
    log_size,
    trim,
    trim_if_due,
    would_trim,
)
from tests.store.events.tables import Changes
from tests.store.events.test_log import assert_same

NOW = 1_790_000_000_000
GAPS = "SELECT 1 FROM events GROUP BY stream_id HAVING max(seq) - min(seq) + 1 <> count(*)"


def cut_as_planned(db: Database, bounds: Bounds, now: int = NOW) -> Trimmed:
    """Cut old events, and compare that with what the dry run said."""
    planned, (_, size) = would_trim(db, bounds, clock=lambda: now), log_size(db)
    done = trim(db, bounds, clock=lambda: now)
    assert planned == replace(done, size=size - log_size(db)[1])
    return done


@pytest.mark.parametrize("seed", range(6))
def test_by_age_at_any_moment(db: Database, tmp_path: Path, seed: int) -> None:
    switch_on(db, clock=lambda: NOW)
    changes = Changes(db, random.Random(seed))
    for _ in range(150):
        changes.change()
    db.connection.execute("UPDATE events SET at = ? + id * 1000", (NOW,))
    newest, lasts = newest_event(db), dict(
        db.connection.execute("SELECT stream_id, max(seq) FROM events GROUP BY 1").fetchall())
    count, _ = log_size(db)
    cut = 0
    for step in (40, 90, 10_000):
        cut += cut_as_planned(db, Bounds(days=1), NOW + step * 1000 + DAY_MS).events
        assert differing(db) == []
        assert db.connection.execute(GAPS).fetchall() == []
    assert cut > 30 and log_size(db)[0] == count - cut and newest_event(db) <= newest
    assert lasts == dict(
        db.connection.execute("SELECT stream_id, max(seq) FROM events GROUP BY 1").fetchall())
    assert not [event for event in events_of_all(db) if event.kind.endswith(".updated")]
    rebuild(db, tmp_path / "made.db")
    assert_same(db, tmp_path / "made.db")
    for _ in range(40):
        changes.change()
    assert differing(db) == [] and db.connection.execute(GAPS).fetchall() == []


@pytest.mark.parametrize("seed", range(6))
def test_others_write_while_a_session_is_cut(
    db: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    switch_on(db)
    with contextlib.closing(open_database(db.path)) as other:
        _cut_while_another_writes(db, Changes(other, random.Random(seed)), monkeypatch)
    assert differing(db) == []
    assert db.connection.execute(GAPS).fetchall() == []


def _cut_while_another_writes(
    db: Database, changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(120):
        changes.change()
    pauses: list[float] = []

    def others_write(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) % 7 == 0:
            changes.change()
        if len(pauses) % 10 == 0 or len(pauses) < 20:
            assert differing(db) == []
            assert db.connection.execute(GAPS).fetchall() == []

    monkeypatch.setattr("store.events.trimming._AT_ONCE", 2)
    monkeypatch.setattr("store.events.trimming.time.sleep", others_write)
    assert trim(db, Bounds(bytes=1)).events > 10
    assert len(pauses) > 20


@pytest.mark.parametrize("seed", range(3))
def test_two_that_cut_the_same_session_do_not_mix_its_events(
    db: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    switch_on(db)
    others: list[int] = []
    with contextlib.closing(open_database(db.path)) as second:
        changes = Changes(second, random.Random(seed))
        for _ in range(150):
            changes.change()

        def other(seconds: float) -> None:
            if len(others) < 3:
                others.append(0)
                monkeypatch.setattr("store.events.trimming._AT_ONCE", 1000)
                for _ in range(15):
                    changes.change()
                others[-1] = trim(second, Bounds(bytes=1)).events
                monkeypatch.setattr("store.events.trimming._AT_ONCE", 5)

        monkeypatch.setattr("store.events.trimming._AT_ONCE", 5)
        monkeypatch.setattr("store.events.trimming.time.sleep", other)
        trim(db, Bounds(bytes=1))
    assert sum(others) > 20 and differing(db) == []
    assert db.connection.execute(GAPS).fetchall() == []


def test_what_lacks_events_is_left_to_the_doctor(db: Database) -> None:
    switch_on(db)
    do = db.connection.execute
    do("INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
       " VALUES ('ses_1', 'a', '{}', 1, 1)")
    for number in range(6):
        do("UPDATE chat_sessions SET updated_at = ?", (number,))
    do("DELETE FROM events WHERE seq = 3")
    before = do("SELECT * FROM events ORDER BY id").fetchall()
    assert trim(db, Bounds(bytes=1)).events == 0
    assert do("SELECT * FROM events ORDER BY id").fetchall() == before


def test_by_size_the_longest_unchanged_first(db: Database) -> None:
    switch_on(db)
    do = db.connection.execute
    for name in ("ses_old", "ses_new"):
        do("INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
           " VALUES (?, 'a', '{}', 1, 1)", (name,))
        for number in range(50):
            do("UPDATE chat_sessions SET metadata_json = ? WHERE id = ?",
               (f'{{"title":"{number}{"x" * 1000}"}}', name))
    do("UPDATE events SET at = at + 1000 WHERE stream_id = 'ses_new'")
    count, size = log_size(db)
    assert count == 102 and 102_000 < size < 140_000
    assert cut_as_planned(db, Bounds(bytes=size)).events == 0
    assert would_trim(db, Bounds(days=0, bytes=1)).sessions == 2
    done = cut_as_planned(db, Bounds(bytes=size - 1))
    assert (done.sessions, done.events) == (1, 50) and differing(db) == []
    assert {event.kind for event in events_of_all(db) if event.session_id == "ses_old"} == {
        "session.snapshot"}
    assert cut_as_planned(db, Bounds(bytes=1)).sessions == 1 and log_size(db)[0] == 2
    assert differing(db) == []


def test_once_a_day_where_it_has_bounds(db: Database) -> None:
    assert trim_if_due(db, Bounds(days=1)) is None
    switch_on(db)
    assert trim_if_due(db, Bounds()) is None
    assert trim_if_due(db, Bounds(days=1), clock=lambda: NOW) is not None
    assert trim_if_due(db, Bounds(days=1), clock=lambda: NOW + DAY_MS - 1) is None
    assert is_due(log_state(db), Bounds(bytes=9), NOW + DAY_MS)
    assert is_due(log_state(db), Bounds(bytes=9), NOW - 1)  # The clock was wrong.
