"""What a source hands to sync: sessions, messages and parts before they have ids.

A source maps its records to these; sync mints the ids, makes ``(created_at, id)`` the
display order, counts the rollups and writes the rows. Everything here must follow from
the source's records alone, never from the time of reading, so that a session that was
followed live and one that was read once come out the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

LineageKind = Literal["fork", "subagent", "continuation", "unknown"]
Role = Literal["user", "assistant", "system"]


@dataclass(slots=True)
class PartDraft:
    """One AI SDK part.

    What names another row does it by source id, for sync to replace once ids are minted:
    ``data.tail_start_id`` of a ``data-compaction`` part (the first message kept before the
    summary) and its ``data.kept_ids`` (all that were kept), and
    ``resultProviderMetadata.backscroll.child_session_source_id``
    of a tool part.

    Attributes:
        type: ``text``, ``reasoning``, ``tool-<name>``, ``dynamic-tool``, ``file``, ``data-...``.
        data: The whole UIMessagePart, camelCase, ``type`` included.
        tool_state: Mirrors ``data["state"]`` of tool parts.
        created_at: Epoch ms; for a tool call the time of the call.
        updated_at: Epoch ms; for a tool call the time of its result.
        records: Numbers into ``SessionDraft.records`` of the records it was made of.
    """

    type: str
    data: dict[str, Any]
    created_at: int
    updated_at: int
    tool_call_id: str | None = None
    tool_state: str | None = None
    records: tuple[int, ...] = ()


class ApiAnswer(NamedTuple):
    """Which answer of a model's API a message holds, the same in every copy of it.

    Attributes:
        id: The API's id of the answer, else the agent's own, where copies keep that.
        request: The id of the request; None where it is not recorded. An id alone says
            little: some gateways number the answers of each session from 1.
    """

    id: str
    request: str | None = None


@dataclass(slots=True)
class MessageDraft:
    """One message, in display order within its session.

    Attributes:
        source_id: Identifies the message within its session at the source; never reused.
        created_at: The source's time, epoch ms; sync raises it to the previous message's.
        metadata: ``usage`` (a count for each of ``store.usage.BUCKETS``), ``model``
            (``{provider_id, model_id}``), ``origin`` (``human`` for what the person typed),
            ``hidden_at``, ``system_prompt_digest`` and whatever else the source tells.
        inherited_from: The ``source_id`` of the original in the parent session, for copies.
        records: Records of the message as a whole that belong to none of its parts.
        answer: Which answer an assistant message holds; None where nothing has an id, and the
            message is known by its time and its words.
        gone: Whether the source no longer has it: it was read from the library.
    """

    source_id: str
    role: Role
    created_at: int
    updated_at: int
    metadata: dict[str, Any] = field(default_factory=dict)
    parts: list[PartDraft] = field(default_factory=list)
    inherited_from: str | None = None
    records: tuple[int, ...] = ()
    answer: ApiAnswer | None = None
    gone: bool = False


@dataclass(slots=True)
class LineageDraft:
    """Where a session comes from.

    Attributes:
        parent_source_id: The parent session's id at the source.
        parent_message_source_id: The message of the parent it starts from, where known.
        tool_call_id: The parent's tool call that started it, for subagents.
    """

    kind: LineageKind
    parent_source_id: str
    parent_message_source_id: str | None = None
    tool_call_id: str | None = None


@dataclass(slots=True)
class AttachmentDraft:
    """A side file of a session.

    Parts name it in ``resultProviderMetadata.backscroll.attachment``.
    """

    name: str
    media_type: str
    body: bytes


@dataclass(slots=True)
class SessionDraft:
    """One session of a source.

    Attributes:
        source_id: The session's id at the source, unique within the source's kind.
        path: The file or database it was read from.
        model: ``{provider_id, model_id, variant?}``; None where it is not recorded.
        metadata: What goes into ``metadata_json`` beside ``title``, ``source``, ``lineage``.
        records: The original records in order, as bytes without their newline.
        first_record: The number of the first of ``records``; where it is not 0, the draft
            holds only the messages that begin there or later.
        system_prompts: Bodies by their SHA-256 (hex), as messages name them.
        archived_at: Epoch ms where the source itself has the session archived.
        names_count: Whether the messages' ``source_id`` only say which one of the session each
            is, so that another one has it where something before it was taken out.
        partial: Whether this is what something beside the session's own files says about it: an
            index, a list of prompts. It never takes the place of what those files told.
        holds_stored: Whether it was made with all that the library has of the session, so that
            it takes the place of that, whichever file that was read from.
        tells_title: Whether what holds the session's title was read: one that was given before
            and is not there now was taken back. Otherwise its file may be gone, and it stays.
        times_settled: Whether the source has put odd times right, record by record.
    """

    source_id: str
    path: str
    agent: str
    created_at: int
    updated_at: int
    title: str | None = None
    title_from: str | None = None
    workspace_root: str | None = None
    model: dict[str, Any] | None = None
    lineage: LineageDraft | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    messages: list[MessageDraft] = field(default_factory=list)
    records: Sequence[bytes] = ()
    first_record: int = 0
    attachments: list[AttachmentDraft] = field(default_factory=list)
    system_prompts: dict[str, str] = field(default_factory=dict)
    archived_at: int | None = None
    names_count: bool = False
    partial: bool = False
    holds_stored: bool = False
    tells_title: bool = False
    times_settled: bool = False
