"""A session of lionagi as its rows are, before it is mapped.

Tables and columns: the lionagi format page. Absent JSON is the text ``null``. An agent's
model settings, which may hold keys, and the embeddings are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.protocol import Library, Problem
from store.sources.base.row_reader import Later, Row, RowReader, bound_ids
from store.sources.base.values import mapping, string, utc_ms

if TYPE_CHECKING:
    from store.sources.base.servers.connection import Moment

_SECRET = ("chat_model", "parse_model")
_LEFT_OUT = "embedding"
_SIDE = {
    "session_signals": ({"session_id"}, "session_id = $1", "seq"),
    "session_controls": ({"session_id"}, "session_id = $1", "created_at"),
    "status_transitions": (
        {"entity_type", "entity_id"}, "entity_type = 'session' AND entity_id = $1", "created_at"),
    "run_tags": ({"session_id"}, "session_id = $1", "tag"),
    "approvals": ({"session_id"}, "session_id = $1", "proposed_at"),
}
"""Which rows are of a session, the columns that tell it, and the one that orders them."""


@dataclass(slots=True)
class StoredMessage:
    """One row of ``messages``.

    Attributes:
        kind: The last word of its class: ``System``, ``Instruction``, ...; empty where unknown.
        clone_from: The message that it is a copy of.
        at: Epoch ms.
        record: Number of its original record.
    """

    id: str
    kind: str
    role: str
    content: dict[str, Any]
    clone_from: str | None
    at: int
    row: Row
    record: int = -1


@dataclass(slots=True)
class StoredBranch:
    """One row of ``branches``, with the ids of its own progression.

    Attributes:
        metadata: ``node_metadata``.
        record: Number of its original record.
    """

    id: str
    row: Row
    metadata: dict[str, Any]
    ids: list[str]
    record: int = -1


@dataclass(slots=True)
class StoredSession:
    """One row of ``sessions``, and all that belongs to it.

    Attributes:
        ids: Of its own progression.
        messages: By id; those that any of its branches names.
        sides: The session's rows of other tables, by table.
        project_path: The folder of its project, where that is known.
        types: The names of the classes of messages.
        gone: The messages that have no row any more and are of the library.
        hides: Whether this user may not see all rows, so that one that is missing is no damage.
    """

    id: str
    row: Row
    metadata: dict[str, Any]
    path: str
    ids: list[str] = field(default_factory=list)
    branches: dict[str, StoredBranch] = field(default_factory=dict)
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    sides: dict[str, list[Row]] = field(default_factory=dict)
    project_path: str | None = None
    types: dict[Any, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    hides: bool = False
    problems: list[Problem] = field(default_factory=list)

    def complain(self, reason: str) -> None:
        """Note what is damaged in the session."""
        self.problems.append(Problem(self.path, 0, f"session {self.id}: {reason}"))

    def miss(self, reason: str) -> None:
        """Note that rows are missing."""
        if not self.hides:
            self.complain(reason)


ToStored = Callable[[str], StoredSession | None]
"""Returns a session of its fetched rows, None when it is not there any more; takes the
database, for problems."""


@dataclass(slots=True)
class Kept:
    """The messages of a session that grows on a server, as they were read last.

    Attributes:
        messages: By id.
        since: When; None where nothing was read, or where rows do not name the transaction
            that wrote them.
    """

    messages: dict[str, StoredMessage] = field(default_factory=dict)
    since: Moment | None = None


def fetch_rows(
    reader: RowReader,
    session_id: str,
    kept: Kept,
    now: Moment | None = None,
    newer: str | None = None,
) -> ToStored:
    """Fetch a session's rows; return what makes a session of them.

    Args:
        reader: Runs the statements.
        session_id: The session's id at the source.
        kept: The messages that need not be fetched where they are the same.
        now: What ``kept.since`` is from now on.
        newer: The condition that a row may have been written since what is bound at 2.
    """
    of_sessions = reader.listed("sessions")
    found = reader.rows(f"SELECT {of_sessions} FROM sessions WHERE id = $1", session_id)
    if not found:
        return lambda path: None
    row = found[0]
    stored = StoredSession(session_id, row, mapping(decoded(row.get("node_metadata"))), "")
    stored.hides = any(map(reader.is_narrowed, ("messages", "branches", "progressions")))
    stored.ids = _collection(reader, stored, row.get("progression_id")) or []
    of_session = f"SELECT {reader.listed('branches')} FROM branches WHERE session_id = $1"
    for branch in in_sequence(reader.rows(of_session, session_id), "created_at", "id"):
        _take_branch(reader, stored, branch)
    _take_relatives(reader, stored)
    types: Later = list
    if {"type_id", "lion_class"} <= reader.permitted("message_types"):
        types = reader.later("SELECT type_id, lion_class FROM message_types")
    messages = _fetch_messages(reader, stored, kept, newer)
    sides = {
        table: reader.later(
            f"SELECT {reader.listed(table)} FROM {table} WHERE {condition}", session_id
        )
        for table, (needed, condition, _) in _SIDE.items() if needed <= reader.permitted(table)
    }  # fmt: skip
    project = string(row.get("project"))
    if project is not None and {"name", "path"} <= reader.permitted("projects"):
        known = reader.rows("SELECT path FROM projects WHERE name = $1", project)
        stored.project_path = string(known[0]["path"]) if known else None

    def made(path: str) -> StoredSession:
        stored.path = path
        stored.problems = [replace(problem, path=path) for problem in stored.problems]
        names = {row["type_id"]: str(row["lion_class"]) for row in types()}
        stored.types = names
        kept.messages = messages(names)
        stored.messages, kept.since = dict(kept.messages), now
        for table, rows in sides.items():
            stored.sides[table] = in_sequence(rows(), _SIDE[table][2])
        return stored

    return made


def in_sequence(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Return rows in the order of some columns, NULL first, texts by their code points."""
    return sorted(rows, key=lambda row: [_rank(row.get(one)) for one in columns])


