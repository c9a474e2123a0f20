from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from store.engine import access, schema
from store.engine.database import open_database
from store.engine.opening import open_target, recognise
from store.system.locations import cache_dir
from tests.store.making import add_session, contract, grida, host_writes, ids, listing, own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    folder.mkdir()
    return folder


class TestForms:
    def test_an_own_file(self, folder: Path) -> None:
        target = recognise(own(folder / "s.db"))
        assert (target.kind, target.version) == ("own", schema.CURRENT_VERSION)
        assert target.is_store
        assert target.message is None

    def test_a_plain_contract_file(self, folder: Path) -> None:
        target = recognise(contract(folder / "s.db"))
        assert (target.kind, target.is_store, target.message) == ("contract", True, None)

    def test_a_file_of_grida(self, folder: Path) -> None:
        path = grida(folder / "s.db")
        target = recognise(str(path))
        assert (target.kind, target.version, target.message) == ("grida", 3, None)
        database = open_target(path, write=True)
        assert database.form.title_column
        assert database.form.hidden_column
        assert "workspace_id" in database.form.columns["chat_sessions"]
        assert len(ids(database)) == 6
        database.close()

    @pytest.mark.parametrize("make", [contract, grida])
    def test_a_host_file_keeps_its_schema(
        self, folder: Path, make: Callable[[Path], Path]
    ) -> None:
        path = make(folder / "s.db")
        schema_of = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
        before = sqlite3.connect(path).execute(schema_of).fetchall()
        for create, write in ((False, False), (False, True), (True, True)):
            open_database(path, create=create, write=write).close()
        after = sqlite3.connect(path).execute(schema_of).fetchall()
        assert after == before


class TestNothingIsLeftBeside:
    @pytest.mark.parametrize("wal", [True, False])
    def test_a_closed_host_file(self, folder: Path, wal: bool) -> None:
        path = contract(folder / "s.db", wal=wal)
        host_writes(path, "one").close()
        before = listing(folder)
        assert list(before) == ["s.db"]
        database = open_database(path, write=False)
        assert ids(database) == ["one"]
        assert listing(folder) == before
        database.close()
        assert listing(folder) == before

    def test_a_file_of_grida(self, folder: Path) -> None:
        path = grida(folder / "s.db")
        before, content = listing(folder), path.read_bytes()
        database = open_database(path, write=False)
        assert len(ids(database)) == 6
        database.close()
        assert listing(folder) == before
        assert path.read_bytes() == content

    def test_a_host_file_after_a_write_of_ours(self, folder: Path) -> None:
        path = contract(folder / "s.db")
        database = open_database(path, write=True)
        add_session(database.connection, "ours")
        database.close()
        assert list(listing(folder)) == ["s.db"]

    def test_a_wal_without_its_shm_is_read_from_a_private_copy(self, folder: Path) -> None:
        host = host_writes(contract(folder / "s.db"), "one")
        moved = folder / "moved"
        moved.mkdir()
        for name in ("s.db", "s.db-wal"):
            shutil.copy2(folder / name, moved / name)
        host.close()
        before = listing(moved)
        database = open_database(moved / "s.db", write=False)
        assert database.opened is not None
        assert database.opened.way == "copy"
        assert ids(database) == ["one"]
        assert listing(moved) == before
        (scratch,) = (cache_dir() / "copies").iterdir()
        assert scratch.stat().st_mode & 0o777 == 0o700
        database.close()
        assert not scratch.exists()
        assert listing(moved) == before

    @pytest.mark.parametrize("shm", ["whole", "empty", "rubbish"])
    def test_what_a_killed_host_left_is_read(self, folder: Path, shm: str) -> None:
        host = host_writes(contract(folder / "s.db"), "one")
        killed = folder / "killed"
        killed.mkdir()
        for name in ("s.db", "s.db-wal", "s.db-shm"):
            shutil.copy2(folder / name, killed / name)
        host.close()
        if shm != "whole":
            (killed / "s.db-shm").write_bytes(b"" if shm == "empty" else b"\xab" * 32768)
        before = listing(killed)
        database = open_database(killed / "s.db", write=False)
        assert ids(database) == ["one"]
        database.close()
        after = listing(killed)
        assert set(after) == set(before)
        assert [after[name] for name in ("s.db", "s.db-wal")] == [
            before[name] for name in ("s.db", "s.db-wal")
        ]

    def test_a_hot_journal_is_rolled_back_in_a_private_copy(self, folder: Path) -> None:
        path = contract(folder / "s.db", wal=False)
        host_writes(path, "kept").close()
        host = sqlite3.connect(path, isolation_level=None)
        host.execute("PRAGMA cache_size = 1")
        host.execute("PRAGMA cache_spill = 1")
        host.execute("BEGIN")
        for number in range(300):
            add_session(host, f"lost{number}", metadata={"title": "x" * 500})
        crashed = folder / "crashed"
        crashed.mkdir()
        for name in ("s.db", "s.db-journal"):
            shutil.copy2(folder / name, crashed / name)
        host.execute("ROLLBACK")
        host.close()
        before = listing(crashed)
        database = open_database(crashed / "s.db", write=False)
        assert ids(database) == ["kept"]
        database.close()
        assert listing(crashed) == before

    def test_copies_of_processes_that_are_gone_are_swept(self, folder: Path) -> None:
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        left = cache_dir() / "copies" / f"{gone.pid}-x"
        left.mkdir(parents=True)
        host = host_writes(contract(folder / "s.db"), "one")
        (folder / "b").mkdir()
        for name in ("s.db", "s.db-wal"):
            shutil.copy2(folder / name, folder / "b" / name)
        open_database(folder / "b" / "s.db", write=False).close()
        assert not left.exists()
        host.close()


