from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.engine import schema
from store.engine.database import open_database
from store.engine.opening import open_target, recognise
from store.errors import StoreError
from store.queries import sessions
from tests.store.making import contract, grida, host_writes, ids, listing, loose, own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    folder.mkdir()
    return folder


def refusal(path: Path, **how: bool) -> str:
    with pytest.raises(StoreError) as caught:
        open_database(path, **how)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


class TestWhatIsNoStore:
    def test_a_missing_path(self, folder: Path) -> None:
        assert "does not exist" in refusal(folder / "none.db")
        assert recognise(folder / "none.db").kind == "missing"
        assert listing(folder) == {}

    def test_a_folder(self, folder: Path) -> None:
        assert "is a folder" in refusal(folder)
        assert recognise(folder).kind == "folder"
        assert "is a folder" in refusal(folder, create=True)

    def test_an_empty_file(self, folder: Path) -> None:
        path = folder / "s.db"
        path.touch()
        assert "is an empty file" in refusal(path)
        assert path.stat().st_size == 0
        open_database(path, create=True).close()
        assert recognise(path).kind == "own"

    def test_a_text_file(self, folder: Path) -> None:
        path = folder / "s.jsonl"
        path.write_text('{"type":"session"}\n')
        assert "is a text file, not a SQLite database" in refusal(path)
        assert "is a text file" in refusal(path, create=True)
        assert path.read_text() == '{"type":"session"}\n'
        assert recognise(path).kind == "other"

    def test_a_binary_file(self, folder: Path) -> None:
        path = folder / "s.png"
        path.write_bytes(b"\x89PNG\r\n\0\0" * 40)
        assert "is a binary file" in refusal(path)

    def test_a_pipe_is_not_waited_for(self, folder: Path) -> None:
        path = folder / "pipe"
        os.mkfifo(path)
        assert "is not a regular file" in refusal(path)

    def test_another_sqlite_file(self, folder: Path) -> None:
        path = folder / "s.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE moz_places (id)")
        connection.close()
        for how in ({}, {"create": True}):
            message = refusal(path, **how)
            assert "no table chat_sessions, chat_messages, chat_parts" in message
            assert "moz_places" in message

    def test_a_sqlite_file_without_tables_can_become_a_store(self, folder: Path) -> None:
        path = folder / "s.db"
        sqlite3.connect(path).execute("PRAGMA user_version = 0").close()
        sqlite3.connect(path).execute("VACUUM").close()
        if path.stat().st_size == 0:
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE a (b)")
            connection.execute("DROP TABLE a")
            connection.close()
        assert "has no table" in refusal(path)
        open_database(path, create=True).close()
        assert recognise(path).kind == "own"

    def test_tables_of_that_name_with_other_columns(self, folder: Path) -> None:
        path = folder / "s.db"
        connection = sqlite3.connect(path)
        for table in schema.REQUIRED_COLUMNS:
            connection.execute(f"CREATE TABLE {table} (id)")
        connection.close()
        assert "its table chat_sessions has no agent, workspace_root" in refusal(path)

    def test_a_file_that_is_cut_off(self, folder: Path) -> None:
        path = grida(folder / "s.db")
        os.truncate(path, 100_000)
        message = refusal(path)
        assert "cut off: 100000 of 221184 bytes" in message
        assert ".recover" in message
        os.truncate(path, 60)
        assert "it ends after 60 bytes" in refusal(path)

    def test_a_damaged_schema(self, folder: Path) -> None:
        path = grida(folder / "s.db")
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 1000)
        assert "is a damaged SQLite file" in refusal(path)

    def test_a_header_that_lies(self, folder: Path) -> None:
        path = folder / "s.db"
        path.write_bytes(b"SQLite format 3\0" + struct.pack(">H", 7) + b"\1" * 200)
        assert "SQLite file" in refusal(path)

    def test_a_locked_file(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schema, "CONNECTION_PRAGMAS", ("PRAGMA busy_timeout = 1",))
        path = contract(folder / "s.db", wal=False)
        host = sqlite3.connect(path, isolation_level=None)
        host.execute("BEGIN EXCLUSIVE")
        assert "is locked by another program" in refusal(path, write=False)
        host.execute("COMMIT")
        open_database(path, write=False).close()
        host.close()

    def test_a_url_of_a_server(self) -> None:
        assert recognise("postgresql://localhost/x").kind == "server"
        with pytest.raises(StoreError, match="localhost:1/x cannot be reached: Connection refused"):
            open_target("postgres://localhost:1/x")

    def test_a_path_with_marks_of_a_uri(self, folder: Path) -> None:
        path = contract(folder / "a?mode=rw#b%20c ü.db")
        assert recognise(path).kind == "contract"

    def test_a_link_reads_what_lies_beside_its_target(self, folder: Path) -> None:
        host = host_writes(contract(folder / "s.db"), "one")
        link = folder / "link.db"
        link.symlink_to(folder / "s.db")
        database = open_database(link, write=False)
        assert ids(database) == ["one"]
        database.close()
        host.close()


def as_another_user(work: Callable[[], str]) -> str:
    """Run in a child that may not do everything, also where root runs the tests."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


class TestWithoutPermission:
    @pytest.fixture
    def public(self) -> Iterator[Path]:
        """A folder that the user who reads can reach, whoever runs the tests."""
        folder = Path(tempfile.mkdtemp())
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)
        shutil.rmtree(folder)

    @pytest.fixture(autouse=True)
    def cache(self, public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache = public / "cache"
        cache.mkdir()
        cache.chmod(0o777)
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))

    def run(self, path: Path, how: str) -> str:
        def look() -> str:
            database = open_database(path, write=how == "write")
            rows = sessions.page(database, sessions.SessionFilter())
            database.close()
            return f"{len(rows)} {database.file_read_only}"

        return as_another_user(look)

    def test_a_read_only_folder_is_read(self, public: Path) -> None:
        path = contract(public / "s.db")
        host_writes(path, "one").close()
        path.chmod(0o444)
        public.chmod(0o555)
        before = listing(public)
        assert self.run(path, "read").startswith("1 ")
        assert "is not writable" in self.run(path, "write")
        assert listing(public) == before

    def test_a_read_only_folder_with_a_wal_is_read_from_a_copy(self, public: Path) -> None:
        host = host_writes(contract(public / "s.db"), "one")
        crashed = public / "crashed"
        crashed.mkdir()
        for name in ("s.db", "s.db-wal"):
            shutil.copy2(public / name, crashed / name)
        host.close()
        crashed.chmod(0o555)
        assert self.run(crashed / "s.db", "read").startswith("1 ")
        crashed.chmod(0o755)

    def test_a_file_that_another_user_has_open_is_read(self, public: Path) -> None:
        host = host_writes(contract(public / "s.db"), "one")
        for name in ("s.db", "s.db-wal", "s.db-shm"):
            (public / name).chmod(0o444)
        public.chmod(0o555)
        assert self.run(public / "s.db", "read").startswith("1 ")
        host.close()

    def test_an_own_store_in_a_read_only_folder_is_read(self, public: Path) -> None:
        path = own(public / "s.db")
        host_writes(path, "one").close()
        path.chmod(0o444)
        public.chmod(0o555)
        assert self.run(path, "read").startswith("1 ")

    def test_a_file_that_may_not_be_read_says_so(self, public: Path) -> None:
        path = contract(public / "s.db")
        path.chmod(0)
        assert "cannot be read: Permission denied" in self.run(path, "read")


def test_odd_columns_are_taken_as_they_are(folder: Path) -> None:
    assert recognise(loose(folder / "s.db")).kind == "contract"
