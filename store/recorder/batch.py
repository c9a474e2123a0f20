"""What one transaction of a recorder writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from store.recorder.parts import Part
from store.recorder.usage import Buckets
from store.usage import KEYS

Columns = tuple[str, str | None, str | None]


@dataclass(slots=True)
class PartWrite:
    """One part's row as it is to be.

    Attributes:
        columns: (type, tool_call_id, tool_state).
        data_json: None for a large part, whose JSON is written in pieces of ``data``.
        new: Whether the row is not there yet.
        moved: Whether ``columns`` differ from what the row has.
    """

    part: Part
    columns: Columns
    data_json: str | None
    data: dict[str, Any]
    new: bool
    moved: bool


@dataclass(slots=True)
class MessageWrite:
    """A message's row as it is to be.

    Attributes:
        new: Whether the row is not there yet.
    """

    id: str
    role: str
    metadata_json: str
    created_at: int
    new: bool


@dataclass(slots=True)
class SessionWrite:
    """What changes in the session's row.

    Attributes:
        used: Tokens to add to the rollups.
        model_json: The model of this turn, where the stream named one.
        activity_json: What the session does now, where that changed.
        title: The title, for a session that has none.
    """

    used: Buckets = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    model_json: str | None = None
    activity_json: str | None = None
    title: str | None = None


class Reserved(NamedTuple):
    """A number of ``changes`` on a server that nobody else gets.

    Attributes:
        sequence: The sequence that it is of.
        since: When it was taken, by the monotonic clock.
    """

    number: int
    sequence: int
    since: float


@dataclass(slots=True)
class Batch:
    """Everything of one transaction, for one message of one session.

    Attributes:
        at: The time of the write, epoch ms.
        session: None leaves the session's row, and its ``updated_at``, alone.
        logged: The number of its entry in ``changes``, and on a server of the transaction.
        reserved: On a server, the number that its entry gets where one statement writes it.
        is_sent: Whether such a statement was sent and not answered.
        following: A number for the next batch.
    """

    session_id: str
    message_id: str | None
    at: int
    message: MessageWrite | None = None
    parts: list[PartWrite] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    session: SessionWrite | None = None
    logged: tuple[int, int | None] | None = None
    reserved: Reserved | None = None
    is_sent: bool = False
    following: Reserved | None = None
