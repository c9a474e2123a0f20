from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from store.engine.database import Database, in_transaction, open_database
from store.errors import Ambiguous, NotFound
from store.ids import derived_session_id
from store.queries import originals, sessions
from store.sources.base.drafts import (
    AttachmentDraft,
    LineageDraft,
    MessageDraft,
    PartDraft,
    SessionDraft,
)
from store.sync.jsontext import TOO_DEEP
from store.sync.prepared import prepare
from store.sync.writer import Written, write_prepared, write_session
from tests.store.sync_fakes import SIDE_TABLES, START, TABLES, dump, message, session, text_part

WRAP = 26 * 2**36


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db", create=True)
    yield opened
    opened.close()


def write(database: Database, draft: SessionDraft, **options: Any) -> Written:
    return in_transaction(database, write_session, "fake", draft, **options)


def names(database: Database, session_id: str) -> list[str]:
    return [
        json.loads(row[0])["source"]["id"]
        for row in database.connection.execute(
            "SELECT metadata_json FROM chat_messages WHERE session_id = ? ORDER BY created_at, id",
            (session_id,),
        )
    ]


def metadata(database: Database, table: str, row_id: str) -> dict[str, Any]:
    (text,) = database.connection.execute(
        f"SELECT metadata_json FROM {table} WHERE id = ?", (row_id,)
    ).fetchone()
    value: dict[str, Any] = json.loads(text)
    return value


def message_id(database: Database, name: str, session_name: str = "one") -> str:
    row = database.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? "
        "AND json_extract(metadata_json, '$.source.id') = ?",
        (derived_session_id("fake", session_name), name),
    ).fetchone()
    return str(row[0])


def changes(database: Database) -> list[tuple[str, str | None]]:
    return list(
        database.connection.execute("SELECT session_id, message_id FROM changes ORDER BY seq")
    )


def test_a_session_gets_its_columns_and_metadata(database: Database) -> None:
    usage = {"input": 1, "output": 2, "reasoning": 3, "cache_read": 4, "cache_write": 5}
    draft = session(
        "one",
        message("u", START),
        message("a", START + 5, role="assistant", usage=usage, cost_usd=0.25),
        message("b", START + 6, role="assistant", usage=usage, hidden_at=START + 9),
        title="A title",
        title_from="summary",
        workspace_root="/home/me/x",
        metadata={"git_branch": "main"},
    )
    write(database, draft)
    (row,) = database.connection.execute("SELECT * FROM chat_sessions").fetchall()
    assert row[0] == derived_session_id("fake", "one")
    assert row[1:7] == (
        "fake", "/home/me/x", '{"provider_id":"unknown","model_id":"unknown"}', None, None, "[]",
    )  # fmt: skip
    assert json.loads(row[7]) == {
        "title": "A title",
        "title_from": "summary",
        "source": {"kind": "fake", "id": "one", "path": "/sessions/one.jsonl"},
        "git_branch": "main",
    }
    assert row[8:15] == (2, 4, 6, 8, 10, 30, 0.25)
    assert row[15:] == (START, START + 6, None)


@pytest.mark.parametrize("left", [2, 1, 0])
def test_parts_that_went_are_gone_and_their_message_is_told(database: Database, left: int) -> None:
    whole, other = message("m"), message("n", START + 1)
    whole.parts = [text_part(text, START) for text in ("one", "two", "three")]
    write(database, session("one", whole, other))
    seen = len(changes(database))
    shorter = message("m")
    shorter.parts = whole.parts[:left]
    write(database, session("one", shorter, other))
    found = database.connection.execute(
        "SELECT json_extract(data_json, '$.text') FROM chat_parts ORDER BY created_at, \"index\""
    )
    assert [row[0] for row in found] == [*["one", "two", "three"][:left], "n"]
    session_id = derived_session_id("fake", "one")
    assert changes(database)[seen:] == [(session_id, message_id(database, "m"))]


