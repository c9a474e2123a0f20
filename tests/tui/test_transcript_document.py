from __future__ import annotations

import copy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.engine.database import Database, open_database
from store.queries import transcript as queries
from store.queries import windows
from store.queries.transcript import Outline
from store.rows import MessageRow, PartRow
from tests.tui.seeded import SESSION, Said, long_talk, make_store, message_id, text
from tui.transcript.document import Document
from tui.transcript.item import Setting
from tui.transcript.measures import estimates
from tui.transcript.place import read_place
from tui.transcript.prompt import place_named
from tui.transcript.scroller import Scroller
from tui.transcript.skeleton import Skeleton, append, build


@pytest.fixture
def database(tmp_path: Path) -> Database:
    make_store(tmp_path / "s.db", long_talk(40))
    return open_database(tmp_path / "s.db", write=False)


def whole(database: Database) -> Document:
    setting = Setting(width=80, measure=72, root="/srv/api")
    document = Document(setting)
    outlines = queries.outline_page(database, SESSION, None, 10_000)
    skeleton = build(outlines)
    document.use(skeleton, estimates(skeleton, setting), complete=True, at_start=True)
    spans = [(name, 0, 99) for name in skeleton.message_ids]
    document.put(*queries.rows_of(database, spans))
    return document


def test_windows_are_the_same_rows_wherever_they_are_read_from(database: Database) -> None:
    outlines = queries.outline_page(database, SESSION, None, 10_000)
    end = windows.window_at_end(database, SESSION, 33)
    assert end.outlines == outlines[-33:] and end.at_end and not end.at_start
    start = windows.window_at_start(database, SESSION, 33)
    assert start.outlines == outlines[:33] and start.at_start and not start.at_end
    middle = windows.window_around(database, SESSION, message_id(40), 20)
    assert middle.outlines == outlines[90:120]
    everything = windows.window_at_end(database, SESSION, 1000)
    assert everything.outlines == outlines and everything.at_start


def test_pages_of_the_skeleton_follow_each_other(database: Database) -> None:
    pages, after = [], None
    while page := queries.outline_page(database, SESSION, after, 7):
        pages += page
        after = (page[-1].created_at, page[-1].message_id)
    assert pages == queries.outline_page(database, SESSION, None, 10_000)
    assert len(pages) == 200


def test_a_message_without_parts_keeps_its_place(tmp_path: Path) -> None:
    make_store(tmp_path / "s.db", [Said("user", [text("a")]), Said("assistant", []),
                                   Said("user", [text("b")])])
    database = open_database(tmp_path / "s.db", write=False)
    document = whole(database)
    assert len(document) == 3
    block = document.block(1)
    assert block is not None and block.lines[-1].text == "no content"


def test_what_leaves_a_closed_run_has_lines_again(tmp_path: Path) -> None:
    make_store(tmp_path / "s.db", [
        Said("user", [text("words " * 60)], {"hidden_at": 5} if n in (2, 3, 4) else {})
        for n in range(7)])
    database = open_database(tmp_path / "s.db", write=False)
    document = whole(database)
    assert [document.heights[part] for part in (2, 3, 4)] == [2, 0, 0]
    outlines = queries.outline_page(database, SESSION, None, 10_000)
    shown = [outline._replace(hidden_at=None) if n == 4 else outline
             for n, outline in enumerate(outlines)]
    document.regrow(2, shown[2:])
    likely = document.heights[1]
    assert likely > 2
    assert [document.heights[part] for part in range(7)] == [
        likely, likely, 2, 0, likely, likely, likely]


KINDS = st.sampled_from(["text", "tool-Bash", "data-error", "step-start"])
MESSAGES = st.lists(st.tuples(st.booleans(), st.lists(KINDS, min_size=1, max_size=4)), max_size=12)


def outlines_of(messages: list[tuple[bool, list[str]]]) -> list[Outline]:
    return [
        Outline(f"m{n}", "user" if n % 3 == 0 else "assistant", n, None, n if queued else None,
                None, 0, None, index, kind, 10, "output-error" if kind == "tool-Bash" else None)
        for n, (queued, kinds) in enumerate(messages) for index, kind in enumerate(kinds)
    ]


