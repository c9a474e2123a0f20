"""Which lines at the beginning of a file are copies of another thread's.

Forks of the legacy mode begin with their parent's lines. A copy says what its original
says, but need not be the same bytes: newer versions add keys to the parent's
``session_meta`` and insert events, and every copy has the time of copying. Source: the
Codex format page, sections 3.3 and "Added later".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from store.sources.base.values import epoch_ms, mapping, string
from store.sources.codex.items import content_items, message_text
from store.sources.codex.names import uuid7_ms
from store.sources.codex.origins import origin_of
from store.sources.codex.rollout import Line, Rollout

Resolve = Callable[[str], Rollout | None]
"""Finds a rollout by its physical key."""
LINE_WRITTEN_MS = 250
"""How much later than a fork began its parent's last line before it may say that it was."""
COPIED_WITHIN_MS = 5
"""Copied lines are written one right after the other; only used without the parent's file."""

CONTENT = ("response_item", "compacted", "inter_agent_communication", "agent_message")
"""Types of lines that hold what was said."""
_BESIDE = ("annotations", "logprobs")
"""Keys of a text that only some versions write."""
_EVENT_FACTS = ("turn_id", "message", "text", "num_turns", "call_id", "last_agent_message")
"""What tells one event from others of its kind."""


Base = tuple[str, int]
"""The physical key of a file that another goes on from, and the ordinal at which it is cut."""


def base_of(rollout: Rollout) -> Base | None:
    """Return the physical key and end ordinal that a segment continues."""
    base = mapping(rollout.meta.get("history_base"))
    key = string(base.get("thread_id"))
    end = base.get("end_ordinal_exclusive")
    return (key.lower(), end) if key and type(end) is int else None


def began_at(rollout: Rollout) -> int:
    """Return when a segment was begun, epoch ms."""
    stamp = epoch_ms(rollout.meta.get("timestamp"))
    if stamp is not None:
        return stamp
    return rollout.lines[0].at if rollout.lines else 0


def copied_lines(rollout: Rollout, resolve: Resolve, missing: list[str]) -> list[Line]:
    """Return the lines at a file's beginning that are copies, each as its original.

    Its own ``session_meta``, which comes first, counts as one of them, and so does what the
    program put in between copies.

    Args:
        rollout: The file.
        resolve: Finds files of other threads.
        missing: Takes the physical key of the parent where its file is not there.
    """
    parent_id = copied_from(rollout)
    if parent_id is None:
        return []
    parent = resolve(parent_id)
    if parent is None or parent is rollout:
        if parent_id not in missing:
            missing.append(parent_id)
        return _guessed_copies(rollout, parent_id)
    earlier = copied_lines(parent, _once(resolve, rollout), [])
    originals = [*earlier, *parent.lines[len(earlier) :]]
    # What its parent went on with later is no original, though it may say the same.
    began = max(began_at(rollout), uuid7_ms(rollout.key) or 0)
    if len(list(rollout.metas())) < 2:
        # A fork made by hand has the one line that names it changed, and no other before it.
        originals, began = originals[1:], began + (1 << 62)
    found = _matched(rollout, [one for one in originals if one.at <= began + LINE_WRITTEN_MS])
    return found if len(found) > 1 else []


def copied_from(rollout: Rollout) -> str | None:
    """Return the thread whose lines a file begins with copies of."""
    if base_of(rollout) is not None or not rollout.lines:
        return None
    metas = list(rollout.metas())
    if len(metas) > 1:
        copied = string(metas[1].get("id"))
        if copied and copied != metas[0].get("id"):
            return copied.lower()
    said = string(rollout.meta.get("forked_from_id")) or _counted_for(rollout)
    return said.lower() if said else None


def _once(resolve: Resolve, seen: Rollout) -> Resolve:
    """Return ``resolve`` without a file that was gone through, so that no circle is followed."""

    def without(key: str) -> Rollout | None:
        return None if key == seen.key else resolve(key)

    return without


