"""Turns a source's draft into rows that are ready to write, without access to a database.

It can therefore run in another process than the writer. Rows depend on the draft alone, so a
session that was followed live gets the same rows as one that was read once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from store.conversation.gone_marks import GONE, GONE_MESSAGES, PARTIAL
from store.conversation.kept import rename_kept
from store.ids import IDS_PER_MILLISECOND, STAMP_MASK, derived_session_id, derived_tails
from store.rows import UNKNOWN_MODEL
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.titles import title_of
from store.sync.answers import answer_name
from store.sync.blocks import cut_blocks
from store.sync.jsontext import clean, json_text
from store.sync.memory import Memory
from store.sync.session_rows import (
    NOTHING_CARRIED,
    Carried,
)
from store.sync.session_rows import MessageTuple as MessageTuple
from store.sync.session_rows import PartTuple as PartTuple
from store.sync.session_rows import PreparedSession as PreparedSession
from store.sync.times import Times, believed, ended_at, part_times, times_of
from store.usage import KEYS, MOST_SPENT, Rollups


def prepare(
    kind: str,
    draft: SessionDraft,
    *,
    keep_originals: bool = True,
    compress: bool = True,
    memory: Memory | None = None,
    carried: Carried = NOTHING_CARRIED,
    until: int | None = None,
) -> PreparedSession:
    """Return the rows of a session.

    Args:
        kind: The source's kind, as in ``metadata_json.source.kind``.
        draft: The session as read by the source; it is not changed.
        keep_originals: Whether to keep the original records.
        compress: Whether to compress record blocks now, or only when they are written.
        memory: Cached rows of the same session; only changed messages are prepared.
        carried: Sums over the messages before those of the draft.
        until: Index of the message that the next reading starts with, if known.
    """
    memory = memory or Memory(keeps=False)
    times = times_of(draft)
    session_id = derived_session_id(kind, draft.source_id)
    lineage = draft.lineage
    prepared = PreparedSession(
        id=session_id,
        kind=kind,
        path=clean(draft.path),
        agent=clean(draft.agent),
        workspace_root=None if draft.workspace_root is None else clean(draft.workspace_root),
        model_json=json_text(draft.model or UNKNOWN_MODEL),
        metadata=_session_metadata(kind, draft),
        rollups=carried.rollups,
        created_at=times.created,
        updated_at=times.updated,
        archived_at=draft.archived_at,
        parent_id=derived_session_id(kind, lineage.parent_source_id) if lineage else None,
        parent_message=lineage.parent_message_source_id if lineage else None,
        lineage_kind=lineage.kind if lineage else None,
        system_prompts={digest: clean(body) for digest, body in draft.system_prompts.items()},
        keeps_records=keep_originals,
        names_count=draft.names_count,
        partial=draft.partial,
        holds_stored=draft.holds_stored,
        tells_title=draft.tells_title,
    )
    _lay_out(prepared, kind, draft, times, keep_originals, memory, carried, until)
    rest = draft.messages[until:] if prepared.carried is not None else draft.messages
    prepared.rollups = rollups(rest, (prepared.carried or carried).rollups)
    prepared.first_record = draft.first_record
    if keep_originals and draft.first_record:
        prepared.records = draft.records
    elif keep_originals:
        prepared.blocks = cut_blocks(draft.records, compress=compress)
    prepared.attachments = [memory.packed(attachment) for attachment in draft.attachments]
    return prepared


def rollups(messages: list[MessageDraft], before: Rollups = NOTHING_CARRIED.rollups) -> Rollups:
    """Return token and cost sums over assistant messages, hidden and copied ones included.

    Source: the contract's column descriptions of ``chat_sessions``.

    Args:
        messages: The messages.
        before: The sums over the messages before them.
    """
    answers = (message.metadata for message in messages if message.role == "assistant")
    return sums(answers, before)


def sums(
    answers: Iterable[Mapping[str, Any]], before: Rollups = NOTHING_CARRIED.rollups
) -> Rollups:
    """Return token and cost sums over the metadata of assistant messages."""
    totals, cost = list(before.tokens), before.cost_usd
    for metadata in answers:
        usage = metadata.get("usage")
        if isinstance(usage, dict):
            for position, bucket in enumerate(KEYS):
                value = usage.get(bucket)
                if type(value) is int:
                    totals[position] += value
                elif isinstance(value, float) and math.isfinite(value):
                    totals[position] += int(value)
        spent = metadata.get("cost_usd")
        if isinstance(spent, int | float) and abs(spent) < MOST_SPENT:
            cost += spent
    return Rollups.of(totals, cost)


def _session_metadata(kind: str, draft: SessionDraft) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    title, title_from = title_of(draft)
    if title is not None:
        metadata["title"] = title
    if title_from is not None:
        metadata["title_from"] = title_from
    metadata["source"] = {"kind": kind, "id": draft.source_id, "path": draft.path}
    if draft.partial:
        metadata["source"][PARTIAL] = True
    gone = sum([message.gone for message in draft.messages])
    if gone:
        metadata["source"][GONE_MESSAGES] = gone
    if draft.lineage is not None:
        lineage: dict[str, Any] = {
            "kind": draft.lineage.kind,
            "parent_source_id": draft.lineage.parent_source_id,
        }
        if draft.lineage.tool_call_id is not None:
            lineage["tool_call_id"] = draft.lineage.tool_call_id
        metadata["lineage"] = lineage
    metadata.update(draft.metadata)
    if draft.archived_at is not None:
        own = dict(metadata.get("backscroll") or {})
        own["source_archived_at"] = draft.archived_at
        metadata["backscroll"] = own
    return metadata


def _lay_out(
    prepared: PreparedSession,
    kind: str,
    draft: SessionDraft,
    times: Times,
    keep_originals: bool,
    memory: Memory,
    carried: Carried,
    until: int | None,
) -> None:
    """Add the messages' rows, with ids such that ``(created_at, id)`` is their order."""
    at, position = carried.at, carried.position
    if at < 0 and draft.messages and not times.messages[0]:
        # A first message without a valid time gets the time of the next one that has it.
        at, position = _first_time(times), -1
    memory.begin()
    ids: dict[str, str] = {}
    tail_of = derived_tails(kind, draft.source_id)
    for number, message in enumerate(draft.messages):
        if number == until:
            sums = rollups(draft.messages[:until], carried.rollups)
            prepared.carried = Carried(at, position, sums)
        if times.messages[number] > at:
            at, position = times.messages[number], 0
        elif position == IDS_PER_MILLISECOND - 1:
            at, position = at + 1, 0
        else:
            position += 1
        ticks = at * IDS_PER_MILLISECOND
        known = memory.recall(message, ticks + position) if memory.keeps else None
        if known is not None:
            known.add_to(prepared)
            ids[message.source_id] = known.row[0]
            continue
        first_part = len(prepared.parts)
        tail = tail_of(message.source_id)
        message_id = f"msg_{(ticks + position) & STAMP_MASK:012x}{tail}"
        ids[message.source_id] = message_id
        _add_message(prepared, kind, message, message_id, at, times)
        _add_parts(prepared, kind, message, message_id, ticks, tail, times)
        if keep_originals:
            _add_refs(prepared, message, message_id)
        if memory.keeps:
            memory.keep(message, ticks + position, prepared, first_part)
    memory.end()
    _name_tails(prepared, ids)


