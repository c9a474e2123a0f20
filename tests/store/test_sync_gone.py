"""What a source no longer has stays in the library, in its place and marked."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.conversation.gone_marks import gone_messages, is_gone
from store.engine.database import Database, in_transaction, open_database
from store.ids import derived_session_id
from store.queries.originals import records_of_message
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sync.prepared import prepare
from store.sync.writer import Written, write_prepared, write_session
from tests.store.sync_fakes import (
    SIDE_TABLES,
    START,
    TABLES,
    dump,
    line,
    run,
    session,
    text_part,
    write_lines,
)

ONE = derived_session_id("fake", "one")
ALL = (*TABLES, *SIDE_TABLES)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db", create=True)
    yield opened
    opened.close()


def write(database: Database, draft: SessionDraft, **options: Any) -> Written:
    return in_transaction(database, write_session, "fake", draft, **options)


def said(*texts: str, names: list[str] | None = None, at: int | None = None) -> SessionDraft:
    """A session of one record and message a text; ``at`` is the time of all of them."""
    messages = []
    for number, text in enumerate(texts):
        when = START + ord(text[0]) if at is None else at
        name = names[number] if names else text
        part = text_part(text, when, (number,))
        messages.append(MessageDraft(name, "user", when, when, {}, [part]))
    records = [text.encode() for text in texts]
    return session("one", *messages, records=records, names_count=at is not None and bool(names))


def shown(database: Database) -> list[tuple[str, bool]]:
    """The texts of the session in order, each with whether it is marked as gone."""
    rows = database.connection.execute(
        "SELECT json_extract(p.data_json, '$.text'), "
        "coalesce(json_extract(m.metadata_json, '$.source.gone'), 0) OR EXISTS (SELECT 1 FROM "
        "json_each(m.metadata_json, '$.source.gone_parts') WHERE value = p.\"index\") "
        "FROM chat_messages m JOIN chat_parts p ON p.message_id = m.id WHERE m.session_id = ? "
        'ORDER BY m.created_at, m.id, p."index"',
        (ONE,),
    )
    return [(text, bool(gone)) for text, gone in rows]


def marked(shown: list[tuple[str, bool]]) -> str:
    """``ab(c)d``: what is gone stands in brackets."""
    return "".join(f"({text})" if gone else text for text, gone in shown)


def fresh(tmp_path: Path, *drafts: SessionDraft) -> dict[str, list[Any]]:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        database = open_database(Path(folder) / "fresh.db", create=True)
        for draft in drafts:
            write(database, draft)
        rows = dump(database, ALL)
        database.close()
    return rows


def test_what_is_gone_is_marked_and_what_comes_back_is_not(
    database: Database, tmp_path: Path
) -> None:
    whole = said("a", "b", "c", "d")
    write(database, whole)
    write(database, said("a", "d", "e"))
    assert marked(shown(database)) == "a(b)(c)de"
    total = database.connection.total_changes
    assert write(database, said("a", "d", "e")).changed == []
    assert database.connection.total_changes == total
    write(database, said("d", "e", "f"))
    assert marked(shown(database)) == "(a)(b)(c)def"
    write(database, said("a", "b", "c", "d", "e", "f"))
    assert marked(shown(database)) == "abcdef"
    assert dump(database, ALL) == fresh(tmp_path, said("a", "b", "c", "d", "e", "f"))


def test_the_records_of_what_is_gone_can_be_read(database: Database) -> None:
    write(database, said("a", "b", "c"))
    write(database, said("a", "c", "d"))
    rows = database.connection.execute(
        "SELECT id FROM chat_messages ORDER BY created_at, id"
    ).fetchall()
    assert [records_of_message(database, row[0]) for row in rows] == [["a"], ["b"], ["c"], ["d"]]


def test_other_names_and_another_order_are_no_loss(database: Database, tmp_path: Path) -> None:
    write(database, said("a", "b", "c"))
    renamed = said("a", "b", "c", names=["x", "y", "z"])
    write(database, renamed)
    assert marked(shown(database)) == "abc"
    assert dump(database, ALL) == fresh(tmp_path, renamed)


def test_messages_that_are_cut_otherwise_are_no_loss(database: Database, tmp_path: Path) -> None:
    """A newer mapping makes one message of two, or two of one."""
    write(database, said("a", "b", "c"))
    joined = said("a", "c")
    joined.records = [b"a", b"b", b"c"]
    joined.messages[0].parts.append(text_part("b", START, (1,)))
    joined.messages[1].parts = [text_part("c", START, (2,))]
    write(database, joined)
    assert marked(shown(database)) == "abc"
    assert dump(database, ALL) == fresh(tmp_path, joined)
    write(database, said("a", "b", "c"))
    assert dump(database, ALL) == fresh(tmp_path, said("a", "b", "c"))


def test_names_that_only_count_tell_nothing(database: Database, tmp_path: Path) -> None:
    """All of one moment, named by their place, as in a file without ids and times."""
    count = [f"{number}-user" for number in range(9)]
    write(database, said("a", "b", "c", "d", names=count, at=START))
    write(database, said("c", "d", "e", names=count, at=START))
    assert marked(shown(database)) == "(a)(b)cde"
    write(database, said("d", "e", "f", names=count, at=START))
    assert marked(shown(database)) == "(a)(b)(c)def"
    whole = said(*"abcdef", names=count, at=START)
    write(database, whole)
    assert marked(shown(database)) == "abcdef"
    assert dump(database, ALL) == fresh(tmp_path, whole)


def with_calls(*calls: str) -> SessionDraft:
    draft = said("a")
    draft.records = [b"a", *(name.encode() for name in calls)]
    for number, name in enumerate(calls, 1):
        data = {"type": "tool-Run", "toolCallId": name, "state": "input-available", "text": name}
        draft.messages[0].parts.append(
            PartDraft("tool-Run", data, START, START, name, "input-available", (number,))
        )
    return draft


def test_parts_that_are_gone_stay_in_their_message(database: Database, tmp_path: Path) -> None:
    write(database, with_calls("k", "l", "m"))
    write(database, with_calls("k", "m", "n"))
    assert marked(shown(database)) == "ak(l)mn"
    total = database.connection.total_changes
    assert write(database, with_calls("k", "m", "n")).changed == []
    assert database.connection.total_changes == total
    write(database, with_calls("m", "n"))
    assert marked(shown(database)) == "a(k)(l)mn"
    write(database, with_calls("k", "l", "m", "n"))
    assert marked(shown(database)) == "aklmn"
    assert dump(database, ALL) == fresh(tmp_path, with_calls("k", "l", "m", "n"))


def test_a_last_record_that_grew_is_the_same(database: Database, tmp_path: Path) -> None:
    count = [f"{number}-user" for number in range(9)]
    write(database, said("a", "b be", names=count, at=START))
    grown = said("a", "b begun and ended", "c", names=count, at=START)
    write(database, grown)
    assert dump(database, ALL) == fresh(tmp_path, grown)


def answered(*lines: str) -> SessionDraft:
    """A call, its result, and the answer's counts: a record each."""
    draft = said("a")
    draft.records = [b"a", *(line.encode() for line in lines)]
    data = {"type": "tool-Run", "toolCallId": "k", "state": "input-available", "text": "k"}
    numbers = [number for number, line in enumerate(lines, 1) if line != "counts"]
    if "result" in lines:
        data |= {"state": "output-available", "output": "done"}
    call = PartDraft("tool-Run", data, START, START, "k", data["state"], tuple(numbers))
    draft.messages[0].parts.append(call)
    draft.messages[0].role = "assistant"
    draft.messages[0].metadata["usage"] = {"input": 1}
    if "counts" in lines:
        draft.messages[0].metadata["usage"] = {"input": 7}
        draft.messages[0].records = (len(lines),)
    return draft