def test_times_that_step_back_are_raised_and_the_true_one_is_kept(database: Database) -> None:
    write(database, session("one", message("a", START + 50), message("b", START), message("c")))
    rows = database.connection.execute(
        "SELECT created_at, updated_at, metadata_json FROM chat_messages ORDER BY created_at, id"
    ).fetchall()
    assert [row[0] for row in rows] == [START + 50] * 3
    assert [json.loads(row[2]).get("backscroll") for row in rows] == [
        None, {"true_created_at": START}, {"true_created_at": START},
    ]  # fmt: skip
    assert all(row[1] >= row[0] for row in rows)
    assert names(database, derived_session_id("fake", "one")) == ["a", "b", "c"]


@pytest.mark.parametrize("start", [WRAP - 1, WRAP, WRAP + 1, START])
def test_more_messages_in_a_millisecond_than_it_has_ids(database: Database, start: int) -> None:
    count = 4096 + 3
    draft = session("one", *(message(f"m{n}", start) for n in range(count)), message("z", start))
    write(database, draft)
    session_id = derived_session_id("fake", "one")
    assert names(database, session_id) == [*(f"m{n}" for n in range(count)), "z"]
    times = [row[0] for row in database.connection.execute(
        "SELECT created_at FROM chat_messages ORDER BY created_at, id")]  # fmt: skip
    assert times == [start] * 4096 + [start + 1] * 4
    lengths = database.connection.execute("SELECT DISTINCT length(id) FROM chat_messages")
    assert lengths.fetchall() == [(30,)]


