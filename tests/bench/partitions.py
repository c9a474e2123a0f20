"""A store on PostgreSQL whose three tables are partitioned by session, with what each screen asks.

    python -m tests.bench.partitions [--rows 5000000] [--partitions 16]

It makes the store on a server of its own in a temporary folder (about 3 GB for 5 million rows),
which is removed afterwards, and prints how large a row is, how long each screen's queries take,
and how many partitions each of their statements reads. Not part of the bench that CI runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store.engine import changes
from store.engine.connection import Parameters
from store.engine.database import Database, in_transaction
from store.engine.dialect import quoted_text
from store.engine.opening import open_target
from store.engine.server.searched import WORDS_INDEX
from store.engine.server.statements import turned
from store.queries import activities, list_keys, listing, messages, sessions, transcript, windows
from store.verbs.shelf import archive
from tests.bench.report import processor_ms
from tests.sources import postgres_server

MESSAGES, PARTS = 55, 2
"""Messages of a session, and parts of a message."""
NOW = 1_795_000_000_000
ROUNDS, _PREPARING = 17, 6
_SPACE_PER_ROW = 1_000
_KEYS = {"chat_sessions": ("id",), "chat_messages": ("id", "session_id"),
         "chat_parts": ("id", "session_id")}  # fmt: skip
"""Primary keys, which must have the column by which a table is partitioned, here the last one.