def test_a_result_and_counts_that_are_gone_stay(database: Database, tmp_path: Path) -> None:
    whole = answered("call", "result", "counts")
    write(database, whole)
    for _ in range(2):
        write(database, answered("call"))
        (text,) = database.connection.execute(
            "SELECT data_json FROM chat_parts WHERE tool_call_id = 'k'"
        ).fetchone()
        assert json.loads(text)["output"] == "done"
        assert database.connection.execute(
            "SELECT prompt_tokens FROM chat_sessions"
        ).fetchone() == (7,)
        assert marked(shown(database)) == "a(k)"
    (name,) = database.connection.execute("SELECT id FROM chat_messages").fetchone()
    assert sorted(records_of_message(database, name)) == ["a", "call", "counts", "result"]
    write(database, answered("call", "result"))
    assert marked(shown(database)) == "ak"
    write(database, whole)
    assert dump(database, ALL) == fresh(tmp_path, whole)


def test_a_row_that_is_written_anew_is_the_same_row(database: Database, tmp_path: Path) -> None:
    """A database's row has another text each time while an answer comes."""
    for text in ("H", "Hel", "Hello"):
        draft = said(text, names=["m1"], at=START)
        draft.names_count = False
        write(database, draft)
    assert marked(shown(database)) == "Hello"
    assert dump(database, ALL) == fresh(tmp_path, draft)


