"""Reads what is indexed from a store's rows: documents of a message, and its fingerprint.

No read transaction of the store stays open while texts are prepared, so that a host can
checkpoint its file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from store.engine.database import Database
from store.engine.values import Column, number, text
from store.language.folding import index_form
from store.search.index.terms import trigrams
from store.search.text import SideFile, decode_part, sections, side_file_names, side_file_reader

READ_AT_ONCE = 4 << 20
"""Characters of parts that are read in one statement, and at least one part."""
DOCUMENT_SIZE = 24_000
"""A document of a long message ends with the part that takes it to so many characters."""
DOCUMENTS_OF_SIZE = 256
"""After so many documents of a message they become twice as long, and so on."""
_NAMES_SIDE_FILE = '"attachment"'


TITLE = ""
"""Takes the place of a message's id where a session's title is meant."""


class MessageKey(NamedTuple):
    """A message of the store, or the title of a session.

    Attributes:
        id: Of the message; ``TITLE`` for the session's title.
        created_at: Epoch ms; of a title the session's.
    """

    id: str
    session_id: str
    created_at: int


@dataclass(slots=True)
class Document:
    """A message, or some parts of a long one.

    Attributes:
        first: Index of its first part.
        last: Index of its last part.
        terms: Its trigrams.
    """

    first: int
    last: int
    terms: set[int]


@dataclass(slots=True)
class MessageTexts:
    """What is indexed of a message.

    Attributes:
        fingerprint: As the function ``fingerprint`` returns it.
        size: Number of characters.
        documents: At least one, in the order of the parts.
    """

    fingerprint: int
    size: int = 0
    documents: list[Document] = field(default_factory=list)


def message_of(db: Database, message_id: str) -> MessageKey | None:
    """Return a message; None if the store does not have it."""
    row = db.connection.execute(
        "SELECT id, session_id, created_at FROM chat_messages WHERE id = ?", (message_id,)
    ).fetchone()
    return None if row is None else _key(row)


def title_of(db: Database, session_id: str) -> MessageKey | None:
    """Return the key of a session's title; None if the session is gone or has no title."""
    row = db.connection.execute(
        f"SELECT '', s.id, s.created_at FROM chat_sessions s WHERE s.id = ?"
        f" AND coalesce({db.form.title('s')}, '') <> ''", (session_id,)
    ).fetchone()  # fmt: skip
    return None if row is None else _key(row)


_AT = "CASE WHEN typeof(created_at) IN ('integer', 'real') THEN created_at ELSE 0 END"


def newest_first(db: Database, since: int) -> array[int]:
    """Return the rowids of all messages up to a time, and -1 - rowid of the sessions."""
    rowids = array("q")
    for at, rowid in db.connection.execute(
        f"SELECT {_AT}, rowid FROM chat_messages UNION ALL"
        f" SELECT {_AT}, -1 - rowid FROM chat_sessions ORDER BY 1 DESC, 2 DESC"
    ):
        if at <= since:
            rowids.append(rowid)
    return rowids


def at_rowid(db: Database, rowid: int) -> MessageKey | None:
    """Return what ``newest_first`` named; None if it is gone, or a session without a title."""
    if rowid < 0:
        row = db.connection.execute(
            "SELECT id FROM chat_sessions WHERE rowid = ?", (-1 - rowid,)
        ).fetchone()
        return None if row is None else title_of(db, text(row[0]) or "")
    row = db.connection.execute(
        "SELECT id, session_id, created_at FROM chat_messages WHERE rowid = ?", (rowid,)
    ).fetchone()
    return None if row is None else _key(row)


def _key(row: tuple[Column, ...]) -> MessageKey:
    return MessageKey(text(row[0]) or "", text(row[1]) or "", number(row[2]))


def fingerprint(db: Database, message: MessageKey) -> int:
    """Return a checksum of all that is indexed of a message."""
    found = _Fingerprint(db, message.session_id)
    for index, kind, data in _parts(db, message):
        found.add(index, kind, data)
    return found.value


def message_texts(db: Database, message: MessageKey) -> MessageTexts:
    """Return what is indexed of a message."""
    found = _Fingerprint(db, message.session_id)
    read = side_file_reader(db, message.session_id)
    made = MessageTexts(0)
    splitter = _Splitter(made.documents)
    for index, kind, data in _parts(db, message):
        found.add(index, kind, data)
        splitter.add(index, [index_form(data)] if message.id == TITLE else _forms(kind, data, read))
    splitter.end()
    made.fingerprint, made.size = found.value, splitter.size
    return made


def _forms(kind: str, data: str, read: SideFile) -> list[str]:
    # Role and origin only say which place a text is in, not whether it is searched.
    texts = sections(decode_part(kind, data), "user", None, read)
    return [index_form(each.text) for each in texts]


class _Splitter:
    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents
        self.size = self.length = 0
        self.first = self.last = 0
        self.forms: list[str] = []
        self.empty = True

    def add(self, index: int, forms: list[str]) -> None:
        limit = DOCUMENT_SIZE << (len(self.documents) // DOCUMENTS_OF_SIZE)
        length = sum(map(len, forms))
        if self.length and self.length + length > limit:
            self._close()
        self.first = index if self.empty else self.first
        self.last, self.empty = index, False
        self.length += length
        self.size += length
        self.forms += forms

    def end(self) -> None:
        if not self.empty or not self.documents:
            self._close()

    def _close(self) -> None:
        self.documents.append(Document(self.first, self.last, trigrams(self.forms)))
        self.forms, self.length, self.empty = [], 0, True


class _Fingerprint:
    def __init__(self, db: Database, session_id: str) -> None:
        self.value = 0
        self._db, self._session_id = db, session_id

    def add(self, index: int, kind: str, data: str) -> None:
        # The type of the row wins over the one in the data.
        self.value = crc32(kind.encode("utf-8", "surrogatepass"), self.value)
        self.value = crc32(data.encode("utf-8", "surrogatepass"), self.value ^ index & 0xFFFFFFFF)
        if _NAMES_SIDE_FILE in data and self._db.form.name == "own":
            for name in side_file_names(decode_part("", data)):
                self._add_side_file(name)

    def _add_side_file(self, name: str) -> None:
        row = self._db.connection.execute(
            "SELECT body FROM attachments WHERE session_id = ? AND name = ?",
            (self._session_id, name),
        ).fetchone()
        self.value = crc32(b"-" if row is None else row[0], self.value)


def _parts(db: Database, message: MessageKey) -> Iterator[tuple[int, str, str]]:
    """Yield index, type and data of a message's parts, in order; a title as one part."""
    if message.id == TITLE:
        row = db.connection.execute(
            f"SELECT {db.form.title('s')} FROM chat_sessions s WHERE s.id = ?",
            (message.session_id,),
        ).fetchone()
        yield 0, "", (text(row[0]) if row else None) or ""
        return
    done = 0
    while True:
        cursor = db.connection.execute(
            'SELECT "index", type, data_json FROM chat_parts WHERE message_id = ?'
            ' ORDER BY "index", id LIMIT -1 OFFSET ?',
            (message.id, done),
        )
        rows: list[tuple[int, str, str]] = []
        size = 0
        for index, kind, data in cursor:
            rows.append((number(index), text(kind) or "", text(data) or ""))
            size += len(rows[-1][2])
            if size >= READ_AT_ONCE:
                break
        cursor.close()
        yield from rows
        if size < READ_AT_ONCE:
            return
        done += len(rows)
