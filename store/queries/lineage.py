"""A session's family: where it comes from, what was branched off it, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from store.conversation.outline_marks import OUTLINE
from store.engine.database import Database
from store.engine.values import Column, number, number_or_none, text
from store.errors import no_session
from store.queries.helpers import shown_in_tree, without_helpers
from store.system.records import NamedTuple

LineageKind = Literal["root", "fork", "subagent", "continuation", "unknown"]
_KINDS: tuple[LineageKind, ...] = ("fork", "subagent", "continuation")


@dataclass(frozen=True, slots=True)
class FamilyNode:
    """One session in the tree of its family.

    Attributes:
        depth: 0 for the root.
        last_of_parent: Whether no sibling comes after it.
        parent_message_id: The parent's message where it parts, where that is known.
        total_tokens: The session's rollup.
        labels: How many of its messages carry a label.
        outline: Whether it is listed and not read yet: its turns are unknown.
    """

    id: str
    title: str | None
    agent: str
    kind: LineageKind
    depth: int
    last_of_parent: bool
    parent_id: str | None
    parent_message_id: str | None
    total_tokens: int
    created_at: int
    updated_at: int
    archived_at: int | None
    labels: int
    outline: bool = False


def has_children(db: Database, session_id: str) -> bool:
    """Return whether a session has others below it; an index tells."""
    return db.connection.execute(
        "SELECT 1 FROM chat_sessions WHERE parent_id = ? AND id <> ? LIMIT 1",
        (session_id, session_id),
    ).fetchone() is not None


def root_of(db: Database, session_id: str) -> str:
    """Return the topmost ancestor that the store still has; of a loop its oldest session."""
    seen = [session_id]
    current = session_id
    while True:
        row = db.connection.execute(
            "SELECT p.id FROM chat_sessions s JOIN chat_sessions p ON p.id = s.parent_id"
            " WHERE s.id = $1",
            {"1": current},
        ).fetchone()
        if row is None:
            return current
        if row[0] in seen:
            return _oldest(db, seen[seen.index(row[0]) :])
        current = row[0]
        seen.append(current)


def _oldest(db: Database, session_ids: Sequence[str]) -> str:
    ages = (
        db.connection.execute(
            "SELECT created_at, id FROM chat_sessions WHERE id = $1", {"1": each}
        ).fetchone()
        for each in session_ids
    )
    return min((number(at), str(session_id)) for at, session_id in ages)[1]


def _kind(db: Database, stored: str | None, parent: str | None, copies: bool) -> LineageKind:
    """Tell the kind of a child: what is stored, else whether it holds older messages.

    Source of the second rule: the page on Grida's form (a fork's copies keep their times,
    so its first message is older than the session).
    """
    if parent is None:
        return "root"
    for kind in _KINDS:
        if stored == kind:
            return kind
    return "fork" if copies and db.form.name != "own" else "unknown"


def family(db: Database, session_id: str, *, helpers: bool = False) -> list[FamilyNode]:
    """Return the whole family of a session in the order of its tree, children by age.

    One pass over the parent index; 10,000 sessions cost a fraction of a second.

    Args:
        db: The store.
        session_id: Any session of the family.
        helpers: Also runs that agents started for themselves; without it only the session
            itself is one.
    """
    root, sql = root_of(db, session_id), db.sql
    metadata, labels = "s.metadata_json", "'\"labels\"'"
    rows = db.connection.execute(
        f"WITH RECURSIVE family(id) AS (SELECT {sql.as_id('$1')}"
        " UNION SELECT s.id FROM chat_sessions s JOIN family f ON s.parent_id = f.id"
        f" WHERE {shown_in_tree(db, helpers=helpers)})"
        f" SELECT s.id, {db.form.title('s')}, s.agent, {db.form.fact('s', 'lineage.kind')},"
        f" s.parent_id, s.parent_message_id, s.total_tokens, s.created_at, s.updated_at,"
        f" s.archived_at, {_copies(db)}, CASE WHEN {sql.contains(metadata, labels)}"
        f" AND {sql.is_json(metadata)} THEN"
        f" (SELECT count(*) FROM {sql.items(metadata, 'user.labels', 'l')}) ELSE 0 END,"
        f" {sql.is_true(metadata, f'source.{OUTLINE}')}"
        f" FROM family f {sql.then_join} chat_sessions s ON s.id = f.id"
        " ORDER BY s.created_at, s.id",
        {"1": root, "2": session_id},
    ).fetchall()
    return _in_tree_order(db, [_FamilyRow(*row) for row in rows], root)


class _FamilyRow(NamedTuple):
    """A session of a family as SQLite gives it."""

    id: Column
    title: Column
    agent: Column
    kind: Column
    parent_id: Column
    parent_message_id: Column
    total_tokens: Column
    created_at: Column
    updated_at: Column
    archived_at: Column
    has_copies: Column
    labels: Column
    outline: Column


def _in_tree_order(
    db: Database, rows: Sequence[_FamilyRow], root: str
) -> list[FamilyNode]:
    children: dict[str | None, list[_FamilyRow]] = {}
    for row in rows:
        children.setdefault(text(row.parent_id), []).append(row)
    nodes: list[FamilyNode] = []
    # All rows lie below the root, those of a loop of parents too.
    stack = [(row, 0, True) for row in rows if text(row.id) == root]
    placed: set[str] = set()
    while stack:
        row, depth, last = stack.pop()
        node = _node(db, row, depth, last)
        if node.id in placed:
            continue
        placed.add(node.id)
        nodes.append(node)
        below = children.get(node.id, [])
        stack.extend((child, depth + 1, n == 0) for n, child in enumerate(reversed(below)))
    return nodes


def _node(db: Database, row: _FamilyRow, depth: int, last: bool) -> FamilyNode:
    parent = text(row.parent_id) if depth else None
    return FamilyNode(
        id=text(row.id) or "",
        title=text(row.title),
        agent=text(row.agent) or "",
        kind=_kind(db, text(row.kind), parent, bool(row.has_copies)),
        depth=depth,
        last_of_parent=last,
        parent_id=parent,
        parent_message_id=text(row.parent_message_id),
        total_tokens=number(row.total_tokens),
        created_at=number(row.created_at),
        updated_at=number(row.updated_at),
        archived_at=number_or_none(row.archived_at),
        labels=number(row.labels),
        outline=bool(row.outline),
    )


def families(db: Database, *, helpers: bool = False) -> list[str]:
    """Return the roots of all families of more than one session, the newest first.

    Args:
        db: The store.
        helpers: Whether runs that agents started for themselves count.
    """
    left_out = None if helpers else without_helpers(db, "c")
    child = "c.parent_id = p.id" + ("" if left_out is None else f" AND {left_out}")
    rows = db.connection.execute(
        "SELECT p.updated_at, p.id FROM chat_sessions p WHERE EXISTS"
        f" (SELECT 1 FROM chat_sessions c WHERE {child}) AND NOT EXISTS"
        " (SELECT 1 FROM chat_sessions g WHERE g.id = p.parent_id)"
    ).fetchall()
    for root in _loops(db):
        rows += db.connection.execute(
            "SELECT updated_at, id FROM chat_sessions WHERE id = $1", {"1": root}
        ).fetchall()
    newest = sorted(((number(at), str(name)) for at, name in rows), reverse=True)
    return [name for _, name in newest]


def _loops(db: Database) -> list[str]:
    """Return the oldest session of each loop of parents, which hosts' files may hold."""
    parents = dict(
        db.connection.execute(
            "SELECT c.id, p.id FROM chat_sessions c JOIN chat_sessions p ON p.id = c.parent_id"
        ).fetchall()
    )
    passed: set[str] = set()
    found: list[str] = []
    for start in parents:
        path: list[str] = []
        at: str | None = start
        while at is not None and at not in passed:
            passed.add(at)
            path.append(at)
            at = parents.get(at)
        if at in path:
            found.append(_oldest(db, path[path.index(at) :]))
    return found


