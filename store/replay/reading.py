"""Reads what a replay needs of a session, without the content of its parts, in pages."""

from __future__ import annotations

from typing import Any, NamedTuple

from store.engine.changes import since
from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.prices.estimating import priced
from store.prices.table import PriceTable
from store.queries.transcript import Keyset, Outline, outline_maker, outlines_of_messages
from store.replay.log import FOREVER, Writes, message_versions
from store.text.stored_json import array_of
from store.usage import Spent, context_size


class Timed(NamedTuple):
    """A part with its times, epoch ms, as its row has them."""

    outline: Outline
    created_at: int
    updated_at: int


def timed_page(
    db: Database, session_id: str, after: Keyset | None, limit: int
) -> tuple[list[Timed], Keyset | None]:
    """Return the parts of up to ``limit`` messages, and what to ask for the next page with.

    Args:
        db: The store.
        session_id: The session.
        after: The last message of the page before; None for the first page.
        limit: How many messages at most.
    """
    beyond = "AND (m.created_at, m.id) > ($3, $4)" if after else ""
    values: dict[str, Any] = {"1": session_id, "2": limit}
    if after:
        values |= {"3": after[0], "4": after[1]}
    make = outline_maker(db)
    rows = db.connection.execute(
        outlines_of_messages(db, beyond, ", p.created_at, p.updated_at"), values).fetchall()
    if not rows:
        return [], None
    last = rows[-1]
    if db.form.name == "own":
        found = [Timed(make(row[:12]), row[12] or 0, row[13] or 0) for row in rows]
    else:
        found = [Timed(_with_number(make(row[:12])), number(row[12]), number(row[13]))
                 for row in rows]
    return found, (last[2], last[0])


def _with_number(outline: Outline) -> Outline:
    return outline._replace(created_at=number(outline.created_at))


def place_before(db: Database, session_id: str, message_id: str, count: int) -> Keyset | None:
    """Return what to ask for a page with that begins some messages before one.

    Args:
        db: The store.
        session_id: The session.
        message_id: The message.
        count: How many messages before it.

    Returns:
        None where the page begins with the session, or where there is no such message.
    """
    found = db.connection.execute(
        "SELECT b.created_at, b.id FROM chat_messages m JOIN chat_messages b"
        " ON b.session_id = m.session_id AND (b.created_at, b.id) < (m.created_at, m.id)"
        " WHERE m.id = $1 AND m.session_id = $2 ORDER BY b.created_at DESC, b.id DESC"
        " LIMIT 1 OFFSET $3", {"1": message_id, "2": session_id, "3": count},
    ).fetchone()
    return (found[0], found[1]) if found is not None else None


class Written(NamedTuple):
    """What was written of a session.

    Attributes:
        seq: What to ask with the next time.
        places: By message, ``(created_at, id)``; None for one that is gone.
        is_sure: Whether nothing else was written; else there may be more that no time tells of.
    """

    seq: int
    places: dict[str, Keyset | None]
    is_sure: bool


def written_since(db: Database, session_id: str, seq: int, touched: int) -> Written:
    """Return which messages of a session were written.

    Args:
        db: The store.
        session_id: The session.
        seq: The number of the newest entry in ``changes`` that is known.
        touched: The newest ``updated_at`` that is known, for writers that log no changes.
    """
    seq, moved = since(db, seq)
    ids = moved.sessions.get(session_id, set())
    is_sure = ids is not None and not moved.vague
    places: dict[str, Keyset | None] = {}
    if ids is None or moved.vague:
        rows = db.connection.execute(
            "SELECT id, created_at FROM chat_messages WHERE session_id = $1 AND (updated_at >= $2"
            " OR id IN (SELECT message_id FROM chat_parts WHERE session_id = $1"
            " AND updated_at >= $2))", {"1": session_id, "2": touched}).fetchall()
    else:
        places = dict.fromkeys(ids)
        rows = db.connection.execute(
            f"SELECT m.id, m.created_at FROM {db.sql.texts('$1', 'ids')}"
            f" {db.sql.then_join} chat_messages m ON m.id = ids.value"
            f" WHERE {db.sql.walked('m.session_id')} = $2",
            {"1": array_of(sorted(ids)), "2": session_id}).fetchall()
    places |= {text(message_id) or "": (number(created_at), text(message_id) or "")
               for message_id, created_at in rows}
    return Written(seq, places, is_sure)


class Answer(NamedTuple):
    """What one message says that it used.

    Attributes:
        context: Tokens in the context after it; 0 where it does not say.
    """

    message_id: str
    spent: Spent
    context: int


def answers_page(
    db: Database, session_id: str, after: Keyset | None, limit: int,
    prices: PriceTable | None = None,
) -> tuple[list[Answer], Keyset | None]:
    """Return what up to ``limit`` assistant messages used, and where the next page begins.

    Args:
        db: The store.
        session_id: The session.
        after: The last message of the page before; None for the first page.
        limit: How many messages at most.
        prices: Of models, for answers whose agent tells no cost.
    """
    beyond = "AND (m.created_at, m.id) > ($3, $4)" if after else ""
    values: dict[str, Any] = {"1": session_id, "2": limit}
    if after:
        values |= {"3": after[0], "4": after[1]}
    rows = db.connection.execute(
        "SELECT m.id, m.created_at, m.metadata_json FROM chat_messages m"
        f" WHERE m.session_id = $1 AND m.role = 'assistant' {beyond}"
        " ORDER BY m.created_at, m.id LIMIT $2", values,
    ).fetchall()
    found = [_answer(text(message_id) or "", text(metadata_json), prices)
             for message_id, _created_at, metadata_json in rows]
    return [one for one in found if one is not None], (rows[-1][1], rows[-1][0]) if rows else None


def _answer(message_id: str, metadata_json: str | None, prices: PriceTable | None) -> Answer | None:
    """Return what a message says that it used; None where it says nothing."""
    metadata = decoded(metadata_json)
    spent = priced(metadata, prices)
    if not spent.total and not spent.cost:
        return None
    own = metadata.get("backscroll")
    beside = isinstance(own, dict) and own.get("no_answer") is True
    return Answer(message_id, spent, 0 if beside else context_size(metadata))


def past_answer(
    db: Database, session_id: str, writes: Writes, prices: PriceTable | None = None
) -> Answer | None:
    """Return what a message that is gone said last that it used, by the log.

    Args:
        db: The library.
        session_id: The session.
        writes: The message's, by the log.
        prices: Of models, for answers whose agent tells no cost.

    Returns:
        None where it was no answer, or said nothing.
    """
    last = message_versions(db, session_id, writes).at(FOREVER)
    if last is None or last[0].role != "assistant":
        return None
    return _answer(last[0].id, last[0].metadata_json, prices)
