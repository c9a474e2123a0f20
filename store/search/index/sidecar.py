"""The index file of a store: its place, tables and format.

``block``: documents that were indexed together; ``alive`` is a bitmap of the documents that
are current, ``heads`` of the first document of each message (see ``postings``). A full one
has a ``slot``.
``posting``: by block and term, the documents with the term.
``term_blocks``: by term, the blocks with a slot that have it, as a bitmap of their slots.
``message``: what is indexed. A message has one document or, where it is long, several in a
row, from ``place`` on; ``ranges_json`` then has the first and last part index of each.
``fingerprint`` tells whether the rows still are what was indexed.
``dead``: documents that newer ones replaced; they go when their block is
merged or cleared.
``about``: the format, which store it is, and how far the index is.
"""

from __future__ import annotations

from zlib import crc32

from store.engine.sidecars import (
    Sidecar,
    empty_log,
    is_damage,
    number_of,
    remove_files,
    set_values,
    store_identity,
    transaction,
    value_of,
)
from store.errors import StoreError
from store.search.index.terms import TERMS_VERSION

__all__ = [
    "EVERYTHING", "INDEX", "LARGE_BACKLOG", "NOTHING", "IndexUnusable", "empty_log", "has_tables",
    "index_path", "is_damage", "message_key", "number_of", "open_existing", "open_for_reading",
    "open_for_writing", "remove_files", "set_values", "store_identity", "transaction", "unusable",
    "value_of",
]  # fmt: skip

EVERYTHING, NOTHING = -(1 << 62), 1 << 62
"""Values of ``since``: all messages are in the index, or none."""
LARGE_BACKLOG = 50
"""With more changed sessions than these waiting, the index does not count as complete."""

_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE session (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE block (
    number INTEGER PRIMARY KEY,
    size   INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    oldest INTEGER NOT NULL,
    alive  BLOB NOT NULL,
    heads  BLOB NOT NULL,
    slot   INTEGER UNIQUE
);
CREATE TABLE posting (
    block INTEGER NOT NULL,
    term  BLOB NOT NULL,
    body  BLOB NOT NULL,
    PRIMARY KEY (block, term)
) WITHOUT ROWID;
CREATE TABLE term_blocks (term BLOB PRIMARY KEY, slots BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE message (
    block       INTEGER NOT NULL,
    place       INTEGER NOT NULL,
    session     INTEGER NOT NULL,
    key         INTEGER NOT NULL,
    id          TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    documents   INTEGER NOT NULL,
    ranges_json TEXT,
    PRIMARY KEY (block, place)
) WITHOUT ROWID;
CREATE INDEX message_key ON message(session, key);
CREATE TABLE dead (
    block     INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    documents INTEGER NOT NULL,
    session   INTEGER NOT NULL,
    PRIMARY KEY (block, place)
) WITHOUT ROWID;
CREATE INDEX dead_session ON dead(session);
"""


class IndexUnusable(StoreError):
    """The index file is damaged, locked or on a full disk; the message says which."""


INDEX = Sidecar(
    ".search", f"4 {TERMS_VERSION}", _TABLES,
    ("about", "session", "block", "posting", "term_blocks", "message", "dead"), "search index",
    IndexUnusable,
)  # fmt: skip
index_path = INDEX.path
open_for_writing = INDEX.open_for_writing
open_existing = INDEX.open_existing
open_for_reading = INDEX.open_for_reading
has_tables = INDEX.has_tables
unusable = INDEX.unusable


def message_key(message_id: str) -> int:
    """Return the short key by which the entry of a message is found."""
    return crc32(message_id.encode("utf-8", "surrogatepass"))
