"""A session of Crush, from its rows to a draft.

Source: the Crush format page, sections 2 (tables), 4 (tokens, cost) and 5 (lineage).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.protocol import Fact, Library, Reading, Unit
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession
from store.sources.base.values import mapping, number, string, utc_ms
from store.sources.crush.messages import Messages

KIND = "crush"
_PLACEHOLDERS = ("New Session", "Untitled Session")
_SPENT = "spent-below:"
"""Begins the fact of what a session cost that another one started; the parent's cost has it."""
_GOES_ON = "tool_use"


def read_session(
    reader: RowReader, path: str, session_id: str, unit: Unit, library: Library,
    workspace: str | None,
) -> Reading:  # fmt: skip
    """Read one session whole; no session where it is not there any more.

    Args:
        reader: Runs the statements.
        path: The database.
        session_id: The session's id.
        unit: The unit as it was listed.
        library: Tells of sessions that this one started and that are gone.
        workspace: The project's folder.
    """
    found = reader.rows("SELECT * FROM sessions WHERE id = $1", session_id)
    if not found:
        return Reading([], [], unit.stamps)
    row, session = found[0], RowSession(session_id, path)
    session.keep("sessions", row)
    below = reader.rows("SELECT id, cost FROM sessions WHERE parent_session_id = $1", session_id)
    spent = {fact.session: _dollars(fact.value) for fact in library.facts(_SPENT + session_id)}
    spent |= {str(one["id"]): _dollars(one["cost"]) for one in below}
    messages = _messages(reader, session, row, spent)
    draft = _draft(row, session, messages, workspace)
    _say_cost(draft, _dollars(row.get("cost")), spent)
    facts: list[Fact] = []
    parent = string(row.get("parent_session_id"))
    if parent is not None:
        facts = [Fact(_SPENT + parent, session_id, str(_dollars(row.get("cost"))))]
        message, _, call = session_id.partition("$$")
        draft.lineage = LineageDraft("subagent", parent)
        if call:
            draft.lineage.parent_message_source_id, draft.lineage.tool_call_id = message, call
    return Reading([draft], session.problems, unit.stamps, facts=facts, wants=[_SPENT + session_id])


def _messages(
    reader: RowReader, session: RowSession, row: Row, children: Collection[str]
) -> Messages:
    rows = reader.rows(
        "SELECT * FROM messages WHERE session_id = $1 ORDER BY created_at, rowid", session.id
    )
    pointed = row.get("summary_message_id")
    summaries = {str(one["id"]) for one in rows if one["id"] == pointed or _is_summary(one)}
    made = Messages(session, children, summaries)
    for one in rows:
        made.add(one)
    made.mark_automatic()
    return made


def _is_summary(row: Row) -> bool:
    """Return whether a row sums up, and did so to its end."""
    return row.get("is_summary_message") == 1 and bool(row.get("finished_at"))


def _draft(
    row: Row, session: RowSession, made: Messages, workspace: str | None
) -> SessionDraft:
    messages = made.messages
    first = next((one.created_at for one in messages if one.created_at), 0)
    created = utc_ms(row.get("created_at")) or first
    updated = utc_ms(row.get("updated_at")) or 0
    # The session's own time stays while an answer streams.
    last = max([updated, *(one.updated_at for one in messages)]) or created
    title = string(row.get("title"))
    draft = SessionDraft(
        session.id, session.path, KIND, created, last, title=title, workspace_root=workspace,
        messages=messages, records=session.records, tells_title=True,
    )  # fmt: skip
    if title is not None:
        draft.title_from = "placeholder" if title in _PLACEHOLDERS else "title"
    models = [one.metadata["model"] for one in messages if "model" in one.metadata]
    draft.model = models[-1] if models else None
    context = {
        name: number(row.get(f"{name}_tokens")) for name in ("prompt", "completion")
    }
    # What the last request held, overwritten by each one: no sum, and nobody's spending.
    extra: dict[str, Any] = {"context_tokens": context}
    todos = decoded(row.get("todos"))
    if isinstance(todos, list) and todos:
        extra["todos"] = todos
    draft.metadata["backscroll"] = extra
    activity = _activity(made)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


def _activity(made: Messages) -> dict[str, Any] | None:
    """Return what the session does, where its last turn is not over, or failed."""
    last: MessageDraft | None = None
    for message in made.messages:
        if message.role == "assistant" or message.metadata.get("origin") in ("human", "meta"):
            last = message
    if last is None or "compaction" in last.metadata:
        return None
    if last.role == "user":
        return {"state": "running", "from": "guessed", "since": last.created_at}
    finish = mapping(made.finish.get(last.source_id))
    reason = string(finish.get("reason"))
    states: Mapping[str | None, str] = {
        None: "running", _GOES_ON: "running", "canceled": "interrupted", "error": "error"
    }  # fmt: skip
    state = states.get(reason)
    if state is None:
        return None
    return {"state": state, "from": "stored", "since": last.updated_at}


def _dollars(value: object) -> float:
    try:
        found = float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0
    return found if 0 <= found < 1e9 else 0.0


def _say_cost(draft: SessionDraft, whole: float, below: Mapping[str, float]) -> None:
    """Give the last answer what the session cost itself, without what it started.

    The program keeps no cost by message.
    """
    own = max(0.0, round(whole - sum(below.values()), 9))
    answers = [one for one in draft.messages if one.role == "assistant"]
    if own and answers:
        answers[-1].metadata["cost_usd"] = own
        extra = answers[-1].metadata.setdefault("backscroll", {})
        extra["cost_of"] = "session"