class TestLaterWritesOfTheHost:
    def test_a_file_the_host_has_open_is_live(self, folder: Path) -> None:
        host = host_writes(contract(folder / "s.db"), "one")
        database = open_database(folder / "s.db", write=False)
        assert ids(database) == ["one"]
        add_session(host, "two", 9)
        host.commit()
        assert not database.moved()
        assert ids(database) == ["two", "one"]
        database.close()
        host.close()

    def test_a_host_that_starts_later_is_noticed(self, folder: Path) -> None:
        path = contract(folder / "s.db")
        database = open_database(path, write=False)
        assert database.opened is not None
        assert database.opened.way == "immutable"
        assert not database.moved()
        host = host_writes(path, "one")
        assert database.moved()
        database.close()
        again = open_database(path, write=False)
        assert again.opened is not None
        assert again.opened.way == "live"
        assert ids(again) == ["one"]
        again.close()
        host.close()

    def test_a_file_that_took_its_place_is_noticed(self, folder: Path) -> None:
        path = contract(folder / "s.db", wal=False)
        database = open_database(path, write=False)
        host_writes(contract(folder / "new.db", wal=False), "new").close()
        assert not database.moved()
        os.replace(folder / "new.db", path)
        assert database.moved()
        database.close()

    def test_a_file_that_is_gone_stays_open(self, folder: Path) -> None:
        path = contract(folder / "s.db", wal=False)
        host_writes(path, "one").close()
        database = open_database(path, write=False)
        path.unlink()
        assert not database.moved()
        assert ids(database) == ["one"]
        database.close()


class TestNewerVersions:
    @pytest.mark.parametrize(
        ("make", "version", "program"), [(own, 99, "Backscroll"), (grida, 4, "Grida")]
    )
    def test_they_open_for_reading_with_a_message(
        self, folder: Path, make: Callable[[Path], Path], version: int, program: str
    ) -> None:
        path = make(folder / "s.db")
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        database = open_database(path, create=True, write=True)
        assert database.read_only is not None
        assert f"a newer {program} (version {version}" in database.read_only
        assert database.read_only == database.file_read_only
        with pytest.raises(sqlite3.OperationalError):
            database.connection.execute("DELETE FROM chat_sessions")
        database.close()
        assert recognise(path).message == database.read_only

    def test_the_version_of_a_plain_contract_file_says_nothing(self, folder: Path) -> None:
        path = contract(folder / "s.db")
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 77")
        connection.close()
        database = open_database(path)
        assert database.read_only is None
        database.close()


def test_a_new_store_is_whole_before_anybody_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "s.db", []
    migrate = schema.migrate

    def while_another_is_quicker(connection: sqlite3.Connection) -> None:
        seen.append(path.exists())
        migrate(connection)
        if len(seen) == 1:
            quicker = open_database(path, create=True)
            add_session(quicker.connection, "ses_quick")
            quicker.close()

    monkeypatch.setattr(schema, "migrate", while_another_is_quicker)
    database = open_database(path, create=True)
    assert ids(database) == ["ses_quick"]
    database.close()
    assert seen == [False, False]
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]
    assert path.stat().st_mode & 0o777 == 0o600


_MAKES = """
import sys
from pathlib import Path
from store.engine.database import open_database
number = 0
while True:
    number += 1
    open_database(Path(sys.argv[1]) / f"{number}.db", create=True).close()
    print(number, flush=True)
"""


def test_a_creation_that_is_killed_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "stores"
    folder.mkdir()
    for count in range(1, 6):
        child = subprocess.Popen(
            [sys.executable, "-c", _MAKES, str(folder / str(count))], stdout=subprocess.PIPE)
        (folder / str(count)).mkdir()
        assert child.stdout is not None
        for _ in range(count):
            child.stdout.readline()
        child.kill()
        child.communicate()
        for path in (folder / str(count)).iterdir():
            assert re.fullmatch(r"\d+\.db(-wal|-shm)?", path.name), path.name
            if path.suffix == ".db":
                database = open_database(path)
                assert database.form.version == schema.CURRENT_VERSION
                database.close()


@pytest.mark.parametrize("another_writer", [False, True])
def test_no_wal_is_left_where_the_writer_closes_while_the_file_is_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch, another_writer: bool
) -> None:
    path = contract(folder / "host.db")
    writer = host_writes(path, "ses_1")
    assert (folder / "host.db-wal").exists()
    plain = access.connect

    def connect(given: Path, parameters: str) -> sqlite3.Connection:
        writer.close()
        assert not (folder / "host.db-wal").exists()
        return plain(given, parameters)

    monkeypatch.setattr(access, "connect", connect)
    database = open_target(path)
    monkeypatch.undo()
    assert ids(database) == ["ses_1"]
    if another_writer:
        other = host_writes(path, "ses_2")
        database.close()
        assert other.execute("SELECT count(*) FROM chat_sessions").fetchone() == (2,)
        assert (folder / "host.db-wal").stat().st_size > 0
        other.close()
        return
    content, stamp = path.read_bytes(), path.stat().st_mtime_ns
    database.close()
    assert listing(folder) == {"host.db": (len(content), stamp)}
    assert path.read_bytes() == content


def test_a_store_is_opened_from_a_folder_that_is_gone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own(folder / "s.db")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    open_database(path, write=False).close()
