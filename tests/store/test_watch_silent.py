"""Following where the system tells of a file only when its writer closes it, or not at all."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from store.sources.codex import CodexSource
from store.sources.opencode import OpencodeSource
from store.sync import watch, watch_recent
from store.sync.targets import Target
from store.sync.watch_events import Events, Seen
from store.sync.watch_paths import WatchedPaths
from store.sync.watch_recent import RecentFiles, sign_of
from store.system.stopping import Stop
from tests.sources.codex_lines import Lines, thread_id
from tests.sources.opencode_rows import Rows, text
from tests.store.sync_fakes import LineSource, line, write_lines
from tests.store.test_watch_parts import Watching, texts


class SilentEvents(Events):
    """What macOS tells while writers hold their files open: nothing."""

    def wait(self, timeout_s: float) -> Seen:
        return Seen(ended=self._stop.wait(timeout_s))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Watching]]:
    monkeypatch.setattr(watch, "LOOK_S", 0.01)
    watching: list[Watching] = []
    yield watching
    for one in watching:
        one.end()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "Events", SilentEvents)


def until(watching: Watching, store: Path, wanted: str) -> None:
    while not any(wanted in str(found) for found in texts(store)):
        watching.until("synced")


def test_a_rollout_that_is_held_open_is_followed(
    tmp_path: Path, started: list[Watching], silent: None
) -> None:
    home, store = tmp_path / "codex", tmp_path / "s.db"
    lines = Lines(thread_id(1))
    lines.turn("one", "re one", "r1")
    path = lines.write(home)
    started.append(Watching(store, Target(CodexSource(), home)))
    started[0].until("watching")
    with path.open("a") as held:
        for number in range(10):
            before = len(lines.lines)
            lines.turn(f"prompt {number}", f"answer {number}.", f"s{number}")
            held.write("".join(json.dumps(one) + "\n" for one in lines.lines[before:]))
            held.flush()
            until(started[0], store, f"answer {number}.")
        other = Lines(thread_id(2))
        other.turn("two", "of another day", "r2")
        folder = home / "sessions" / "2026" / "11" / "19"
        folder.mkdir()
        with (folder / f"rollout-2026-11-19T10-00-00-{other.thread}.jsonl").open("w") as held_too:
            held_too.write(other.text())
            held_too.flush()
            until(started[0], store, "of another day")


def test_a_database_with_an_open_wal_is_followed(
    tmp_path: Path, started: list[Watching], silent: None
) -> None:
    store = tmp_path / "s.db"
    rows = Rows(tmp_path / "opencode.db")
    rows.connection.execute("PRAGMA journal_mode = WAL")
    rows.session("ses_one")
    rows.message("ses_one", "user", text("hello"))
    started.append(Watching(store, Target(OpencodeSource(), rows.path)))
    started[0].until("watching")
    for number in range(8):
        rows.message("ses_one", "assistant", text(f"answer {number}."))
        until(started[0], store, f"answer {number}.")
    assert isinstance(rows.connection, sqlite3.Connection)


def test_new_files_in_folders_that_rest_are_seen_where_events_are_silent(
    tmp_path: Path, started: list[Watching], silent: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_recent, "events_come_late", lambda: True)
    home, store = tmp_path / "codex", tmp_path / "s.db"
    lines = Lines(thread_id(1))
    lines.turn("one", "re one", "r1")
    os.utime(lines.write(home), (1, 1))
    started.append(Watching(store, Target(CodexSource(), home)))
    started[0].until("watching")
    other = Lines(thread_id(2))
    other.turn("two", "beside it", "r2")
    other.write(home)
    until(started[0], store, "beside it")


class NamedOtherwise(Events):
    """Tells of paths below what a symbolic link leads to."""

    def __init__(self, folders: Sequence[Path], stop: Stop) -> None:
        super().__init__([folder.resolve() for folder in folders if folder.exists()], stop)

    def are_current(self, folders: Sequence[Path]) -> bool:
        return True


def test_events_of_a_linked_folder_are_heeded(
    tmp_path: Path, started: list[Watching], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "Events", NamedOtherwise)
    monkeypatch.setattr(RecentFiles, "look", lambda self: frozenset())
    path = write_lines(tmp_path / "real", "one", 1)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = tmp_path / "s.db"
    started.append(Watching(store, Target(LineSource(), tmp_path / "link")))
    started[0].until("watching")
    with path.open("a") as out:
        out.write(line(1, "by the other name"))
    until(started[0], store, "by the other name")


def test_paths_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "deep").mkdir(parents=True)
    (tmp_path / "one").symlink_to(real)
    (tmp_path / "two").symlink_to(real)
    (tmp_path / "real-too").mkdir()
    database = tmp_path / "db" / "host.db"
    database.parent.mkdir()
    (tmp_path / "databases").symlink_to(database.parent)
    watched = WatchedPaths([
        tmp_path / "one", tmp_path / "two", tmp_path / "databases" / "host.db-wal"])
    assert watched.as_watched([str(real / "deep" / "gone.jsonl")]) == {
        str(tmp_path / "one" / "deep" / "gone.jsonl"),
        str(tmp_path / "two" / "deep" / "gone.jsonl"),
    }
    assert watched.as_watched([str(real)]) == {str(tmp_path / "one"), str(tmp_path / "two")}
    assert watched.as_watched([f"{database}-wal"]) == {
        str(tmp_path / "databases" / "host.db-wal")}
    for known in (tmp_path / "one" / "x", tmp_path / "real-too" / "x"):
        assert watched.as_watched([str(known)]) == {str(known)}


def test_what_no_event_told_of_makes_it_look_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path, "one", 1)
    recent = RecentFiles(eager=False, clock=lambda: path.stat().st_mtime)
    recent.start([tmp_path])
    recent.take(next(iter(LineSource().units(tmp_path, []))).stamps)
    assert recent.look() == frozenset()
    for number in range(watch_recent.UNREPORTED + 1):
        assert recent.eager is (number >= watch_recent.UNREPORTED)
        with path.open("a") as out:
            out.write("x" * (number + 1))
        assert recent.look() == {str(path)}
        if number == 0:
            recent.note_reported([str(path)])
            recent._unreported[str(path)] = 1
    path.unlink()
    assert str(path) in recent.look() and sign_of(str(path)) is None
    assert recent.look() == frozenset()
