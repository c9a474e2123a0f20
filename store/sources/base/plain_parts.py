"""Parts that every source makes alike: finished text, and ``data-...`` parts."""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import PartDraft


def text_part(text: str, at: int, *records: int) -> PartDraft:
    """Return a finished text part.

    Args:
        text: The words.
        at: Epoch ms.
        records: Numbers of the records that it was made of.
    """
    data = {"type": "text", "text": text, "state": "done"}
    return PartDraft("text", data, at, at, records=records)


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