The id is the first, as many statements name a message or a part by its id alone.
"""
_FILL = {
    "chat_sessions": (
        "INSERT INTO public.chat_sessions (id, agent, workspace_root, model_json, metadata_json,"
        " created_at, updated_at) SELECT 'ses_' || lpad(n::text, 12, '0'), 'claude-code',"
        " '/w/p' || n % 40, '{\"provider_id\":\"a\",\"model_id\":\"m\"}',"
        " ('{\"title\":\"Session ' || n || '\"}')::json, $2 - n * 60000, $2 - n * 60000"
        " FROM generate_series(0, $1 - 1) n"),
    "chat_messages": (
        "INSERT INTO public.chat_messages (id, session_id, role, metadata_json, created_at,"
        " updated_at) SELECT 'msg_' || lpad(n::text, 8, '0') || lpad(m::text, 4, '0'),"
        " 'ses_' || lpad(n::text, 12, '0'), CASE WHEN m % 5 = 0 THEN 'user' ELSE 'assistant' END,"
        " '{}', $2 - n * 60000 + m, $2 - n * 60000 + m"
        f" FROM generate_series(0, $1 - 1) n CROSS JOIN generate_series(0, {MESSAGES - 1}) m"),
    "chat_parts": (
        "INSERT INTO public.chat_parts (id, message_id, session_id, \"index\", type, data_json,"
        " created_at, updated_at) SELECT 'prt_' || lpad(n::text, 8, '0') || lpad(m::text, 4, '0')"
        " || p, 'msg_' || lpad(n::text, 8, '0') || lpad(m::text, 4, '0'),"
        " 'ses_' || lpad(n::text, 12, '0'), p, 'text',"
        " ('{\"type\":\"text\",\"text\":\"' || md5((n * 1000 + m * 10 + p)::text) || ' look into"
        " the retry loop of the importer, and say what it waits for ' || n || '\"}')::json,"
        " $2 - n * 60000 + m, $2 - n * 60000 + m FROM generate_series(0, $1 - 1) n"
        f" CROSS JOIN generate_series(0, {MESSAGES - 1}) m"
        f" CROSS JOIN generate_series(0, {PARTS - 1}) p"),
}  # fmt: skip


def partition(server: postgres_server.Database, count: int) -> list[str]:
    """Replace the three tables by partitioned ones; return the statements of their indexes.

    Args:
        server: The database of an empty store.
        count: Partitions of each; 0 leaves the tables whole.
    """
    indexes = server.rows(
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
    made = [one["indexdef"] for one in indexes if "UNIQUE" not in one["indexdef"]]
    if count:
        # That of words takes a quarter of an hour for 5 million rows, and is not measured here.
        made = [one for one in made if WORDS_INDEX not in one]
        for table, key in _KEYS.items():
            server.execute(f"ALTER TABLE public.{table} RENAME TO {table}_whole")
            server.execute(
                f"CREATE TABLE public.{table} (LIKE public.{table}_whole INCLUDING DEFAULTS,"
                f" PRIMARY KEY ({', '.join(key)})) PARTITION BY HASH ({key[-1]})")
            for number in range(count):
                server.execute(
                    f"CREATE TABLE public.{table}_{number} PARTITION OF public.{table}"
                    f" FOR VALUES WITH (MODULUS {count}, REMAINDER {number})")
        server.execute("DROP TABLE public.chat_parts_whole, public.chat_messages_whole,"
                       " public.chat_sessions_whole CASCADE")
        server.execute(
            "ALTER TABLE public.chat_messages ADD FOREIGN KEY (session_id)"
            " REFERENCES public.chat_sessions(id) ON DELETE CASCADE")
        server.execute(
            "ALTER TABLE public.chat_parts ADD FOREIGN KEY (message_id, session_id)"
            " REFERENCES public.chat_messages(id, session_id) ON DELETE CASCADE")
    else:
        for one in indexes:
            if "UNIQUE" not in one["indexdef"]:
                server.execute(f'DROP INDEX public."{one["indexname"]}"')
    return made


def fill(server: postgres_server.Database, count: int) -> None:
    """Write the rows of so many sessions, without checking what they refer to."""
    for statement in _FILL.values():
        sql = statement.replace("$2", str(NOW)).replace("$1", str(count))
        server.execute(f"SET session_replication_role = replica; {sql}")


class Noted:
    """A connection that keeps what it was asked."""

    def __init__(self, connection: Any) -> None:
        self.asked: list[tuple[str, Parameters]] = []
        self._connection = connection

    def execute(self, sql: str, parameters: Parameters = (), /) -> Any:
        """Run a statement and keep it."""
        self.asked.append((sql, parameters))
        return self._connection.execute(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        """Return what the connection itself has."""
        return getattr(self._connection, name)


def partitions_read(db: Database, question: Callable[[Database], object]) -> dict[str, int]:
    """Return by table how many partitions the widest statement of a question reads."""
    noted, plain = Noted(db.connection), db.connection
    db.connection = noted
    try:
        question(db)
    finally:
        db.connection = plain
    widest: dict[str, int] = {}
    for sql, parameters in noted.asked:
        if not sql.lstrip(" (").startswith(("SELECT", "WITH")):
            continue
        made = turned(sql, {})
        values = made.values(parameters)
        # EXPLAIN takes no values beside it.
        text = re.sub(r"\$(\d+)", lambda at: _literal(values[int(at[1]) - 1]), made.text)  # noqa: B023
        plan = "\n".join(row[0] for row in plain.execute(
            f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {text}").fetchall())
        for table in _KEYS:
            read = set(re.findall(rf" on {table}(_\d+)? .*\(actual", plan))
            widest[table] = max(widest.get(table, 0), len(read))
    return {table: count for table, count in widest.items() if count}


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        value = "{" + ",".join(json.dumps(each) for each in value) + "}"
    return quoted_text(str(value))


def timed(db: Database, question: Callable[[int], object]) -> tuple[float, float]:
    """Return the median milliseconds of several rounds, by the clock and on a processor.

    The first rounds, in which statements are prepared, are left out.

    Args:
        db: The store.
        question: Takes the number of the round.
    """
    (backend,) = db.connection.execute("SELECT pg_backend_pid()").fetchone()
    found, worked = [], []
    for number in range(ROUNDS):
        (before, _), started = processor_ms(os.getpid(), backend), time.perf_counter()
        question(number)
        found.append((time.perf_counter() - started) * 1_000)
        worked.append(processor_ms(os.getpid(), backend)[0] - before)
    return statistics.median(found[_PREPARING:]), statistics.median(worked[_PREPARING:])


def screens(count: int) -> dict[str, Callable[[Database, int], object]]:
    """Return what each screen asks, with a number that chooses the session."""
    def name(number: int) -> str:
        return f"ses_{number * 7919 % count:012d}"

    def middle(number: int) -> str:
        return f"msg_{number * 7919 % count:08d}{MESSAGES // 2:04d}"

    query = listing.ListQuery()
    word = "2c6ae45a3e88aee548c0714fad7f8269"  # No part has it: all of them are read.
    return {
        "list, first rows": lambda db, _: list_keys.first_keys(db, query, 60),
        "list, all keys": lambda db, _: list_keys.all_keys(db, query),
        "list, 40 rows": lambda db, n: activities.rows(
            db, [], [name(n + each) for each in range(40)], NOW),
        "page of sessions (hosts)": lambda db, _: sessions.page(db, sessions.SessionFilter()),
        "open at the end": lambda db, n: windows.window_at_end(db, name(n)),
        "page around a message": lambda db, n: windows.window_around(db, name(n), middle(n)),
        "outline of a session": lambda db, n: transcript.outline_page(db, name(n)),
        "messages with parts (hosts)": lambda db, n: messages.last(db, name(n)),
        "children of a session": lambda db, n: transcript.children(db, name(n)),
        "live: what changed": lambda db, _: changes.since(db, changes.newest(db)),
        "search without an index": lambda db, n: db.connection.execute(
            "SELECT p.id FROM chat_parts p WHERE"
            f" {db.sql.contains(db.sql.text('p.data_json'), repr(word))} LIMIT 50").fetchall()
            if n < 3 else None,
    }  # fmt: skip


def sizes(server: postgres_server.Database) -> dict[str, dict[str, float]]:
    """Return of each table its rows, and bytes a row of the table and of its indexes."""
    found = {}
    for table in _KEYS:
        (row,) = server.rows(
            "SELECT sum(pg_table_size(c.oid))::float8 AS own, sum(pg_indexes_size(c.oid))::float8"
            " AS indexes FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~"
            f" '^{table}(_[0-9]+)?$'")
        (rows,) = server.rows(f"SELECT count(*) AS n FROM public.{table}")
        found[table] = {"rows": rows["n"], "bytes": row["own"] / rows["n"],
                        "index_bytes": row["indexes"] / rows["n"]}  # fmt: skip
    return found


def measure(rows: int, partitions: int) -> dict[str, Any]:
    """Make the store, and return what was measured.

    Args:
        rows: Of the three tables together.
        partitions: Of each table; 0 for whole tables.
    """
    count = max(100, rows // (1 + MESSAGES * (1 + PARTS)))
    if shutil.disk_usage("/tmp").free < rows * _SPACE_PER_ROW * 2:
        raise SystemExit(f"not enough room in /tmp for {rows:,} rows")
    programs = postgres_server.programs()
    if programs is None:
        raise SystemExit("no PostgreSQL server here")
    server = postgres_server.Server(programs)
    try:
        server.admin.execute("ALTER SYSTEM SET shared_buffers = '512MB'")
        server.admin.execute("ALTER SYSTEM SET maintenance_work_mem = '256MB'")
        server.admin.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
        server.stop()
        server.start()
        return _measured(server.database(), count, partitions)
    finally:
        server.remove()


def _measured(server: postgres_server.Database, count: int, partitions: int) -> dict[str, Any]:
    open_target(server.url, create=True, write=True).close()
    started = time.monotonic()
    indexes = partition(server, partitions)
    fill(server, count)
    filled = time.monotonic()
    for statement in indexes:
        server.execute(statement)
    server.execute("VACUUM ANALYZE")
    indexed = time.monotonic()
    db = open_target(server.url, write=True)
    found = {}
    for name, question in screens(count).items():
        spent, worked = timed(
            db, lambda number, ask=question: ask(db, number))  # type: ignore[misc]
        if name.startswith("search"):
            before = time.perf_counter()
            question(db, 0)
            spent = (time.perf_counter() - before) * 1_000
        read = partitions_read(db, lambda each, ask=question: ask(each, 1))  # type: ignore[misc]
        found[name] = {"ms": spent, "worked_ms": worked, "partitions": read}
    spent, worked = timed(db, lambda number: in_transaction(
        db, archive, [f"ses_{number:012d}"], now=NOW))
    found["archive, with its commit"] = {"ms": spent, "worked_ms": worked, "partitions": {}}
    db.close()
    return {"sessions": count, "partitions": partitions, "fill_s": filled - started,
            "index_s": indexed - filled, "sizes": sizes(server), "screens": found}  # fmt: skip


def main() -> None:
    """Run what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_DATA_HOME"] = home
        found = measure(options.rows, options.partitions)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))
    print(f"{found['sessions']:,} sessions, {found['partitions']} partitions, filled in"
          f" {found['fill_s']:.0f} s, indexed in {found['index_s']:.0f} s")
    for table, size in found["sizes"].items():
        print(f"{table}: {size['rows']:,} rows, {size['bytes']:.0f} bytes and"
              f" {size['index_bytes']:.0f} bytes of indexes a row")
    for name, one in found["screens"].items():
        read = ", ".join(f"{table} {count}" for table, count in one["partitions"].items())
        print(f"{name:30} {one['ms']:9.2f} ms, {one['worked_ms']:8.2f} on a processor  {read}")


if __name__ == "__main__":
    main()
