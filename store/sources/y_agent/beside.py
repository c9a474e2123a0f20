"""What is beside a transcript: file history and diagnostic traces, as side files."""

from __future__ import annotations

from typing import Any

import orjson

from store.sources.base.databases import record_bytes
from store.sources.base.drafts import AttachmentDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.protocol import Problem
from store.sources.base.values import mapping, number, string, utc_ms
from store.sources.y_agent.messages import usage_of
from store.sources.y_agent.stored import Trace

_TOTALS = {
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "total_cache_read_tokens": "cache_read_tokens",
    "total_cache_write_tokens": "cache_write_tokens",
}


def add_file_history(
    draft: SessionDraft,
    body: bytes | None,
    backups: dict[str, bytes],
    records: list[bytes],
    problems: list[Problem],
) -> None:
    """Put each backup of files at the prompt before which it was made.

    Args:
        draft: The session.
        body: ``_snapshots.json``.
        backups: The backup files by name.
        records: Takes the originals.
        problems: Takes what is damaged.
    """
    if body is None:
        return
    try:
        snapshots = mapping(parse_value(body)).get("snapshots")
    except LineError as error:
        problems.append(Problem(draft.path, 0, f"file history: {error}"))
        return
    messages = {message.source_id: message for message in draft.messages}
    left: list[dict[str, Any]] = []
    for snapshot in snapshots if isinstance(snapshots, list) else ():
        found = mapping(snapshot)
        message = messages.get(str(found.get("message_id")))
        if message is None:
            left.append(found)
            continue
        records.append(record_bytes({"file": "_snapshots.json", **found}))
        part = _snapshot_part(found, backups, message)
        part.records = (len(records) - 1,)
        message.parts.append(part)
    if left:
        draft.metadata["backscroll"]["file_history"] = left
    for name, content in backups.items():
        draft.attachments.append(AttachmentDraft(name, "text/plain", content))


def _snapshot_part(
    found: dict[str, Any], backups: dict[str, bytes], message: MessageDraft
) -> PartDraft:
    files = [
        {"path": path, **mapping(backup)} for path, backup in
        mapping(found.get("file_backups")).items()
    ]  # fmt: skip
    at = utc_ms(found.get("timestamp")) or message.created_at
    data: dict[str, Any] = {"type": "data-snapshot", "data": {"files": files, "at": at}}
    names = [str(one.get("backup_file_name")) for one in files]
    kept = [name for name in names if name in backups]
    if kept:
        data["resultProviderMetadata"] = {"backscroll": {"attachment": kept}}
    return PartDraft("data-snapshot", data, message.created_at, message.updated_at)


def add_traces(draft: SessionDraft, traces: list[Trace]) -> None:
    """Put each trace at the answer that names it, or else at the last one."""
    answers = [message for message in draft.messages if message.role == "assistant"]
    named: dict[str, MessageDraft] = {}
    for message in answers:
        name = string(mapping(message.metadata.get("backscroll")).get("trace_id"))
        if name is not None:
            named[name] = message
    unplaced: list[dict[str, Any]] = []
    for trace in traces:
        name = f"trace-{trace.id}.json"
        body = {"trace": trace.row, "observations": trace.observations, "scores": trace.scores}
        content = orjson.dumps(body, option=orjson.OPT_INDENT_2, default=str)
        draft.attachments.append(AttachmentDraft(name, "application/json", content))
        if trace.id in named or answers:
            _add_trace(named.get(trace.id) or answers[-1], trace, name, own=trace.id in named)
        else:
            unplaced.append(_summary(trace))
    if unplaced:
        draft.metadata["backscroll"]["traces"] = unplaced


def _add_trace(message: MessageDraft, trace: Trace, name: str, *, own: bool) -> None:
    noted = message.metadata.setdefault("backscroll", {})
    noted.setdefault("traces", []).append(_summary(trace))
    if own and "usage" not in message.metadata:
        usage = usage_of({_TOTALS.get(key, key): value for key, value in trace.row.items()})
        if usage is not None:
            message.metadata["usage"] = usage
    part = next((p for p in message.parts if p.tool_call_id is None), None)
    if part is None:
        data = {"type": "data-event", "data": {"name": "trace", "details": _summary(trace)}}
        part = PartDraft("data-event", data, message.created_at, message.updated_at)
        part.records = message.records
        message.parts.append(part)
    bag = part.data.setdefault("resultProviderMetadata", {}).setdefault("backscroll", {})
    bag.setdefault("attachment", []).append(name)


def _summary(trace: Trace) -> dict[str, Any]:
    """Return a trace in short: what was asked, in order, what it used, and its scores."""
    steps = []
    for row in trace.observations:
        kept = ("obs_type", "name", "model", "status", "duration_ms", "depth", "input_tokens",
                "output_tokens", "cost_usd", "error_message")  # fmt: skip
        step = {key: row[key] for key in kept if row.get(key) is not None}
        begun, ended = utc_ms(row.get("started_at")), utc_ms(row.get("completed_at"))
        if begun is not None and ended is not None:
            step.setdefault("duration_ms", max(ended - begun, 0))
        steps.append(step)
    totals = {key: value for key, value in trace.row.items()
              if key.startswith("total_") and number(value)}  # fmt: skip
    scores = [{key: row[key] for key in ("name", "value", "source", "comment") if key in row}
              for row in trace.scores]  # fmt: skip
    found = {"id": trace.id, "observations": steps, "totals": totals, "scores": scores}
    for key in ("name", "status", "started_at", "ended_at", "completed_at"):
        if trace.row.get(key) is not None:
            found[key] = trace.row[key]
    return {key: value for key, value in found.items() if value not in ([], {})}
