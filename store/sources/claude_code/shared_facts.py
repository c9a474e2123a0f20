"""What a session's file tells others of its folder, and what it would want to know of them.

A summary, a parent, the first part of an old resume may be in a file that comes later, or
is gone by the time: these facts bring the two together, in whatever order they come
(``store.sources.base.protocol.Fact``). Each value begins with the folder, as sessions of one
folder only have to do with each other in these ways.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from store.sources.base.protocol import SESSION_FACT, Fact
from store.sources.claude_code.neighbours import (
    FORKS_MARKED_FROM,
    NEW_FILES_UNTIL,
    SUMMARIES_UNTIL,
    version_of,
)
from store.sources.claude_code.rows import Row

ROW, ANSWER, LEAF, SUMMARIES = "row:", "api:", "leaf:", "summaries:"
"""Facts: a row that a fork may begin with, an API message of an old version, a row that a
summary names, and the summaries that a file of a folder holds."""


def shared_facts(
    session_id: str,
    folder: str,
    rows: Sequence[Row],
    summaries: Sequence[tuple[str, str]],
    seldom: Sequence[Row] | None = None,
) -> Iterator[Fact]:
    """Yield what a session's file tells others.

    Args:
        session_id: The session's id.
        folder: The project folder.
        rows: Its main rows.
        summaries: The rows that its old summary lines name, and what they say.
        seldom: Where others are before the rows: ``Transcript.seldom``.
    """
    begin = _beginnings(rows) if seldom is None else _beginnings(seldom, begun=True)
    for uuid in dict.fromkeys(begin):
        yield Fact(ROW + uuid, session_id, folder)
    version = version_of(rows)
    if version and version < NEW_FILES_UNTIL:
        for message in dict.fromkeys(row.message_id for row in rows if row.type == "assistant"):
            yield Fact(ANSWER + message, session_id, folder)
    if summaries:
        last_at = max((row.at for row in rows), default=0)
        for leaf in dict.fromkeys(leaf for leaf, _ in summaries):
            yield Fact(LEAF + leaf, session_id)
        yield Fact(SUMMARIES + folder, session_id, json.dumps([last_at, summaries]))


def wanted_facts(session_id: str, rows: Sequence[Row], lacks: str | None) -> Iterator[str]:
    """Yield what may make another session of it.

    Args:
        session_id: The session's id.
        rows: Its main rows.
        lacks: The session that it says it comes from, where no file has that one.
    """
    if lacks is not None:
        yield SESSION_FACT + lacks
    version = version_of(rows)
    if version < SUMMARIES_UNTIL:
        yield from (LEAF + row.uuid for row in rows)
    if version and version < NEW_FILES_UNTIL:
        first = next((row.message_id for row in rows if row.type == "assistant"), None)
        if first is not None:
            yield ANSWER + first
    elif version and version < FORKS_MARKED_FROM:
        first = next(_beginnings(rows), None)
        if first is not None:
            yield ROW + first


def _beginnings(rows: Sequence[Row], *, begun: bool = False) -> Iterator[str]:
    """Yield the rows that a fork may begin with: the first, and summaries of compactions."""
    for row in rows:
        if row.type in ("user", "assistant") and (not begun or row.data.get("isCompactSummary")):
            begun = True
            yield row.uuid
