"""The hub's databases: where they are found, damage, and sessions that grow."""

from __future__ import annotations

import json
import sqlite3
from operator import methodcaller
from pathlib import Path

import pytest

from store.sources.hub import HubSource
from store.sources.registry import all_sources
from tests.sources import grown, row_sources

FILE = Path(__file__).parent.parent / "data" / "hub" / "hub.db"
COORDINATOR = "dd1b9f45-cc95-415b-81bf-5712d7becaa6"
BUSY = "4e59f4a2-58c8-478f-873c-14531a5c2444"


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    folder = tmp_path / "hub"
    folder.mkdir()
    return row_sources.copied(FILE, folder)


def text_row(name: str, session: str, message: str, text: str, at: str) -> tuple[str, ...]:
    return (name, at, at, message, session, "text", json.dumps({"text": text}))


def add_parts(connection: sqlite3.Connection, *rows: tuple[str, ...]) -> None:
    connection.executemany(
        "INSERT INTO parts(id, created_at, updated_at, message_id, session_id, type, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def grow(connection: sqlite3.Connection) -> None:
    message = "27b87135-c66a-47ac-bd62-964b6b7efe52"
    row = text_row("prt_0000b00000001", BUSY, message, "more", "2026-08-14T11:31:30.000Z")
    add_parts(connection, row)


def test_it_is_recognised_by_its_tables(hub: Path, tmp_path: Path) -> None:
    assert HubSource().recognise(hub) == hub
    assert HubSource().recognise(hub.parent) == hub.parent
    takers = [one.kind for one in all_sources() if one.recognise(hub) is not None]
    assert takers == ["hub"]
    other = tmp_path / "other.db"
    row_sources.written(other, lambda c: c.execute("CREATE TABLE sessions(id)"))
    assert HubSource().recognise(other) is None
    assert HubSource().default_roots({}, tmp_path) == []


def test_a_folder_with_a_database_for_each_tenant(hub: Path) -> None:
    other = hub.with_name("tenant-1.sqlite")
    other.write_bytes(hub.read_bytes())
    row_sources.written(other, lambda c: c.execute("DELETE FROM sessions WHERE status <> 'busy'"))
    row_sources.written(hub, lambda c: c.execute("DELETE FROM sessions WHERE status = 'busy'"))
    row_sources.written(hub.with_name("foreign.db"), lambda c: c.execute("CREATE TABLE t(x)"))
    keys = [unit.key for unit in HubSource().units(hub.parent, [])]
    assert len(keys) == 5 and f"tenant-1.sqlite/{BUSY}" in keys


def test_nothing_is_touched(hub: Path, tmp_path: Path) -> None:
    row_sources.check_untouched(HubSource(), hub, tmp_path / "library.db")
    row_sources.written(hub, lambda c: c.execute("PRAGMA journal_mode = WAL"))
    row_sources.check_untouched(HubSource(), hub, tmp_path / "other.db")


def test_a_writer_is_seen_and_left_alone(hub: Path) -> None:
    moved = row_sources.check_live(HubSource(), hub, grow)
    assert [unit.key for unit in moved] == [f"hub.db/{BUSY}"]


def test_what_a_killed_writer_left_is_read(hub: Path) -> None:
    row_sources.check_killed(HubSource, hub, grow)


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_each_kind_of_write_moves_its_session_alone(
    hub: Path, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sources.hub.source._LARGE", large)
    source = HubSource()
    source.units_at(hub, [str(hub)])
    for change in (
        "UPDATE parts SET updated_at = '2027-01-01T00:00:00.000Z', data = '{}'"
        " WHERE id = 'prt_0000a05e0001Q7mAklme1yQUWd'",
        f"UPDATE sessions SET status = 'idle' WHERE id = '{BUSY}'",
        "UPDATE messages SET updated_at = '2027-01-01T00:00:00.000Z'"
        " WHERE id = '27b87135-c66a-47ac-bd62-964b6b7efe52'",
        "DELETE FROM parts WHERE id = 'prt_0000a09c8001xEvfhXWj7P7bJw'",
    ):
        row_sources.written(hub, methodcaller("execute", change))
        moved = source.units_at(hub, [str(hub)])
        assert moved is not None and [unit.key for unit in moved] == [f"hub.db/{BUSY}"], change
        assert source.units_at(hub, [str(hub)]) == []


def test_a_poll_of_500_sessions_reads_the_one_that_grew(hub: Path) -> None:
    def many(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO sessions(id, project_id, slug, title) VALUES (?, 'prj_harbour', ?, 't')",
            ((f"s{number}", f"s{number}") for number in range(500)),
        )

    row_sources.written(hub, many)
    source = HubSource()
    assert len(source.units_at(hub, [str(hub)]) or ()) == 505
    row_sources.written(hub, grow)
    assert [unit.key for unit in source.units_at(hub, [str(hub)]) or ()] == [f"hub.db/{BUSY}"]


def test_a_locked_one_is_read_later(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_sources.check_locked(HubSource, hub, tmp_path / "library.db", monkeypatch)


def test_damaged_and_missing_databases(hub: Path, tmp_path: Path) -> None:
    row_sources.check_damaged(HubSource, hub)


def test_one_that_goes_away(hub: Path, tmp_path: Path) -> None:
    row_sources.check_disappears(HubSource, hub, tmp_path / "library.db")


def test_a_session_that_goes_away_before_it_is_read(hub: Path) -> None:
    source = HubSource()
    unit = next(unit for unit in source.units(hub, []) if unit.key.endswith(BUSY))
    row_sources.written(hub, lambda c: c.execute("DELETE FROM sessions"))
    assert source.read(hub, unit).sessions == []


def test_orphans_and_odd_rows_cost_only_themselves(hub: Path) -> None:
    def spoil(connection: sqlite3.Connection) -> None:
        at = "2026-08-14T11:31:30.000Z"
        add_parts(
            connection,
            text_row("prt_1", BUSY, "gone", "kept", at),
            text_row("prt_2", "nobody", "gone", "lost", at),
            ("prt_3", at, at, "2a928b03-2201-45f3-b9cc-02dbe6eb1d69", BUSY, "text", "{torn"),
            ("prt_4", at, at, "2a928b03-2201-45f3-b9cc-02dbe6eb1d69", BUSY, "tool", "{}"),
        )
        connection.execute("DELETE FROM sessions WHERE id = ?", (COORDINATOR,))
        connection.execute("UPDATE messages SET role = 'critic', created_at = 'never'"
                           " WHERE id = 'a3170ebe-b269-46ba-8d46-89acd52985f9'")  # fmt: skip

    row_sources.written(hub, spoil)
    drafts, problems = grown.read_all(HubSource(), hub)
    reasons = sorted(problem.reason for problem in problems)
    assert [reason.partition(":")[2].strip() or reason for reason in reasons] == [
        "1 parts of session nobody, which is not there",
        "25 parts of session dd1b9f45-cc95-415b-81bf-5712d7becaa6, which is not there",
        "5 messages of session dd1b9f45-cc95-415b-81bf-5712d7becaa6, which is not there",
        "its parent dd1b9f45-cc95-415b-81bf-5712d7becaa6 is not there",
        "part prt_1 belongs to message gone, which is missing",
        "part prt_3 holds no JSON object",
        "its parent dd1b9f45-cc95-415b-81bf-5712d7becaa6 is not there",
    ]
    draft = drafts[BUSY]
    assert [m.role for m in draft.messages].count("system") == 2
    assert draft.messages[-1].metadata["backscroll"]["orphan"] is True
    assert grown.words(draft.messages[-1]) == "kept"
    events = [part.data["data"] for message in draft.messages for part in message.parts
              if part.type == "data-event"]  # fmt: skip
    assert {"name": "unreadable part", "details": {"type": "text", "text": "{torn"}} in events
    assert draft.lineage is not None and draft.lineage.parent_source_id == COORDINATOR
    grown.check_records(draft)


def test_other_forms_of_times(hub: Path) -> None:
    row_sources.written(hub, lambda c: c.executescript(
        "UPDATE sessions SET created_at = '2026-08-14 11:18:00', updated_at = 1786707060000;"
        "UPDATE messages SET created_at = 1786706401"
        " WHERE id = 'a3170ebe-b269-46ba-8d46-89acd52985f9'"
    ))  # fmt: skip
    drafts, problems = grown.read_all(HubSource(), hub)
    assert problems == []
    assert {draft.created_at for draft in drafts.values()} == {1786706280000}
    assert {draft.updated_at for draft in drafts.values()} == {1786707060000}
    assert drafts[BUSY].messages[1].created_at == 1786706401000


def test_steps_count_where_the_message_has_no_tokens_of_its_own(hub: Path) -> None:
    row_sources.written(hub, lambda c: c.execute(
        "UPDATE messages SET data = json_remove(data, '$.tokens', '$.cost')"
    ))  # fmt: skip
    drafts, _ = grown.read_all(HubSource(), hub)
    total = grown.tokens(drafts[COORDINATOR].messages)
    assert total == {
        "input": 4310, "output": 512, "reasoning": 96, "cache_read": 9216, "cache_write": 1024,
    }  # fmt: skip
    spent = sum(m.metadata.get("cost_usd", 0.0) for m in drafts[COORDINATOR].messages)
    assert spent == pytest.approx(0.0421)


def test_secrets_are_not_read(hub: Path, tmp_path: Path) -> None:
    row_sources.written(hub, lambda c: c.execute("DROP TABLE accounts"))
    drafts, problems = grown.read_all(HubSource(), hub)
    assert len(drafts) == 5 and problems == []
