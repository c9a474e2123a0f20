"""Search within a session: every part, folded or not, in its decoded text."""

from __future__ import annotations

import asyncio
import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from store.conversation.readable import decode, readable
from store.engine.database import Database
from store.queries.transcript import matches
from store.rows import is_tool_type
from store.text.stored_json import as_dict
from tui.kit.text import clean
from tui.transcript.anchors import Anchor
from tui.transcript.document import Key
from tui.transcript.skeleton import Skeleton
from tui.words.calls import describe

PARTS_AT_ONCE = 1_500
_SAFE = re.compile(r"[A-Za-z0-9 _-]+")


def compiled(needle: str) -> re.Pattern[str]:
    """Return the pattern of what was typed: with a capital in it, case matters."""
    flags = 0 if any(letter.isupper() for letter in needle) else re.IGNORECASE
    return re.compile(re.escape(clean(needle)), flags)


def searched_text(data: dict[str, Any]) -> str:
    """Return the text of a part that is searched: all of it that can be shown."""
    kind = str(data.get("type") or "")
    if kind in ("text", "reasoning"):
        text = data.get("text")
        return text if isinstance(text, str) else ""
    if is_tool_type(kind):
        return describe(data).searched
    if kind == "file":
        return str(data.get("filename") or data.get("mediaType") or "")
    inner = {name: value for name, value in data.items() if name != "type"}
    return f"{kind} {readable(inner)}"


def find(
    db: Database, message_ids: Sequence[str], needle: str, pattern: re.Pattern[str]
) -> list[tuple[str, int, int]]:
    """Return ``(message id, index, hits)`` of the parts of some messages that match.

    Runs on the store's thread. What cannot match is left out before it is decoded: plain
    ASCII words by the engine, others by their form in JSON, unless the text is escaped.

    Args:
        db: The store.
        message_ids: The messages.
        needle: What was typed.
        pattern: Its pattern.
    """
    containing = needle if _SAFE.fullmatch(needle) else None
    written = json.dumps(needle, ensure_ascii=False)[1:-1].lower()
    found = []
    for message_id, index, text in matches(db, message_ids, containing):
        if containing is None and written not in text.lower() and "\\u" not in text:
            continue
        hits = len(pattern.findall(searched_text(as_dict(decode(text)))))
        if hits:
            found.append((message_id, index, hits))
    return found


