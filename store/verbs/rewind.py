"""Rewind by hiding, and restore: each rewind is one batch, named by its ``hidden_at``.

Rewind only ever hides what is visible now, and restore shows exactly one batch again, so
that no turn comes back that an earlier rewind hid.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from store.engine.database import Database
from store.engine.transactions import beside_others
from store.engine.values import number
from store.errors import Refused
from store.usage import KEYS, bucket_sql
from store.verbs import rollups
from store.verbs.cells import CellEdit, dump_edits, set_column, set_metadata, touch_host
from store.verbs.guards import refuse_while_running, require_session, require_visible_message
from store.verbs.log import note_change, record

_END_OF_TIME = 2**62


@dataclass(frozen=True, slots=True)
class RewindPreview:
    """What a rewind would hide.

    Attributes:
        tokens: The sum of all usage buckets of the hidden assistant messages.
    """

    messages: int
    tool_calls: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages that one rewind hid.

    Attributes:
        hidden_at: Epoch ms; names the batch within its session.
        by_user: False where the source itself abandoned them (a branch after its rewind).
        last_at: ``created_at`` of the last message that a rewind has just hidden; else 0.
    """

    hidden_at: int
    messages: int
    by_user: bool
    last_at: int = field(default=0, compare=False)


def _after(
    db: Database, session_id: str, message_id: str, until: int | None = None
) -> list[str]:
    """Return the visible messages after one, those made until a time (epoch ms)."""
    rows = db.connection.execute(
        "SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND (m.created_at, m.id)"
        " > (SELECT created_at, id FROM chat_messages WHERE id = $2)"
        f" AND {db.form.shown('m')} AND m.created_at <= $3 ORDER BY m.created_at, m.id",
        {"1": session_id, "2": message_id, "3": _END_OF_TIME if until is None else until},
    )
    return [row[0] for row in rows]


def preview_rewind(db: Database, session_id: str, message_id: str) -> RewindPreview:
    """Tell what a rewind to a message would hide.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The last message that stays visible.

    Raises:
        NotFound: Session or message is not there.
        Refused: The message is hidden, queued or another session's.
    """
    require_session(db, session_id)
    require_visible_message(db, session_id, message_id)
    usage = " + ".join(bucket_sql("m", key, db.sql) for key in KEYS)
    calls = "(SELECT count(*) FROM chat_parts p WHERE p.message_id = m.id AND p.tool_call_id <> '')"
    row = db.connection.execute(
        f"SELECT count(*), coalesce(sum({calls}), 0),"
        f" coalesce(sum(CASE m.role WHEN 'assistant' THEN {usage} END), 0) FROM chat_messages m"
        " WHERE m.session_id = $1 AND (m.created_at, m.id)"
        " > (SELECT created_at, id FROM chat_messages WHERE id = $2)"
        f" AND {db.form.shown('m')}",
        {"1": session_id, "2": message_id},
    ).fetchone()
    return RewindPreview(*(int(value) for value in row))


def message_before(db: Database, session_id: str, message_id: str) -> str | None:
    """Return the visible message before one, to rewind the latest turn alone; None at the start.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The message's id.
    """
    row = db.connection.execute(
        "SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND (m.created_at, m.id)"
        " < (SELECT created_at, id FROM chat_messages WHERE id = $2)"
        f" AND {db.form.shown('m')} ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id, "2": message_id},
    ).fetchone()
    return row[0] if row else None


def batches(db: Database, session_id: str) -> list[Batch]:
    """Return a session's batches of hidden messages, the newest first.

    Cancelled queue rows are hidden too, but are no batch.
    """
    hidden = db.form.hidden_at("m")
    hidden_by = db.form.fact("m", "backscroll.hidden_by")
    marked = f"max(CASE WHEN {hidden_by} = 'user' THEN 1 ELSE 0 END)"
    rows = db.connection.execute(
        f"SELECT {hidden}, count(*), coalesce({marked}, 0) FROM chat_messages m"
        f" WHERE m.session_id = $1 AND {hidden} IS NOT NULL"
        f" AND NOT {db.form.cancelled('m')}"
        " GROUP BY 1 ORDER BY 1 DESC",
        {"1": session_id},
    )
    ours = db.form.name == "own"
    return [Batch(row[0], row[1], bool(row[2]) or not ours) for row in rows]


def _newest(found: list[Batch]) -> int:
    """Return the newest batch's time; a host's marks that are no numbers do not count."""
    numbers = [each.hidden_at for each in found if isinstance(each.hidden_at, int | float)]
    return int(max(numbers, default=-1))


