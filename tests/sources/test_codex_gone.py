"""Threads whose files are gone: what others need of them comes from the library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.ids import derived_session_id
from store.sources.codex import CodexSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.codex_lines import START, Lines, iso, thread_id
from tests.sources.test_codex_threads import base, copy_of, two_turns
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

A, B, C = (thread_id(number) for number in (1, 2, 3))
ALL = (*TABLES, *SIDE_TABLES)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db", create=True)
    yield opened
    opened.close()


def sync(database: Database, home: Path) -> None:
    Sync(database, Settings(helpers=0)).run([Target(CodexSource(), home)])


def rows(database: Database, thread: str) -> list[tuple[str, bool, bool, bool]]:
    """Text, and whether it is hidden, inherited and gone."""
    found: Any = database.connection.execute(
        "SELECT json_extract(p.data_json, '$.text'), m.metadata_json FROM chat_messages m "
        "JOIN chat_parts p ON p.message_id = m.id WHERE m.session_id = ? AND p.type = 'text' "
        "ORDER BY m.created_at, m.id",
        (derived_session_id("codex", thread),),
    )
    result = []
    for text, metadata in found:
        said = json.loads(metadata)
        result.append(
            (text, "hidden_at" in said, "inherited_from" in said["source"],
             bool(said["source"].get("gone")))
        )  # fmt: skip
    return result


def parents(database: Database) -> dict[str, str | None]:
    return dict(
        database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id'), parent_id FROM chat_sessions"
        ).fetchall()
    )


def rewound(home: Path) -> tuple[Path, Path, Lines]:
    first = two_turns().write(home)
    second = Lines(A, 7, START + 5000, history_base=base(A, 7))
    second.turn("three", "re three", "r3")
    return first, second.write(home, B), second


REWOUND = [("one", False), ("re one", False), ("two", True), ("re two", True),
           ("three", False), ("re three", False)]  # fmt: skip


def test_a_rewound_thread_keeps_what_its_older_file_held(
    database: Database, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    first, path, second = rewound(home)
    sync(database, home)
    kept = first.read_bytes()
    first.unlink()
    second.turn("four", "re four", "r4")
    path.write_text(second.text())
    sync(database, home)
    assert [(text, hidden) for text, hidden, _, _ in rows(database, A)] == [
        *REWOUND, ("four", False), ("re four", False),
    ]  # fmt: skip
    assert [gone for *_, gone in rows(database, A)] == [True] * 4 + [False] * 4
    assert parents(database) == {A: None}
    first.write_bytes(kept)
    sync(database, home)
    assert not any(gone for *_, gone in rows(database, A))
    other = open_database(tmp_path / "other.db", create=True)
    sync(other, home)
    assert dump(other, ALL) == dump(database, ALL)
    other.close()


def test_without_its_older_file_a_thread_is_no_fork(database: Database, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, _, _ = rewound(home)
    first.unlink()
    sync(database, home)
    assert parents(database) == {A: None}
    (metadata,) = database.connection.execute("SELECT metadata_json FROM chat_sessions").fetchone()
    assert "lineage" not in json.loads(metadata)


@pytest.mark.parametrize("seen", ["child first read after", "child grows after"])
@pytest.mark.parametrize("form", ["base", "copies"])
def test_a_forks_prefix_outlives_its_parents_file(
    database: Database, tmp_path: Path, seen: str, form: str
) -> None:
    home = tmp_path / "home"
    parent = two_turns()
    path = parent.write(home)
    if form == "base":
        fork = Lines(C, 13, START + 9000, history_base=base(A, 13), forked_from_id=A)
    else:
        fork = copy_of(parent, C, Lines(C, at=START + 9000), 13)
    fork.turn("mine", "re mine", "r9")
    if seen == "child grows after":
        fork.write(home)
    sync(database, home)
    path.unlink()
    if seen == "child grows after":
        fork.turn("more", "re more", "r10")
    fork.write(home)
    sync(database, home)
    found = [row[:3] for row in rows(database, C)]
    assert found[:5] == [
        ("one", False, True), ("re one", False, True), ("two", False, True),
        ("re two", False, True), ("mine", False, False),
    ]  # fmt: skip
    assert parents(database)[C] == derived_session_id("codex", A)
    # As if the parent's file were still there.
    parent.write(home)
    other = open_database(tmp_path / "other.db", create=True)
    sync(other, home)
    assert dump(other, TABLES) == dump(database, TABLES)
    other.close()


def test_a_base_that_comes_later_is_followed(database: Database, tmp_path: Path) -> None:
    home = tmp_path / "home"
    fork = Lines(C, 13, START + 9000, history_base=base(A, 13), forked_from_id=A)
    fork.turn("mine", "re mine", "r9")
    fork.write(home)
    sync(database, home)
    assert [row[0] for row in rows(database, C)] == ["mine", "re mine"]
    problems = "SELECT count(*) FROM source_problems"
    assert database.connection.execute(problems).fetchone() == (1,)
    two_turns().write(home)
    sync(database, home)
    assert [row[0] for row in rows(database, C)][:4] == ["one", "re one", "two", "re two"]
    assert database.connection.execute(problems).fetchone() == (0,)


@pytest.mark.parametrize("whole", [1, 3, 5, 7, 9])
@pytest.mark.parametrize("paginated", [True, False])
def test_a_fork_that_was_read_while_its_parent_was_not_whole(
    paginated: bool, whole: int, tmp_path: Path
) -> None:
    """A folder that is being copied has the beginning of the parent's file for a moment."""
    start = 0 if paginated else None
    parent = Lines(thread_id(1), start=start)
    parent.turn("one", "re one", "r1")
    parent.turn("two", "re two", "r2")
    count = len(parent.lines)
    if paginated:
        base = {"thread_id": thread_id(1), "end_ordinal_exclusive": count}
        fork = Lines(thread_id(2), start=count, at=parent.at + 1000, history_base=base,
                     forked_from_id=thread_id(1))  # fmt: skip
    else:
        fork = Lines(thread_id(2), start=None, at=parent.at + 1000, forked_from_id=thread_id(1))
        fork.lines += [{**line, "timestamp": iso(fork.at)} for line in parent.lines]
    fork.turn("own", "re own", "r3")
    parent.at += 60_000
    parent.turn("later", "re later", "r4")
    fork.write(tmp_path / "home")
    path = parent.write(tmp_path / "home")
    text = path.read_text()
    path.write_text("".join(text.splitlines(keepends=True)[:whole]))
    early = open_database(tmp_path / "early.db", create=True)
    fresh = open_database(tmp_path / "fresh.db", create=True)
    target = Target(CodexSource(), tmp_path / "home")
    Sync(early, Settings(helpers=0)).run([target])
    path.write_text(text)
    Sync(early, Settings(helpers=0)).run([target])
    Sync(fresh, Settings(helpers=0)).run([Target(CodexSource(), tmp_path / "home")])
    assert dump(early, ALL) == dump(fresh, ALL)
    early.close()
    fresh.close()


def facts(database: Database) -> set[tuple[str, str]]:
    return set(database.connection.execute("SELECT name, value FROM unit_facts"))


@pytest.mark.parametrize("change", ["grows", "goes"])
def test_a_copy_tells_others_nothing_of_the_thread(
    change: str, database: Database, tmp_path: Path
) -> None:
    """Which of two files is the copy may change; the library has the lines of the other one."""
    home = tmp_path / "home"
    lines = two_turns()
    longer = two_turns()
    longer.turn("three", "re three", "r3")
    longer.write(home)
    copied = lines.write(home, folder="archived_sessions")
    sync(database, home)
    if change == "goes":
        copied.unlink()
    else:
        longer.turn("four", "re four", "r4")
        longer.write(home, folder="archived_sessions")
    sync(database, home)
    fresh = open_database(tmp_path / "fresh.db", create=True)
    sync(fresh, home)
    assert facts(database) == facts(fresh)
    fresh.close()
