"""Which sessions are removed as old, and which are kept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.system.processes import this_process
from store.upkeep import pruning
from store.upkeep.pruning import Plan, Wish, plan, prune

DAY = 86_400_000
NOW = 1_000 * DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with contextlib.closing(open_database(tmp_path / "library.db", create=True)) as database:
        yield database


def session(
    db: Database, name: str, age: int, *, parent: str | None = None, kind: str | None = None,
    source: str = "codex", **metadata: object,
) -> None:
    found = {"title": name, "source": {"kind": source, "id": name}} | metadata
    if kind:
        found["lineage"] = {"kind": kind}
    at = NOW - age * DAY
    db.connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, parent_id, metadata_json, created_at,"
        " updated_at) VALUES (?, 'a', '{}', ?, ?, ?, ?)", (name, parent, json.dumps(found), at, at))


def planned(db: Database, **wish: object) -> Plan:
    return plan(db, Wish(**wish), now=NOW)  # type: ignore[arg-type]


def ids(found: Plan) -> list[str]:
    return [one.id for one in found.old]


def test_by_age_and_number(store: Database) -> None:
    for age in range(10):
        session(store, f"s{age}", age)
    assert ids(planned(store, before=NOW - 5 * DAY)) == ["s9", "s8", "s7", "s6"]
    found = planned(store, before=NOW - 5 * DAY, keep_newest=8)
    assert ids(found) == ["s9", "s8"] and found.kept == {"newest": 2}
    assert ids(planned(store, keep_newest=9)) == ["s9"]
    assert ids(planned(store, keep_newest=99)) == []


def test_one_source_only(store: Database) -> None:
    for age in range(4):
        session(store, f"c{age}", age)
        session(store, f"p{age}", age, source="pi")
    assert ids(planned(store, keep_newest=2, source="pi")) == ["p3", "p2"]


def test_never_what_somebody_needs(store: Database) -> None:
    session(store, "starred", 90, user={"star": True})
    session(store, "parent", 90)
    session(store, "fork", 80, parent="parent", kind="fork")
    running = {"state": "running", "from": "stored", "since": 1} | this_process().as_json()
    session(store, "running", 90, activity=running)
    session(store, "waits", 90, activity=running | {"state": "waiting-approval"})
    session(store, "plain", 90)
    found = planned(store, before=NOW)
    assert ids(found) == ["plain", "fork"]
    assert found.kept == {"starred": 1, "forked": 1, "running": 2}


def test_a_family_is_kept_or_goes_as_a_whole(store: Database) -> None:
    session(store, "old", 90)
    session(store, "helper", 85, parent="old", kind="subagent")
    session(store, "deep", 80, parent="helper", kind="subagent")
    session(store, "loved", 90)
    session(store, "its-helper", 90, parent="loved", kind="subagent", user={"star": True})
    session(store, "in-use", 90)
    session(store, "new-helper", 1, parent="in-use", kind="subagent")
    found = planned(store, before=NOW - 30 * DAY)
    assert [(one.id, one.subagents) for one in found.old] == [("old", 2)]
    assert sorted(prune(store, Wish(before=NOW - 30 * DAY), clock=lambda: NOW)) == [
        "deep", "helper", "old"]
    left = store.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
    forgotten = store.connection.execute("SELECT count(*) FROM forgotten_sessions").fetchone()
    assert (left, forgotten) == ((4,), (3,))


def test_a_circle_of_subagents_ends(store: Database) -> None:
    session(store, "one", 90, parent="two", kind="subagent")
    session(store, "two", 90, parent="one", kind="subagent")
    assert len(planned(store, before=NOW).old) == 2


def test_what_is_starred_meanwhile_is_kept(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 2)
    for number in range(6):
        session(store, f"s{number}", 90 - number)

    def star(done: int, total: int) -> None:
        store.connection.execute(
            "UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.user.star',"
            " json('true')) WHERE id = 's5'")
        assert total == 6

    gone = prune(store, Wish(before=NOW), clock=lambda: NOW, telling=star)
    assert gone == ["s0", "s1", "s2", "s3", "s4"]


def test_sessions_from_the_future_are_new(store: Database) -> None:
    session(store, "future", -400)
    session(store, "now", 0)
    assert ids(planned(store, keep_newest=1)) == ["now"]
    assert ids(planned(store, before=NOW - DAY)) == []
