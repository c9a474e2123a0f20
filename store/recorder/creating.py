"""Makes sessions for hosts: checks what they give, and writes the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from store.engine.database import Database
from store.errors import Invalid, NotFound
from store.models import Model, PermissionRule, Session, checked_rules, text_of
from store.queries import sessions
from store.recorder import writing
from store.recorder.json_text import dump, storable
from store.recorder.lookup import by_name
from store.recorder.models import model_of
from store.rows import UNKNOWN_MODEL


@dataclass(frozen=True, slots=True)
class Wanted:
    """A session as a host asks for it; see ``Store.create_session``."""

    agent: str
    model: str | Model | Mapping[str, Any] | None = None
    parent: str | None = None
    parent_message: str | None = None
    tool_call: str | None = None
    permissions: tuple[PermissionRule, ...] = ()
    metadata: Mapping[str, Any] | None = None
    workspace: str | None = None
    title: str | None = None


def create(db: Database, wanted: Wanted, *, id: str, now: int) -> Session:
    """Make a session without messages.

    Args:
        db: The store, inside a write transaction.
        wanted: What it is to be.
        id: Its id.
        now: Epoch ms.

    Raises:
        Invalid: A value cannot be stored; the message names it.
        NotFound: The store has no such parent.
    """
    if not isinstance(wanted.agent, str) or not wanted.agent.strip():
        raise Invalid("agent must be a text, such as 'my-agent'")
    model = _model(wanted.model)
    rules = checked_rules(wanted.permissions)
    metadata, parent = _metadata(wanted), None
    parent_message = None
    if wanted.parent is not None:
        parent = sessions.resolve(db, wanted.parent).id
        lineage = {"kind": "subagent"}
        if wanted.tool_call is not None:
            lineage["tool_call_id"] = wanted.tool_call
        metadata.setdefault("lineage", lineage)
        parent_message = _parent_message(db, parent, wanted)
    elif wanted.parent_message is not None or wanted.tool_call is not None:
        raise Invalid("parent_message and tool_call are of a parent; give parent too")
    metadata["activity"] = {"state": "idle", "from": "stored", "since": now}
    if wanted.title is not None and not db.form.title_column:
        metadata["title"] = _text("title", wanted.title)
    writing.insert_session(db, writing.NewSession(
        id, storable(wanted.agent), _text("workspace", wanted.workspace), _json(metadata), now,
        dump(model), parent, parent_message, dump(rules)))
    if wanted.title is not None and db.form.title_column:
        db.connection.execute(
            "UPDATE chat_sessions SET title = $2 WHERE id = $1",
            {"1": id, "2": _text("title", wanted.title)})
    row = sessions.get(db, id)
    assert row is not None
    return Session.of(row)


def _model(given: str | Model | Mapping[str, Any] | None) -> Mapping[str, str]:
    if given is None:
        return UNKNOWN_MODEL
    found = model_of({"model": given})
    if found is None:
        raise Invalid(
            "model must be a name such as 'anthropic/claude-sonnet-4-5', or an object with"
            " provider_id and model_id")
    return found


def _text(what: str, given: str | None) -> str | None:
    return None if given is None else text_of(what, given)


def _metadata(wanted: Wanted) -> dict[str, Any]:
    if wanted.metadata is None:
        return {}
    if not isinstance(wanted.metadata, Mapping):
        raise Invalid("metadata must be an object")
    return dict(wanted.metadata)


def _json(metadata: dict[str, Any]) -> str:
    try:
        return dump(metadata)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"metadata cannot be written as JSON: {error}") from None


def _parent_message(db: Database, parent: str, wanted: Wanted) -> str | None:
    """Return the row id of the message that started a session; by its call, if that is given."""
    if wanted.parent_message is not None:
        found = by_name(db, parent, wanted.parent_message)
        if found is None:
            raise NotFound(f"No message with id {wanted.parent_message!r} in session {parent}.")
        return found
    if wanted.tool_call is None:
        return None
    row = db.connection.execute(
        "SELECT message_id FROM chat_parts WHERE session_id = $1 AND tool_call_id = $2",
        {"1": parent, "2": storable(wanted.tool_call)},
    ).fetchone()
    return None if row is None else str(row[0])
