"""All rows of a session, of any store: reading, comparing, and writing them to another one.

Two sessions are compared by a hash of each row. A server hashes its rows itself, so that a
session that has grown is not read over the network to find out by what.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from store.conversation.outline_marks import is_outline
from store.engine.database import Database
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.transactions import explained, unmoving
from store.engine.values import decoded, text
from store.errors import StoreError
from store.sync.jsontext import json_text
from store.text.stored_json import array_of

Values = tuple[Any, ...]
SESSIONS, MESSAGES, PARTS = "chat_sessions", "chat_messages", "chat_parts"
OF_A_SESSION = (
    sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError,
    ValueError, TypeError, OverflowError)
"""Errors of rows that a store cannot hold; others are about the store itself."""
_BETWEEN = "\x1f"


class Table(NamedTuple):
    """A table that has rows of sessions.

    Attributes:
        columns: All columns that are copied, in order.
        key: The columns that name a row, by their places.
        where: Which rows are a session's; the session's id is bound.
        blob: The place of a column with bytes; None where there is none.
        own: Whether only a Backscroll store has it.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[int, ...] = (0,)
    where: str = "session_id = $1"
    blob: int | None = None
    own: bool = True

    @property
    def names(self) -> str:
        """The columns for a statement."""
        return ", ".join(f'"{column}"' for column in self.columns)


TABLES = (
    Table(MESSAGES, REQUIRED_COLUMNS[MESSAGES], own=False),
    Table(PARTS, REQUIRED_COLUMNS[PARTS], own=False),
    Table("session_links", ("session_id", "kind", "parent_id", "parent_message", "pending")),
    Table("exported_sessions", ("imported_id", "session_id")),
    Table("original_records", ("session_id", "first", "count", "checksum", "body"),
          key=(0, 1), blob=4),
    Table("record_refs", ("message_id", "records_json"),
          where="message_id IN (SELECT id FROM chat_messages WHERE session_id = $1)"),
    Table("attachments", ("session_id", "name", "media_type", "size", "body"),
          key=(0, 1), blob=4),
)  # fmt: skip
"""Tables with rows of a session, those that others refer to first."""


@dataclass(slots=True)
class SessionRows:
    """A session with all that belongs to it.

    Attributes:
        session: Its row, in the order of the contract's columns.
        tables: Its rows in each of ``TABLES``, by the table's name.
        prompts: The system prompts that its messages name, by digest.
    """

    session: Values
    tables: dict[str, list[Values]]
    prompts: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.session[0])

    @property
    def count(self) -> int:
        """How many messages and parts it has."""
        return len(self.tables[MESSAGES]) + len(self.tables[PARTS])

    def stamps(self) -> Stamps:
        """Return the hash of each row."""
        return {
            SESSIONS: {self.session[:1]: stamp(self.session)},
            **{table.name: {_key(table, row): stamp(row, table.blob)
                            for row in self.tables[table.name]} for table in TABLES},
        }


Stamps = dict[str, dict[Values, str]]
"""By table and key of each row, its hash."""


def hash_of(stamps: Stamps) -> str:
    """Return the hash of a session, equal on all engines."""
    made = hashlib.blake2b(digest_size=16)
    for table in sorted(stamps):
        for key, value in sorted(stamps[table].items(), key=lambda one: tuple(map(str, one[0]))):
            made.update(f"{table}{_BETWEEN}{key}{_BETWEEN}{value}\n".encode())
    return made.hexdigest()