@dataclass(slots=True)
class Search:
    """A needle, and the parts in which it was found so far.

    Attributes:
        start: The part from which on the first hit is looked for; None for the selected one.
        begin: The message that the search began at: the one of that part. What follows it is
            searched first, then what is above it.
        tail: The message after the last that was searched from there on.
        head: The message after the last that was searched from the session's first one on.
        parts: In order.
        counts: Hits in each of them.
        total: How many hits are known.
        done: Whether all messages were searched.
        part: The part of the current hit, None before the first step.
        ordinal: Which of its hits it is, from 0.
        key: Of the part of the current hit.
        stale: The first message that was written since it was searched; None without one.
        seeks: Whether the first hit is still to be found and shown.
        scan: Marks the scan that runs now; None while none does.
        progress: Set, and replaced by a new event, whenever more messages were searched.
    """

    needle: str
    pattern: re.Pattern[str]
    start: Anchor | None = None
    begin: int = 0
    tail: int = field(init=False)
    head: int = 0
    parts: array[int] = field(default_factory=lambda: array("l"))
    counts: array[int] = field(default_factory=lambda: array("l"))
    total: int = 0
    done: bool = False
    part: int | None = None
    ordinal: int = 0
    key: Key | None = None
    stale: int | None = None
    seeks: bool = True
    scan: object | None = None
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Begin at the message that is given."""
        self.tail = self.begin

    @property
    def scanned(self) -> int:
        """How many messages were searched."""
        return self.tail - self.begin + self.head

    def wake(self) -> None:
        """Wake those that wait for progress."""
        self.progress.set()
        self.progress = asyncio.Event()

    @property
    def number(self) -> int:
        """Which hit the current one is, from 1; 0 before the first step."""
        if self.part is None:
            return 0
        return sum(self.counts[: bisect_left(self.parts, self.part)]) + self.ordinal + 1

    def knows(self, skeleton: Skeleton, start: int, step: int) -> bool:
        """Return whether the next hit from a part on is known, while the search goes on.

        Args:
            skeleton: The session.
            start: The part.
            step: 1 or -1.
        """
        if self.scan is None:
            return True
        if self.stale is not None or not self.parts:
            return False
        message, last = skeleton.message, len(skeleton.message_ids) - 1
        found = self.next_part(start, step)
        assert found is not None
        here, there = message[start], message[found]
        if step > 0:
            wraps = found <= start
            return self._searched(here, last) and self._searched(0, there) if wraps else (
                self._searched(here, there))
        wraps = found >= start
        return self._searched(0, here) and self._searched(there, last) if wraps else (
            self._searched(there, here))

    def _searched(self, first: int, last: int) -> bool:
        """Return whether all messages of a range were searched.

        Args:
            first: The first message.
            last: The last message.
        """
        if self.head >= self.begin:
            return last < self.tail
        return last < self.head or self.begin <= first <= last < self.tail

    def begin_at(self, message: int) -> None:
        """Search from a message on, where nothing was searched yet."""
        if not self.scanned:
            self.begin = self.tail = message

    def first_from(self, skeleton: Skeleton, start: int) -> int | None:
        """Return the first part with hits from one on, None while that is not known.

        Args:
            skeleton: The session.
            start: A part of the message that the search began at.
        """
        found = self.next_part(start - 1, 1)
        if found is None or found >= start or self.done:
            return found
        before = skeleton.message[found]
        return found if self._searched(skeleton.message[start], len(skeleton.message_ids) - 1) and (
            self._searched(0, before)) else None

    def next_chunk(self, skeleton: Skeleton) -> range | None:
        """Return the messages to be searched next, None where all were."""
        begin, tail, head = self.begin, self.tail, self.head
        if self.stale is not None:
            begin, tail, head = (min(number, self.stale) for number in (begin, tail, head))
        count = len(skeleton.message_ids)
        if tail < count:
            return chunk(skeleton, tail, count)
        return chunk(skeleton, head, begin) if head < begin else None

    def add(
        self, skeleton: Skeleton, messages: range, found: Iterable[tuple[str, int, int]]
    ) -> None:
        """Add what was found in some messages.

        Args:
            skeleton: The session.
            messages: As ``next_chunk`` returned them.
            found: ``(message id, index, hits)`` of the parts that match.
        """
        if self.stale is not None:
            self.cut(skeleton, self.stale)
        numbers = {skeleton.message_ids[number]: number for number in messages}
        hits: list[tuple[int, int]] = []
        for message_id, index, count in found:
            parts = skeleton.parts_of(numbers[message_id])
            place = bisect_left(skeleton.index, index, parts.start, parts.stop)
            if place < parts.stop and skeleton.index[place] == index:
                hits.append((place, count))
        hits.sort()
        place = bisect_left(self.parts, hits[0][0]) if hits else 0
        self.parts[place:place] = array("l", [part for part, _count in hits])
        self.counts[place:place] = array("l", [count for _part, count in hits])
        self.total += sum(count for _part, count in hits)
        if messages.start == self.tail:
            self.tail = messages.stop
        else:
            self.head = messages.stop

    def written(self, skeleton: Skeleton, start: int) -> None:
        """Search again from a message on, since the session has changed from there.

        Args:
            skeleton: The session as it is now.
            start: The message; 0 where anything may have changed.
        """
        self.stale = start if self.stale is None else min(self.stale, start)
        if start == 0:
            self.cut(skeleton, 0)
            self.done = False
        else:
            self._drop(len(skeleton))
        if self.part is not None and self.key is not None:
            found = skeleton.locate(*self.key)
            there = found is not None and skeleton.key(found) == self.key
            self.part = found if there else None

    def cut(self, skeleton: Skeleton, message: int) -> None:
        """Drop what was found from a message on."""
        first = skeleton.first
        self._drop(first[message] if message < len(first) else len(skeleton))
        self.begin, self.tail, self.head = (
            min(number, message) for number in (self.begin, self.tail, self.head))
        self.stale = None

    def _drop(self, part: int) -> None:
        place = bisect_left(self.parts, part)
        self.total -= sum(self.counts[place:])
        del self.parts[place:], self.counts[place:]

    def next_part(self, start: int, step: int) -> int | None:
        """Return the next part with hits, wrapping at the ends; None where there is none."""
        if not self.parts:
            return None
        place = bisect_right(self.parts, start) if step > 0 else bisect_left(self.parts, start) - 1
        return self.parts[place % len(self.parts)]

    def count_in(self, part: int) -> int:
        """Return the hits in a part."""
        place = bisect_left(self.parts, part)
        there = place < len(self.parts) and self.parts[place] == part
        return self.counts[place] if there else 0


def chunk(skeleton: Skeleton, start: int, end: int) -> range:
    """Return the first messages of a range that hold some 1,500 parts together.

    Args:
        skeleton: The session.
        start: The first message.
        end: The message after the last.
    """
    stop, first = start + 1, skeleton.first[start]
    while stop < min(end, start + 400) and skeleton.first[stop] - first < PARTS_AT_ONCE:
        stop += 1
    return range(start, stop)
