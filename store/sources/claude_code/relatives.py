"""Tells which session a fork without marks was taken of.

From 1.0.128 until rows were marked with ``requestSessionId`` (2.1.332), ``--fork-session``
wrote the current chain into a new file under the same uuids and the new session's id, so
nothing in the fork names its parent; seen in files of 1.0.128, 2.0.77, 2.1.39, 2.1.112
and 2.1.251. The uuids tell the family, the times who was copied from whom: a fork takes
the whole chain, so what its parent has besides was written after the fork's first own row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from store.sources.base.json_lines import LineError, parse_line
from store.sources.claude_code.rows import Row, epoch_ms


@dataclass(slots=True, frozen=True)
class Outline:
    """The uuids and times (epoch ms) of a session's messages, in file order."""

    rows: tuple[tuple[str, int], ...]
    uuids: frozenset[str]

    def first_after(self, shared: frozenset[str]) -> int | None:
        """Return the time of the first row after the last shared one."""
        found: int | None = None
        for uuid, at in reversed(self.rows):
            if uuid in shared:
                break
            found = at
        return found


def outline_of(rows: Iterable[Row]) -> Outline:
    """Return the outline of rows of one thread."""
    return _outline((row.uuid, row.at) for row in rows if row.type in ("user", "assistant"))


def outline_in(data: bytes) -> Outline:
    """Return the outline of a session file's content, subagents' rows left out."""
    return _outline(_messages(data))


def _outline(rows: Iterable[tuple[str, int]]) -> Outline:
    """Return the outline of rows; a line that is there again is no later row."""
    first: dict[str, int] = {}
    for uuid, at in rows:
        first.setdefault(uuid, at)
    return Outline(tuple(first.items()), frozenset(first))


def _messages(data: bytes) -> Iterator[tuple[str, int]]:
    previous = 0
    for line in data.split(b"\n"):
        if b'"uuid"' not in line:
            continue
        try:
            row, _ = parse_line(line)
        except LineError:
            continue  # reported as a problem of its own file
        uuid, kind = row.get("uuid"), row.get("type")
        if isinstance(uuid, str) and kind in ("user", "assistant") and not row.get("isSidechain"):
            previous = epoch_ms(row.get("timestamp")) or previous
            yield uuid, previous


def nearest_parent(child: Outline, candidates: dict[str, Outline]) -> str | None:
    """Return the candidate that a session was forked from; None where it is no fork."""
    parents = {
        name: outline for name, outline in candidates.items() if _is_parent(outline, child)
    }
    if not parents:
        return None
    most = max(len(outline.uuids & child.uuids) for outline in parents.values())
    nearest = {
        name: outline
        for name, outline in sorted(parents.items())
        if len(outline.uuids & child.uuids) == most
    }
    # A sister that was forked later has the same rows in common; their parent comes first.
    for name, outline in nearest.items():
        others = (other for key, other in nearest.items() if key != name)
        if not any(_is_parent(other, outline) for other in others):
            return name
    return next(iter(nearest))


def _is_parent(parent: Outline, child: Outline) -> bool:
    shared = parent.uuids & child.uuids
    if not shared or parent.rows[0][1] > child.rows[0][1]:
        return False
    own, further = child.first_after(shared), parent.first_after(shared)
    return own is not None and (further is None or further > own)
