"""Turns that are recorded again under new ids, and which turns they are.

After ``/compress``, ``/chat resume`` and a request that was cancelled the program writes its
history anew: as one ``$set``, or also message by message. What it sends to the model has
no ids, so each turn gets another one; the time is that of writing, and an answer loses its
counts and its model. The session's context becomes a part of the prompt after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from store.sources.base.values import epoch_ms, mapping
from store.sources.gemini.content import CONTEXT, SNAPSHOT, parts_of, text_of
from store.sources.gemini.entry import Entry

_AT_ONCE_MS = 20
_TOLD = ("user", "gemini")
Signature = tuple[str, str, tuple[tuple[str, bytes], ...]]


def without_context(data: dict[str, Any]) -> dict[str, Any]:
    """Return a user's record without the context that was put before its words."""
    parts = parts_of(data.get("content"))
    if data.get("type") != "user" or len(parts) < 2:
        return data
    if not text_of(parts[0]).lstrip().startswith(CONTEXT):
        return data
    return {**data, "content": parts[1:]}


def written_at_once(rows: Sequence[dict[str, Any]]) -> list[bool]:
    """Say of each message of a history whether it was written in one go with others.

    A run of messages of one moment is, where an answer in it has no model: a person does
    not type, and no model answers, within it.
    """
    times = [epoch_ms(row.get("timestamp")) or 0 for row in rows]
    found = [False] * len(rows)
    start = 0
    for end in range(1, len(rows) + 1):
        if end < len(rows) and abs(times[end] - times[end - 1]) <= _AT_ONCE_MS:
            continue
        run = range(start, end)
        copied = any(rows[n].get("type") == "gemini" and not rows[n].get("model") for n in run)
        for n in run if copied and len(run) > 1 else ():
            found[n] = not rows[n].get("model")
        start = end
    return found


def signature(entry: Entry) -> Signature | None:
    """Return what a turn and its copy have in common; None for what is never matched."""
    if entry.kind not in _TOLD:
        return None
    parts = parts_of(entry.data.get("content"))
    said = text_of([part for part in parts if not part.get("thought")]).strip()
    listed = entry.data.get("toolCalls")
    calls = [mapping(call) for call in listed] if isinstance(listed, list) else []
    calls = calls or [call for part in parts if (call := mapping(part.get("functionCall")))]
    asked = tuple((str(call.get("name")), _json(call.get("args"))) for call in calls)
    return (entry.kind, said, asked) if said or asked else None


def _json(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def originals(
    found: Sequence[Entry], copied: Sequence[bool], entries: Iterable[Entry]
) -> list[Entry]:
    """Return the entries of a history, of each copy the turn that it is a copy of.

    Args:
        found: The history's entries.
        copied: Which of them were written at once (``written_at_once``).
        entries: All entries, in the order in which they came.
    """
    if not any(copied):
        return list(found)
    listed = {entry.key for entry in found}
    known: dict[Signature, list[tuple[int, Entry]]] = {}
    for place, entry in enumerate(entries):
        signed = signature(entry) if entry.key not in listed else None
        if signed is not None:
            known.setdefault(signed, []).append((place, entry))
    result: list[Entry] = []
    reached = -1
    for entry, is_copy in zip(found, copied, strict=True):
        signed = signature(entry) if is_copy else None
        same = known.get(signed) if signed else None
        if same and _summary_of_its_own(entry, same):
            same = None
        if same:
            # Histories keep their order, but a summary is before what it kept.
            one = min(same, key=lambda one: (one[0] <= reached, one[1].left is not None, one[0]))
            same.remove(one)
            reached, entry = one
        result.append(entry)
    return result


def _summary_of_its_own(entry: Entry, same: list[tuple[int, Entry]]) -> bool:
    """Tell a summary that was made anew from one that is recorded again: that one counts."""
    is_summary = text_of(entry.data.get("content")).lstrip().startswith(SNAPSHOT)
    return is_summary and all(one.left is not None for _, one in same)
