"""Threads that grow: what was shown stays, and the end is as read at once."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import Role
from store.sources.base.protocol import ActivitySource, FollowedSource
from store.sources.codex import CodexSource
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources.codex_lines import DATA, START, Lines, read, said, shape, thread_id

A, B = thread_id(1), thread_id(2)
FILES = [
    path
    for home in ("home", "0.20.0", "0.36.0", "0.58.0", "0.98.0", "0.171.0")
    for path in sorted((DATA / home / "sessions").rglob("*.jsonl"))
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[28:46])
@pytest.mark.one_in(3)
def test_line_by_line_is_as_at_once(path: Path) -> None:
    source = CodexSource()
    root = path
    while root.name != "sessions":
        root = root.parent
    unit = next(source.units(root, []))
    whole, grown = source.reader(root, unit), source.reader(root, unit)
    at_once, file = whole.file(str(path)), grown.file(str(path))
    assert at_once is not None and file is not None
    names: list[tuple[str, Role]] = []
    for line in path.read_bytes().splitlines(keepends=True):
        half = len(line) // 2
        file.push(line[:half])
        file.push(line[half:])
        for draft in grown.build():
            now = [(m.source_id, m.role) for m in draft.messages]
            assert names == now[: len(names)]
            names = now
    at_once.push(path.read_bytes())
    assert grown.build() == whole.build()


def grow(path: Path, body: bytes) -> None:
    with path.open("ab") as file:
        file.write(body)


def test_a_follower_reads_what_was_added(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    path = lines.write(tmp_path)
    source = CodexSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    assert len(follower.read(unit).sessions[0].messages) == 2
    before = len(lines.text())
    lines.turn("two", "re two", "r2")
    added = lines.text()[before:].encode()
    for body in (added[:40], added[40:300], added[300:]):
        grow(path, body)
        (unit,) = source.units(tmp_path, [])
        reading, whole = follower.read(unit), source.read(tmp_path, unit)
        assert reading == whole
    assert [text for _, text in shape(reading.sessions[0])] == ["one", "re one", "two", "re two"]


def test_a_segment_that_comes_rewinds_what_was_shown(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    lines.turn("two", "re two", "r2")
    lines.write(tmp_path)
    source = CodexSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    shown = [m.source_id for m in follower.read(unit).sessions[0].messages]
    base = {"thread_id": A, "end_ordinal_exclusive": 7, "end_byte_offset": 1}
    second = Lines(A, 7, START + 9000, history_base=base)
    second.turn("three", "re three", "r3")
    second.write(tmp_path, B)
    (unit,) = source.units(tmp_path, [])
    reading = follower.read(unit)
    assert reading == source.read(tmp_path, unit)
    (draft,) = reading.sessions
    assert [m.source_id for m in draft.messages][:4] == shown
    assert [said(m) for m in draft.messages if "hidden_at" in m.metadata] == ["two", "re two"]


@pytest.mark.parametrize("how", ["cut", "replaced", "rewritten"])
def test_a_file_that_changed_is_read_anew(tmp_path: Path, how: str) -> None:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    path = lines.write(tmp_path)
    source = CodexSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    follower.read(unit)
    other = Lines(A)
    other.turn("uno", "re uno", "r9")
    if how == "cut":
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    elif how == "replaced":
        fresh = path.with_name("fresh")
        fresh.write_text(other.text())
        os.replace(fresh, path)
    else:
        path.write_text(other.text() + other.text())
    (unit,) = source.units(tmp_path, [])
    assert follower.read(unit) == source.read(tmp_path, unit)


def test_archiving_moves_the_file_and_the_unit_follows(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    path = lines.write(tmp_path)
    source = CodexSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    assert follower.read(unit).sessions[0].archived_at is None
    target = tmp_path / "archived_sessions" / path.name
    target.parent.mkdir()
    shutil.move(path, target)
    (moved,) = source.units(tmp_path, [])
    assert moved.key == unit.key and moved.stamps != unit.stamps
    (draft,) = follower.read(moved).sessions
    assert draft.archived_at == draft.updated_at and draft.path == str(target)


def test_changed_files_name_their_threads(tmp_path: Path) -> None:
    for thread in (A, B):
        lines = Lines(thread)
        lines.turn("one", "re one", f"r-{thread}")
        path = lines.write(tmp_path)
    source = CodexSource()
    assert isinstance(source, FollowedSource) and not isinstance(source, ActivitySource)
    found = source.units_at(tmp_path, [str(path)])
    assert found is not None and [unit.key for unit in found] == [B]
    assert source.units_at(tmp_path, [str(path.parent)]) is None
    names = [p.name for p in source.watch_paths(tmp_path)]
    assert names == ["sessions", "session_index.jsonl"]


def test_a_name_that_is_given_is_told_of_by_its_file(tmp_path: Path) -> None:
    first, second = Lines(A), Lines(B)
    first.turn("one", "re one", "r1")
    second.turn("two", "re two", "r2")
    for lines in (first, second):
        lines.write(tmp_path)
    source, index = CodexSource(), tmp_path / "session_index.jsonl"
    index.write_text("")
    before = {unit.key: unit for unit in source.units(tmp_path, [])}
    grow(index, f'{{"id": "{B}", "thread_name": "Named"}}\n'.encode())
    assert str(index) in [str(path) for path in source.watch_paths(tmp_path)]
    found = source.units_at(tmp_path, [str(index)])
    assert found is not None
    assert [unit.key for unit in found if unit != before[unit.key]] == [B]
    assert source.read(tmp_path, found[0]).sessions[0].title == "Named"


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    assert read(DATA / "home") == read(DATA / "home")


def test_a_segment_is_written_though_its_time_is_not_newer(tmp_path: Path) -> None:
    """The state database keeps a thread's time, which may be later than that of its lines."""
    home, library = tmp_path / "home", open_database(tmp_path / "library.db", create=True)
    first = Lines(A)
    first.turn("one", "re one", "r1")
    first.turn("two", "re two", "r2")
    first.write(home)
    with sqlite3.connect(home / "state_5.sqlite") as database:
        database.execute("CREATE TABLE threads (id TEXT, updated_at_ms INTEGER)")
        database.execute("INSERT INTO threads VALUES (?, ?)", (A, START + 99_000))
    database.close()
    Sync(library).run([Target(CodexSource(), home)])
    second = Lines(A, 7, START + 5000, history_base={"thread_id": A, "end_ordinal_exclusive": 7})
    second.turn("three", "re three", "r3")
    second.write(home, B)
    Sync(library).run([Target(CodexSource(), home)])
    texts = library.connection.execute(
        "SELECT json_extract(p.data_json, '$.text'), json_extract(m.metadata_json, '$.hidden_at')"
        " IS NULL FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " ORDER BY m.created_at, m.id"
    ).fetchall()
    library.close()
    assert texts == [("one", 1), ("re one", 1), ("two", 0), ("re two", 0),
                     ("three", 1), ("re three", 1)]  # fmt: skip
