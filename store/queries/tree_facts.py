"""What a tree of sessions shows beside each: read only for the sessions that are seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from store.engine.database import Database
from store.engine.values import tag_names
from store.queries.context import visible_ids
from store.queries.lineage import FamilyNode, turn_counts, turn_number
from store.queries.user_marks import starred_by_source, user_marks


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Facts of one session in the tree.

    Attributes:
        turns: Its visible messages of a human.
        fork_turn: The turn of its parent that it was branched off at, from 1.
    """

    turns: int
    fork_turn: int | None
    star: bool
    tags: tuple[str, ...]


def node_facts(db: Database, nodes: Sequence[FamilyNode]) -> dict[str, NodeFacts]:
    """Return the facts of some nodes by session id."""
    turns = turn_counts(db, [node.id for node in nodes])
    found = {}
    for node in nodes:
        at = None
        if node.parent_id is not None and node.parent_message_id is not None:
            at = turn_number(db, node.parent_id, node.parent_message_id)
        marks = user_marks(db, node.id)
        found[node.id] = NodeFacts(
            turns[node.id], at, starred_by_source(db, node.id)[0], tag_names(marks)
        )
    return found


@dataclass(frozen=True, slots=True)
class Label:
    """A label on a message.

    Attributes:
        turn: The turn of the message, from 1; None where it is hidden or gone.
    """

    message_id: str
    text: str
    turn: int | None


def labels_of(db: Database, session_id: str) -> list[Label]:
    """Return a session's labels in the order of its messages."""
    labels = user_marks(db, session_id).get("labels")
    if not isinstance(labels, dict):
        return []
    at = {
        row[0]: (row[1], row[0])
        for row in db.connection.execute(
            "SELECT m.id, m.created_at FROM chat_messages m"
            f" WHERE m.id IN (SELECT value FROM {db.sql.texts('$1', 'labelled')})",
            {"1": json.dumps(list(labels))},
        )
    }
    found = [
        Label(message_id, str(text), turn_number(db, session_id, message_id))
        for message_id, text in labels.items()
    ]
    return sorted(found, key=lambda label: at.get(label.message_id, (0, label.message_id)))


def last_message(db: Database, session_id: str) -> str | None:
    """Return a session's last visible message, None where it has none."""
    ids = visible_ids(db, session_id)
    return ids[-1] if ids else None
