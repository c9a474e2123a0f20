"""The facts of a session that a document or a page begins with."""

from __future__ import annotations

from dataclasses import dataclass

from store.engine.values import number_or_none
from store.exports.reading import SessionReading
from store.usage import COLUMNS, Spent


@dataclass(frozen=True, slots=True)
class Facts:
    """What a session is, by its row; text is as the session has it.

    Attributes:
        agent: The kind of its source, or the agent that its row names.
        model: The id of its model; empty if unknown.
        workspace: Its folder; empty if unknown.
        branch: Its git branch; empty if unknown.
        started: Epoch ms of its first message, or of the session itself.
        ended: Epoch ms of its last message.
        turns: Number of visible turns.
        messages: Number of visible messages.
        spent: Its tokens, and its cost in dollars where its agent tells one.
    """

    session_id: str
    title: str
    agent: str
    model: str
    workspace: str
    branch: str
    started: int
    ended: int
    turns: int
    messages: int
    spent: Spent


def facts_of(reading: SessionReading) -> Facts:
    """Return the facts of a session whose values are ``typed``."""
    row, metadata = reading.session, reading.session["metadata"]
    user, source = metadata.get("user"), metadata.get("source")
    named = user.get("title") if isinstance(user, dict) else None
    kind = source.get("kind") if isinstance(source, dict) else None
    form = reading.db.form
    first, last, turns, messages = reading.db.connection.execute(
        "SELECT min(m.created_at), max(m.created_at),"
        f" coalesce(sum({form.starts_turn('m')}), 0), count(*)"
        f" FROM chat_messages m WHERE m.session_id = $1 AND {form.shown('m')}",
        {"1": row["id"]},
    ).fetchone()
    tokens = (row.get(column) for column in COLUMNS)
    cost = row.get("cost_usd")
    return Facts(
        session_id=str(row["id"]),
        title=str(named or row.get("title") or metadata.get("title") or row["id"]),
        agent=str(kind or row["agent"]),
        model=str(row["model"].get("model_id") or ""),
        workspace=str(row["workspace_root"] or ""),
        branch=str(metadata.get("git_branch") or ""),
        started=number_or_none(first) or row["created_at"],
        ended=number_or_none(last) or row["updated_at"],
        turns=turns,
        messages=messages,
        spent=Spent.of(
            (number_or_none(count) or 0 for count in tokens),
            float(cost) if isinstance(cost, int | float) and cost > 0 else None,
        ),
    )
