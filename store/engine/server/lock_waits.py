"""Which table a connection of this process waits for, and who has locked it.

Whoever waits is in the middle of a statement, so another connection asks the server.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from store.engine.server.addresses import AddressLoop
from store.engine.server.connection import (
    CLOSE_S,
    ServerConnection,
    connected,
    open_connections,
)
from store.engine.server.login import SETTINGS, login_of
from store.engine.server_url import ServerUrl
from store.text.neutral import neutral_line

WAITING_S = 2.0
"""A wait is named once it is so long."""
_WAITING = (
    "SELECT a.pid FROM pg_stat_activity a WHERE a.wait_event_type = 'Lock'"
    " AND a.datname = current_database() AND a.usename = session_user"
    f" AND a.application_name = '{SETTINGS['application_name']}'"
    f" AND clock_timestamp() - a.query_start >= interval '{WAITING_S} seconds'"
    " AND (CAST($1 AS integer[]) IS NULL OR a.pid = ANY (CAST($1 AS integer[])))"
    " ORDER BY a.query_start, a.pid")
_LOCK = (
    "SELECT c.relname, CASE WHEN 0 = ANY (pg_blocking_pids(l.pid)) THEN 'a prepared transaction'"
    " ELSE coalesce((SELECT string_agg(DISTINCT coalesce(nullif(a.application_name, ''),"
    " a.usename, 'another program'), ' and ') FROM pg_stat_activity a"
    " WHERE a.pid = ANY (pg_blocking_pids(l.pid))), 'another program') END"
    " FROM pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation"
    " WHERE l.pid = CAST($1 AS integer) AND l.locktype = 'relation' AND NOT l.granted LIMIT 1")


async def waited_for(driver: Any, processes: Sequence[int] | None) -> str | None:
    """Return what one of some connections waits for; None where none waits for a table.

    For example ``waits for the table chat_sessions, which psql has locked``.

    Args:
        driver: A connection of the driver that waits for nothing.
        processes: The server's processes of the connections; None for all of this login, as
            behind a pooler, where they are not known.
    """
    async with driver.transaction(readonly=True):
        # A login that takes the role of a group, by ``ALTER ROLE SET role``, does not see then
        # that its own connections wait.
        await driver.execute("SET LOCAL ROLE NONE")
        for (process,) in await driver.fetch(_WAITING, processes):
            found = await driver.fetchrow(_LOCK, process)
            if found is not None:
                table, holder = (neutral_line(str(each)) for each in found)
                return f"waits for the table {table}, which {holder} has locked"
    return None


def processes_of(url: ServerUrl) -> list[int] | None:
    """Return the server's processes of this process's connections; None where not known.

    Args:
        url: The database.
    """
    found = [each for each in open_connections() if each.url == url]
    return None if any(each.is_pooled for each in found) else [each.process for each in found]


class LockNotes:
    """Tells of what connections of this process wait for, from a thread, until it is closed.

    It connects only while a statement takes longer than ``WAITING_S``.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        """Start looking.

        Args:
            tell: Called on the thread with each wait, which names the server, once.
        """
        self._tell, self._told = tell, ""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lock notes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking; does not wait for a server that is silent."""
        self._closed.set()
        self._thread.join(timeout=CLOSE_S)

    def _run(self) -> None:
        before = dict[ServerConnection, object]()
        while not self._closed.wait(WAITING_S):
            asked = {each: each.waited for each in open_connections()}
            for connection, waited in asked.items():
                if waited is not None and before.get(connection) is waited:
                    self._look(connection)
                else:
                    connection.waits = None
            before = dict(asked)

    def _look(self, connection: ServerConnection) -> None:
        loop = AddressLoop()
        try:
            # Where the server does not say it, the answer that is waited for tells what is wrong.
            with contextlib.suppress(Exception):
                connection.waits = loop.run_until_complete(_asked_aside(connection))
        finally:
            loop.close()
        words = f"{connection.url.named or connection.url} {connection.waits}"
        if connection.waits is not None and words != self._told and not self._closed.is_set():
            self._told = words
            self._tell(words)


async def _asked_aside(connection: ServerConnection) -> str | None:
    driver = await connected(login_of(connection.url))
    try:
        return await waited_for(driver, None if connection.is_pooled else [connection.process])
    finally:
        await driver.close(timeout=CLOSE_S)
