from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from store.engine.connection import Connection
from store.engine.database import Database, open_database
from store.errors import NotFound
from store.queries import activities, counting, sessions
from store.queries.sessions import Archived, SessionFilter
from tests.store.making import (
    WRAP,
    add_message,
    add_part,
    add_session,
    contract,
    grida,
    loose,
    own,
)

COUNT = 240
ARCHIVED: tuple[Archived, ...] = ("exclude", "include", "only")


def name_of(number: int) -> str:
    return f"ses_{number:026d}"


def fill(connection: Connection) -> None:
    """Sessions of which always three share one time, in an order that is not their ids'."""
    connection.execute("BEGIN")
    for number in range(COUNT):
        add_session(
            connection,
            name_of(number),
            (number * 7 % COUNT) // 3,
            agent=f"agent{number % 3}",
            workspace_root=f"/w{number % 4}" if number % 5 else None,
            archived_at=1 if number % 4 == 0 else None,
            metadata={
                "title": f"Talk {number}",
                "source": {"kind": f"kind{number % 2}", "id": f"src-{number}"},
            },
        )
    connection.execute("COMMIT")


@pytest.fixture
def filled(of_any_form: Database) -> Database:
    fill(of_any_form.connection)
    return of_any_form


def expected(filter: SessionFilter) -> list[str]:
    """The ids a filter lets through, newest first, worked out without SQL."""
    kept = [
        (number * 7 % COUNT // 3, name_of(number))
        for number in range(COUNT)
        if filter.agent in (None, f"agent{number % 3}")
        and (
            filter.workspace is None
            or filter.workspace == (f"/w{number % 4}" if number % 5 else "")
        )
        and filter.source in (None, f"kind{number % 2}")
        and (filter.archived == "include" or (filter.archived == "only") == (number % 4 == 0))
        and (filter.query or "").lower() in f"talk {number}"
    ]
    return [name for _, name in sorted(kept, reverse=True)]


FILTERS: list[dict[str, Any]] = [
    {"agent": "agent1"},
    {"workspace": "/w2"},
    {"source": "kind1"},
    {"query": "TALK 1"},
]
COMBINED: list[dict[str, Any]] = [
    {key: value for part in parts for key, value in part.items()}
    for size in range(5)
    for parts in combinations(FILTERS, size)
] + [{"workspace": ""}, {"agent": "nobody"}]


@pytest.mark.parametrize("archived", ARCHIVED)
def test_pages_hold_each_session_once_in_order(filled: Database, archived: Archived) -> None:
    for chosen in COMBINED:
        filter = SessionFilter(archived=archived, **chosen)
        found: list[str] = []
        cursor: tuple[int, str] | None = None
        while page := sessions.page(filled, filter, before=cursor, limit=7):
            found += [row.id for row in page]
            cursor = (page[-1].updated_at, page[-1].id)
        assert found == expected(filter), filter
        assert sessions.total(filled, filter) == len(found)
        assert [row.id for row in sessions.page(filled, filter, limit=-1)] == found


def plan(database: Database, filter: SessionFilter, before: tuple[int, str] | None) -> list[str]:
    sql, parameters = sessions.page_sql(database, filter, before=before)
    rows = database.connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
    return [row[3] for row in rows]


IN_ORDER = {"SCAN s USING INDEX chat_sessions_recent", "SCAN s USING INDEX chat_sessions_archive"}
"""Walks along an index that holds just what the list holds, in its order."""


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("before", [None, (40, name_of(3))])
@pytest.mark.parametrize("archived", ARCHIVED)
def test_no_list_of_ours_is_scanned_or_sorted(
    tmp_path: Path, archived: Archived, before: tuple[int, str] | None, analysed: bool
) -> None:
    database = open_database(own(tmp_path / "s.db"))
    fill(database.file)
    if analysed:
        database.connection.execute("ANALYZE")
    for chosen in COMBINED:
        steps = plan(database, SessionFilter(archived=archived, **chosen), before)
        assert not [step for step in steps if "TEMP B-TREE" in step]
        assert {step for step in steps if "SCAN" in step} <= IN_ORDER
    database.close()


def test_our_lists_walk_the_index_that_was_made_for_them(tmp_path: Path) -> None:
    database = open_database(own(tmp_path / "s.db"))

    def index(archived: Archived, **chosen: Any) -> list[str]:
        steps = plan(database, SessionFilter(archived=archived, **chosen), None)
        return [step.split()[4] for step in steps if "INDEX" in step]

    assert index("exclude") == ["chat_sessions_shelf"]
    assert index("include") == ["chat_sessions_recent"]
    assert index("only") == ["chat_sessions_archive"]
    for name, chosen in (("agent", "agent"), ("workspace", "workspace"), ("source", "source")):
        shelf, archive = f"chat_sessions_{name}_shelf", f"chat_sessions_{name}_archive"
        assert index("exclude", **{chosen: "x"}) == [shelf]
        assert index("only", **{chosen: "x"}) == [archive]
        assert index("include", **{chosen: "x"}) == [shelf, archive]
    database.close()


def test_a_session_is_found_by_its_source_id_without_a_scan(tmp_path: Path) -> None:
    database = open_database(own(tmp_path / "s.db"))
    sql = f"SELECT id FROM chat_sessions s WHERE {database.form.source_id('s')} = 'x'"
    rows = database.connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
    assert [row[3] for row in rows] == [
        "SEARCH s USING INDEX chat_sessions_source_id (<expr>=?)"
    ]
    database.close()


class TestTitles:
    def test_the_users_title_wins_and_is_what_is_searched(self, db: Database) -> None:
        add_session(
            db.connection, "a", metadata={"title": "old", "user": {"title": "Mine 100%"}}
        )
        add_session(db.connection, "b", metadata={"title": "old", "user": {"title": ""}})
        titles = {row.id: row.title for row in sessions.page(db, SessionFilter())}
        assert titles == {"a": "Mine 100%", "b": "old"}
        found = sessions.page(db, SessionFilter(query="0%"))
        assert [row.id for row in found] == ["a"]
        assert [row.id for row in sessions.page(db, SessionFilter(query="old"))] == ["b"]
        assert sessions.page(db, SessionFilter(query="_")) == []
        add_session(db.connection, "c", metadata={"title": "Über die Straße, ΣΊΣΥΦΟΣ ꭰ"})
        for query in ("über", "ÜBER D", "straße", "STRAẞE", "er die", "σίσυφος", "ΊΣΥ", "Ꭰ"):
            found = sessions.page(db, SessionFilter(query=query))
            assert [row.id for row in found] == ["c"], query

    def test_in_a_file_of_grida_the_column_is_the_title(self, tmp_path: Path) -> None:
        database = open_database(grida(tmp_path / "s.db"))
        rows = sessions.page(database, SessionFilter(query="copy"))
        assert [row.title for row in rows] == [
            "Landing page (copy)",
            "Landing page (copy) (copy)",
        ]
        database.connection.execute(
            "UPDATE chat_sessions SET metadata_json = ? WHERE id = ?",
            ('{"user": {"title": "Mine"}}', rows[0].id),
        )
        renamed = sessions.get(database, rows[0].id)
        assert renamed is not None
        assert renamed.title == "Mine"
        database.close()


class TestNames:
    def test_by_id_source_id_and_beginning(self, filled: Database) -> None:
        assert sessions.resolve(filled, name_of(7)).id == name_of(7)
        assert sessions.resolve(filled, "src-7").id == name_of(7)
        assert sessions.resolve(filled, "src-23").id == name_of(23)
        assert sessions.resolve(filled, name_of(99)[:-1] + "9").id == name_of(99)
        add_session(filled.connection, "ses_zebra")
        assert sessions.resolve(filled, "ses_z").id == "ses_zebra"

    def test_the_beginning_of_several_names_them(self, filled: Database) -> None:
        with pytest.raises(NotFound, match=r"src-20 matches several") as caught:
            add_session(filled.connection, "x", metadata={"source": {"kind": "k", "id": "src-20"}})
            sessions.resolve(filled, "src-20")
        assert name_of(20) in str(caught.value)
        with pytest.raises(NotFound, match=r"several sessions: .*, \.\.\."):
            sessions.resolve(filled, "ses_")

    @pytest.mark.parametrize("name", ["nothing", "", "%", "SES_"])
    def test_what_names_nothing(self, filled: Database, name: str) -> None:
        with pytest.raises(NotFound):
            sessions.resolve(filled, name)
        assert sessions.get(filled, name) is None


class TestCounts:
    def test_each_kind_of_row_counts_for_itself(self, db: Database) -> None:
        connection = db.connection
        add_session(connection, "s")
        add_session(connection, "empty")
        rows: list[dict[str, Any]] = [
            {"metadata": {"origin": "human"}},
            {"metadata": {}},
            {"metadata": {"origin": "meta"}},
            {"metadata": {"origin": "human", "hidden_at": 5}},
            {"metadata": {"queued_at": 5}},
            {"metadata": {"queued_at": None}},
            {"metadata": {"queue_canceled_at": 5, "hidden_at": 5}},
            {"role": "assistant", "metadata": {"text": "hidden_at"}},
        ]
        for number, row in enumerate(rows):
            add_message(connection, "s", f"m{number}", number, **row)
        found = counting.counts(db, ["s", "empty", "nobody"])
        for limit in (1, 2, 3, 100):
            pieces, after, reads = [], None, 0
            while reads == 0 or after is not None:
                page, after = counting.beginning_page(db, "s", after, limit)
                pieces += page
                reads += 1
            assert [name for name, _ in pieces] == [f"m{n}" for n in range(len(rows))]
            assert sum(begins for _, begins in pieces) == found["s"].turns
            assert reads > 2 or limit > 3
        told = counting.beginnings(
            db, {"s": [name for name, _ in pieces] + ["nobody"], "empty": ["m0"]})
        assert {name: sorted(one) for name, one in told.items()} == {"s": pieces, "empty": []}
        assert counting.beginnings(db, {"s": []}) == {"s": []}
        assert found["s"] == counting.Counts(messages=5, hidden=1, turns=3, queued=1)
        assert found["empty"] == found["nobody"] == counting.Counts()

    def test_of_a_file_of_grida(self, tmp_path: Path) -> None:
        database = open_database(grida(tmp_path / "s.db"), write=False)
        rows = sessions.page(database, SessionFilter(archived="include"))
        found = counting.counts(database, [row.id for row in rows])
        (copy,) = [row.id for row in rows if row.title == "Landing page (copy)"]
        assert found[copy] == counting.Counts(messages=3, hidden=2, turns=2)
        assert sum(c.messages + c.hidden + c.queued for c in found.values()) == 34
        database.close()


def test_empty_sessions_without_children_can_be_left_out(db: Database) -> None:
    for name in ("empty", "parent"):
        add_session(db.connection, name)
    add_session(db.connection, "child", parent_id="parent")
    add_message(db.connection, "child", "m", 0)
    rows = sessions.page(db, SessionFilter(skip_empty=True))
    assert {row.id for row in rows} == {"parent", "child"}
    assert sessions.total(db, SessionFilter(skip_empty=True)) == 2


def test_a_session_that_is_listed_and_not_read_yet_is_not_empty(db: Database) -> None:
    add_session(db.connection, "listed", metadata={"source": {"outline": True}})
    add_session(db.connection, "empty", metadata={"source": {"kind": "pi"}})
    assert [row.id for row in sessions.page(db, SessionFilter(skip_empty=True))] == ["listed"]
    assert sessions.total(db, SessionFilter(skip_empty=True)) == 1


def test_the_list_is_in_order_across_the_wrap_of_the_ids(db: Database) -> None:
    for at, stamp in ((WRAP - 1, "fffffffff000"), (WRAP, "000000000000"), (WRAP + 1, "000000001")):
        add_session(db.connection, f"ses_{stamp}", at)
    rows = sessions.page(db, SessionFilter())
    assert [row.updated_at - WRAP for row in rows] == [1, 0, -1]
    behind = sessions.page(db, SessionFilter(), before=(WRAP, "ses_000000000000"))
    assert [row.updated_at - WRAP for row in behind] == [-1]


class TestOddRowsOfAHost:
    @pytest.fixture
    def odd(self, tmp_path: Path) -> Iterator[Database]:
        path = loose(tmp_path / "s.db")
        connection = sqlite3.connect(path)
        add_session(connection, "null", 9, **dict.fromkeys(
            ("agent", "workspace_root", "model_json", "permissions_json", "metadata_json",
             "prompt_tokens", "cost_usd", "created_at")))  # fmt: skip
        add_session(connection, "broken", 8, metadata_json='{"title": ', archived_at=None)
        add_session(connection, "array", 7, metadata_json="[1]", cost_usd="much", total_tokens="x")
        add_session(connection, "blob", 6, agent=b"\xff\xfe", metadata_json=b"{}")
        add_session(connection, "real", 5.5, metadata={"title": 3, "source": "here", "user": []})
        connection.execute(
            "INSERT INTO chat_sessions (id, agent, metadata_json, created_at, updated_at)"
            " VALUES ('bytes', CAST(x'41ff' AS TEXT), '{}', 4, 4)"
        )
        add_message(connection, "null", "m", 1, role="operator", metadata_json=None)
        add_message(connection, "null", "n", 2, metadata_json="hidden_at queued_at {")
        add_part(connection, "null", "m", "p", 0, type="media-chunk", data_json="no json")
        connection.commit()
        connection.close()
        database = open_database(path, write=False)
        yield database
        database.close()

    def test_none_is_skipped_and_none_crashes(self, odd: Database) -> None:
        rows = sessions.page(odd, SessionFilter())
        assert [row.id for row in rows] == ["null", "broken", "array", "blob", "real", "bytes"]
        assert (rows[0].agent, rows[0].model_json, rows[0].cost_usd) == ("", None, 0.0)
        assert rows[0].metadata_json == "{}"
        assert rows[1].metadata_json == '{"title": '
        assert (rows[2].cost_usd, rows[2].total_tokens) == (0.0, 0)
        assert rows[4].title == "3"
        assert rows[5].agent == "A\ufffd"

    @pytest.mark.parametrize("archived", ARCHIVED)
    def test_every_filter_runs_over_them(self, odd: Database, archived: Archived) -> None:
        for chosen in COMBINED:
            filter = SessionFilter(archived=archived, skip_empty=True, **chosen)
            assert len(sessions.page(odd, filter)) == sessions.total(odd, filter)

    def test_counts_and_names(self, odd: Database) -> None:
        assert counting.counts(odd, ["null"])["null"].messages == 2
        assert sessions.resolve(odd, "bro").id == "broken"


class TestOnAHostsOwnIndexes:
    def test_an_agents_list_sorts_only_what_shares_a_time(self, tmp_path: Path) -> None:
        database = open_database(contract(tmp_path / "s.db"), write=False)
        for archived in ("exclude", "include"):
            steps = plan(database, SessionFilter(agent="a", archived=archived), (5, "x"))
            assert steps[0].startswith("SEARCH s USING INDEX chat_sessions_agent_updated (agent=?")
            assert steps[1:] == ["USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"]
        database.close()

    def test_a_workspaces_list_likewise(self, tmp_path: Path) -> None:
        database = open_database(contract(tmp_path / "s.db"), write=False)
        steps = plan(database, SessionFilter(workspace="/w"), None)
        assert steps[0].startswith("SEARCH s USING INDEX chat_sessions_workspace_updated")
        assert steps[1:] == ["USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"]
        database.close()

    def test_the_archive_comes_from_its_index(self, tmp_path: Path) -> None:
        database = open_database(grida(tmp_path / "s.db"), write=False)
        steps = plan(database, SessionFilter(archived="only"), None)
        assert steps[0] == "SEARCH s USING INDEX idx_chat_sessions_archived (archived_at>?)"
        database.close()


def test_rows_of_the_list_without_counts_are_the_same_but_for_them(db: Database) -> None:
    add_session(db.connection, "s")
    add_message(db.connection, "s", "m", 1)
    (counted,) = activities.rows(db, (), ["s"], 5).values()
    (bare,) = activities.rows(db, (), (), 5, ["s"]).values()
    assert (counted.messages, bare.messages) == (1, 0)
    bare.messages = 1
    assert bare == counted
