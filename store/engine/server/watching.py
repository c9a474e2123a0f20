"""Notices that somebody wrote to a store on a server, on a connection and thread of its own.

The server tells of each change in our stores (LISTEN). A host's database, and a pooler that
hands each transaction to another connection, do not: these are asked at a steady pace.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from errno import ECONNRESET
from typing import Any, cast

from store.engine.database import Database
from store.engine.server.addresses import AddressLoop
from store.engine.server.connection import (
    CLOSE_S,
    LOOK_S,
    ServerConnection,
    connected,
    is_pooled,
)
from store.engine.server.lock_waits import WAITING_S, processes_of, waited_for
from store.engine.server.login import login_of
from store.engine.server.schema import CHANNEL
from store.engine.server.words import reason
from store.engine.server_url import ServerUrl

ASKED_EVERY_S = 0.25
"""Where the server does not tell of changes."""
LOOKED_AFTER_S = 2.0
"""Where it does, in case it could not."""
GAP_S, GAPS, LONGEST_GAP_S = 0.05, 10, 0.5
"""Between a question and the next: so long, and so many times as long as the answer took.

Recorders commit hundreds of times a second, and each commit comes as a notice."""
CALM_S = 1.0
"""No notices are wanted until nothing has changed for so long, once they come faster than it is
asked: each wakes the server's process and this one, 480 times a second for 8 recorders."""
_ANY_WRITE = "SELECT CAST(pg_current_snapshot() AS text)"
"""Differs after each write to any database of the server."""
_WHILE_LOCKED_S = 86_400.0
"""A question waits for a lock as long as that is held."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
"""Between two tries to connect again; each is twice the one before."""


def watch(database: Database) -> ServerWatch:
    """Return a running watch of a store on a server."""
    assert database.server is not None
    connection = cast(ServerConnection, database.connection)
    if database.form.name != "own":
        return ServerWatch(
            database.server, _ANY_WRITE, listens=False, rights=connection.rights_question)
    question = (
        f"SELECT CAST(written_by AS text) || ' ' || seq FROM {connection.schemas['changes']}"
        " ORDER BY written_by DESC, seq DESC LIMIT 1")
    return ServerWatch(
        database.server, question, listens=True, rights=connection.rights_question)


class ServerWatch:
    """Watches a store until it is closed.

    Attributes:
        version: Another number after each change.
        trouble: Why the server does not answer now; None while it does.
        since: When it answered last before that, ``time.time``; 0 while it answers.
        waits: Which table this process waits for now, and who has locked it; None for none.
        rights: What the server lets the login do, see ``store.engine.server.rights``; None
            before the first answer.
    """

    def __init__(
        self, url: ServerUrl, question: str, *, listens: bool, rights: str = "SELECT ''"
    ) -> None:
        """Start watching.

        Args:
            url: The database.
            question: A statement whose answer differs after each change, but for those of
                transactions that end in another order than they began in; it is asked where
                the server tells of changes.
            listens: Whether the server tells of changes.
            rights: A statement that finds ``rights``.
        """
        self.version = 0
        self.trouble: str | None = None
        self.since = self._answered_at = 0.0
        self.waits: str | None = None
        self.rights: str | None = None
        self._url, self._question, self._listens = url, question, listens
        self._rights_question = rights
        self._loop = AddressLoop()
        self._closed = threading.Event()
        self._told, self._closing = asyncio.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="server watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; does not wait for a server that is silent."""
        self._closed.set()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake)
        self._thread.join(timeout=2 * CLOSE_S)

    def _wake(self) -> None:
        self._closing.set()
        self._told.set()

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._closed.is_set():
            try:
                self._loop.run_until_complete(self._watch())
            except BaseException as error:
                # Also what is no Exception, such as a task that was cancelled: if the thread
                # ended, what is shown would stay as it is and look as if it were fresh.
                if self.trouble is None:
                    self.since = self._answered_at or time.time()
                    pause = FIRST_PAUSE_S
                self.trouble = self._url.without_secrets(reason(error))
                self.waits = None
            else:
                pause = 0.0
            self._closed.wait(pause)
            pause = min(max(2 * pause, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        self._loop.close()

    async def _watch(self) -> None:
        """Ask on a connection of its own until that fails or the watch is closed."""
        driver = await connected(login_of(self._url))
        try:
            await self._ask(driver)
        finally:
            driver.terminate()

    async def _ask(self, driver: Any) -> None:
        """Ask until the watch is closed, the connection fails, or another one has other rights."""
        may_listen = self._listens and not await is_pooled(driver)
        if may_listen:
            # A standby takes no LISTEN.
            may_listen = not await driver.fetchval("SELECT pg_is_in_recovery()")
        rights = await driver.fetchval(self._rights_question)
        pause = LOOKED_AFTER_S if may_listen else ASKED_EVERY_S
        told, listens = self._told, False
        last, moved_at, looked_at = object(), -CALM_S, 0.0
        while not self._closed.is_set():
            asked = time.monotonic()
            if may_listen and not listens and asked - moved_at >= CALM_S:
                # What was written before is found by the question, but for what a transaction
                # wrote that began before the newest one and ended after it.
                await driver.add_listener(CHANNEL, self._hear)
                listens = True
                told.set()
            found = await self._answer(driver, self._question if may_listen else _ANY_WRITE)
            if self.waits is not None or asked - looked_at >= LOOKED_AFTER_S:
                looked_at = asked
                self.waits = await waited_for(driver, processes_of(self._url))
                if await driver.fetchval(self._rights_question) != rights:
                    return
            gap = min(max(GAP_S, GAPS * (time.monotonic() - asked)), LONGEST_GAP_S)
            if found != last:
                moved_at = asked
            if found != last or told.is_set() or self.trouble is not None:
                self.version += 1
            last, self.trouble, self.since, self.rights = found, None, 0.0, rights
            self._answered_at = time.time()
            told.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), gap)
            if listens and told.is_set() and not self._closed.is_set():
                await driver.remove_listener(CHANNEL, self._hear)
                listens = False
            if listens or not may_listen:
                await self._wait(driver, ASKED_EVERY_S if self.waits is not None else pause)

    async def _answer(self, driver: Any, question: str) -> Any:
        """Return the answer to a question, whose own table may be locked, too.

        Raises:
            TimeoutError: There is none, though nobody has locked the table.
        """
        asked = time.monotonic()
        answer = asyncio.ensure_future(driver.fetchval(question, timeout=_WHILE_LOCKED_S))
        try:
            await asyncio.wait((answer,), timeout=WAITING_S)
            if not answer.done():
                async with asyncio.timeout(LOOK_S):
                    aside = await connected(login_of(self._url))
                try:
                    await self._say_wait(driver, aside, answer, asked)
                finally:
                    aside.terminate()
            return await answer
        finally:
            answer.cancel()

    async def _say_wait(
        self, driver: Any, aside: Any, answer: asyncio.Future[Any], asked: float
    ) -> None:
        """Say what a question waits for, until it is answered.

        Args:
            driver: The connection that waits.
            aside: One that does not.
            answer: What is waited for.
            asked: Since when, ``time.monotonic``.

        Raises:
            TimeoutError: There is no answer, and it does not wait for a lock.
        """
        processes = processes_of(self._url)
        if processes is not None:
            processes.append(driver.get_server_pid())
        while not answer.done():
            if self._closing.is_set():
                raise TimeoutError
            self.waits = await waited_for(aside, processes)
            if self.waits is None and time.monotonic() - asked >= LOOK_S:
                raise TimeoutError
            await asyncio.wait((answer,), timeout=ASKED_EVERY_S)

    async def _wait(self, driver: Any, pause: float) -> None:
        """Wait until there is a notice, or for so many seconds.

        Raises:
            ConnectionResetError: The connection was closed.
        """
        until = time.monotonic() + pause
        while not self._told.is_set() and time.monotonic() < until and not self._closed.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), min(pause, 0.25))
            if driver.is_closed():
                raise ConnectionResetError(ECONNRESET, os.strerror(ECONNRESET))

    def _hear(self, *_: object) -> None:
        self._told.set()
