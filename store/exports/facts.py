"""The facts of a session that a document or a page begins with."""

from __future__ import annotations

from dataclasses import dataclass

from store.exports.reading import SessionReading
from store.exports.typed import milliseconds
from store.language.query import parse
from store.stats.figures import Figures
from store.stats.rollups import open_rollups
from store.stats.statistics import ALWAYS, figures


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
        spent: Tokens and cost, without answers that another session counts.
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
    spent: Figures


def facts_of(reading: SessionReading) -> Facts:
    """Return the facts of a session whose values are ``typed``."""
    row, metadata = reading.session, reading.session["metadata"]
    user, source = metadata.get("user"), metadata.get("source")
    named = user.get("title") if isinstance(user, dict) else None
    kind = source.get("kind") if isinstance(source, dict) else None
    form = reading.db.form
    first, last, turns, messages = reading.db.connection.execute(
        "SELECT min(m.created_at), max(m.created_at),"
        f" count(*) FILTER (WHERE {form.starts_turn('m')}), count(*)"
        f" FROM chat_messages m WHERE m.session_id = $1 AND {form.shown('m')}",
        {"1": row["id"]},
    ).fetchone()
    return Facts(
        session_id=str(row["id"]),
        title=str(named or row.get("title") or metadata.get("title") or row["id"]),
        agent=str(kind or row["agent"]),
        model=str(row["model"].get("model_id") or ""),
        workspace=str(row["workspace_root"] or ""),
        branch=str(metadata.get("git_branch") or ""),
        started=milliseconds(first) or row["created_at"],
        ended=milliseconds(last) or row["updated_at"],
        turns=turns,
        messages=messages,
        spent=_spent(reading),
    )


def _spent(reading: SessionReading) -> Figures:
    """Return what the session itself spent, as ``backscroll stats`` counts it."""
    among = {str(reading.session["id"])}
    with open_rollups(reading.db, reading.prices, sessions=among) as counts:
        found = figures(reading.db, counts, by=None, span=ALWAYS, query=parse("", now=0), zone=None,
                        sessions=among)  # fmt: skip
    return found.whole


def covered(spent: Figures) -> str:
    """Return how many answers a cost is of, where it is not of all: ``35 of 53 answers``."""
    if not spent.unknown_answers or not spent.covered:
        return ""
    return f"{spent.covered:,} of {spent.covered + spent.unknown_answers:,} answers"
