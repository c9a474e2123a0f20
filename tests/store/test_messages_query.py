from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.errors import NotFound
from store.ids import IdMinter
from store.queries import messages
from store.rows import MessageRow
from tests.store.making import WRAP, add_message, add_part, add_session, contract, grida, loose, own

COUNT = 50


@pytest.fixture
def talk(of_any_form: Database) -> Database:
    """Fifty messages, always two of one time, whose ids go the other way round."""
    connection = of_any_form.connection
    connection.execute("BEGIN")
    for session in ("s", "other"):
        add_session(connection, session)
    for number in range(COUNT):
        name = add_message(connection, "s", name_of(number), number // 2)
        for index in (2, 0, 1):
            add_part(connection, "s", name, f"{name}-{index}", index)
    add_message(connection, "other", "elsewhere", 3)
    connection.execute("COMMIT")
    return of_any_form


def name_of(number: int) -> str:
    """Ids fall from pair to pair, and rise within one, as their time asks."""
    return f"msg_{(COUNT - number // 2):03d}{number % 2}"


NAMES = [name_of(number) for number in range(COUNT)]


def cursor(row: MessageRow) -> messages.Cursor:
    return row.created_at, row.id


def names(page: list[messages.WithParts]) -> list[str]:
    return [row.id for row, _ in page]


def test_pages_from_the_start(talk: Database) -> None:
    found: list[str] = []
    page = messages.page(talk, "s", limit=7)
    while page:
        found += names(page)
        page = messages.page(talk, "s", after=cursor(page[-1][0]), limit=7)
    assert found == NAMES


def test_pages_from_the_end(talk: Database) -> None:
    found: list[str] = []
    page = messages.last(talk, "s", limit=7)
    while page:
        found = names(page) + found
        page = messages.page(talk, "s", before=cursor(page[0][0]), limit=7)
    assert found == NAMES


@pytest.mark.parametrize("limit", [1, 2, 9, 200])
def test_a_page_from_the_middle(talk: Database, limit: int) -> None:
    for number in (0, 1, 2, 24, 25, 48, 49):
        place = (number // 2, name_of(number))
        found = names(messages.page(talk, "s", around=place, limit=limit))
        assert len(found) == min(limit, COUNT)
        start = NAMES.index(found[0])
        assert found == NAMES[start : start + len(found)]
        assert name_of(number) in found


def test_both_ways_from_the_middle_reach_all(talk: Database) -> None:
    page = messages.page(talk, "s", around=(12, name_of(24)), limit=8)
    found = names(page)
    while more := messages.page(talk, "s", after=cursor(page[-1][0]), limit=5):
        found, page = found + names(more), more
    page = messages.page(talk, "s", around=(12, name_of(24)), limit=8)
    while more := messages.page(talk, "s", before=cursor(page[0][0]), limit=5):
        found, page = names(more) + found, more
    assert found == NAMES


def test_the_ends(talk: Database) -> None:
    assert names(messages.first(talk, "s", limit=2)) == NAMES[:2]
    assert names(messages.last(talk, "s", limit=2)) == NAMES[-2:]
    assert messages.first(talk, "nobody") == messages.last(talk, "nobody") == []
    assert messages.count(talk, "s") == COUNT


def test_parts_come_in_their_order(talk: Database) -> None:
    page = messages.page(talk, "s", limit=5)
    assert len(page) == 5
    for row, parts in page:
        assert [part.id for part in parts] == [f"{row.id}-{index}" for index in range(3)]
        assert [part.index for part in parts] == [0, 1, 2]
    assert messages.parts_of(talk, ["nobody"]) == {"nobody": []}
    assert messages.parts_of(talk, []) == {}


def test_parts_of_more_messages_than_one_query_takes(talk: Database) -> None:
    asked = [f"x{number}" for number in range(1200)] + [name_of(3)]
    found = messages.parts_of(talk, asked)
    assert list(found) == asked
    assert len(found[name_of(3)]) == 3


def test_single_rows(talk: Database) -> None:
    part = messages.get_part(talk, f"{name_of(4)}-1")
    assert part is not None
    assert (part.message_id, part.session_id, part.index) == (name_of(4), "s", 1)
    assert json.loads(part.data_json) == {"type": "text", "text": part.id}
    assert messages.get_part(talk, "nothing") is None
    message = messages.get(talk, name_of(4))
    assert message is not None
    assert message.created_at == 2
    assert messages.get(talk, "nothing") is None


class TestNames:
    def test_by_id_source_id_and_beginning(self, talk: Database) -> None:
        add_message(
            talk.connection, "s", "msg_z1", 99, metadata={"source": {"id": "0d3f-uuid"}}
        )
        assert messages.resolve_message(talk, "s", name_of(3)).id == name_of(3)
        assert messages.resolve_message(talk, "s", "0d3f-uuid").id == "msg_z1"
        assert messages.resolve_message(talk, "s", "0d3f").id == "msg_z1"
        assert messages.resolve_message(talk, "s", "msg_z").id == "msg_z1"

    def test_what_names_several_or_none(self, talk: Database) -> None:
        days = r"several messages: msg_0501 \(1970-01-01, user, .*\), msg_0500 \("
        with pytest.raises(NotFound, match=days):
            messages.resolve_message(talk, "s", "msg_050")
        for name in ("nothing", "elsewhere", ""):
            with pytest.raises(NotFound):
                messages.resolve_message(talk, "s", name)


def test_a_session_across_the_wrap_reads_in_order(of_any_form: Database) -> None:
    """Its ids start again at zero in the middle; its messages do not."""
    database = of_any_form
    add_session(database.connection, "s")
    expected: list[str] = []
    for now in (WRAP - 2, WRAP - 1, WRAP, WRAP + 1):
        minter = IdMinter(lambda now=now: now)  # type: ignore[misc]
        for _ in range(3):
            expected.append(add_message(database.connection, "s", minter.mint("msg"), now))
    assert expected != sorted(expected)
    assert names(messages.page(database, "s")) == expected
    for limit in (1, 2, 5):
        forth: list[str] = []
        page = messages.first(database, "s", limit=limit)
        while page:
            forth += names(page)
            page = messages.page(database, "s", after=cursor(page[-1][0]), limit=limit)
        assert forth == expected
        back: list[str] = []
        page = messages.last(database, "s", limit=limit)
        while page:
            back = names(page) + back
            page = messages.page(database, "s", before=cursor(page[0][0]), limit=limit)
        assert back == expected
    for number, name in enumerate(expected):
        at = WRAP - 2 + number // 3
        middle = names(messages.page(database, "s", around=(at, name), limit=4))
        start = expected.index(middle[0])
        assert middle == expected[start : start + 4]
        assert name in middle


def test_the_real_file_whose_ids_wrap_reads_in_order(tmp_path: Path) -> None:
    database = open_database(grida(tmp_path / "s.db"), write=False)
    (session,) = database.connection.execute(
        "SELECT session_id FROM chat_messages GROUP BY session_id"
        " HAVING min(substr(id, 5, 1)) = '0' AND max(substr(id, 5, 1)) = 'f'"
    ).fetchone()
    rows = [row for row, _ in messages.page(database, session, limit=100)]
    assert len(rows) == 6
    assert [row.created_at for row in rows] == sorted(row.created_at for row in rows)
    assert [row.id for row in rows] != sorted(row.id for row in rows)
    database.close()


class TestEveryRowIsReturned:
    def test_hidden_and_queued_ones_unless_only_shown_are_asked_for(self, db: Database) -> None:
        add_session(db.connection, "s")
        for at, (name, metadata) in enumerate(
            {
                "shown": {"origin": "human"},
                "hidden": {"hidden_at": 5},
                "queued": {"queued_at": 5},
                "cancelled": {"queue_canceled_at": 5},
                "fired": {"queued_at": None},
            }.items()
        ):
            add_message(db.connection, "s", name, at, metadata=metadata)
        every = messages.page(db, "s")
        assert names(every) == ["shown", "hidden", "queued", "cancelled", "fired"]
        assert [row.hidden_at for row, _ in every] == [None, 5, None, None, None]
        assert names(messages.page(db, "s", shown_only=True)) == ["shown", "fired"]
        assert messages.count(db, "s", shown_only=True) == 2

    def test_a_hidden_at_column_counts_as_well_as_the_key(self, tmp_path: Path) -> None:
        database = open_database(grida(tmp_path / "s.db"))
        total = database.connection.execute(
            "SELECT count(*) FROM chat_messages WHERE hidden_at IS NOT NULL"
        ).fetchone()[0]
        sessions = database.connection.execute("SELECT id FROM chat_sessions").fetchall()

        def hidden() -> int:
            return sum(
                row.hidden_at is not None
                for (session,) in sessions
                for row, _ in messages.page(database, session, limit=100)
            )

        assert hidden() == total
        database.connection.execute(
            "UPDATE chat_messages SET metadata_json = json_set(metadata_json, '$.hidden_at', 7)"
            " WHERE id = (SELECT id FROM chat_messages WHERE hidden_at IS NULL LIMIT 1)"
        )
        assert hidden() == total + 1
        database.close()

    def test_of_unknown_kinds_and_odd_types(self, tmp_path: Path) -> None:
        path = loose(tmp_path / "s.db")
        connection = sqlite3.connect(path)
        add_session(connection, "s")
        add_message(connection, "s", "m", 1, role="operator", metadata_json="hidden_at {")
        add_message(connection, "s", "n", 2, role=None, metadata_json=None, updated_at="soon")
        add_message(connection, "s", "o", 3, metadata={"hidden_at": "yes"})
        add_part(connection, "s", "m", "p", 0, type="media-chunk", data_json="{broken")
        add_part(connection, "s", "m", "q", 1, type=None, data_json=None, tool_state=3)
        add_part(connection, "s", "m", "r", 2, data_json=b"\xff{}", created_at="x")
        connection.commit()
        connection.close()
        database = open_database(path, write=False)
        page = messages.page(database, "s")
        assert [(row.id, row.role, row.hidden_at) for row, _ in page] == [
            ("m", "operator", None), ("n", "", None), ("o", "user", 0),
        ]  # fmt: skip
        assert page[0][0].metadata_json == "hidden_at {"
        assert [(part.id, part.type, part.data_json) for part in page[0][1]] == [
            ("p", "media-chunk", "{broken"), ("q", "", "{}"), ("r", "text", "\ufffd{}"),
        ]  # fmt: skip
        assert page[0][1][1].tool_state == "3"
        assert names(messages.page(database, "s", shown_only=True)) == ["m", "n"]
        assert messages.resolve_message(database, "s", "n").id == "n"
        database.close()


@pytest.mark.parametrize("analysed", [False, True])
def test_no_page_of_ours_is_scanned_or_sorted(tmp_path: Path, analysed: bool) -> None:
    database = open_database(own(tmp_path / "s.db"))
    connection = database.file
    connection.execute("BEGIN")
    for session in ("s", "t"):
        add_session(connection, session)
        for number in range(300):
            add_message(connection, session, f"{session}{number}", number // 3)
            add_part(connection, session, f"{session}{number}", f"p{session}{number}", 0)
    connection.execute("COMMIT")
    if analysed:
        connection.execute("ANALYZE")
    order = "SEARCH m USING INDEX chat_messages_order (session_id=?"
    for direction in ("<", ">", ">="):
        for placed in (False, True):
            for shown_only in (False, True):
                sql = messages.walk_sql(
                    database, direction, placed=placed, shown_only=shown_only
                )
                (step,) = plan(connection, sql)
                assert step.startswith(order)
                assert ("created_at" in step) == placed
    for count in (1, 64, 500):
        assert plan(connection, messages.parts_sql(count)) == [
            "SEARCH p USING INDEX chat_parts_message_index (message_id=?)"
        ]
    database.close()


@pytest.mark.parametrize("form", ["contract", "grida"])
def test_a_page_of_a_host_uses_the_best_of_its_indexes(tmp_path: Path, form: str) -> None:
    database = open_database((contract if form == "contract" else grida)(tmp_path / "s.db"))
    steps = plan(database.file, messages.walk_sql(database, "<", placed=True))
    assert "session_created (session_id=? AND created_at<?)" in steps[0]
    assert steps[1:] == ["USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"]
    (parts,) = plan(database.file, messages.parts_sql(10))
    assert "message_index (message_id=?)" in parts
    database.close()


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    parameters = {str(number): "x" for number in range(1, 501)}
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