def turn_counts(db: Database, session_ids: Iterable[str]) -> dict[str, int]:
    """Return the number of turns of each session (``store.conversation.turns``), without hidden."""
    sql = (
        "SELECT count(*) FROM chat_messages m WHERE m.session_id = $1"
        f" AND {db.form.shown('m')} AND {db.form.starts_turn('m')}"
    )
    return {
        session_id: db.connection.execute(sql, {"1": session_id}).fetchone()[0]
        for session_id in session_ids
    }


def turn_number(db: Database, session_id: str, message_id: str) -> int | None:
    """Return the number of the turn that a message belongs to, from 1; None if unknown.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: A message of the turn.
    """
    row = db.connection.execute(
        "SELECT count(*) FROM chat_messages m JOIN chat_messages t ON t.id = $2"
        " WHERE m.session_id = $1 AND t.session_id = $1"
        f" AND {db.form.shown('m')} AND {db.form.starts_turn('m')}"
        " AND (m.created_at, m.id) <= (t.created_at, t.id)",
        {"1": session_id, "2": message_id},
    ).fetchone()
    return number(row[0]) or None


def siblings(db: Database, session_id: str) -> list[str]:
    """Return the branches to step through from a session: its parent and the parent's forks.

    For a session without a parent these are itself and its own forks. In the order of
    their age, the session itself among them; subagents are no branches. Reads the parent
    and its children alone, however large the family is.
    """
    kind, parent = _own_kind(db, session_id)
    stem = parent if parent is not None and kind in ("fork", "continuation", "unknown") else None
    stem = session_id if stem is None else stem
    rows = db.connection.execute(
        f"SELECT s.id, {db.form.fact('s', 'lineage.kind')}, {_copies(db)} FROM chat_sessions s"
        " WHERE s.parent_id = $1 AND s.id <> $1 ORDER BY s.created_at, s.id",
        {"1": stem},
    )
    children = [
        child for child, kind, has_copies in rows
        if _kind(db, text(kind), stem, bool(has_copies)) != "subagent"
    ]
    return [stem, *children]


def _own_kind(db: Database, session_id: str) -> tuple[LineageKind, str | None]:
    """Return the kind of a session, and its parent where the store still has that."""
    row = db.connection.execute(
        f"SELECT {db.form.fact('s', 'lineage.kind')}, p.id, {_copies(db)} FROM chat_sessions s"
        " LEFT JOIN chat_sessions p ON p.id = s.parent_id AND p.id <> s.id WHERE s.id = $1",
        {"1": session_id},
    ).fetchone()
    if row is None:
        raise no_session(session_id)
    kind, parent_id, has_copies = row
    parent = text(parent_id)
    return _kind(db, text(kind), parent, bool(has_copies)), parent


def _copies(db: Database) -> str:
    """Return SQL that tells whether a session ``s`` of a host's begins with older messages."""
    if db.form.name == "own":
        return "0"
    return (
        "(SELECT min(m.created_at) < s.created_at FROM chat_messages m WHERE m.session_id = s.id)"
    )
