r"""What a search compares on a server: the JSON of a part, folded there, and its indexes.

``store.language.folding.fold`` does the same with a text. Where both differ, or where the JSON
does not tell all, a part is *odd*: it may hold any word. So what the server finds is never less
than what has the word; the search compares the rows themselves.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from store.engine.dialect import quoted
from store.language.folding import DROPPED

if TYPE_CHECKING:
    from store.engine.server.connection import ServerConnection

LONG_ENOUGH = 3
"""Characters of a word that the index finds; ``pg_trgm`` knows texts by three at a time."""
WORDS_INDEX, ODD_INDEX, NEWEST_INDEX = (
    "chat_parts_finished_words", "chat_parts_unindexed", "chat_messages_newest")
_BEFORE = ("chat_parts_words", "chat_parts_odd")
"""Indexes of earlier versions, which had the words of parts that grow too."""
_BEGUN = re.compile(
    "[0-9a-z\u0430-\u045f\u03b1-\u03b8\u03ba-\u03c1\u03c3-\u03c9\u3041-\u3096\u30a1-\u30fa\u30fc\u3400"
    "-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+"
)
"""Letters that the server folds as ``fold`` does."""
_ODD_LETTERS = "\u1c80-\u1c8f\ua7f2-\ua7f4\U00010780-\U000107bf\U0001e030-\U0001e06d"
"""Letters that become others of ``_BEGUN``, but not on each server."""
_ALONE = ("ßss", "æae", "œoe", "łl", "øo", "đd", "ħh", "ıi", "ςσ")
"""Letters, and what they become, that Unicode does not take apart."""
_GROWING = ("streaming", "input-streaming")
_LOCK_S = 5
_MAKING = 0x42535343
"""Key of the advisory lock of who makes the indexes."""


def pieces(text: str) -> list[str]:
    """Return what the folded JSON of a part holds where it holds a folded text.

    Args:
        text: In the form of ``store.language.folding.index_form``.
    """
    return [unicodedata.normalize("NFD", piece) for piece in _BEGUN.findall(text)]


def folded(column: str) -> str:
    """Return an expression for the JSON of a part without case, accents, ``-`` and ``_``.

    Args:
        column: The column.
    """
    text = f"CAST({column} AS text)"
    letters = f'(lower(normalize({text}, NFKD) COLLATE "und-x-icu") COLLATE "C")'
    for pair in _ALONE:
        letters = f"replace({letters}, '{pair[0]}', '{pair[1:]}')"
    return (
        f"""(CASE WHEN octet_length({text}) = char_length({text})"""
        f""" THEN translate(lower({text} COLLATE "C"), '-_', '')"""
        f""" ELSE regexp_replace({letters}, '[-_{DROPPED}]', '', 'g') END)"""
    )


def odd(column: str) -> str:
    """Return the condition that a part may hold any word, whatever its JSON says.

    Its letters are written as escapes, or its text is in a file beside it.

    Args:
        column: The column with the JSON.
    """
    return rf"""(CAST({column} AS text) ~ '"attachment"|\\u(?!00[01])|[{_ODD_LETTERS}]')"""


def grows(column: str) -> str:
    """Return the condition that a part is being recorded; its words are not in the index yet.

    Each save writes such a part anew: of 37 kB that took 5.2 ms with its words, and 1.1 without.

    Args:
        column: The column with the JSON.
    """
    text = f"CAST({column} AS text)"
    states = (f"""strpos({text}, '"state":"{state}"') > 0""" for state in _GROWING)
    return f"({' OR '.join(states)})"


def unindexed(column: str) -> str:
    """Return the condition that the index of words does not tell what a part holds.

    Args:
        column: The column with the JSON.
    """
    return f"({odd(column)} OR {grows(column)})"


class Indexes(NamedTuple):
    """What a server has for searches.

    Attributes:
        folds: Whether it can fold texts.
        newest: Whether it finds the newest messages of all sessions.
        words: Whether it finds words in parts.
        letters: Whether it finds words that are not of ASCII letters, too.
    """

    folds: bool
    newest: bool
    words: bool
    letters: bool


HAS_ICU = "EXISTS (SELECT 1 FROM pg_catalog.pg_collation WHERE collname = 'und-x-icu')"


def indexes_of(connection: ServerConnection) -> Indexes:
    """Return what a server has for searches.

    Args:
        connection: The store.
    """
    encoding, ctype, icu = connection.execute(
        "SELECT current_setting('server_encoding'), datctype,"
        f" {HAS_ICU} FROM pg_catalog.pg_database WHERE datname = current_database()"
    ).fetchone()
    rows = connection.execute(
        "SELECT c.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c"
        " ON c.oid = i.indexrelid WHERE i.indisvalid AND i.indrelid IN (to_regclass(?),"
        " to_regclass(?))",
        [connection.schemas.get(name, name) for name in ("chat_parts", "chat_messages")],
    ).fetchall()
    names = {name for (name,) in rows}
    return Indexes(
        encoding == "UTF8" and bool(icu) and connection.version >= 13,
        NEWEST_INDEX in names, {WORDS_INDEX, ODD_INDEX} <= names,
        ctype not in ("C", "POSIX"),
    )


def make_indexes(connection: ServerConnection) -> None:
    """Make the indexes of searches where they are missing and this role may make them.

    Nobody who reads or writes waits for it. Without the extension ``pg_trgm`` there is no index
    of words, and a search reads what it has time for.

    Args:
        connection: The store, in no transaction.
    """
    there = indexes_of(connection)
    parts, messages = connection.schemas["chat_parts"], connection.schemas["chat_messages"]
    schema = parts.rpartition(".")[0]
    if (there.newest and there.words) or not _owns(connection, parts, messages):
        return
    (mine,) = connection.execute(f"SELECT pg_try_advisory_lock({_MAKING})").fetchone()
    if not mine:
        return
    try:
        connection.script(f"SET lock_timeout = '{_LOCK_S}s'")
        if not there.newest:
            _make(connection, messages, NEWEST_INDEX, "(created_at DESC, id DESC)")
        place = trigrams(connection) if there.folds and not there.words else None
        if place is not None:
            words = f"gin ({folded('data_json')} {quoted(place)}.gin_trgm_ops)"
            _make(connection, parts, ODD_INDEX, f"(message_id) WHERE {unindexed('data_json')}")
            _make(connection, parts, WORDS_INDEX, f"USING {words} WHERE NOT {grows('data_json')}")
            for name in _BEFORE:
                connection.script(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}")
    except sqlite3.Error:
        # Without an index a search takes longer, and says so; the next one who opens it tries.
        if connection.is_closed:
            raise
    finally:
        if not connection.is_closed:
            connection.script(f"RESET lock_timeout; SELECT pg_advisory_unlock({_MAKING})")


def _owns(connection: ServerConnection, *tables: str) -> bool:
    """Return whether this role may make indexes of some tables."""
    owned = " AND ".join(
        "(SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_catalog.pg_class c"
        " WHERE c.oid = to_regclass(?))" for _ in tables)
    return bool(connection.execute(f"SELECT {owned}", tables).fetchone()[0])


def trigrams(connection: ServerConnection) -> str | None:
    """Return the schema of the extension ``pg_trgm``; None where it cannot be had."""
    asked = (
        "SELECT n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n"
        " ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'"
    )
    row = connection.execute(asked).fetchone()
    if row is None and connection.execute(
        "SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'pg_trgm'"
        " AND has_database_privilege(current_database(), 'CREATE')"
    ).fetchone():
        connection.script("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        row = connection.execute(asked).fetchone()
    return None if row is None else str(row[0])


class _Part(NamedTuple):
    """A table, or a partition of one.

    Attributes:
        schema: Its schema, quoted.
        name: Its name in statements.
        oid: Its number, which tells partitions' indexes apart.
        has_parts: Whether it has no rows of its own, but partitions.
    """

    schema: str
    name: str
    oid: int
    has_parts: bool


def _make(connection: ServerConnection, table: str, name: str, what: str) -> None:
    """Make an index beside those who write; one that was broken off is gone on with.

    Args:
        connection: The store.
        table: The table, which may be partitioned.
        name: Of the index.
        what: Follows the table in the statement that makes it.
    """
    for part in _parts(connection, "c.oid = to_regclass(?)", table):
        _make_of(connection, part, name, what)


def _make_of(connection: ServerConnection, part: _Part, name: str, what: str) -> None:
    index = f"{part.schema}.{name}"
    if not part.has_parts:
        if not _is_whole(connection, index):
            connection.script(f"DROP INDEX IF EXISTS {index}")
            connection.script(
                f"CREATE INDEX CONCURRENTLY {name} ON {part.name} {what}", patient=True)
        return
    # A partitioned table takes no index beside its writers, but each partition does; the index
    # of the whole is valid once it has those of all.
    connection.script(f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {part.name} {what}")
    for each in _parts(
        connection,
        "c.oid IN (SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = ?)", part.oid,
    ):
        own = f"{name}_{each.oid}"
        _make_of(connection, each, own, what)
        connection.script(f"ALTER INDEX {index} ATTACH PARTITION {each.schema}.{own}")


def _parts(connection: ServerConnection, condition: str, value: object) -> list[_Part]:
    return [
        _Part(quoted(schema), f"{quoted(schema)}.{quoted(table)}", oid, kind == "p")
        for schema, table, oid, kind in connection.execute(
            "SELECT n.nspname, c.relname, CAST(c.oid AS bigint), CAST(c.relkind AS text)"
            " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            f" WHERE {condition} ORDER BY c.oid", (value,)).fetchall()
    ]


def _is_whole(connection: ServerConnection, index: str) -> bool:
    return connection.execute(
        "SELECT 1 FROM pg_catalog.pg_index WHERE indisvalid AND indexrelid = to_regclass(?)",
        (index,)).fetchone() is not None
