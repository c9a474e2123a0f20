"""Parts that every source makes alike: text, thoughts, calls and their results, ``data-...``."""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import PartDraft
from store.sources.base.values import mapping, string

_OPEN = ("input-streaming", "input-available", "approval-requested")


def text_part(text: str, at: int, *records: int) -> PartDraft:
    """Return a finished text part.

    Args:
        text: The words.
        at: Epoch ms.
        records: Numbers of the records that it was made of.
    """
    data = {"type": "text", "text": text, "state": "done"}
    return PartDraft("text", data, at, at, records=records)


def reasoning_part(
    text: object, at: int, record: int, provider: str = "", kept: dict[str, Any] | None = None
) -> PartDraft:
    """Return a finished thought.

    Args:
        text: The words; none where they are encrypted, or are no text.
        at: Epoch ms.
        record: The number of the record that it was made of.
        provider: Who needs what is kept.
        kept: What is needed to send it to the model again; may be empty.
    """
    data: dict[str, Any] = {"type": "reasoning", "text": string(text) or "", "state": "done"}
    if kept:
        data["providerMetadata"] = {provider: kept}
    return PartDraft("reasoning", data, at, at, records=(record,))


def call_part(name: object, call_id: str, given: object, at: int, record: int) -> PartDraft:
    """Return a tool call that has no result yet.

    Args:
        name: The tool's name; ``unknown`` where it is no text.
        call_id: The call's id.
        given: Its input; empty where it is None.
        at: Epoch ms.
        record: The number of the record that it was made of.
    """
    kind = f"tool-{string(name) or 'unknown'}"
    data: dict[str, Any] = {
        "type": kind, "toolCallId": call_id, "state": "input-available",
        "input": {} if given is None else given,
    }  # fmt: skip
    return PartDraft(kind, data, at, at, call_id, "input-available", (record,))


def is_open(part: PartDraft) -> bool:
    """Return whether a part is a call that has no result."""
    return part.tool_state in _OPEN


def settle_call(
    part: PartDraft,
    status: str,
    output: Any,
    at: int,
    record: int,
    extra: dict[str, Any] | None = None,
) -> None:
    """Put a result into the part of its call; of a second one only the record is kept.

    Args:
        part: The call's part.
        status: ``ok``, ``error``, ``interrupted`` or ``denied``.
        output: The result; its words where it failed or was denied.
        at: When it was written, epoch ms.
        record: The number of the record that it is in.
        extra: What else is known of it, as ``exit_code`` and ``duration_ms``.
    """
    part.records = tuple(dict.fromkeys((*part.records, record)))
    if not is_open(part):
        return
    data = part.data
    if status == "ok":
        data |= {"state": "output-available", "output": output}
    elif status == "denied":
        data["state"] = "output-denied"
        data["approval"] = {"id": part.tool_call_id, "approved": False, "reason": output}
    else:
        data |= {"state": "output-error", "errorText": output}
    known = mapping(mapping(data.get("resultProviderMetadata")).get("backscroll"))
    own = {**known, "status": status, **(extra or {})}
    data["resultProviderMetadata"] = {"backscroll": own}
    part.tool_state, part.updated_at = data["state"], max(at, part.created_at)


def data_part(kind: str, data: dict[str, Any], at: int, *records: int) -> PartDraft:
    """Return a ``data-<kind>`` part.

    Args:
        kind: What follows ``data-`` in its type.
        data: The part's own data.
        at: Epoch ms.
        records: Numbers of the records that it was made of.
    """
    name = f"data-{kind}"
    return PartDraft(name, {"type": name, "data": data}, at, at, records=records)
