"""Compares a growing session with its last written state."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from store.engine.connection import Connection
from store.sync.gone import changed_in_place, grew, misses_parts
from store.sync.session_rows import PreparedSession


def what_differs(
    connection: Connection, now: PreparedSession, before: PreparedSession
) -> PreparedSession | None:
    """Return the session with only the messages and attachments that may differ.

    A session grows at its end, so the common beginning is left out.

    Args:
        connection: In a transaction.
        now: The session as it was read.
        before: The session as it was written last.

    Returns:
        None if a message, part or record is missing.
    """
    same = _same_from_start(now.messages, before.messages)
    ends = {row[0] for row in now.messages[same:]}
    if not ends.issuperset(row[0] for row in before.messages[same:]):
        return None
    same = _same_from_start(now.parts, before.parts)
    ends.update(part[1] for part in (*now.parts[same:], *before.parts[same:]))
    same = _same_from_start(now.refs, before.refs)
    ends.update(ref[0] for ref in (*now.refs[same:], *before.refs[same:]))
    if not _only_grew(connection, now, before, ends):
        return None
    positions = [position for position, row in enumerate(now.messages) if row[0] in ends]
    return replace(
        now,
        messages=[now.messages[position] for position in positions],
        message_names=[now.message_names[position] for position in positions],
        inherited={
            place: now.inherited[position]
            for place, position in enumerate(positions)
            if position in now.inherited
        },
        parts=[part for part in now.parts if part[1] in ends],
        refs=[ref for ref in now.refs if ref[0] in ends],
        attachments=[one for one in now.attachments if one not in before.attachments],
    )


def _only_grew(
    connection: Connection,
    now: PreparedSession,
    before: PreparedSession,
    ends: Collection[str],
) -> bool:
    """Say whether the messages that may differ have all that they had, perhaps renewed."""
    there = (part for part in now.parts if part[1] in ends)
    if misses_parts((part for part in before.parts if part[1] in ends), there):
        return False
    stored = {block.first: (block.count, block.checksum) for block in before.blocks}
    return grew(stored, now) or changed_in_place(connection, before, now)


def _same_from_start(now: Sequence[object], before: Sequence[object]) -> int:
    """Return the number of equal rows at the beginning."""
    for position, (one, other) in enumerate(zip(now, before, strict=False)):
        if one is not other and one != other:
            return position
    return min(len(now), len(before))