def _rank(value: Any) -> tuple[int, Any]:
    """Return what orders values of whatever types as SQLite does."""
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, bytes(value))


_FORKED = ("parent_branch_id", "forked_at_ord")


def _take_branch(reader: RowReader, stored: StoredSession, row: Row) -> None:
    # Its design wants the place of a fork in columns of its own some day.
    places = {key: row[key] for key in _FORKED if row.get(key) is not None}
    metadata = places | mapping(decoded(row.get("node_metadata")))
    ids = _collection(reader, stored, row.get("progression_id"))
    if ids is None:
        stored.miss(f"branch {row['id']} has no progression")
    stored.branches[str(row["id"])] = StoredBranch(str(row["id"]), row, metadata, ids or [])


def _take_relatives(reader: RowReader, stored: StoredSession) -> None:
    """Read the branches of other sessions that branches here were made from."""
    wanted = list(stored.branches.values())
    while wanted:
        parent = parent_of(wanted.pop())
        if parent is None or parent in stored.branches:
            continue
        listed = reader.listed("branches")
        for row in reader.rows(f"SELECT {listed} FROM branches WHERE id = $1", parent):
            _take_branch(reader, stored, row)
            wanted.append(stored.branches[parent])


def parent_of(branch: StoredBranch) -> str | None:
    """Return the branch that one was made from."""
    clone = mapping(branch.metadata.get("clone_from"))
    return string(clone.get("id")) or string(branch.metadata.get("parent_branch_id"))


def _collection(reader: RowReader, stored: StoredSession, progression: Any) -> list[str] | None:
    found = reader.rows("SELECT collection FROM progressions WHERE id = $1", progression)
    if not found:
        return None
    ids = decoded(found[0]["collection"])
    if not isinstance(ids, list):
        stored.complain(f"progression {progression} holds no list")
        return []
    return [one for one in ids if isinstance(one, str)]


def _fetch_messages(
    reader: RowReader, stored: StoredSession, kept: Kept, newer: str | None
) -> Callable[[dict[Any, str]], dict[str, StoredMessage]]:
    """Fetch all messages that the branches name, and those that these are copies of.

    Args:
        reader: Runs the statements.
        stored: The session with its branches.
        kept: The messages that were read before.
        newer: The condition that a row may have been written since.

    Returns:
        What returns the messages by id; takes the names of types.
    """
    wanted = _named(stored)
    known = _unchanged(reader, kept, newer)
    fetched, asked = list[Later](), set[str]()
    while wanted := wanted - asked:
        asked |= wanted
        new = bound_ids(sorted(wanted - known.keys()))
        sql = f"SELECT {_of_messages(reader)} FROM messages WHERE id {reader.any_of(1)}"
        fetched.append(reader.later(sql, new))
        wanted = {
            message.clone_from for name in wanted
            if (message := known.get(name)) is not None and message.clone_from is not None
        }  # fmt: skip
        wanted |= _originals(reader, new)

    def messages(names: dict[Any, str]) -> dict[str, StoredMessage]:
        found = {name: known[name] for name in asked if name in known}
        for rows in fetched:
            for row in rows():
                message = _message(stored, row, names)
                found[message.id] = message
        return found

    return messages


