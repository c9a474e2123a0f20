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
    """What the messages before a place come to.

    Attributes:
        at: ``created_at`` of the last of them, -1 where there is none.
        position: Its place among those of its millisecond.
        rollups: As ``PreparedSession.rollups``.
    """

    at: int = -1
    position: int = 0
    rollups: Rollups = Rollups()


NOTHING_CARRIED = Carried()


@dataclass(slots=True)
class PreparedSession:
    """A session's rows, but for what only the store knows: its parent and what users set.

    Attributes:
        metadata: ``metadata_json`` before the user's keys are laid over it.
        rollups: The five sums, their total, and the cost.
        messages: In display order.
        message_names: The source ids of ``messages``, one each.
        inherited: Position in ``messages`` to the source id of the original, for copies.
        keeps_records: Whether ``blocks`` holds the original records; else none are kept.
        names_count: Whether ``message_names`` only say which message of the session one is.
        partial: Whether it was read from something beside the session's own files.
        tells_title: Whether a title that was given before and is not there was taken back.
        refs: Message id and ``records_json``, for messages that name records.
        first_record: Where it is not 0, the rows are those of the messages that begin at this
            record or later; what lies before stays as it is stored.
        records: The records from there on, which are not in ``blocks`` then.
        carried: What comes before the message that the next reading begins with.
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
    tells_title: bool = False