def stamp(row: Values, blob: int | None = None) -> str:
    """Return the hash of a row.

    Args:
        row: Its values.
        blob: The place of a value of bytes, which may be large.
    """
    words = [
        "" if value is None else f"={_md5(value)}" if at == blob
        else f"={value!r}" if isinstance(value, float) else f"={value}"
        for at, value in enumerate(row)
    ]
    return hashlib.md5(
        _BETWEEN.join(words).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _md5(value: Any) -> str:
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _key(table: Table, row: Values) -> Values:
    return tuple(row[at] for at in table.key)


def read_rows(db: Database, session_id: str) -> SessionRows | None:
    """Return a session with all that belongs to it; None if it is not in the store.

    What only a host's tables have columns for is in the metadata then, as in a Backscroll store.

    Args:
        db: The store.
        session_id: The session.

    Raises:
        StoreError: The store cannot be read.
    """
    try:
        with unmoving(db):
            return _read(db, session_id)
    except sqlite3.Error as error:
        raise explained(error, db.path) from error


def _read(db: Database, session_id: str) -> SessionRows | None:
    session = _session(db, session_id)
    if session is None:
        return None
    tables = {table.name: _rows(db, table, session_id) for table in TABLES}
    if db.form.hidden_column:
        hidden = dict(db.connection.execute(
            "SELECT id, hidden_at FROM chat_messages WHERE session_id = $1"
            " AND hidden_at IS NOT NULL", {"1": session_id}).fetchall())
        tables[MESSAGES] = [
            (*row[:3], _with(row[3], "hidden_at", hidden[row[0]]), *row[4:])
            if row[0] in hidden else row for row in tables[MESSAGES]
        ]
    return SessionRows(session, tables, _prompts(db, tables[MESSAGES]))


def _session(db: Database, session_id: str) -> Values | None:
    columns = ", ".join(REQUIRED_COLUMNS[SESSIONS])
    title = ", title" if db.form.title_column else ""
    row = db.connection.execute(
        f"SELECT {columns}{title} FROM chat_sessions WHERE id = $1", {"1": session_id}).fetchone()
    if row is None:
        return None
    if title and row[-1]:
        at = METADATA
        row = (*row[:at], _with(row[at], "title", row[-1]), *row[at + 1 :])
    values = list(_filled(REQUIRED_COLUMNS[SESSIONS], row))
    if isinstance(cost := values[_COST], int | float):
        # A server's number may be none, or without end.
        values[_COST] = float(cost) if math.isfinite(cost) else 0.0
    return tuple(values)


def _filled(columns: Sequence[str], row: Sequence[Any]) -> Values:
    """Return a host's row as a Backscroll store has it: no NULL, no bytes for a text."""
    return tuple(
        _DEFAULTS.get(column) if value is None
        else text(value) if isinstance(value, bytes)
        else int(value) if column in _WHOLE and type(value) is float and math.isfinite(value)
        else value
        for column, value in zip(columns, row, strict=False))


METADATA = REQUIRED_COLUMNS[SESSIONS].index("metadata_json")
"""The place of ``metadata_json`` in a session's row."""
_WHOLE = frozenset((
    "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read", "cache_write",
    "total_tokens", "created_at", "updated_at", "archived_at", "index"))
_DEFAULTS = {
    "model_json": "{}", "permissions_json": "[]", "metadata_json": "{}", "data_json": "{}",
    "cost_usd": 0.0, "agent": "", "role": "", "type": "",
    **dict.fromkeys(_WHOLE - {"archived_at"}, 0),
}  # fmt: skip
"""What a Backscroll store has where a host's table has NULL."""
_COST = REQUIRED_COLUMNS[SESSIONS].index("cost_usd")


def _with(metadata_json: str, key: str, value: Any) -> str:
    found = metadata_of(metadata_json)
    return json_text({**found, key: value})


def metadata_of(text: str) -> dict[str, Any]:
    """Return decoded metadata; empty where it is no object."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return decoded(text)  # It may have half a surrogate pair, which orjson refuses.
    return found if isinstance(found, dict) else {}


def is_listed_only(rows: SessionRows) -> bool:
    """Return whether a session's file is listed and was not read yet."""
    return is_outline(metadata_of(rows.session[METADATA]))


def _rows(db: Database, table: Table, session_id: str) -> list[Values]:
    if table.own and db.form.name != "own":
        return []
    rows = db.connection.execute(
        f"SELECT {table.names} FROM {table.name} WHERE {table.where}",
        {"1": session_id}).fetchall()
    if db.form.name == "own":
        return [tuple(row) for row in rows]
    return [_filled(table.columns, row) for row in rows]


def _prompts(db: Database, messages: Iterable[Values]) -> dict[str, str]:
    if db.form.name != "own":
        return {}
    digests = {
        str(digest) for row in messages if '"system_prompt_digest"' in row[3]
        if (digest := metadata_of(row[3]).get("system_prompt_digest")) is not None
    }
    if not digests:
        return {}
    return dict(db.connection.execute(
        f"SELECT p.digest, p.body FROM {db.sql.texts('$1', 'j')}"
        " JOIN system_prompts p ON p.digest = j.value", {"1": array_of(sorted(digests))},
    ).fetchall())


def stored_stamps(db: Database, session_id: str) -> Stamps | None:
    """Return the hash of each row of a session in a Backscroll store; None if it is not there.

    Args:
        db: The store; a server hashes its rows itself.
        session_id: The session.
    """
    if db.server is None:
        rows = read_rows(db, session_id)
        return None if rows is None else rows.stamps()
    session = _session(db, session_id)
    if session is None:
        return None
    found: Stamps = {SESSIONS: {session[:1]: stamp(session)}}
    for table in TABLES:
        words = ", ".join(
            f"coalesce('=' || {_hashed(column, is_blob=at == table.blob)}, '')"
            for at, column in enumerate(table.columns))
        keys = ", ".join(f'"{table.columns[at]}"' for at in table.key)
        found[table.name] = {
            tuple(row[:-1]): row[-1] for row in db.connection.execute(
                f"SELECT {keys}, md5(convert_to(concat_ws(chr(31), {words}), 'UTF8'))"
                f" FROM {table.name} WHERE {table.where}", {"1": session_id}).fetchall()
        }
    return found


def _hashed(column: str, *, is_blob: bool) -> str:
    return f'md5("{column}")' if is_blob else f'CAST("{column}" AS text)'


def fitted(db: Database, rows: SessionRows) -> SessionRows:
    """Return a session's rows as a store keeps them: a server's texts have no NUL.

    Args:
        db: The store that they are for.
        rows: The session.
    """
    if db.server is None:
        return rows

    def fit(row: Values) -> Values:
        if not any(type(value) is str and "\0" in value for value in row):
            return row
        return tuple(
            value.replace("\0", "\N{REPLACEMENT CHARACTER}") if type(value) is str else value
            for value in row)

    return SessionRows(
        fit(rows.session),
        {name: [fit(row) for row in found] for name, found in rows.tables.items()},
        {digest: fit((body,))[0] for digest, body in rows.prompts.items()})


def why_not(error: Exception) -> str:
    """Return why a session cannot be stored, without the row that a server quotes."""
    return str(error).partition("\n")[0]


def is_taken(db: Database, rows: SessionRows) -> bool:
    """Return whether another session of a store has a message or part with an id of this one.

    Args:
        db: The store.
        rows: The session.
    """
    for name in (MESSAGES, PARTS):
        ids = array_of([row[0] for row in rows.tables[name]])
        if db.connection.execute(
            f"SELECT 1 FROM {db.sql.texts('$1', 'j')} JOIN {name} t ON t.id = j.value"
            " WHERE t.session_id <> $2 LIMIT 1", {"1": ids, "2": rows.id}).fetchone():
            return True
    return False


def put(
    db: Database, rows: SessionRows, before: Stamps | None, kept: Collection[str] = ()
) -> list[str]:
    """Write a session so that a store has these rows of it, and verify them.

    Args:
        db: A Backscroll store, in a transaction.
        rows: The session, ``fitted`` to it.
        before: What it has of the session, by ``stored_stamps``.
        kept: Ids of messages and parts that stay although they are not among the rows.

    Returns:
        The messages that changed.

    Raises:
        StoreError: The store has other rows after the writing; the caller ends the transaction.
    """
    now, before = rows.stamps(), before or {}
    changed: dict[str, None] = {}
    if now[SESSIONS] != before.get(SESSIONS):
        _upsert(db, SESSIONS, REQUIRED_COLUMNS[SESSIONS], (0,), [rows.session])
    db.connection.executemany(
        "INSERT INTO system_prompts(digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING",
        list(rows.prompts.items()))
    for table in TABLES:
        had, has = before.get(table.name, {}), now[table.name]
        gone = [key for key in had if key not in has and key[0] not in kept]
        where = " AND ".join(f'"{table.columns[at]}" = ?' for at in table.key)
        db.connection.executemany(f"DELETE FROM {table.name} WHERE {where}", gone)
        written = [
            row for row in rows.tables[table.name]
            if had.get(key := _key(table, row)) != has[key]
        ]
        _upsert(db, table.name, table.columns, table.key, written)
        if table.name == MESSAGES:
            changed |= dict.fromkeys([*(str(key[0]) for key in gone), *(row[0] for row in written)])
        elif table.name == PARTS:
            changed |= dict.fromkeys(row[1] for row in written)
    _verify(db, rows, now, kept)
    return list(changed)


def _upsert(
    db: Database, table: str, columns: Sequence[str], key: Sequence[int], rows: Sequence[Values]
) -> None:
    if not rows:
        return
    names = ", ".join(f'"{column}"' for column in columns)
    keys = ", ".join(f'"{columns[at]}"' for at in key)
    values = ", ".join(
        f'"{column}" = excluded."{column}"' for at, column in enumerate(columns) if at not in key)
    db.connection.executemany(
        f"INSERT INTO {table}({names}) VALUES ({', '.join('?' * len(columns))})"
        f" ON CONFLICT ({keys}) DO UPDATE SET {values}", rows)


def _verify(db: Database, rows: SessionRows, now: Stamps, kept: Collection[str]) -> None:
    """Raise unless a store has what was written, by count and hash."""
    there = stored_stamps(db, rows.id) or {}
    for table, has in now.items():
        found = there.get(table, {})
        if not kept:
            same = found == has
        else:
            same = all(found.get(key) == value for key, value in has.items())
        if not same:
            raise StoreError(
                f"{db.name} has other rows of {rows.id} in {table} than were written to it"
                f" ({len(found):,} of {len(has):,}); nothing of the session was kept there")


def parents_first(db: Database) -> list[str]:
    """Return the ids of all sessions, the newest first, each after its parent."""
    parents: dict[str, str | None] = dict(db.connection.execute(
        "SELECT id, parent_id FROM chat_sessions ORDER BY updated_at DESC, id DESC").fetchall())
    ordered: dict[str, None] = {}
    for session_id in parents:
        line, one = list[str](), session_id
        while one in parents and one not in ordered and one not in line:
            line.append(one)
            one = parents[one] or ""
        ordered |= dict.fromkeys(reversed(line))
    return list(ordered)


def starters(db: Database) -> dict[str, str]:
    """Return the session that started each subagent, by the subagent's id."""
    return dict(db.connection.execute(
        "SELECT s.id, s.parent_id FROM chat_sessions s WHERE"
        f" {db.form.fact('s', 'lineage.kind')} = 'subagent'"
        " AND s.parent_id IS NOT NULL").fetchall())
