"""The demo store: ``demo.jsonl`` and one long session, written into a store of our own form.

A line of ``demo.jsonl`` is a row as ``export --to jsonl`` writes it, a ``system_prompt``, or an
original ``record`` of the part before it. All times are milliseconds before the present, so
that the sessions always look recent; everything else is fixed, the ids too. Parents come
before their children.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from store.engine.database import Database, open_database
from store.system.clock import Clock, system_clock

DATA = Path(__file__).with_name("demo.jsonl")
_TABLES = {"session": "chat_sessions", "message": "chat_messages", "part": "chat_parts"}
_TIMES = ("created_at", "updated_at", "archived_at")
_METADATA_TIMES = ("hidden_at", "queued_at")
"""Times in a row's metadata."""

_Line = tuple[str, dict[str, Any]]


def make_demo(path: Path, clock: Clock = system_clock) -> Path:
    """Make the demo store.

    Args:
        path: The file to make; one that is there is replaced.
        clock: Returns the present as epoch ms; ages count from it.

    Returns:
        The path.
    """
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    open_database(path, create=True).close()
    fill_demo(path, clock)
    return path


def fill_demo(path: Path, clock: Clock = system_clock) -> None:
    """Fill an empty store of our own form, in one transaction.

    Args:
        path: The store, which others may have open.
        clock: Returns the present as epoch ms; ages count from it.
    """
    database = open_database(path)
    try:
        _fill(database, clock())
    finally:
        database.close()


def _fill(database: Database, now: int) -> None:
    from store.demo import long_session
    from store.imports.rows import insert_rows

    write = database.connection
    # A demo that a crash tears is made again, so nothing waits for the disk.
    write.execute("PRAGMA synchronous = OFF")
    write.execute("BEGIN")
    for lines in _sessions(now):
        for kind, table in _TABLES.items():
            insert_rows(database, table, [data for found, data in lines if found == kind])
        for kind, data in lines:
            if kind == "system_prompt":
                write.execute("INSERT INTO system_prompts VALUES (?, ?)", tuple(data.values()))
        _, session = lines[0]
        if session["metadata"]["source"]["id"] == long_session.KEY:
            made = long_session.LongSession(session)
            write.executemany("INSERT INTO chat_messages VALUES (?,?,?,?,?,?)", made.messages)
            write.executemany("INSERT INTO chat_parts VALUES (?,?,?,?,?,?,?,?,?,?)", made.parts)
        elif session["agent"] == "claude-code":
            _insert_records(database, lines)
    write.execute("COMMIT")


def _sessions(now: int) -> Iterator[list[_Line]]:
    """Yield the lines of each session, its own row first, with times in epoch ms."""
    import orjson

    lines: list[_Line] = []
    for raw in DATA.read_bytes().splitlines():
        line = orjson.loads(raw)
        if line["type"] == "session" and lines:
            yield lines
            lines = []
        lines.append((line["type"], _at(line["data"], now)))
    yield lines


def _at(data: dict[str, Any], now: int) -> dict[str, Any]:
    """Return a line's data with its times in epoch ms instead of before the present."""
    for holder, names in ((data, _TIMES), (data.get("metadata", {}), _METADATA_TIMES)):
        for name in names:
            if holder.get(name) is not None:
                holder[name] += now
    if "record" in data:
        moment = datetime.fromtimestamp((data["record"]["timestamp"] + now) / 1000, UTC)
        stamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        data["record"]["timestamp"] = stamp
    return data


def _insert_records(database: Database, lines: list[_Line]) -> None:
    """Write a session's original records, and which of them each message's parts come from."""
    import orjson

    from store.sync.blocks import cut_blocks, write_blocks

    records: list[bytes] = []
    numbers: dict[str, list[list[int]]] = {}
    for kind, data in lines:
        if kind == "message":
            numbers[data["id"]] = []
        elif kind == "part":
            numbers[data["message_id"]].append([])
            latest = numbers[data["message_id"]][-1]
        elif kind == "record":
            latest.append(len(records))
            records.append(orjson.dumps(data["record"]))
    database.connection.executemany(
        "INSERT INTO record_refs VALUES (?, ?)",
        [(id, orjson.dumps([*groups, []]).decode()) for id, groups in numbers.items()],
    )
    write_blocks(database.connection, lines[0][1]["id"], cut_blocks(records, compress=True))
