"""Which lines make up a thread: inherited ones, its own, and those that were rewound.

Source: the Codex format page, section 3.3. A segment continues
``history_base{thread_id, end_ordinal_exclusive}``, where ``thread_id`` is the physical key
of a file; what its base holds from that ordinal on was rewound where it is the thread's
own. Files of the legacy mode hold copies of their parent's lines instead
(``store.sources.codex.copies``), and rewinds as ``thread_rolled_back`` events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from store.sources.base.values import number
from store.sources.codex.copies import (
    CONTENT,
    Base,
    Resolve,
    base_of,
    began_at,
    copied_from,
    copied_lines,
)
from store.sources.codex.items import message_text
from store.sources.codex.names import rollout_name
from store.sources.codex.origins import origin_of
from store.sources.codex.rollout import Line, Rollout

KnownBase = Callable[[str], Base | None]
ENDLESS = 1 << 62
MOST_BASES = 1000


@dataclass(slots=True)
class Entry:
    """A line in its thread.

    Attributes:
        file: The rollout that it was read from.
        inherited: Whether it belongs to another thread.
        hidden_at: When it was rewound, epoch ms; None while it is visible.
    """

    line: Line
    file: Rollout
    inherited: bool = False
    hidden_at: int | None = None


@dataclass(slots=True)
class History:
    """A thread's lines in display order.

    Attributes:
        missing: Physical keys of bases that could not be found.
        passed: What those of them go on from that were known to.
        ended: Files of other threads that were used to their end: the thread may have copies of
            lines, or go on from some, that they do not have yet.
        parent: The thread that the first own segment continues, by its base.
    """

    entries: list[Entry]
    missing: list[str]
    passed: dict[str, Base]
    ended: list[str]
    parent: str | None = None


def history_of(
    segments: Sequence[Rollout], head: str | None, resolve: Resolve, known_base: KnownBase
) -> History:
    """Return the lines of a thread.

    Args:
        segments: The thread's own files, oldest first.
        head: The physical key of the current segment; None takes the newest.
        resolve: Finds files of other threads.
        known_base: Returns what a file that is not found goes on from.
    """
    missing: list[str] = []
    passed: dict[str, Base] = {}
    own = {segment.key: segment for segment in segments}

    def base_of_missing(key: str) -> Base | None:
        base = known_base(key)
        if key not in missing:
            missing.append(key)
        if base is not None:
            passed[key] = base
        return base

    views = [_view(segment, own, resolve, base_of_missing) for segment in segments]
    chosen = next((i for i, s in enumerate(segments) if s.key == head), len(segments) - 1)
    entries: list[Entry] = []
    for rollout in _files(views, own):
        ends = [view.get(rollout.key, (rollout, 0))[1] for view in views]
        is_own = rollout.key in own
        first = segments.index(rollout) if is_own else 0
        copied = copied_lines(rollout, resolve, missing) if is_own else []
        whole = ends[chosen] == ENDLESS
        for index, line in enumerate(rollout.lines):
            inherited = not is_own
            if index < len(copied):
                line, inherited = copied[index], True
            entry = Entry(line, rollout, inherited)
            if not whole:
                if not is_own and not any(_before(line, end) for end in ends):
                    continue
                if not _before(line, ends[chosen]):
                    entry.hidden_at = _hidden_at(line, ends, first, segments)
            entries.append(entry)
    _roll_back(entries)
    base = base_of(segments[0]) if segments else None
    parent = _thread_of(base[0], resolve) if base and base[0] not in own else None
    foreign = {key: cut for view in views for key, cut in view.items() if key not in own}
    ended = {rollout.path for rollout, end in foreign.values() if not _reaches(rollout, end)}
    for segment in segments:
        origin = copied_from(segment)
        original = resolve(origin) if origin is not None else None
        if original is not None and original is not segment and _copies_to_end(entries, original):
            ended.add(original.path)
    return History(entries, missing, passed, sorted(ended), parent)


def _reaches(rollout: Rollout, end: int) -> bool:
    """Return whether a file has all lines before an ordinal, as far as it has ordinals."""
    last = rollout.lines[-1].ordinal if rollout.lines else -1
    return rollout.gone or end == ENDLESS or last is None or last >= end - 1


def _copies_to_end(entries: Sequence[Entry], original: Rollout) -> bool:
    """Return whether a thread has a copy of the last thing that was said in another file."""
    if original.gone:
        return False
    last = next((line.place for line in reversed(original.lines) if line.type in CONTENT), None)
    return last is None or any(entry.line.place == last for entry in entries if entry.inherited)


def _thread_of(key: str, resolve: Resolve) -> str:
    """Return the thread that a file belongs to, by the file's physical key."""
    found = resolve(key)
    name = rollout_name(found.path) if found is not None else None
    return name.thread if name is not None else key


def _before(line: Line, end: int) -> bool:
    return end > 0 and (line.ordinal is None or line.ordinal < end)


def _hidden_at(line: Line, ends: Sequence[int], first: int, segments: Sequence[Rollout]) -> int:
    """Return when a line was rewound: when the first segment began that leaves it out."""
    seen = False
    for index in range(first, len(segments)):
        if _before(line, ends[index]):
            seen = True
        elif seen:
            return began_at(segments[index])
    return segments[-1].lines[-1].at


View = dict[str, tuple[Rollout, int]]
"""By physical key the file, and the ordinal at which it is cut."""


def _view(
    segment: Rollout, own: dict[str, Rollout], resolve: Resolve, base_of_missing: KnownBase
) -> View:
    """Return what one segment sees, roots first."""
    chain: list[tuple[Rollout, int]] = [(segment, ENDLESS)]
    end, base = ENDLESS, base_of(segment)
    for _ in range(MOST_BASES):
        if base is None:
            break
        key, at = base
        end = min(end, at)
        found = own.get(key) or resolve(key)
        if found is None:
            base = base_of_missing(key)
            continue
        if any(found is seen for seen, _ in chain):
            break
        chain.append((found, end))
        base = base_of(found)
    return {rollout.key: (rollout, cut) for rollout, cut in reversed(chain)}


def _files(views: Sequence[View], own: dict[str, Rollout]) -> list[Rollout]:
    """Return all files: other threads' first, then the thread's own."""
    foreign: dict[str, Rollout] = {}
    for view in views:
        for key, (rollout, _) in view.items():
            if key not in own:
                foreign.setdefault(key, rollout)
    return [*foreign.values(), *own.values()]


def _roll_back(entries: Sequence[Entry]) -> None:
    """Hide what ``thread_rolled_back`` events took out, by turns of a user."""
    turns: list[int] = []
    if not any(entry.line.kind == "thread_rolled_back" for entry in entries):
        return
    for index, entry in enumerate(entries):
        line = entry.line
        if entry.hidden_at is not None:
            continue
        if line.kind == "message" and line.payload.get("role") == "user":
            if origin_of(line, message_text(line.payload))[0] == "human":
                turns.append(index)
        elif line.kind == "thread_rolled_back" and line.type == "event_msg":
            count = min(max(number(line.payload.get("num_turns")), 0), len(turns))
            if count:
                for other in entries[turns[-count] : index]:
                    if other.hidden_at is None:
                        other.hidden_at = line.at
                del turns[-count:]
