"""Reads exported sessions back into a store, under the ids they had.

Takes what ``export --to jsonl`` and ``--to json`` write, of one session or of several in
a row. Each session is one transaction: it comes in whole or not at all. A session that
the store has already is left as it is; damage costs the session it lies in, and is named.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError

from store.engine.database import Database
from store.engine.transactions import transaction
from store.errors import BackscrollError, Refused
from store.exports.reading import Row, read_session
from store.ids import ID_SHAPE
from store.imports.rows import columns_by_key, insert_rows, same_row
from store.system.clock import Clock, system_clock
from store.text.exact_json import LONGEST_LINE, NotJson, bounded_lines, decode
from store.usage import Rollups

Outcome = Literal["added", "unchanged", "refused"]
TABLES = {"session": "chat_sessions", "message": "chat_messages", "part": "chat_parts"}
_UNFIT = (
    sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, OverflowError,
    UnicodeEncodeError,
)  # fmt: skip
"""What SQLite and its module raise for values that a row cannot hold."""


def _fits(value: Any) -> Any:
    """Return a value that a column holds as it is.

    Raises:
        PydanticCustomError: SQLite has no such value.
    """
    if isinstance(value, dict | list):
        raise PydanticCustomError("cell", "a text or a number is needed")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise PydanticCustomError("cell", "the number has more than 64 bits")
    return value


Id = Annotated[str, Field(pattern=ID_SHAPE)]
Whole = Annotated[int, AfterValidator(_fits)]
Cell = Annotated[Any, AfterValidator(_fits)]


class _ImportedRow(BaseModel):
    """What every row must have to be stored; further columns pass through."""

    model_config = ConfigDict(extra="allow", strict=True)

    id: Id
    created_at: Whole
    updated_at: Whole


class _SessionFacts(_ImportedRow):
    agent: str
    parent_id: Id | None = None
    workspace_root: Cell = None
    parent_message_id: Cell = None
    archived_at: Cell = None


_ROLLUPS: dict[str, Any] = {column: (Cell, None) for column in Rollups._fields}
_ImportedSession = create_model("_ImportedSession", __base__=_SessionFacts, **_ROLLUPS)


class _ImportedMessage(_ImportedRow):
    session_id: Id
    role: str


class _ImportedPart(_ImportedRow):
    message_id: Id
    session_id: Id
    index: Whole
    type: str
    tool_call_id: Cell = None
    tool_state: Cell = None


_NO_ID = "it may have letters, digits and _ . : ~ @ = + - and begins with a letter, a digit or _"
_MODELS: dict[str, type[_ImportedRow]] = {
    "session": _ImportedSession, "message": _ImportedMessage, "part": _ImportedPart,
}  # fmt: skip


@dataclass(slots=True)
class Imported:
    """What became of one session of the file.

    Attributes:
        outcome: ``added``; ``unchanged``, when the store has the very same rows already;
            ``refused``, for the reasons in ``problems``.
    """

    session_id: str
    title: str | None
    outcome: Outcome
    messages: int = 0
    parts: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """The rows of one session while its lines are read."""

    session: Row
    messages: list[Row] = field(default_factory=list)
    parts: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def import_file(
    db: Database, path: Path, *, name: str | None = None, clock: Clock = system_clock
) -> Iterator[Imported]:
    """Bring the sessions of an exported file into a store.

    Args:
        db: The store, open for writing, outside of a transaction.
        path: A file that ``export`` wrote.
        name: What messages call it; its path where this is None.
        clock: Returns the present as epoch ms.

    Yields:
        Each session, after it is stored or refused. What comes before the first session
        and is damaged comes with an empty ``session_id``.

    Raises:
        Refused: The store is read only, or the file holds no session rows.
        BackscrollError: The file cannot be read.
    """
    if db.read_only:
        raise Refused(db.read_only)
    for pending in _pending_sessions(path, name or str(path)):
        yield _import_one(db, pending, clock())


def _pending_sessions(path: Path, name: str) -> Iterator[_Pending]:
    try:
        with path.open("rb") as file:
            start = file.read(4096).lstrip()
            file.seek(0)
            if not start:
                raise Refused(f"{name} is empty")
            if start.startswith(b"["):
                raise Refused(
                    f"{name} has messages without a session (export --to ui-messages);"
                    " import --to jsonl or --to json"
                )
            if start.startswith(b'{"session"'):
                yield _whole_document(name, file.read())
                return
            yield from _by_line(name, file)
    except OSError as error:
        raise BackscrollError(f"{name} cannot be read: {error.strerror}") from error


def _whole_document(name: str, text: bytes) -> _Pending:
    try:
        document = decode(text)
        pending = _Pending(document["session"])
        for item in document["messages"]:
            pending.messages.append(item["message"])
            pending.parts += item["parts"]
    except (NotJson, UnicodeDecodeError) as error:
        raise Refused(f"{name} is damaged: {error}") from error
    except (KeyError, TypeError) as error:
        raise Refused(f"{name} is not a session export: {error!r}") from error
    _check(pending, "session", pending.session, name)
    for kind, rows in (("message", pending.messages), ("part", pending.parts)):
        for number, row in enumerate(rows):
            _check(pending, kind, row, f"{name}: {kind} {number + 1}")
    return pending


def _by_line(name: str, file: BinaryIO) -> Iterator[_Pending]:
    current = _Pending({})
    seen_session = False
    for number, line in enumerate(bounded_lines(file), 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        kind, row = _read_line(line, place, current)
        if kind == "session":
            if current.session or current.problems:
                yield current
            current, seen_session = _Pending(row), True
        if kind:
            _check(current, kind, row, place)
        if kind == "message":
            current.messages.append(row)
        elif kind == "part":
            current.parts.append(row)
    if not seen_session:
        reason = f" ({current.problems[0]})" if current.problems else ""
        raise Refused(f"{name} has no session{reason}")
    yield current


def _read_line(line: bytes, place: str, current: _Pending) -> tuple[str, Row]:
    """Return a line's kind and row; an empty kind when it is damaged, which is noted."""
    if len(line) > LONGEST_LINE:
        current.problems.append(f"{place}: longer than {LONGEST_LINE >> 20} MiB")
        return "", {}
    try:
        record = decode(line)
    except (NotJson, UnicodeDecodeError) as error:
        current.problems.append(f"{place}: no JSON: {error}")
        return "", {}
    kind = record.get("type") if isinstance(record, dict) else None
    row = record.get("data") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in TABLES or not isinstance(row, dict):
        current.problems.append(f"{place}: neither a session, a message nor a part")
        return "", {}
    return str(kind), row