def test_sums_and_times_take_in_what_is_gone(database: Database) -> None:
    draft = said("a", "b", "c")
    for message in draft.messages:
        message.role = "assistant"
        message.metadata["usage"] = {"input": 5, "output": 2}
    draft.updated_at = START + ord("c")
    write(database, draft)
    less = said("a")
    less.updated_at = START + ord("a")
    write(database, less)
    assert database.connection.execute(
        "SELECT prompt_tokens, total_tokens, updated_at, "
        "json_extract(metadata_json, '$.source.gone_messages') FROM chat_sessions"
    ).fetchone() == (10, 14, START + ord("c"), 2)


def test_a_session_keeps_the_title_of_a_prompt_that_is_gone(
    database: Database, tmp_path: Path
) -> None:
    def title(*texts: str, title_from: str = "first-prompt", name: str | None = None) -> Any:
        draft = said(*texts)
        draft.title = name or (texts[0] if texts else None)
        draft.title_from = title_from if draft.title else None
        write(database, draft)
        row = database.connection.execute(
            "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions"
        ).fetchone()
        return row[0]

    assert title("a", "b") == "a"
    assert title("b") == "a"
    assert title() == "a"
    assert title("b", "c") == "a"
    assert title("a", "b", "c") == "a"
    assert title("b", "c", name="Given", title_from="ai-title") == "Given"


def test_what_the_user_marked_stays_on_what_is_gone(database: Database) -> None:
    write(database, said("a", "b", "c"))
    (name,) = database.connection.execute(
        "SELECT id FROM chat_messages WHERE json_extract(metadata_json, '$.source.id') = 'b'"
    ).fetchone()
    database.connection.execute(
        "UPDATE chat_messages SET metadata_json = json_set(metadata_json, '$.user.star', 1) "
        "WHERE id = ?", (name,),
    )  # fmt: skip
    for draft in (said("a", "c"), said("a", "c", "d"), said("a", "b", "c", "d")):
        write(database, draft)
        (text,) = database.connection.execute(
            "SELECT metadata_json FROM chat_messages WHERE id = ?", (name,)
        ).fetchone()
        assert json.loads(text)["user"] == {"star": 1}


def test_nothing_is_kept_where_the_user_wants_that(database: Database, tmp_path: Path) -> None:
    root = tmp_path / "source"
    write_lines(root, "one", 4)
    run(database, root)
    write_lines(root, "one", 2, at=START + 1)
    run(database, root)
    assert marked(shown(database)) == "text 0text 1(text 2)(text 3)"
    with (root / "one.lines").open("a") as file:
        file.write(line(7))
    run(database, root, keep_deleted=False)
    assert marked(shown(database)) == "text 0text 1text 7"


@pytest.mark.parametrize(("text", "keep", "left"), [
    ("", False, 1), ("", True, 2), ("BAD\n", False, 2), ('{"id": "x"}\n', False, 2),
])  # fmt: skip
def test_a_file_without_messages_has_no_session(
    text: str, keep: bool, left: int, database: Database, tmp_path: Path
) -> None:
    """Unless what was deleted is kept, or the file is damaged."""
    root = tmp_path / "source"
    for name in ("one", "two"):
        write_lines(root, name, 2)
    run(database, root, keep_deleted=keep)
    (root / "one.lines").write_text(text)
    for _ in range(2):
        run(database, root, keep_deleted=keep)
        (count,) = database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
        assert count == left