class _Originals:
    """The lines that a file may hold copies of, in order."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self._places: dict[bytes, list[int]] = {}
        self._content = [0]
        for place, line in enumerate(lines):
            self._places.setdefault(_words(line), []).append(place)
            self._content.append(self._content[-1] + _speaks(line))

    def find(self, line: Line, start: int) -> int | None:
        """Return the place of the next line that says the same; None where there is none.

        Between it and the start nothing may be said, unless the line has an id of its own:
        copies keep their order, and people say the same twice.
        """
        places = self._places.get(_words(line), [])
        index = bisect_left(places, start)
        if index == len(places):
            return None
        place = places[index]
        skipped = self._content[place] - self._content[start]
        return place if not skipped or _has_id(line) else None


def _matched(rollout: Rollout, lines: Sequence[Line]) -> list[Line]:
    """Return the beginning of a file up to the last line whose original is among some lines."""
    originals, start = _Originals(lines), 0
    last_counted = _last_counted_elsewhere(rollout)
    found, copied = [rollout.lines[0]], 1
    for place, line in enumerate(rollout.lines[1:], start=1):
        if place > last_counted and _is_own(rollout, line):
            break
        at = originals.find(line, start)
        if at is not None:
            original, start, copied = originals.lines[at], at + 1, place + 1
            line = replace(line, place=original.place, at=min(original.at, line.at))
        elif _speaks(line) and place > last_counted:
            break
        found.append(line)
    return found[: max(copied, last_counted + 1)]


def _is_own(rollout: Rollout, line: Line) -> bool:
    """Return whether a line names its own thread, or a turn that is younger than that."""
    thread = string(line.payload.get("thread_id"))
    if thread is not None and thread.lower() in _own_ids(rollout):
        return True
    turn = uuid7_ms(string(line.payload.get("turn_id")) or "")
    began = uuid7_ms(rollout.key)
    return turn is not None and began is not None and turn > began


def _own_ids(rollout: Rollout) -> tuple[str, str]:
    return str(rollout.meta.get("id")).lower(), rollout.key


def _words(line: Line) -> bytes:
    """Return what a line says, without what a copy of it may have otherwise."""
    payload = line.payload
    facts: Any
    if line.type == "session_meta":
        facts = payload.get("id")
    elif line.type == "token_usage_record":
        facts = [payload.get("thread_id"), payload.get("response_id")]
    elif line.type == "turn_context":
        facts = [payload.get("turn_id"), payload.get("model")]
    elif line.type == "event_msg":
        total = mapping(payload.get("info")).get("total_token_usage")
        facts = [*(payload.get(key) for key in _EVENT_FACTS), total]
        facts.append(mapping(payload.get("item")).get("id"))
    elif line.type == "response_item":
        facts = _item_words(line)
    elif line.type in CONTENT:
        facts = payload
    else:
        facts = None
    return orjson.dumps([line.type, line.kind, facts], option=orjson.OPT_SORT_KEYS, default=str)


def _item_words(line: Line) -> Any:
    payload = line.payload
    if line.kind == "message":
        items = [
            {key: value for key, value in item.items() if key not in _BESIDE}
            for item in content_items(payload)
        ]
        return [payload.get("role"), items]
    if line.kind == "reasoning":
        return payload.get("encrypted_content") or payload.get("summary")
    if line.kind.endswith("_call"):
        said = ("call_id", "name", "arguments", "input", "action")
        return [payload.get(key) for key in said]
    if line.kind.endswith("_output"):
        return [payload.get("call_id"), payload.get("output")]
    return {key: value for key, value in payload.items() if key != "id"}


def _speaks(line: Line) -> bool:
    """Return whether a line holds what was said, not context that the program puts in again."""
    if line.type != "response_item" or line.kind != "message":
        return line.type in CONTENT
    if line.payload.get("role") in ("developer", "system"):
        return False
    text = message_text(line.payload)
    return line.payload.get("role") != "user" or origin_of(line, text)[0] != "meta"


def _has_id(line: Line) -> bool:
    payload = line.payload
    named = payload.get("id") or payload.get("call_id") or payload.get("encrypted_content")
    return line.type in CONTENT and bool(named)


def _counted_for(rollout: Rollout) -> str | None:
    """Return the thread that a file's first count of tokens is of, where that is another one.

    A fork made by hand names its parent nowhere else.
    """
    records = (line.payload for line in rollout.lines if line.type == "token_usage_record")
    thread = string(next(records, {}).get("thread_id"))
    return thread if thread and thread.lower() not in _own_ids(rollout) else None


def _last_counted_elsewhere(rollout: Rollout) -> int:
    """Return the place of the last count of tokens that names another thread; else 0."""
    last = 0
    for place, line in enumerate(rollout.lines):
        if line.type == "token_usage_record":
            thread = string(line.payload.get("thread_id"))
            if thread is not None and thread.lower() not in _own_ids(rollout):
                last = place
    return last


def _guessed_copies(rollout: Rollout, parent_id: str) -> list[Line]:
    """Tell copies without their originals.

    By the counts of tokens, which name their thread; else they were written at once, and are
    of turns before this thread.
    """
    metas = list(rollout.metas())
    counted = _last_counted_elsewhere(rollout)
    began = uuid7_ms(rollout.key) or began_at(rollout)
    end, before = 1, rollout.lines[0].at
    for line in rollout.lines[1:] if len(metas) > 1 else ():
        turn = uuid7_ms(string(line.payload.get("turn_id")) or "")
        if (turn is not None and turn > began) or line.at > before + COPIED_WITHIN_MS:
            break
        end, before = end + 1, line.at
    end = max(end, counted + 1)
    if end == 1:
        return []
    # One line came before those of the parent, unless its own was changed to name the fork.
    shift = 1 if len(metas) > 1 else 0
    copies = [
        replace(line, place=(parent_id, line.number - shift)) for line in rollout.lines[shift:end]
    ]
    return [*rollout.lines[:shift], *copies]