def _check(pending: _Pending, kind: str, row: Row, place: str) -> None:
    try:
        _MODELS[kind].model_validate(row)
    except ValidationError as error:
        for fault in error.errors():
            name = ".".join(str(step) for step in fault["loc"])
            reason = _NO_ID if fault["type"] == "string_pattern_mismatch" else fault["msg"]
            pending.problems.append(f"{place}: {kind} without a proper {name}: {reason}")
        return
    session_id = pending.session.get("id")
    if kind != "session" and row["session_id"] != session_id:
        owner = session_id or "no session"
        pending.problems.append(f"{place}: {kind} of {row['session_id']} among those of {owner}")


def _import_one(db: Database, pending: _Pending, now: int) -> Imported:
    session = pending.session
    metadata = session.get("metadata")
    title = session.get("title") or (metadata.get("title") if isinstance(metadata, dict) else None)
    result = Imported(
        str(session.get("id", "")), title if isinstance(title, str) else None, "refused",
        len(pending.messages), len(pending.parts), pending.problems,
    )  # fmt: skip
    if result.problems:
        return result
    known = {row["id"] for row in pending.messages}
    orphans = [row for row in pending.parts if row["message_id"] not in known]
    if orphans:
        result.problems.append(
            f"{len(orphans)} parts belong to no message of the file, the first is "
            f"{orphans[0]['id']}"
        )
    if not result.problems:
        result.outcome = _store(db, pending, result, now)
    return result


def _store(db: Database, pending: _Pending, result: Imported, now: int) -> Outcome:
    try:
        with transaction(db.connection, begin=db.beginning_beside_recorders()):
            db.lock_session(result.session_id)
            return _insert(db, pending, result, now)
    except _UNFIT as error:
        result.problems.append(f"cannot be stored: {_meaning(error)}")
        return "refused"


_TAKEN = re.compile(r'(?:UNIQUE constraint failed: |unique constraint ")chat_(\w+)s[._]')
"""As SQLite and PostgreSQL say it."""


def _meaning(error: Exception) -> str:
    taken = _TAKEN.search(str(error))
    if taken is not None:
        return f"a {taken[1]} of this id belongs to another session there"
    return str(error)


def _insert(db: Database, pending: _Pending, result: Imported, now: int) -> Outcome:
    row = db.connection.execute(
        "SELECT 1 FROM chat_sessions WHERE id = $1", {"1": result.session_id}
    ).fetchone()
    if row is not None:
        if _is_same(db, pending):
            return "unchanged"
        result.problems.append(
            f"session {result.session_id} is in the store already, with other content; "
            "forget it there first to take this one"
        )
        return "refused"
    for kind, rows in (
        ("session", [pending.session]), ("message", pending.messages), ("part", pending.parts),
    ):
        insert_rows(db, TABLES[kind], rows)
    if db.form.name == "own":
        db.connection.execute(
            "INSERT INTO changes(session_id, changed_at) VALUES ($1, $2)",
            {"1": result.session_id, "2": now},
        )
    return "added"


def _is_same(db: Database, pending: _Pending) -> bool:
    """Return whether the store holds exactly the rows of the file."""
    there = read_session(db, pending.session["id"])
    of_session, of_message, of_part = (columns_by_key(db, table) for table in TABLES.values())
    if not same_row(pending.session, there.session, of_session):
        return False
    messages = {row["id"]: row for row in pending.messages}
    parts = {row["id"]: row for row in pending.parts}
    for item in there.messages:
        if not same_row(messages.pop(item.message["id"], None), item.message, of_message):
            return False
        for part in item.parts:
            if not same_row(parts.pop(part["id"], None), part, of_part):
                return False
    return not messages and not parts
