from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from store.engine import prompts, schema
from store.engine.database import Database, in_transaction, open_database
from store.errors import Refused, StoreError
from store.queries import sessions
from store.store import Store
from tests.store.making import add_session, contract, grida, host_writes, listing, own


def add(database: Database, name: str) -> str:
    return add_session(database.connection, name)


async def names(store: Store) -> list[str]:
    rows = await store.read(sessions.page, sessions.SessionFilter())
    return sorted(row.id for row in rows)


async def test_what_is_written_is_read(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "s.db", create=True) as store:
        assert store.form.name == "own"
        assert store.read_only is None
        assert await store.write(add, "one") == "one"
        assert await names(store) == ["one"]


async def test_a_path_may_be_text(tmp_path: Path) -> None:
    async with await Store.open(str(tmp_path / "s.db"), create=True) as store:
        await store.write(add, "one")
        assert (await names(store), store.path) == (["one"], tmp_path / "s.db")
    with pytest.raises(StoreError, match="does not exist"):
        await Store.open(str(tmp_path / "missing.db"))


async def test_a_change_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def half(database: Database) -> None:
        add(database, "half")
        raise ValueError("no")

    async with await Store.open(tmp_path / "s.db", create=True) as store:
        with pytest.raises(ValueError, match="no"):
            await store.write(half)
        assert await names(store) == []
        await store.write(add, "whole")
        assert await names(store) == ["whole"]


async def test_many_first_writes_at_once_share_one_writer(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "s.db", create=True) as store:
        await asyncio.gather(*(store.write(add, f"s{number}") for number in range(20)))
        assert len(await names(store)) == 20


async def test_what_is_written_goes_into_the_file_that_is_there_now(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with await Store.open(own(path)) as store:
        await store.write(add, "old")
        for file in sorted(tmp_path.iterdir()):
            file.rename(tmp_path / f"away{file.name}")
        with pytest.raises(Refused, match="does not exist"):
            await store.write(add, "nowhere")
        own(path)
        await store.write(add, "new")
        assert await names(store) == ["new"]


@pytest.mark.parametrize(("make", "version"), [(own, 99), (grida, 4)])
async def test_a_newer_version_is_read_and_not_written(
    tmp_path: Path, make: Callable[[Path], Path], version: int
) -> None:
    path = make(tmp_path / "s.db")
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    async with await Store.open(path, create=True) as store:
        assert store.read_only is not None
        assert "newer" in store.read_only
        with pytest.raises(Refused, match="newer"):
            await store.write(add, "one")
        assert "one" not in await names(store)


async def test_a_locked_store_refuses_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "CONNECTION_PRAGMAS", ("PRAGMA busy_timeout = 1",))
    path = own(tmp_path / "s.db")
    other = sqlite3.connect(path, isolation_level=None)
    async with await Store.open(path) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Refused, match="is locked by another program"):
            await store.write(add, "one")
        other.execute("COMMIT")
        await store.write(add, "one")
        assert await names(store) == ["one"]
    other.close()


async def test_a_write_waits_for_another_writer(tmp_path: Path) -> None:
    path = own(tmp_path / "s.db")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    async with await Store.open(path) as store:
        await store.write(add, "warm")
        other.execute("BEGIN IMMEDIATE")
        add_session(other, "theirs")
        waiting = asyncio.create_task(store.write(add, "ours"))
        assert await names(store) == ["warm"]
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting
        assert await names(store) == ["ours", "theirs", "warm"]
    other.close()


async def test_later_writes_of_a_host_are_seen(tmp_path: Path) -> None:
    folder = tmp_path / "host"
    folder.mkdir()
    path = contract(folder / "s.db")
    before = listing(folder)
    async with await Store.open(path) as store:
        assert await names(store) == []
        assert listing(folder) == before
        quiet = await store.pulse()
        assert await store.pulse() == quiet
        host = host_writes(path, "one")
        assert await store.pulse() != quiet
        assert await names(store) == ["one"]
        add_session(host, "two", 5)
        host.commit()
        assert await names(store) == ["one", "two"]
        moved = await store.pulse()
        add_session(host, "three", 5)
        host.commit()
        assert await store.pulse() != moved
        many = await asyncio.gather(*(names(store) for _ in range(5)))
        assert many == [["one", "three", "two"]] * 5
        host.close()


