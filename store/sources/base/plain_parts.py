"""Parts that every source makes alike: finished text and thoughts, open calls, ``data-...``."""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import PartDraft
from store.sources.base.values import string


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
