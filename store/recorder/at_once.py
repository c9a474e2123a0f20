"""A recorder's usual batch on a server: one statement, which is a transaction by itself.

It takes the locks that a transaction of the recorder takes, without waiting for them: where others
have them, or the batch is of another kind, nothing is written here, and a transaction does it.
The entry in ``changes`` gets a number that was reserved before. So a recorder whose connection was
lost before the answer can find out whether the batch is there, and make sure that a statement
that is still under way writes nothing afterwards: a number is used once.
"""

from __future__ import annotations

import sqlite3
import time
from functools import lru_cache
from typing import Any

from store.engine.database import Database
from store.engine.server.connection import TRY_LOCKS, lock_number
from store.engine.transactions import OneStatement, is_lost
from store.recorder import claims
from store.recorder.batch import Batch, PartWrite, Reserved
from store.recorder.writing import RESERVE, is_trimmed_at

_MOST_PARTS = 4
_KEPT_S = 1.0
"""How long a number is good for: later it may be among those that are deleted as the oldest."""
_HAS_LOCKS = "(SELECT ok FROM locked)"
_HAS_LEASE = "(SELECT count(*) FROM lease) = 1"
_INSERT = (
    'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json, tool_call_id,'
    " tool_state, created_at, updated_at) SELECT CAST($id_{n} AS text), CAST($message AS text),"
    " CAST($session AS text), CAST($index_{n} AS bigint), CAST($type_{n} AS text),"
    " CAST($data_{n} AS json), CAST($call_{n} AS text), CAST($state_{n} AS text),"
    " CAST($created_{n} AS bigint), CAST($at AS bigint) WHERE {allowed}"
    " ON CONFLICT(id) DO UPDATE SET data_json = excluded.data_json, type = excluded.type,"
    " tool_call_id = excluded.tool_call_id, tool_state = excluded.tool_state,"
    " updated_at = excluded.updated_at RETURNING 1"
)
_GROW = (
    "UPDATE chat_parts SET data_json = CAST($data_{n} AS json), updated_at = CAST($at AS bigint)"
    " WHERE id = $id_{n} AND session_id = $session AND {allowed} RETURNING 1"
)
_LOG = (
    "INSERT INTO changes(seq, session_id, message_id, changed_at) SELECT CAST($number AS bigint),"
    " CAST($session AS text), CAST($message AS text), CAST($at AS bigint) WHERE {allowed}"
    " RETURNING 1"
)


def write_at_once(db: Database, batch: Batch, holder: str) -> OneStatement | None:
    """Return the statement that writes a batch; None where it takes more.

    Args:
        db: A writing connection to a server, outside of a transaction.
        batch: Written where it is some parts of a message and nothing else, and has a number
            that was reserved lately.
        holder: The recorder.
    """
    reserved, parts = batch.reserved, batch.parts
    if reserved is None or time.monotonic() - reserved.since > _KEPT_S:
        return None
    if batch.session or batch.message or batch.removed or is_trimmed_at(reserved.number):
        return None
    if not 0 < len(parts) <= _MOST_PARTS or None in [part.data_json for part in parts]:
        return None
    if not claims.may_write(db, batch.session_id):
        return None
    is_pooled = db.remote.is_pooled
    values: dict[str, object] = {
        "session": batch.session_id, "message": batch.message_id, "at": batch.at,
        "lock": lock_number(batch.session_id), "number": reserved.number,
        "sequence": reserved.sequence}
    if is_pooled:
        values |= claims.values(db, batch.session_id, holder)
    for number, part in enumerate(parts):
        values |= _values(part, number)
    sql = _statement(tuple([part.new or part.moved for part in parts]), is_pooled)

    def has_written(row: Any) -> bool:
        written, following = row
        if written != len(parts) + 1:
            return False
        if following is not None:
            batch.following = Reserved(following, reserved.sequence, time.monotonic())
        return True

    def has_failed(error: BaseException) -> bool:
        batch.is_sent = is_lost(error)
        if isinstance(error, sqlite3.IntegrityError):
            # A transaction says what is missing; or the number was used, by a restored server.
            return False
        raise error

    return OneStatement(sql, values, has_written, has_failed)


def _values(write: PartWrite, number: int) -> dict[str, object]:
    part = write.part
    values: dict[str, object] = {f"id_{number}": part.row_id, f"data_{number}": write.data_json}
    if write.new or write.moved:
        kind, call, state = write.columns
        values |= {
            f"index_{number}": part.index, f"type_{number}": kind, f"call_{number}": call,
            f"state_{number}": state, f"created_{number}": part.created_at}
    return values


@lru_cache(maxsize=64)
def _statement(inserted: tuple[bool, ...], is_pooled: bool) -> str:
    """Return the statement for parts.

    The outer ``CASE`` has the locks taken before the first change: a statement of a change begins
    with the lock of the event log, which comes last.

    Args:
        inserted: For each part whether its row may be missing or have other columns.
        is_pooled: Whether the lease of the recorder is renewed.
    """
    allowed = _HAS_LEASE if is_pooled else _HAS_LOCKS
    steps = [f"locked AS MATERIALIZED (SELECT {TRY_LOCKS} AS ok)"]
    if is_pooled:
        steps.append(f"lease AS ({claims.renewal(_HAS_LOCKS)})")
    changes = [(_INSERT if new else _GROW).format(n=n, allowed=allowed)
               for n, new in enumerate(inserted)]
    changes.append(_LOG.format(allowed=allowed))
    steps += [f"change_{n} AS ({change})" for n, change in enumerate(changes)]
    count = " + ".join(f"(SELECT count(*) FROM change_{n})" for n in range(len(changes)))
    condition = f"CASE WHEN {_HAS_LOCKS} THEN {_HAS_LEASE} END" if is_pooled else _HAS_LOCKS
    return (f"WITH {', '.join(steps)} SELECT CASE WHEN {condition} THEN {count} END,"
            f" {RESERVE}")