LINES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8).map(sorted)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=6), st.booleans())
def test_nothing_that_was_there_is_ever_missing(
    states: list[list[str]], counted: bool
) -> None:
    """Whatever a file loses and gets back; ``counted`` is for names that count messages."""
    names = [str(number) for number in range(8)] if counted else None
    at = START if counted else None
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder) / "store.db", create=True)
        seen: set[str] = set()
        for state in states:
            write(database, said(*state, names=names, at=at))
            seen.update(state)
            rows = shown(database)
            assert sorted(text for text, _ in rows) == sorted(seen)
            assert [text for text, gone in rows if not gone] == state
            if not counted:
                assert [text for text, _ in rows] == sorted(seen)
        whole = said(*"abcdefgh", names=names, at=at)
        write(database, whole)
        assert dump(database, ALL) == fresh(Path(folder), whole)
        database.close()


def test_people_read_it_in_words(database: Database) -> None:
    write(database, said("a", "b"))
    write(database, said("a"))
    rows = {
        json.loads(row[0])["source"]["id"]: json.loads(row[0])
        for row in database.connection.execute("SELECT metadata_json FROM chat_messages")
    }
    assert (is_gone(rows["a"]), is_gone(rows["b"]), is_gone(rows["b"], 0)) == (False, True, True)
    (text,) = database.connection.execute("SELECT metadata_json FROM chat_sessions").fetchone()
    assert gone_messages(json.loads(text)) == 1
    write(database, with_calls("k", "l"))
    write(database, with_calls("k"))
    (text,) = database.connection.execute(
        "SELECT metadata_json FROM chat_messages WHERE metadata_json LIKE '%gone_parts%'"
    ).fetchone()
    assert [is_gone(json.loads(text), index) for index in (None, 0, 1, 2)] == [
        False, False, False, True,
    ]  # fmt: skip


def unkept(database: Database, draft: SessionDraft, **options: Any) -> Written:
    """Write without original records, as ``keep_originals = false`` wants it."""
    prepared = prepare("fake", draft, keep_originals=False)
    return in_transaction(database, write_prepared, prepared, **options)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=6), st.booleans())
def test_nothing_that_was_there_is_missing_without_originals(
    states: list[list[str]], counted: bool
) -> None:
    names = [str(number) for number in range(8)] if counted else None
    at = START if counted else None
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder) / "store.db", create=True)
        seen: set[str] = set()
        for state in states:
            unkept(database, said(*state, names=names, at=at))
            seen.update(state)
            rows = shown(database)
            assert sorted(text for text, _ in rows) == sorted(seen)
            assert [text for text, gone in rows if not gone] == state
        database.close()


def renamed(draft: SessionDraft) -> SessionDraft:
    """The same as a newer mapping may name it, in a wording of its own."""
    for message in draft.messages:
        message.source_id = f"new-{message.source_id}"
        message.metadata["origin"] = "human"
        for part in message.parts:
            part.data["state"] = "new"
    return draft


def test_a_newer_mapping_doubles_nothing_without_originals(database: Database) -> None:
    unkept(database, said(*"abcd"))
    unkept(database, renamed(said(*"abcd")), same_mapping=False)
    assert marked(shown(database)) == "abcd"
    unkept(database, renamed(said(*"abcde")))
    assert marked(shown(database)) == "abcde"


def test_a_newer_mapping_keeps_what_is_gone_without_originals(database: Database) -> None:
    """The file no longer has the first lines, such as those of a fork whose base is gone."""
    unkept(database, said(*"abcd"))
    unkept(database, renamed(said(*"cd")), same_mapping=False)
    assert marked(shown(database)) == "(a)(b)cd"
    unkept(database, renamed(said(*"cde")))
    assert marked(shown(database)) == "(a)(b)cde"
    unkept(database, renamed(said(*"abcde")), same_mapping=False)
    assert marked(shown(database)) == "abcde"


def test_messages_that_a_newer_mapping_joins_are_there_once_without_originals(
    database: Database,
) -> None:
    unkept(database, said(*"abc"))
    joined = renamed(said("a", "c"))
    joined.messages[0].parts.append(text_part("b", START))
    unkept(database, joined, same_mapping=False)
    assert marked(shown(database)) == "abc"
    unkept(database, said(*"abc"), same_mapping=False)
    assert marked(shown(database)) == "abc"
