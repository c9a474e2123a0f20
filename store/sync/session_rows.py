"""The rows of one session, ready to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from store.sync.blocks import Attachment, Block
from store.usage import Rollups

MessageTuple = tuple[str, str, str, str, int, int]
"""id, session_id, role, metadata_json, created_at, updated_at."""
PartTuple = tuple[str, str, str, int, str, str, str | None, str | None, int, int]
"""id, message_id, session_id, index, type, data_json, call id, state, created, updated."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Totals over the messages before a place in a session.

    Attributes:
        at: ``created_at`` of the last of them; -1 if there are none.
        position: Its index among the messages of its millisecond.
        rollups: As ``PreparedSession.rollups``.
    """

    at: int = -1
    position: int = 0
    rollups: Rollups = Rollups()


NOTHING_CARRIED = Carried()


@dataclass(slots=True)
class PreparedSession:
    """A session's rows, without what only the store has: parent ids and the user's changes.

    Attributes:
        metadata: ``metadata_json`` before the user's keys are added.
        rollups: The five token sums, their total, and the cost.
        messages: In display order.
        message_names: The source ids of ``messages``, one each.
        inherited: Position in ``messages`` to the source id of the original, for copies.
        keeps_records: Whether the original records are kept, in ``blocks``.
        names_count: Whether ``message_names`` are only positions in the session.
        partial: Whether it was read from another file than the session's own.
        holds_stored: Whether it contains all that is stored of the session.
        tells_title: Whether a missing title means that the source removed it.
        refs: Message id and ``records_json``, for messages that refer to records.
        first_record: If not 0, the rows are only those of messages that begin at this record
            or later; earlier stored rows stay.
        records: The records from there on; ``blocks`` is empty then.
        carried: Totals over what is before the message that the next reading starts with.
    """

    id: str
    kind: str
    path: str
    agent: str
    workspace_root: str | None
    model_json: str
    metadata: dict[str, Any]
    rollups: Rollups
    created_at: int
    updated_at: int
    archived_at: int | None
    parent_id: str | None
    parent_message: str | None
    lineage_kind: str | None
    messages: list[MessageTuple] = field(default_factory=list)
    message_names: list[str] = field(default_factory=list)
    inherited: dict[int, str] = field(default_factory=dict)
    parts: list[PartTuple] = field(default_factory=list)
    refs: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    first_record: int = 0
    records: Sequence[bytes] = field(default=(), compare=False)
    carried: Carried | None = field(default=None, compare=False)
    attachments: list[Attachment] = field(default_factory=list)
    system_prompts: dict[str, str] = field(default_factory=dict)
    keeps_records: bool = True
    names_count: bool = False
    partial: bool = False
    holds_stored: bool = False
    tells_title: bool = False
