"""Times the store on PostgreSQL beside the same statements by the driver alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import asyncpg

from store.engine import changes
from store.engine.connection import Parameters
from store.engine.database import Database, in_transaction
from store.engine.opening import open_target
from store.engine.server.connection import ServerConnection, converter
from store.engine.server.login import login_of
from store.engine.server.schema import CHANNEL
from store.engine.server.statements import turned
from store.engine.server.watching import watch
from store.queries import activities, list_keys, listing, windows
from store.recorder.recorder import Recorder
from store.store import Store
from store.verbs.shelf import archive, unarchive
from tests.bench.partitions import MESSAGES, NOW, fill, partition
from tests.bench.record_stream import chunks
from tests.bench.report import Limits, Line, processor_ms
from tests.sources import postgres_server

FULL, QUICK = 5_000, 60
"""Sessions."""
AT_MOST = Limits(ratio=1.3)
_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
"""How statements begin that are sent as scripts."""


class Asked(NamedTuple):
    """A statement that was sent.

    Attributes:
        how: The method of ``ServerConnection``.
        given: Its values; for ``executemany`` a list of them, for ``script`` nothing.
    """

    how: str
    sql: str
    given: Any


@contextlib.contextmanager
def noted() -> Iterator[list[Asked]]:
    """Keep the statements that all connections of the process send."""
    found: list[Asked] = []
    execute, many = ServerConnection.execute, ServerConnection.executemany
    script, send = ServerConnection.script, ServerConnection.send

    def note(self: ServerConnection, sql: str, given: Parameters = (), /) -> Any:
        if not sql.startswith(_CONTROL):
            found.append(Asked("execute", sql, given))
        return execute(self, sql, given)

    def note_sent(self: ServerConnection, sql: str, given: Parameters, /) -> Any:
        sent = send(self, sql, given)
        if sent is not None:
            found.append(Asked("execute", sql, given))
        return sent

    def note_script(self: ServerConnection, sql: str, *, patient: bool = False) -> None:
        found.append(Asked("script", sql, ()))
        script(self, sql, patient=patient)

    def note_many(self: ServerConnection, sql: str, given: Any, /) -> Any:
        given = list(given)
        found.append(Asked("executemany", sql, given))
        return many(self, sql, given)

    with (patch.object(ServerConnection, "execute", note),
          patch.object(ServerConnection, "send", note_sent),
          patch.object(ServerConnection, "script", note_script),
          patch.object(ServerConnection, "executemany", note_many)):
        yield found


class Plain:
    """The driver alone, with statements that were noted before."""

    def __init__(self, db: Database) -> None:
        """Connect to the server of a store."""
        assert db.server is not None
        self._schemas = db.connection.schemas  # type: ignore[attr-defined]
        self._loop = asyncio.new_event_loop()
        self._driver = self._loop.run_until_complete(
            asyncpg.connect(**login_of(db.server).arguments))
        self.backend = self._driver.get_server_pid()

    def prepared(self, asked: list[Asked]) -> Callable[[], None]:
        """Return what sends statements again; their values are turned before it is called."""
        work = self._loop.run_until_complete(self._turned(asked))

        async def send() -> None:
            for method, arguments in work:
                await method(*arguments)

        return lambda: self._loop.run_until_complete(send())

    async def _turned(self, asked: list[Asked]) -> list[tuple[Any, tuple[Any, ...]]]:
        work: list[tuple[Any, tuple[Any, ...]]] = []
        for each in asked:
            if each.how == "script":
                work.append((self._driver.execute, (each.sql,)))
                continue
            made = turned(each.sql, self._schemas)
            kinds = (await self._driver.prepare(made.text)).get_parameters()
            turn = [converter(kind.name) for kind in kinds]
            rows = [each.given] if each.how == "execute" else each.given
            values = [
                [one if one is None else change(one)
                 for change, one in zip(turn, made.values(row), strict=True)]
                for row in rows]
            if each.how == "execute":
                work.append((self._driver.fetch, (made.text, *values[0])))
            else:
                work.append((self._driver.executemany, (made.text, values)))
        return work

    def close(self) -> None:
        """Close the connection."""
        self._loop.run_until_complete(self._driver.close())
        self._loop.close()


@contextlib.contextmanager
def filled(count: int) -> Iterator[str]:
    """Give the URL of a store of so many sessions on a server of its own."""
    programs = postgres_server.programs()
    if programs is None:
        raise RuntimeError("no PostgreSQL server here")
    server = postgres_server.Server(programs)
    try:
        server.admin.execute("ALTER SYSTEM SET shared_buffers = '256MB'")
        server.stop()
        server.start()
        database = server.database()
        open_target(database.url, create=True, write=True).close()
        indexes = partition(database, 0)
        fill(database, count)
        for statement in indexes:
            database.execute(statement)
        database.execute("VACUUM ANALYZE")
        yield database.url
    finally:
        server.remove()


def questions(count: int) -> dict[str, Callable[[Database, int], object]]:
    """Return what is asked, with a number that chooses the session."""
    query = listing.ListQuery()

    def number(at: int) -> int:
        return at * 7919 % count

    def listed(db: Database, at: int) -> None:
        activities.rows(
            db, [], [f"ses_{number(at + each):012d}" for each in range(40)], NOW)

    def verb(db: Database, at: int) -> None:
        # Both, so that what is sent again changes as much.
        for change in (archive, unarchive):
            in_transaction(db, change, [f"ses_{number(at):012d}"], now=NOW)

    return {
        f"list of {count:,} sessions, all keys": lambda db, _: list_keys.all_keys(db, query),
        "list, 40 rows": listed,
        "open a session at its end": lambda db, at: windows.window_at_end(
            db, f"ses_{number(at):012d}"),
        "page around a message": lambda db, at: windows.window_around(
            db, f"ses_{number(at):012d}", f"msg_{number(at):08d}{MESSAGES // 2:04d}"),
        "archive and unarchive, with their commits": verb,
        "live: what changed": lambda db, _: changes.since(db, changes.newest(db)),
    }


def server(quick: bool) -> list[Line]:
    """Return the lines of the store on a server."""
    count, rounds = (QUICK, 6) if quick else (FULL, 60)
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, XDG_DATA_HOME=home), \
            filled(count) as url:
        db = open_target(url, write=True)
        plain = Plain(db)
        lines = [_paired(name, db, plain, question, rounds)
                 for name, question in questions(count).items()]
        lines += [_noticed(db, rounds // 2), _recorded(db, plain, quick)]
        plain.close()
        db.close()
    return lines


def _paired(
    name: str, db: Database, plain: Plain, question: Callable[[Database, int], object],
    rounds: int,
) -> Line:
    """Return the line of a question, each time beside its own statements.

    Args:
        name: Of the question.
        db: The store.
        plain: The driver alone.
        question: Takes the store and the round's number.
        rounds: How many.
    """
    ours, floors = list[tuple[float, float]](), list[tuple[float, float]]()
    for at in range(-6, rounds):
        with noted() as asked:
            question(db, at % rounds)
        again = plain.prepared(asked)
        again()
        # In turn, as what comes second finds the rows in the processor's caches.
        work: list[tuple[list[tuple[float, float]], int, Callable[[], object]]] = [
            (floors, plain.backend, again),
            (ours, _backend(db), partial(question, db, at % rounds))]
        for found, backend, run in work if at % 2 else reversed(work):
            (before, _) = processor_ms(os.getpid(), backend)
            spent = _milliseconds(run)
            if at >= 0:
                found.append((spent, processor_ms(os.getpid(), backend)[0] - before))
    ratios = [
        statistics.median(one[which] / two[which] for one, two in zip(ours, floors, strict=True))
        for which in (0, 1)]
    figure, floor = (statistics.median(each[0] for each in found) for found in (ours, floors))
    return Line("server", f"PostgreSQL: {name}", figure, "ms", floor, AT_MOST,
                {"ratio on a processor, with that of the server": ratios[1]},
                paired=ratios[0])  # fmt: skip


def _backend(db: Database) -> int:
    """Return the process of the server that serves a connection."""
    return int(db.connection.execute("SELECT pg_backend_pid()").fetchone()[0])


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1_000


class _Listener:
    """A bare LISTEN on a thread of its own."""

    def __init__(self, db: Database) -> None:
        assert db.server is not None
        self.version, self._arguments = 0, login_of(db.server).arguments
        self.ready, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        self.ready.wait()

    def _told(self, *_: object) -> None:
        self.version += 1

    async def _run(self) -> None:
        driver = await asyncpg.connect(**self._arguments)
        await driver.add_listener(CHANNEL, self._told)
        self.ready.set()
        while not self._ended.is_set():
            await asyncio.sleep(0.1)
        await driver.close()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()


def _noticed(db: Database, rounds: int) -> Line:
    """Return the line of a commit that another connection notices."""
    watching, bare = watch(db), _Listener(db)
    ours, floors = list[float](), list[float]()
    while not watching.version:
        time.sleep(0.01)
    for at in range(rounds):
        time.sleep(0.02)
        before, plain = watching.version, bare.version
        in_transaction(db, archive if at % 2 == 0 else unarchive, ["ses_000000000000"], now=NOW)
        started, seen, told = time.perf_counter(), 0.0, 0.0
        while not seen or not told:
            now = time.perf_counter()
            if not told and bare.version != plain:
                told = now - started
            if not seen and watching.version != before:
                seen = now - started
            time.sleep(0.0001)
        ours.append(seen * 1_000)
        floors.append(told * 1_000)
    watching.close()
    bare.close()
    return Line("server", "PostgreSQL: commit to its notice, LISTEN", statistics.median(ours), "ms",
                statistics.median(floors), Limits(over=30))  # fmt: skip


def _recorded(db: Database, plain: Plain, quick: bool) -> Line:
    """Return the line of recording 1,000 chunks, in transactions of 16, into an open store.

    Args:
        db: The store.
        plain: The driver alone, which sends the statements of one recording.
        quick: Whether to record few chunks, twice.
    """
    made, rounds = chunks(200 if quick else 2_000), 2 if quick else 12
    ours, floors = list[float](), list[float]()

    async def record(store: Store) -> None:
        recorder = await Recorder.open(store, agent="bench")
        for first in range(0, len(made), 16):
            for chunk in made[first : first + 16]:
                await recorder.feed(chunk)
            await recorder.flush()
        await recorder.close()

    def forget() -> None:
        # The same rows are written again.
        db.connection.execute("DELETE FROM chat_sessions WHERE agent = 'bench'")
        db.connection.execute("DELETE FROM changes")

    async def measure() -> None:
        async with await Store.open(str(db.server)) as store:
            await record(store)
            with noted() as asked:
                await record(store)
            for _ in range(rounds):
                forget()
                started = time.perf_counter()
                await record(store)
                ours.append((time.perf_counter() - started) * 1_000)
                forget()
                again = await asyncio.to_thread(plain.prepared, asked)
                floors.append(await asyncio.to_thread(_milliseconds, again))

    asyncio.run(measure())
    figure, floor = (
        statistics.median(found) * 1_000 / len(made) for found in (ours, floors))
    ratio = statistics.median(one / two for one, two in zip(ours, floors, strict=True))
    return Line("server", "PostgreSQL: recording 1,000 chunks", figure, "ms", floor, AT_MOST,
                paired=ratio)  # fmt: skip


if __name__ == "__main__":
    import sys

    from tests.bench.report import table

    found = server("--quick" in sys.argv)
    print(table(found))
    for line in found:
        for words, value in line.details.items():
            print(f"{line.what}: x{value:.2f} {words}")