def test_order_holds_across_the_wrap_of_the_ids(database: Database) -> None:
    draft = session("one", *(message(f"m{n}", WRAP - 3 + n // 2) for n in range(12)))
    write(database, draft)
    assert names(database, derived_session_id("fake", "one")) == [f"m{n}" for n in range(12)]


def test_writing_twice_touches_no_row(database: Database) -> None:
    draft = full_draft()
    write(database, session("parent", message("p1"), message("p2")))
    write(database, draft)
    before, log = dump(database, TABLES + SIDE_TABLES), changes(database)
    total = database.connection.total_changes
    assert write(database, full_draft()).changed == []
    assert database.connection.total_changes == total
    assert dump(database, TABLES + SIDE_TABLES) == before
    assert changes(database) == log


def full_draft() -> SessionDraft:
    copied = message("c1", START + 1, role="assistant")
    copied.inherited_from = "p2"
    tool = PartDraft(
        "tool-Task",
        {"type": "tool-Task", "toolCallId": "t1", "state": "output-available", "input": {},
         "output": "done", "resultProviderMetadata": {"backscroll": {
             "status": "ok", "child_session_source_id": "child"}}},
        START + 2, START + 4, "t1", "output-available", (1, 2),
    )  # fmt: skip
    compaction = PartDraft(
        "data-compaction",
        {"type": "data-compaction", "data": {"summary": "s", "tail_start_id": "c1"}},
        START + 5,
        START + 5,
    )
    lost = PartDraft(
        "data-compaction",
        {"type": "data-compaction", "data": {"summary": "s", "tail_start_id": "nowhere"}},
        START + 5,
        START + 5,
    )
    answer = MessageDraft("a1", "assistant", START + 2, START + 5,
                          {"system_prompt_digest": "d1"}, [tool, compaction, lost],
                          records=(3,))  # fmt: skip
    return session(
        "one", copied, answer,
        lineage=LineageDraft("fork", "parent", "p1"),
        records=[b'{"n":0}', b'{"n":1}', b'{"n":2}', b'{"n":3}'],
        attachments=[
            AttachmentDraft("out.txt", "text/plain", b"long output" * 100),
            AttachmentDraft("nothing", "text/plain", b""),
        ],
        system_prompts={"d1": "You are."},
    )  # fmt: skip


def test_ids_inside_parts_are_ids_of_the_store(database: Database) -> None:
    write(database, full_draft())
    rows = database.connection.execute(
        'SELECT data_json FROM chat_parts WHERE message_id = ? ORDER BY "index"',
        (message_id(database, "a1"),),
    ).fetchall()
    tool, compaction, lost = (json.loads(row[0]) for row in rows)
    assert compaction["data"]["tail_start_id"] == message_id(database, "c1")
    assert lost["data"]["tail_start_id"] is None
    assert tool["resultProviderMetadata"]["backscroll"] == {
        "status": "ok",
        "child_session_source_id": "child",
        "child_session_id": derived_session_id("fake", "child"),
    }
    assert database.connection.execute("SELECT * FROM system_prompts").fetchall() == [
        ("d1", "You are.")
    ]


@pytest.mark.parametrize("parent_first", [True, False])
def test_links_are_the_same_whoever_comes_first(database: Database, parent_first: bool) -> None:
    parent = session("parent", message("p1"), message("p2"), message("p3"))
    drafts = [parent, full_draft()] if parent_first else [full_draft(), parent]
    for draft in drafts:
        write(database, draft)
    parent_id = derived_session_id("fake", "parent")
    (row,) = database.connection.execute(
        "SELECT parent_id, parent_message_id FROM chat_sessions WHERE parent_id IS NOT NULL"
    ).fetchall()
    assert row == (parent_id, message_id(database, "p1", "parent"))
    copied = database.connection.execute(
        "SELECT metadata_json FROM chat_messages WHERE id = ?", (message_id(database, "c1"),)
    ).fetchone()[0]
    original = message_id(database, "p2", "parent")
    metadata = json.loads(copied)
    assert list(metadata) == ["source", "inherited_from"]
    assert metadata["inherited_from"] == original
    named = (metadata["source"]["id"], metadata["source"]["inherited_from"])
    assert named == ("c1", "p2")


def test_a_child_waits_for_a_message_of_its_parent(database: Database) -> None:
    write(database, full_draft())
    write(database, session("parent", message("p1")))
    assert "inherited_from" not in metadata(database, "chat_messages", message_id(database, "c1"))
    before = len(changes(database))
    written = write(database, session("parent", message("p1"), message("p2")))
    child = derived_session_id("fake", "one")
    assert written.changed == [written.session_id, child]
    assert changes(database)[before:] == [
        (written.session_id, message_id(database, "p2", "parent")),
        (child, message_id(database, "c1")),
    ]
    assert write(database, session("parent", message("p1"), message("p2"))).changed == []


def test_a_subagent_that_came_before_the_call_is_told_of_it(database: Database) -> None:
    """The parent's line that names it is mostly written after the subagent has begun."""
    child = session("child", message("c"))
    child.lineage = LineageDraft("subagent", "parent")
    write(database, child)
    write(database, session("parent", message("p1")))
    extra = {"status": "ok", "child_session_source_id": "child"}
    data = {"type": "tool-task", "toolCallId": "t1", "state": "output-available", "input": {},
            "output": "", "resultProviderMetadata": {"backscroll": extra}}  # fmt: skip
    call = PartDraft("tool-task", data, START, START, "t1", "output-available")
    calling = message("p2", START + 1, role="assistant")
    calling.parts.append(call)
    grown = session("parent", message("p1"), calling)
    written = write(database, grown)
    name = derived_session_id("fake", "child")
    assert written.changed == [written.session_id, name]
    assert changes(database)[-1] == (name, None)
    found = metadata(database, "chat_sessions", name)["lineage"]
    assert found == {"kind": "subagent", "parent_source_id": "parent", "tool_call_id": "t1"}
    assert database.connection.execute(
        "SELECT parent_message_id FROM chat_sessions WHERE id = ?", (name,)
    ).fetchone() == (message_id(database, "p2", "parent"),)
    assert write(database, grown).changed == []
    # Its own file never names the call: what is read again keeps it.
    again = prepare("fake", child, keep_originals=True, compress=False)
    ways: list[dict[str, Any]] = [{}, {"same_mapping": False}, {"keep_gone": False}]
    for options in ways:
        assert in_transaction(database, write_prepared, again, **options).changed == []
    child.messages.append(message("d", START + 2))
    more = prepare("fake", child, keep_originals=True, compress=False)
    in_transaction(database, write_prepared, more, before=again, keep_gone=False)
    assert metadata(database, "chat_sessions", name)["lineage"] == found


def test_growth_edits_and_removal_touch_only_what_differs(database: Database) -> None:
    write(database, session("one", message("a"), message("b", START + 1), message("c", START + 2)))
    first = message_id(database, "a")
    total, seen = database.connection.total_changes, len(changes(database))
    changed = session("one", message("a"), message("b", START + 1, "new text"),
                      message("d", START + 3))  # fmt: skip
    gone, edited = message_id(database, "c"), message_id(database, "b")
    write(database, changed, keep_gone=False)
    added = message_id(database, "d")
    assert {row[1] for row in changes(database)[seen:]} == {gone, edited, added}
    # One session row, a removed message (its part and refs go with it), a changed part,
    # a new message with part and refs, three rows of changes.
    assert database.connection.total_changes - total <= 1 + 3 + 1 + 3 + 3
    assert message_id(database, "a") == first
    assert names(database, derived_session_id("fake", "one")) == ["a", "b", "d"]


def test_what_the_user_set_survives(database: Database) -> None:
    draft = session("one", message("a"), message("b", START + 1), message("s", START + 2,
                    hidden_at=7), title="Said")  # fmt: skip
    write(database, draft)
    session_id, hidden, shown = (
        derived_session_id("fake", "one"), message_id(database, "b"), message_id(database, "s"),
    )  # fmt: skip
    run = database.connection.execute
    run(
        "UPDATE chat_sessions SET archived_at = 77, metadata_json = "
        'json_set(metadata_json, \'$.user\', json(\'{"title":"Mine","star":true}\'))'
    )
    run(
        "UPDATE chat_messages SET metadata_json = json_set(metadata_json, '$.hidden_at', 5, "
        "'$.backscroll', json('{\"hidden_by\":\"user\"}')) WHERE id = ?",
        (hidden,),
    )
    run("UPDATE chat_messages SET metadata_json = json_remove(json_set(metadata_json, "
        "'$.backscroll', json('{\"hidden_by\":\"shown\"}')), '$.hidden_at') WHERE id = ?",
        (shown,))  # fmt: skip
    total = database.connection.total_changes
    assert write(database, draft).changed == []
    assert database.connection.total_changes == total
    draft.messages.append(message("c", START + 3))
    draft.messages[1] = message("b", START + 1, git_branch="x")
    draft.title = "Said again"
    write(database, draft)
    assert metadata(database, "chat_sessions", session_id)["user"] == {
        "title": "Mine",
        "star": True,
    }
    assert metadata(database, "chat_sessions", session_id)["title"] == "Said again"
    assert run("SELECT archived_at FROM chat_sessions").fetchone() == (77,)
    assert metadata(database, "chat_messages", hidden) == {
        "git_branch": "x",
        "source": {"id": "b"},
        "backscroll": {"hidden_by": "user"},
        "hidden_at": 5,
    }
    assert "hidden_at" not in metadata(database, "chat_messages", shown)


def test_records_that_say_nothing_are_logged_by_the_last_message(database: Database) -> None:
    """A store of a team gets what the log names, its original records too."""
    def draft(*records: bytes) -> SessionDraft:
        return session("one", message("a"), message("b"), records=records)

    write(database, draft(b"1"))
    log = changes(database)
    written = write(database, draft(b"1", b"2"))
    last = (derived_session_id("fake", "one"), message_id(database, "b"))
    assert changes(database) == [*log, last] and written.changed == []
    write(database, draft(b"1", b"2"))
    assert changes(database) == [*log, last]


def test_marks_follow_a_message_whose_id_moves(database: Database) -> None:
    write(database, session("one", message("a"), message("b")))
    old, session_id = message_id(database, "b"), derived_session_id("fake", "one")
    run = database.connection.execute
    run("UPDATE chat_messages SET metadata_json = json_set(metadata_json, '$.hidden_at', 5, "
        "'$.backscroll', json('{\"hidden_by\":\"user\"}')) WHERE id = ?", (old,))  # fmt: skip
    labels = json.dumps({"labels": {old: "here"}})
    run("UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.user', json(?))",
        (labels,))  # fmt: skip
    run("INSERT INTO chat_sessions(id, agent, model_json, parent_id, parent_message_id, "
        "created_at, updated_at) VALUES ('ses_mine', 'x', '{}', ?, ?, 1, 1)",
        (session_id, old))  # fmt: skip
    written = write(database, session("one", message("a"), message("between"), message("b")))
    new = message_id(database, "b")
    assert ("ses_mine", None) in changes(database) and "ses_mine" in written.changed
    assert new != old
    assert metadata(database, "chat_messages", new)["hidden_at"] == 5
    assert metadata(database, "chat_sessions", session_id)["user"] == {"labels": {new: "here"}}
    assert run("SELECT parent_message_id FROM chat_sessions WHERE id = 'ses_mine'").fetchone() == (
        new,
    )


@pytest.mark.parametrize(
    ("first", "by_user", "second", "expected"),
    [
        (None, None, None, None),
        (None, 70, None, 70),
        (None, None, 50, 50),
        (None, 70, 50, 70),
        (50, None, 50, None),
        (50, 50, None, None),
        (50, 70, None, 70),
        (50, 50, 60, 60),
    ],
)
def test_archive_is_the_users_until_the_source_changes_its_mind(
    database: Database,
    first: int | None,
    by_user: int | None,
    second: int | None,
    expected: int | None,
) -> None:
    write(database, session("one", archived_at=first))
    assert database.connection.execute("SELECT archived_at FROM chat_sessions").fetchone() == (
        first,
    )
    database.connection.execute("UPDATE chat_sessions SET archived_at = ?", (by_user,))
    write(database, session("one", archived_at=second))
    assert database.connection.execute("SELECT archived_at FROM chat_sessions").fetchone() == (
        expected,
    )


def test_text_that_no_json_column_holds(database: Database) -> None:
    draft = session("o\ud800ne", message("a\ud83d", text="x\ud800y", big=2**70), title="\udfff")
    draft.path, draft.workspace_root = "/p/\udcff.jsonl", "/w\udcff"
    write(database, draft)
    (text,) = database.connection.execute("SELECT data_json FROM chat_parts").fetchone()
    assert json.loads(text)["text"] == "x\N{REPLACEMENT CHARACTER}y"
    (text,) = database.connection.execute("SELECT metadata_json FROM chat_messages").fetchone()
    assert json.loads(text)["big"] == 2**70
    total = database.connection.total_changes
    write(database, draft)
    assert database.connection.total_changes == total


@pytest.mark.parametrize("levels", [100, 240, 300, 5000])
def test_deep_nesting_costs_only_itself(database: Database, levels: int) -> None:
    deep: Any = "bottom"
    for _ in range(levels):
        deep = [deep]
    draft = session("one", message("a"))
    draft.messages[0].parts[0].data["input"] = deep
    write(database, draft)
    (text,) = database.connection.execute("SELECT data_json FROM chat_parts").fetchone()
    part = orjson.loads(text)
    assert part["text"] == "a"
    (shown,) = database.connection.execute(
        "SELECT json_extract(data_json, '$.text') FROM chat_parts"
    ).fetchone()
    assert shown == "a"
    assert (TOO_DEEP in text) == (levels > 254)
    assert ("bottom" in text) == (levels < 254)


def test_original_records_come_back_as_they_were(database: Database) -> None:
    records = [b'{"n":%d,"pad":"%s"}' % (n, b"x" * (n % 9000)) for n in range(400)]
    records[7] = b"two\nlines"
    records[9] = b""
    records[11] = b"\xff\xfe"
    draft = session("one", message("a"), records=records)
    draft.messages[0].parts = [text_part("t", records=(7, 399)), text_part("u", records=(11,))]
    draft.messages[0].records = (9, 7)
    write(database, draft)
    session_id = derived_session_id("fake", "one")
    assert list(originals.records_of_session(database, session_id)) == records
    assert originals.record_count(database, session_id) == 400
    first, second = (row[0] for row in database.connection.execute(
        'SELECT id FROM chat_parts ORDER BY "index"'))  # fmt: skip
    assert originals.records_of_part(database, first) == ["two\nlines", records[399].decode()]
    assert originals.records_of_part(database, second) == ["\ufffd\ufffd"]
    assert originals.records_of_message(database, message_id(database, "a")) == [
        "two\nlines", "", "\ufffd\ufffd", records[399].decode(),
    ]  # fmt: skip


def test_an_append_writes_new_blocks_only(database: Database) -> None:
    records = [b'{"n":%d,"pad":"%s"}' % (n, b"x" * 5000) for n in range(200)]
    write(database, session("one", message("a"), records=records[:150]))
    before = database.connection.execute("SELECT * FROM original_records").fetchall()
    assert len(before) > 2
    total = database.connection.total_changes
    write(database, session("one", message("a"), records=records))
    after = database.connection.execute("SELECT * FROM original_records").fetchall()
    assert after[: len(before) - 1] == before[:-1]
    # One block grew, new ones came, and the log has a row.
    assert database.connection.total_changes - total == len(after) - len(before) + 1 + 1


def test_without_originals_none_is_kept(database: Database) -> None:
    draft = full_draft()
    write(database, draft)
    write(database, draft, keep_originals=False)
    assert database.connection.execute("SELECT count(*) FROM original_records").fetchone() == (0,)
    (part,) = database.connection.execute(
        "SELECT id FROM chat_parts WHERE tool_call_id = 't1'"
    ).fetchone()
    assert originals.records_of_part(database, part) == []


def test_attachments(database: Database) -> None:
    write(database, full_draft())
    session_id = derived_session_id("fake", "one")
    assert originals.attachment(database, session_id, "out.txt") == b"long output" * 100
    assert originals.attachment(database, session_id, "nothing") == b""
    assert originals.attachments(database, session_id) == [
        ("nothing", "text/plain", 0),
        ("out.txt", "text/plain", 1100),
    ]
    with pytest.raises(NotFound, match="no file other.txt"):
        originals.attachment(database, session_id, "other.txt")


class TestTwoFilesOfOneSession:
    @pytest.fixture
    def files(self, tmp_path: Path) -> tuple[str, str]:
        paths = tmp_path / "one.jsonl", tmp_path / "backup.jsonl"
        for path in paths:
            path.touch()
        return str(paths[0]), str(paths[1])

    def texts(self, database: Database) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, name in database.connection.execute(
            "SELECT json_extract(s.metadata_json, '$.source.path'),"
            " json_extract(m.metadata_json, '$.source.id') FROM chat_sessions s"
            " JOIN chat_messages m ON m.session_id = s.id ORDER BY m.created_at, m.id"
        ):
            found.setdefault(path, []).append(name)
        return found

    @pytest.mark.parametrize("longer_first", [True, False])
    def test_a_copy_with_nothing_of_its_own_is_the_same_session(
        self, database: Database, files: tuple[str, str], longer_first: bool
    ) -> None:
        longer = session("one", message("a"), message("b", START + 9), path=files[0])
        shorter = session("one", message("a"), path=files[1])
        for draft in (longer, shorter) if longer_first else (shorter, longer):
            write(database, draft)
        assert self.texts(database) == {files[0]: ["a", "b"]}

    @pytest.mark.parametrize("folder", ["", "deep/in/a/backup"])
    def test_of_equal_files_the_better_name_counts(
        self, database: Database, tmp_path: Path, folder: str
    ) -> None:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        named, other = tmp_path / "one.jsonl", tmp_path / folder / "one (1).jsonl"
        for path in (other, named, other):
            path.touch()
            write(database, session("one", message("a"), path=str(path)))
        assert self.texts(database) == {str(named): ["a"]}

    def test_a_copy_that_went_on_is_a_fork_with_the_same_source_id(
        self, database: Database, files: tuple[str, str]
    ) -> None:
        own, other = files
        write(database, session("one", message("a"), message("b", START + 9), path=own))
        copy = session("one", message("a"), message("c", START + 9), path=other, title="T")
        assert write(database, copy).new
        assert self.texts(database) == {own: ["a", "b"], other: ["a", "c"]}
        first = derived_session_id("fake", "one")
        ((copied, text, parent, above),) = database.connection.execute(
            "SELECT id, metadata_json, parent_id, parent_message_id FROM chat_sessions"
            " WHERE id <> ?", (first,)
        ).fetchall()  # fmt: skip
        metadata = json.loads(text)
        assert metadata["title"] == "T (copy)"
        assert len(metadata["source"].pop("copy_branch")) == 24
        assert metadata["source"] == {
            "kind": "fake", "id": "one", "path": other, "copy_of": first
        }  # fmt: skip
        assert (parent, above) == (first, message_id(database, "a", "one"))
        assert metadata["lineage"]["kind"] == "fork"
        assert not write(database, copy).changed
        grown = session("one", message("a"), message("c", START + 9),
                        message("d", START + 12), path=other, title="T")  # fmt: skip
        assert write(database, grown).changed == [copied]
        assert self.texts(database)[other] == ["a", "c", "d"]
        # It stays what it is when the other file is gone.
        os.unlink(own)
        assert not write(database, grown).changed
        with pytest.raises(Ambiguous):
            sessions.resolve(database, "one")

    def test_a_moved_file_is_the_same_session(
        self, database: Database, files: tuple[str, str]
    ) -> None:
        write(database, session("one", message("a"), message("b", START + 9), path=files[0]))
        os.unlink(files[0])
        write(database, session("one", message("a"), message("c", START + 9), path=files[1]))
        assert list(self.texts(database)) == [files[1]]


def test_many_changed_messages_are_one_row_of_changes(database: Database) -> None:
    write(database, session("one", message("a")))
    draft = session("one", *(message(f"m{n}", START + n) for n in range(100)))
    seen = len(changes(database))
    write(database, draft)
    assert changes(database)[seen:] == [(derived_session_id("fake", "one"), None)]


def exported(database: Database, parent: str, name: str) -> None:
    database.connection.execute(
        "INSERT INTO exported_sessions(imported_id, session_id) VALUES (?, ?)",
        (derived_session_id("fake", name), derived_session_id("fake", parent)),
    )


def test_what_an_agent_went_on_with_is_numbered_as_a_fork_is(database: Database) -> None:
    write(database, session("one", message("a"), title="Fix it"))
    for name in ("two", "three"):
        exported(database, "one", name)
        write(database, session(name, message("a"), title="Fix it"))
    titles = [
        metadata(database, "chat_sessions", derived_session_id("fake", name))["title"]
        for name in ("one", "two", "three")
    ]
    assert titles == ["Fix it", "Fix it (2)", "Fix it (3)"]


def test_a_number_stays_and_the_agents_own_title_is_taken(database: Database) -> None:
    write(database, session("one", message("a"), title="Fix it"))
    exported(database, "one", "two")
    exported(database, "one", "three")
    for name in ("three", "two", "three"):
        write(database, session(name, message("a"), title="Fix it"))
    two, three = (derived_session_id("fake", name) for name in ("two", "three"))
    assert metadata(database, "chat_sessions", three)["title"] == "Fix it (2)"
    assert metadata(database, "chat_sessions", two)["title"] == "Fix it (3)"
    write(database, session("two", message("a"), title="Another matter"))
    assert metadata(database, "chat_sessions", two)["title"] == "Another matter"


def test_what_an_agent_went_on_with_keeps_its_parent_while_it_grows(database: Database) -> None:
    write(database, session("one", message("a"), title="Fix it"))
    exported(database, "one", "two")
    before = None
    for number in (1, 2, 3):
        messages = [message(f"m{n}", START + n) for n in range(number)]
        now = prepare("fake", session("two", *messages, title="Fix it"))
        in_transaction(database, write_prepared, now, before=before)
        before = now
    row = database.connection.execute(
        "SELECT parent_id, json_extract(metadata_json, '$.lineage.kind'),"
        " json_extract(metadata_json, '$.title') FROM chat_sessions WHERE id = ?",
        (derived_session_id("fake", "two"),),
    ).fetchone()
    assert row == (derived_session_id("fake", "one"), "continuation", "Fix it (2)")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_no_session_is_its_own_ancestor(database: Database, order: tuple[int, ...]) -> None:
    names = ["one", "two", "three"]
    drafts = [
        session(name, message(f"{name} a"), created_at=START + number,
                lineage=LineageDraft("fork", names[number - 1]))
        for number, name in enumerate(names)
    ]  # fmt: skip
    for _ in range(2):
        for number in order:
            write(database, drafts[number])
        ids = [derived_session_id("fake", name) for name in names]
        parents = dict(database.connection.execute("SELECT id, parent_id FROM chat_sessions"))
        assert parents == {ids[0]: None, ids[1]: ids[0], ids[2]: ids[1]}
    write(database, session("own", message("x"), lineage=LineageDraft("fork", "own")))
    (parent,) = database.connection.execute(
        "SELECT parent_id FROM chat_sessions WHERE id = ?", (derived_session_id("fake", "own"),)
    ).fetchone()
    assert parent is None