async def test_writes_while_readers_wait_reopen_the_file_once(tmp_path: Path) -> None:
    path = contract(tmp_path / "s.db")
    async with await Store.open(path) as store:
        host = host_writes(path, "one")
        many = await asyncio.gather(*(names(store) for _ in range(10)))
        assert many == [["one"]] * 10
        assert (await store.pulse())[0] == 1
        host.close()


async def test_our_write_to_a_closed_hosts_file_is_read_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "host"
    folder.mkdir()
    path = contract(folder / "s.db")
    async with await Store.open(path) as store:
        await store.write(add, "ours")
        assert await names(store) == ["ours"]
    assert list(listing(folder)) == ["s.db"]


async def test_a_query_of_ours_that_is_wrong_is_no_file_trouble(tmp_path: Path) -> None:
    def wrong(database: Database) -> None:
        database.connection.execute("SELECT nonsense")

    async with await Store.open(tmp_path / "s.db", create=True) as store:
        with pytest.raises(sqlite3.OperationalError, match="nonsense"):
            await store.read(wrong)


async def test_damage_is_told_in_one_line(tmp_path: Path) -> None:
    path = grida(tmp_path / "s.db")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))

    def everything(database: Database) -> None:
        for table in schema.REQUIRED_COLUMNS:
            database.connection.execute(f"SELECT * FROM {table}").fetchall()

    async with await Store.open(path) as store:
        with pytest.raises(StoreError, match=r"s\.db is a damaged SQLite file .* \.recover`$"):
            await store.read(everything)


async def test_what_is_no_store_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        await Store.open(tmp_path / "none.db")
    with pytest.raises(StoreError, match="is a folder"):
        await Store.open(tmp_path, create=True)


async def test_a_query_can_be_broken_off(tmp_path: Path) -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless(database: Database) -> None:
        loop.call_soon_threadsafe(started.set)
        database.connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT count(*) FROM n"
        ).fetchall()

    async with await Store.open(tmp_path / "s.db", create=True) as store:
        running = asyncio.create_task(store.read(endless))
        await started.wait()
        while not running.done():
            store.interrupt()
            await asyncio.sleep(0)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            await running
        assert await names(store) == []


async def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "s.db", create=True)
    await store.write(add, "one")
    await store.close()
    await store.close()


LEFT_OPEN = """
import asyncio, sys
from pathlib import Path
from store.store import Store

async def main():
    store = await Store.open(Path(sys.argv[1]), create=True)
    await store.write(lambda database: None)
    raise RuntimeError("between open and close")

asyncio.run(main())
"""


def test_an_error_between_open_and_close_ends_the_process(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, str(tmp_path / "s.db")],
        capture_output=True, text=True, check=False, timeout=120,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert result.returncode == 1
    assert "between open and close" in result.stderr


async def test_a_reading_connection_refuses_a_transaction(tmp_path: Path) -> None:
    async with await Store.open(own(tmp_path / "s.db")) as store:
        with pytest.raises(Refused, match="opened read only"):
            await store.read(lambda database: in_transaction(database, add, "one"))


class TestSystemPrompts:
    async def test_each_body_stands_once_under_its_digest(self, tmp_path: Path) -> None:
        async with await Store.open(tmp_path / "s.db", create=True) as store:
            first = await store.write(prompts.put, "You are helpful. ü")
            assert await store.write(prompts.put, "You are helpful. ü") == first
            assert first == "7f1e03ada37ae3594459daa0078b561d23e9fa043dbcb5ad13820144cc3357f3"
            assert await store.read(prompts.get, first) == "You are helpful. ü"
            assert await store.read(prompts.get, "0" * 64) is None
            odd = await store.write(prompts.put, "a\ud800")
            assert await store.read(prompts.get, odd) == "a?"

    async def test_a_file_without_the_table_has_none(self, tmp_path: Path) -> None:
        async with await Store.open(grida(tmp_path / "s.db")) as store:
            assert await store.read(prompts.get, "0" * 64) is None


async def test_an_opening_that_is_cancelled_is_closed_before_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await Store.open(tmp_path / "s.db", create=True)).close()
    begun, go_on = threading.Event(), threading.Event()
    opened: list[Database] = []

    def slow(path: Path, **kwargs: bool) -> Database:
        begun.set()
        go_on.wait()
        opened.append(open_database(path, **kwargs))
        return opened[-1]

    monkeypatch.setattr("store.engine.connection_thread.open_database", slow)
    task = asyncio.create_task(Store.open(tmp_path / "s.db"))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].connection.execute("SELECT 1")