def _first_time(times: Times) -> int:
    """Return the first valid time of a session's messages, else the session's own."""
    return next(filter(None, times.messages), times.created)


def _add_message(
    prepared: PreparedSession,
    kind: str,
    message: MessageDraft,
    message_id: str,
    at: int,
    times: Times,
) -> None:
    metadata = dict(message.metadata)
    source: dict[str, Any] = {"id": message.source_id}
    if message.inherited_from is not None:
        source["inherited_from"] = message.inherited_from
        prepared.inherited[len(prepared.messages)] = message.inherited_from
    answer = answer_name(kind, message)
    if answer is not None:
        source["answer"] = answer
    if message.gone:
        source[GONE] = True
    metadata["source"] = source
    if at != message.created_at > 0:
        own = dict(metadata.get("backscroll") or {})
        odd = message.created_at in times.odd or not believed(message.created_at)
        own["odd_created_at" if odd else "true_created_at"] = message.created_at
        metadata["backscroll"] = own
    prepared.message_names.append(message.source_id)
    prepared.messages.append(
        (message_id, prepared.id, message.role, json_text(metadata), at,
         ended_at(message.updated_at, at, times))
    )  # fmt: skip


def _add_parts(
    prepared: PreparedSession,
    kind: str,
    message: MessageDraft,
    message_id: str,
    ticks: int,
    tail: str,
    times: Times,
) -> None:
    at = ticks // IDS_PER_MILLISECOND
    for index, part in enumerate(message.parts):
        data = part.data
        if "resultProviderMetadata" in data:
            data = _part_data(kind, part)
        call_id = part.tool_call_id
        prepared.parts.append(
            (
                f"prt_{(ticks + index) & STAMP_MASK:012x}{tail}",
                message_id,
                prepared.id,
                index,
                clean(part.type),
                json_text(data),
                None if call_id is None else clean(call_id),
                part.tool_state,
                *part_times(part.created_at, part.updated_at, at, times),
            )
        )


def _part_data(kind: str, part: PartDraft) -> dict[str, Any]:
    """Return the part with the id of the child session that its call started, if any."""
    extras = part.data.get("resultProviderMetadata")
    own = extras.get("backscroll") if isinstance(extras, dict) else None
    child = own.get("child_session_source_id") if isinstance(own, dict) else None
    if not isinstance(child, str) or not isinstance(own, dict) or not isinstance(extras, dict):
        return part.data
    own = {**own, "child_session_id": derived_session_id(kind, child)}
    return {**part.data, "resultProviderMetadata": {**extras, "backscroll": own}}


def _add_refs(prepared: PreparedSession, message: MessageDraft, message_id: str) -> None:
    numbers = [part.records for part in message.parts]
    numbers.append(message.records)
    prepared.refs.append((message_id, json_text(numbers)))


def _name_tails(prepared: PreparedSession, ids: Mapping[str, str]) -> None:
    """Replace source ids in compaction parts by message ids of this session."""
    for position, row in enumerate(prepared.parts):
        if row[4] != "data-compaction":
            continue
        part = orjson.loads(row[5])
        if rename_kept(part, ids.get):
            prepared.parts[position] = (*row[:5], json_text(part), *row[6:])
