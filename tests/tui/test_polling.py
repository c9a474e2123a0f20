from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from store.engine.companions import beside
from store.engine.database import open_database
from store.queries import sessions
from tests.tui.stores import NOW, put, some
from tui.live.polling import FILE_EVERY, Health, Poller
from tui.state.library import Library


@dataclass
class Followed:
    library: Library
    poller: Poller
    changes: int = 0
    health: list[str] = field(default_factory=list)
    replaced: int = 0


def follow(path: Path) -> Followed:
    library = Library.open(path, "test", clock=lambda: NOW)
    followed: Followed

    def changed() -> None:
        followed.changes += 1

    def said(health: Health) -> None:
        followed.health.append(health.state)

    def replaced() -> None:
        followed.replaced += 1

    followed = Followed(library, Poller(library, changed, said, replaced))
    return followed


def test_a_foreign_commit_is_noticed_once(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    followed = follow(path)
    assert not followed.poller.poll()
    put(path, some(4))
    assert followed.poller.poll()
    assert not followed.poller.poll()
    assert (followed.changes, followed.health) == (1, [])


@pytest.mark.parametrize("how", ["PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"])
def test_upkeep_of_the_file_does_no_harm(how: str, tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    followed = follow(path)
    other = open_database(path)
    other.connection.execute(how)
    followed.poller.poll()
    put(path, some(4))
    assert followed.poller.poll()
    assert followed.health == []
    other.close()


def test_a_writer_that_holds_the_lock_is_said_and_never_waited_for(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    plain = sqlite3.connect(path, isolation_level=None)
    plain.execute("PRAGMA journal_mode = DELETE")
    followed = follow(path)
    plain.execute("BEGIN EXCLUSIVE")
    assert not followed.poller.poll()
    assert not followed.poller.poll()
    assert followed.health == ["busy"]
    assert followed.poller.health == Health("busy", NOW)
    plain.execute("UPDATE chat_sessions SET agent = agent")
    plain.execute("COMMIT")
    assert followed.poller.poll()
    assert followed.health == ["busy", "fresh"]
    plain.close()


def test_a_file_that_goes_and_comes_back(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    followed = follow(path)
    path.rename(tmp_path / "away.db")
    assert not followed.poller.poll(file=True)
    assert followed.health == ["gone"]
    (tmp_path / "away.db").rename(path)
    assert followed.poller.poll()
    assert followed.health == ["gone", "fresh"]
    assert followed.replaced == 0


async def test_another_file_in_its_place_is_opened(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    followed = follow(path)
    other = put(tmp_path / "other.db", some(9))
    with sqlite3.connect(other) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    for ending in ("-wal", "-shm"):
        beside(path, ending).unlink(missing_ok=True)
    shutil.move(other, path)
    assert not followed.poller.poll(file=True)
    assert followed.replaced == 1
    assert not followed.poller.poll(file=True)
    await followed.library.reopen()
    followed.poller.reopened()
    assert followed.changes == 1
    (count,) = followed.library.database.connection.execute(
        "SELECT count(*) FROM chat_sessions").fetchone()
    assert count == 9


async def test_a_file_without_the_wal_that_was_open_is_opened_anew(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    followed = follow(path)
    library = followed.library

    async def count() -> int:
        (found,) = library.database.connection.execute(
            "SELECT count(*) FROM chat_sessions").fetchone()
        read = await library.read(sessions.page, sessions.SessionFilter())
        assert len(read) == found
        return int(found)

    assert await count() == 3
    for ending in ("-wal", "-shm"):
        beside(path, ending).unlink()
    put(path, some(4))
    assert not followed.poller.poll(file=True)
    assert followed.replaced == 1
    await library.reopen()
    followed.poller.reopened()
    assert await count() == 4
    put(path, some(5))
    assert followed.poller.poll()
    assert await count() == 5
    await library.close()


def test_a_store_that_fails_is_opened_again_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that was written over in place: its size and inode stay."""
    followed = follow(put(tmp_path / "s.db", some(3)))

    def damaged() -> int:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(followed.poller, "version", damaged)
    for _ in range(FILE_EVERY - 1):
        assert not followed.poller.poll()
    assert (followed.health, followed.replaced) == (["failed"], 0)
    assert followed.poller.health.reason == "database disk image is malformed"
    assert not followed.poller.poll()
    assert followed.replaced == 1
    assert not followed.poller.poll()
    monkeypatch.undo()
    followed.poller.reopened()
    assert (followed.health, followed.replaced, followed.changes) == (["failed", "fresh"], 1, 1)


def test_what_took_its_place_is_no_store(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    followed = follow(path)
    path.unlink()
    path.write_text("notes")
    followed.poller.poll(file=True)
    followed.poller.reopened(ValueError("no store"))
    assert followed.health == ["failed"]
    assert followed.poller.health.reason == "no store"
    # The old file can still be read, but is nobody's any more.
    for _ in range(FILE_EVERY * 2):
        assert not followed.poller.poll()
        followed.poller.set_health("busy")
        if followed.replaced > 1:
            followed.poller.reopened(ValueError("no store"))
    assert followed.health == ["failed"]
    assert followed.replaced == 3
    followed.poller.poll(file=True)
    followed.poller.reopened()
    assert (followed.health, followed.changes) == (["failed", "fresh"], 1)