@beside_others
def rewind(db: Database, session_id: str, message_id: str, *, now: int) -> Batch:
    """Hide the visible messages after the chosen one as one batch; queued ones stay.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        message_id: The message's id.
        now: Epoch ms.

    Raises:
        NotFound: Session or message is not there.
        Refused: The session runs, nothing comes after the message, or it is not visible.
    """
    return _rewind(db, session_id, message_id, now, None)


def shown_again(db: Database, session_id: str, message_id: str, until: int) -> int:
    """Return how many messages of a rewind are visible again.

    A host that writes a whole session again takes away the marks that a rewind set.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The last message that the rewind kept.
        until: Its ``last_at``.
    """
    return len(_after(db, session_id, message_id, until))


@beside_others
def rewind_again(
    db: Database, session_id: str, message_id: str, *, until: int, now: int
) -> Batch:
    """Hide what a rewind hid and somebody else's write shows again; later messages stay.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        message_id: The last message that the rewind kept.
        until: Its ``last_at``.
        now: Epoch ms.

    Raises:
        NotFound: Session or message is not there.
        Refused: The session runs, nothing is visible again, or the message is not visible.
    """
    return _rewind(db, session_id, message_id, now, until)


def _rewind(
    db: Database, session_id: str, message_id: str, now: int, until: int | None
) -> Batch:
    require_session(db, session_id)
    require_visible_message(db, session_id, message_id)
    refuse_while_running(db, session_id, now)
    targets = _after(db, session_id, message_id, until)
    if not targets:
        raise Refused("nothing comes after this message, so there is nothing to hide")
    batch = max(now, _newest(batches(db, session_id)) + 1)
    edits = [edit for target in targets for edit in hide(db, target, batch)]
    edits += _settle(db, session_id, now)
    count = len(targets)
    summary = f"rewound {count} message{'s' if count != 1 else ''}"
    record(db, "rewind", session_id, summary, dump_edits(edits), now)
    (last_at,) = db.connection.execute(
        "SELECT created_at FROM chat_messages WHERE id = $1", {"1": targets[-1]}
    ).fetchone()
    return Batch(batch, count, True, number(last_at))


@beside_others
def restore(db: Database, session_id: str, *, batch: int | None = None, now: int) -> Batch:
    """Show one batch of hidden messages again.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        batch: The ``hidden_at`` of the batch; None takes the newest.
        now: Epoch ms.

    Raises:
        NotFound: The session is not there.
        Refused: There is no batch, or none of this value.
    """
    require_session(db, session_id)
    known = batches(db, session_id)
    if not known:
        raise Refused("nothing is hidden in this session")
    chosen = known[0] if batch is None else next((b for b in known if b.hidden_at == batch), None)
    if chosen is None:
        raise Refused(f"this session has no rewind at {batch}")
    rows = db.connection.execute(
        f"SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND {db.form.hidden_at('m')}"
        f" = $2 AND NOT {db.form.cancelled('m')}",
        {"1": session_id, "2": chosen.hidden_at},
    ).fetchall()
    edits = [edit for (target,) in rows for edit in _show(db, target)]
    edits += _settle(db, session_id, now)
    summary = f"restored {chosen.messages} message{'s' if chosen.messages != 1 else ''}"
    record(db, "restore", session_id, summary, dump_edits(edits), now)
    return chosen


def hide(db: Database, message_id: str, batch: int) -> list[CellEdit]:
    """Hide a message and return the edits.

    Args:
        db: The store, inside a write transaction.
        message_id: The message's id.
        batch: Its ``hidden_at``.
    """
    if db.form.hidden_column:
        return [set_column(db, "chat_messages", message_id, "hidden_at", batch)]
    edits = [set_metadata(db, "chat_messages", message_id, "$.hidden_at", batch)]
    if db.form.name == "own":
        # Sync keeps what the user hid; what a source hides is decided at each sync.
        edits.append(
            set_metadata(db, "chat_messages", message_id, "$.backscroll.hidden_by", "user")
        )
    return edits


def _show(db: Database, message_id: str) -> list[CellEdit]:
    edits = []
    if db.form.hidden_column:
        edits.append(set_column(db, "chat_messages", message_id, "hidden_at", None))
    edits.append(set_metadata(db, "chat_messages", message_id, "$.hidden_at", None))
    if db.form.name == "own":
        edits.append(
            set_metadata(db, "chat_messages", message_id, "$.backscroll.hidden_by", "shown")
        )
    return [edit for edit in edits if edit.before != edit.after]


def _settle(db: Database, session_id: str, now: int) -> list[CellEdit]:
    """After hidden messages changed: rollups of Grida's rule, and who must look again."""
    if db.form.name == "grida":
        rollups.write(db, session_id)
    note_change(db, session_id, now)
    return touch_host(db, session_id, now)
