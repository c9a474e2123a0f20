"""What the inspector shows of one part: its row, its message, its turn, its session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.conversation.turns import starts_turn
from store.engine.database import Database
from store.engine.reading import PART_COLUMNS, message_columns, message_row, part_row
from store.engine.values import amount, decoded, number, text
from store.errors import NotFound
from store.prices.estimating import priced
from store.prices.table import PriceTable
from store.queries.transcript import starting_message
from store.rows import MessageRow, PartRow
from store.usage import COLUMNS, Spent


@dataclass(slots=True)
class LinkedSession:
    """A session that the part or its session is linked to.

    Attributes:
        message_id: The message of the other session that the link means, if any.
    """

    id: str
    title: str | None
    agent: str
    message_id: str | None = None


@dataclass(slots=True)
class PartDetail:
    """One part with its surroundings.

    Attributes:
        position: Its position among the message's parts, from 1.
        parts: How many parts the message has.
        turn: Usage of the turn that the message belongs to; None outside of turns.
        turn_messages: How many assistant messages the turn has.
        session: Usage of the whole session, as its rollup columns say.
        children: Sessions that the tool call of this part started.
        parent: The session that this one was forked from or started by.
        attachments: Side files of the session by name: media type, size in bytes.
        permissions_json: The rules of permission of the session.
        scope: The scope that a hub resolved for its role.
        rewritten: Whether the server stores its JSON in an order of its own (``jsonb``).
    """

    part: PartRow
    message: MessageRow
    position: int
    parts: int
    turn: Spent | None
    turn_messages: int
    session: Spent
    children: list[LinkedSession] = field(default_factory=list)
    parent: LinkedSession | None = None
    attachments: dict[str, tuple[str, int]] = field(default_factory=dict)
    permissions_json: str = "[]"
    scope: dict[str, Any] = field(default_factory=dict)
    rewritten: bool = False


def part_detail(
    db: Database, session_id: str, part_id: str, prices: PriceTable | None = None
) -> PartDetail:
    """Return a part with its message, turn, session and links.

    Args:
        db: The store.
        session_id: The session's id.
        part_id: The part's id.
        prices: Of models, for answers whose agent tells no cost; None estimates nothing.

    Raises:
        NotFound: The part is gone (a rewind's branch was pruned, the session forgotten).
    """
    row = db.connection.execute(
        f"SELECT {PART_COLUMNS} FROM chat_parts p WHERE p.id = $1",
        {"1": part_id},
    ).fetchone()
    if row is None:
        raise NotFound(f"the part {part_id} is no longer in the store")
    part = part_row(row)
    message = _message(db, part.message_id)
    (before, parts) = db.connection.execute(
        'SELECT count(*) FILTER (WHERE "index" < $2), count(*) FROM chat_parts'
        " WHERE message_id = $1",
        {"1": part.message_id, "2": part.index},
    ).fetchone()
    turn, turn_messages = _turn(db, message, prices)
    session, parent, permissions, scope = _session(db, session_id)
    return PartDetail(
        part, message, int(before or 0) + 1, parts, turn, turn_messages, session,
        _children(db, part), parent, _attachments(db, part), permissions, scope,
        "data_json" in db.sql.rewritten,
    )


def _message(db: Database, message_id: str) -> MessageRow:
    row = db.connection.execute(
        f"SELECT {message_columns(db)} FROM chat_messages m WHERE m.id = $1",
        {"1": message_id},
    ).fetchone()
    if row is None:
        raise NotFound(f"the message {message_id} is no longer in the store")
    return message_row(row)


def _turn(
    db: Database, message: MessageRow, prices: PriceTable | None
) -> tuple[Spent | None, int]:
    """Sum the usage of the messages between the prompts around a message.

    Args:
        db: The store.
        message: The message.
        prices: Of models.
    """
    place = {"1": message.session_id, "2": message.created_at, "3": message.id}
    query = (
        "SELECT role, metadata_json FROM chat_messages WHERE session_id = $1"
        " AND (created_at, id) {} ($2, $3) ORDER BY created_at {}, id {}"
    )
    spent, count = Spent(), 0
    for order, direction in (("<=", "DESC"), (">", "ASC")):
        cursor = db.connection.execute(query.format(order, direction, direction), place)
        for role, metadata_json in cursor:
            metadata = decoded(metadata_json)
            if starts_turn(role, metadata):
                break
            if role == "assistant":
                spent.add(priced(metadata, prices))
                count += 1
        cursor.close()
        if order == "<=" and starts_turn(message.role, decoded(message.metadata_json)):
            spent, count = Spent(), 0
    return (spent, count) if count else (None, 0)


def _session(
    db: Database, session_id: str
) -> tuple[Spent, LinkedSession | None, str, dict[str, Any]]:
    row = db.connection.execute(
        f"SELECT {db.form.fact('s', 'backscroll.data.scope')}, permissions_json, parent_id,"
        f" parent_message_id, cost_usd, {', '.join(COLUMNS)} FROM chat_sessions s WHERE id = $1",
        {"1": session_id},
    ).fetchone()
    if row is None:
        raise NotFound(f"the session {session_id} is no longer in the store")
    scope, permissions, parent_id, parent_message_id, cost, *tokens = row
    spent = Spent.of(map(number, tokens), amount(cost) or None)
    parent = text(parent_id)
    above = None if parent is None else linked(db, parent, text(parent_message_id))
    return spent, above, text(permissions) or "[]", decoded(text(scope))


def linked(db: Database, session_id: str, message_id: str | None = None) -> LinkedSession:
    """Return a session as a link; one that is not in the store has no title and no agent.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The message that the link means, if any.
    """
    row = db.connection.execute(
        f"SELECT id, {db.form.title('s')}, agent FROM chat_sessions s WHERE id = $1",
        {"1": session_id},
    ).fetchone()
    _, title, agent = row or (session_id, None, "")
    return LinkedSession(session_id, text(title), text(agent) or "", message_id)


def _children(db: Database, part: PartRow) -> list[LinkedSession]:
    if part.tool_call_id is None:
        return []
    rows = db.connection.execute(
        f"SELECT id, {db.form.title('s')}, agent FROM chat_sessions s WHERE parent_id = $1"
        f" AND {db.form.fact('s', 'lineage.tool_call_id')} = $2"
        f" AND coalesce({starting_message(db)}, $3) = $3 ORDER BY created_at, id",
        {"1": part.session_id, "2": part.tool_call_id, "3": part.message_id},
    )
    return [LinkedSession(row[0], text(row[1]), text(row[2]) or "") for row in rows.fetchall()]


def _attachments(db: Database, part: PartRow) -> dict[str, tuple[str, int]]:
    """Return the side files that the part names, where the store is ours."""
    # A glance at the text spares decoding megabytes that name none.
    if db.form.name != "own" or '"attachment"' not in part.data_json:
        return {}
    extras = decoded(part.data_json).get("resultProviderMetadata")
    own = extras.get("backscroll") if isinstance(extras, dict) else None
    names = own.get("attachment") if isinstance(own, dict) else None
    wanted = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    found = {}
    for name in wanted:
        row = db.connection.execute(
            "SELECT media_type, size FROM attachments WHERE session_id = $1 AND name = $2",
            {"1": part.session_id, "2": str(name)},
        ).fetchone()
        if row is not None:
            found[str(name)] = (row[0], row[1])
    return found


def message_parts(db: Database, message_id: str) -> list[PartRow]:
    """Return a message's parts in order."""
    rows = db.connection.execute(
        f'SELECT {PART_COLUMNS} FROM chat_parts p WHERE p.message_id = $1 ORDER BY p."index"',
        {"1": message_id},
    )
    return [part_row(row) for row in rows.fetchall()]