def _named(stored: StoredSession) -> set[str]:
    """Return the ids of the messages that a session and its branches name."""
    wanted = set(stored.ids)
    for branch in stored.branches.values():
        wanted.update(branch.ids)
        system = string(branch.row.get("system_msg_id"))
        clone = mapping(branch.metadata.get("clone_from")).get("progression")
        listed = clone if isinstance(clone, list) else ()
        wanted.update(one for one in (system, *listed) if isinstance(one, str))
    return wanted


def add_gone(stored: StoredSession, library: Library) -> None:
    """Add the messages that are named and have no row, as the library has them."""
    wanted = _named(stored) - stored.messages.keys()
    if not wanted or not library.keeps_deleted:
        return
    rows: dict[str, Row] = {}
    for name in (stored.id, *stored.branches):
        for record in library.records(name):
            row = mapping(decoded(record))
            if row.get("table") == "messages":
                rows[str(row.get("id"))] = {key: row[key] for key in row if key != "table"}
    while wanted:
        for name in wanted & rows.keys():
            stored.messages[name] = _message(stored, rows[name], stored.types)
            stored.gone.add(name)
        originals = {stored.messages[name].clone_from for name in wanted & rows.keys()}
        wanted = {name for name in originals if name is not None} - stored.messages.keys()


def _unchanged(reader: RowReader, kept: Kept, newer: str | None) -> dict[str, StoredMessage]:
    """Return the messages that were read before and are there as they were."""
    if newer is None or kept.since is None or not kept.messages:
        return {}
    names = bound_ids(sorted(kept.messages))
    of_known = f"FROM messages WHERE id {reader.any_of(1)}"
    (there,) = reader.rows(f"SELECT count(*) AS count {of_known}", names)
    if there["count"] != len(kept.messages):
        return {}
    changed = reader.rows(f"SELECT id {of_known} AND {newer}", names, kept.since.oldest)
    gone = {str(row["id"]) for row in changed}
    return {name: one for name, one in kept.messages.items() if name not in gone}


def _originals(reader: RowReader, names: str) -> set[str]:
    """Return the ids of the messages that some are copies of; decodes no other column."""
    if "node_metadata" not in reader.readable("messages"):
        return set()
    found = reader.rows(
        f"SELECT node_metadata FROM messages WHERE id {reader.any_of(1)}"
        f" AND {reader.contains('node_metadata', 2)}",
        names, '"clone_from"',
    )  # fmt: skip
    clones = (mapping(decoded(row["node_metadata"])).get("clone_from") for row in found)
    return {name for name in map(string, clones) if name is not None}


def _of_messages(reader: RowReader) -> str:
    return ", ".join(f'"{name}"' for name in sorted(reader.readable("messages") - {_LEFT_OUT}))


def _message(stored: StoredSession, row: Row, names: dict[Any, str]) -> StoredMessage:
    metadata, content = mapping(decoded(row.get("node_metadata"))), decoded(row.get("content"))
    name = string(metadata.get("lion_class")) or names.get(row.get("lion_class"), "")
    kind = name.rpartition(".")[2] if "." in name else ""
    if not isinstance(content, dict):
        stored.complain(f"message {row['id']} holds no JSON object")
        kind, content = "", {"unreadable": content}
    row = {**row, "node_metadata": metadata, "content": content}
    return StoredMessage(
        str(row["id"]), kind, str(row.get("role")), content, string(metadata.get("clone_from")),
        utc_ms(row.get("created_at")) or 0, row,
    )  # fmt: skip


def plain_row(table: str, row: Row, metadata: dict[str, Any] | None = None) -> bytes:
    """Return a row as an original record, without what may hold keys.

    Args:
        table: Its table.
        row: The row.
        metadata: Its decoded ``node_metadata``.
    """
    kept = {key: decoded(value) for key, value in row.items() if key != _LEFT_OUT}
    if metadata is not None:
        kept["node_metadata"] = {k: v for k, v in metadata.items() if k not in _SECRET}
    return record_bytes({"table": table, **kept})
