"""What the agents of a session sent to each other: sender, recipient and channel of messages.

A source notes them in ``metadata_json.backscroll``, as ids of its own: of a session, or of one
of its branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.errors import NotFound
from store.queries import sessions
from store.text.stored_json import array_of, as_dict

Box = Literal["in", "out", "own"]
"""Received by the session, sent by it to somebody else, or said within it."""
WORDS = 200
"""Characters of a message that are read."""
_KEYS = ("sender", "recipient", "channel")
_IDS_PER_QUERY = 400


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that has a sender or a recipient.

    Attributes:
        session_id: The session that has it.
        at: Epoch ms.
        box: Where it is, as seen from the session that was asked for.
        sender: The name of who sent it, or its id where the store does not know it.
        recipient: The same of whom it was for.
        words: How it begins; of a call the name of the tool.
    """

    session_id: str
    message_id: str
    at: int
    box: Box
    sender: str
    recipient: str
    channel: str
    words: str


def exchange(db: Database, session_id: str) -> list[Sent]:
    """Return what was sent by a session and to it, oldest first.

    What other sessions of its source have for it is among it; copies in forks are not.

    Raises:
        NotFound: The store has no such session.
    """
    row = sessions.get(db, session_id)
    if row is None:
        raise NotFound(f"the session {session_id} is no longer in the store")
    metadata = decoded(row.metadata_json)
    source = as_dict(metadata.get("source"))
    branch = as_dict(as_dict(metadata.get("backscroll")).get("branch")).get("id")
    own = {one for one in (source.get("id"), branch) if isinstance(one, str) and one}
    found = []
    for message, owner, at, noted in _rows(db, session_id, own, source.get("kind")):
        sender, recipient, channel = (_word(noted.get(key)) for key in _KEYS)
        if owner == session_id or sender in own or recipient in own:
            box: Box = "own"
            if recipient in own:
                box = "in"
            elif sender in own:
                box = "out"
            found.append(Sent(owner, message, at, box, sender, recipient, channel, ""))
    words = _beginnings(db, [each.message_id for each in found])
    names = _names(db, {name for each in found for name in (each.sender, each.recipient)})
    return [
        Sent(each.session_id, each.message_id, each.at, each.box,
             names.get(each.sender, each.sender), names.get(each.recipient, each.recipient),
             each.channel, words.get(each.message_id, ""))
        for each in found
    ]


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _rows(
    db: Database, session_id: str, own: set[str], kind: Any
) -> list[tuple[str, str, int, dict[str, Any]]]:
    """Return id, session, time and notes of messages that may have been sent.

    Args:
        db: The store.
        session_id: The session: all of its messages with a sender or a recipient.
        own: What its source calls it; of other sessions, messages that name one of these.
        kind: The kind of its source.
    """
    sql, column = db.sql, "m.metadata_json"
    noted = " OR ".join(sql.contains(column, f"'\"{key}\"'") for key in _KEYS)
    statements: list[tuple[str, dict[str, Any]]] = [
        (f"m.session_id = $1 AND ({noted})", {"1": session_id})]
    for name in sorted(own) if isinstance(kind, str) else ():
        statements.append((
            "m.session_id IN (SELECT s.id FROM chat_sessions s WHERE s.id <> $1"
            f" AND {db.form.source_kind('s')} = $2) AND {sql.contains(column, '$3')}",
            {"1": session_id, "2": kind, "3": name}))
    found: dict[str, tuple[str, str, int, dict[str, Any]]] = {}
    for condition, values in statements:
        for message, owner, at, metadata_json in db.connection.execute(
            "SELECT m.id, m.session_id, m.created_at, m.metadata_json FROM chat_messages m"
            f" WHERE {condition}", values,
        ):
            metadata = decoded(text(metadata_json))
            notes = as_dict(metadata.get("backscroll"))
            copied = owner != session_id and "inherited_from" in metadata
            if not copied and any(_word(notes.get(key)) for key in _KEYS):
                found[message] = message, owner, number(at), notes
    return sorted(found.values(), key=lambda each: (each[2], each[0]))


def _beginnings(db: Database, ids: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    given = db.sql.texts("$1", "given")
    for start in range(0, len(ids), _IDS_PER_QUERY):
        for message, kind, words, tool in db.connection.execute(
            f"SELECT p.message_id, p.type, substr({db.sql.fact('p.data_json', 'text')},"
            f" 1, {WORDS}), {db.sql.rare_fact('p.data_json', 'toolName')}"
            f" FROM chat_parts p WHERE p.message_id IN (SELECT value FROM {given})"
            ' ORDER BY p.message_id, p."index"', {"1": array_of(ids[start:start + _IDS_PER_QUERY])},
        ):
            name = (text(kind) or "").removeprefix("tool-")
            found.setdefault(message, text(words) or text(tool) or name)
    return found


def _names(db: Database, ids: set[str]) -> dict[str, str]:
    """Return the titles of the sessions that a source calls by some ids, or their branches'."""
    source_id, branch_id = db.form.source_id("s"), db.form.fact("s", "backscroll.branch.id")
    branch = db.form.fact("s", "backscroll.branch.name")
    given = db.sql.texts("$1", "given")
    rows = db.connection.execute(
        f"SELECT {source_id}, {branch_id}, {branch}, {db.form.title('s')} FROM chat_sessions s"
        f" WHERE {source_id} IN (SELECT value FROM {given})"
        f" OR {branch_id} IN (SELECT value FROM {given})",
        {"1": array_of(sorted(filter(None, ids)))},
    ).fetchall()
    titles = {text(own) or "": text(title) for own, _, _, title in rows}
    branches = {text(one) or "": text(name) for _, one, name, _ in rows}
    # A branch's own name is shorter than its session's title.
    return {key: words for found in (titles, branches) for key, words in found.items()
            if key and words}
