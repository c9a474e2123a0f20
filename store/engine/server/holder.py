"""Who holds the lock that a writer waited for in vain."""

from __future__ import annotations

from collections.abc import Collection

from store.engine.connection import Connection
from store.text.neutral import neutral_line


def holder(connection: Connection, keys: Collection[int]) -> str:
    """Return the program and the role that hold an advisory lock, "" where none does any more.

    What other roles run is hidden, their names and those of their programs are not.

    Args:
        connection: Of the one who waited; it is in no transaction.
        keys: The locks, as one number or as the first of two.
    """
    found = connection.execute(
        "SELECT a.application_name, a.usename FROM pg_locks l"
        " JOIN pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.pid <> pg_backend_pid()"
        " AND a.datname = current_database()"
        " AND CAST(CASE l.objsubid WHEN 1 THEN l.objid ELSE l.classid END AS bigint)"
        f" IN ({', '.join(map(str, keys))})"
        " ORDER BY l.mode = 'ExclusiveLock' DESC, l.pid LIMIT 1").fetchone()
    if found is None:
        return ""
    program, role = (neutral_line(str(each or "")) for each in found)
    return f"{program or 'a program'} of {role}"