@given(MESSAGES, st.integers(0, 12))
def test_what_is_cut_and_added_again_is_the_same(
    messages: list[tuple[bool, list[str]]], at: int
) -> None:
    outlines = outlines_of([(False, kinds) for _queued, kinds in messages])
    expected, skeleton = build(outlines), build(outlines)
    skeleton.cut(at)
    append(skeleton, [outline for outline in outlines if outline.created_at >= at])
    assert everything_of(skeleton) == everything_of(expected)


@given(MESSAGES)
def test_queued_messages_come_last(messages: list[tuple[bool, list[str]]]) -> None:
    skeleton = build(outlines_of(messages))
    order = [int(name[1:]) for name in skeleton.message_ids]
    assert order == ([n for n, (queued, _k) in enumerate(messages) if not queued]
                     + [n for n, (queued, _k) in enumerate(messages) if queued])


def everything_of(skeleton: Skeleton) -> dict[str, object]:
    names = [name for name in vars(copy.copy(skeleton)) if name != "_type_codes"]
    return {name: getattr(skeleton, name) for name in names}


@pytest.mark.parametrize("height", [5, 24, 60])
def test_walking_by_any_steps_stands_where_one_move_stands(
    database: Database, height: int
) -> None:
    document = whole(database)
    one, many = Scroller(document), Scroller(document)
    one.height = many.height = height
    for lines in (1, 7, 3, 50, 11, 2, 90):
        many.move(lines)
    one.move(164)
    assert (one.part, one.line) == (many.part, many.line)
    assert one.move(-64) == -64
    many.move(-60)
    many.move(-4)
    assert (one.part, one.line) == (many.part, many.line)
    assert one.move(-10_000) == -100
    assert (one.part, one.line) == (0, 0)
    one.move(10_000)
    assert (one.part, one.line) == one.end() and len(one.rows()) == height


def test_places_named_by_turn_time_part_and_share(database: Database) -> None:
    document = whole(database)
    skeleton = document.skeleton
    assert place_named("3", document) == skeleton.first[4]
    assert place_named("#7", document) == 6
    assert place_named("50%", document) == 100
    assert place_named("100%", document) == 199
    assert isinstance(place_named("41", document), str)
    assert isinstance(place_named("#201", document), str)
    assert isinstance(place_named("soon", document), str)
    assert place_named("2020-01-01", document) == 0
    assert isinstance(place_named("2090-01-01 10:00", document), str)


def test_a_damaged_place_is_no_place() -> None:
    assert read_place(None) is None and read_place({"message": 3}) is None
    place = read_place({"message": "m", "index": "x", "line": 4, "selected": ["m"],
                        "folds": [["m", 1, "whole"], ["m", 1, "odd"], 3]})
    assert place == {"message": "m", "at_end": False, "index": 0, "line": 4,
                     "folds": [["m", 1, "whole"]]}


def test_the_first_window_and_rows_by_key_need_no_scan_and_no_sort(tmp_path: Path) -> None:
    make_store(tmp_path / "s.db", long_talk(40))
    database = open_database(tmp_path / "s.db", write=False)
    said: list[str] = []
    database.file.set_trace_callback(said.append)
    windows.opening(database, SESSION, "ses_parent", None, at_end=True)
    windows.opening(database, SESSION, None, message_id(30), at_end=False)
    queries.rows_of(database, [(message_id(3), 0, 2)])
    queries.extent(database, SESSION)
    queries.last_usage(database, SESSION)
    queries.matches(database, [message_id(3), message_id(5)], "word")
    database.file.set_trace_callback(None)
    assert len(said) > 10
    for sql in set(said):
        plan = [row[3] for row in database.connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
        assert not any(step.startswith("SCAN") or "TEMP B-TREE" in step for step in plan), (
            sql, plan)


def test_messages_that_say_little_are_not_all_kept() -> None:
    document = Document(Setting(width=80, measure=72))
    for number in range(3_000):
        name = f"msg_{number}"
        document.put([MessageRow(name, SESSION, "user", "{}", None, 0, 0)],
                     [PartRow(name, name, SESSION, 0, "text", "{}", None, None, 0, 0)])
    assert 1_000 < len(document._messages) < 2_000
