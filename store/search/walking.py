"""Which messages and titles a search looks at, newest first: from the index, else all."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from store.engine.database import Database
from store.engine.values import number, text
from store.queries.messages import LAST_CODE_POINT
from store.search.hits import Place
from store.search.index.reading import Candidate, Index

FIRST_BATCH = 16
LARGEST_BATCH = 256
_WINDOW = 256
"""Keys of a session's messages that are read at once."""
_IDS_PER_QUERY = 500
NEWEST = 2**63 - 1


class Pause(Candidate):
    """No candidate: says that what is looked through took a while, so that others may run."""


def place_of(candidate: Candidate) -> tuple[int, str]:
    """Return where a candidate is in the order of all."""
    return candidate.created_at, candidate.message_id or candidate.session_id


def from_index(
    db: Database, index: Index, texts: Sequence[str], *, before: Place | None,
    scanned: tuple[str, Sequence[Any]],
) -> Iterator[Candidate]:
    """Yield what the index names, and what it does not hold: changed and older messages.

    Args:
        db: The store.
        index: Its index.
        texts: Words and phrases that a hit must hold.
        before: Where to start; a candidate at this place is still among them.
        scanned: For ``scan``, the condition on sessions and its values.
    """
    covered = index.coverage()
    changed = _changed(db, index, NEWEST if before is None else before.created_at)
    stale = {(each.session_id, each.message_id) for each in changed}
    since = -(2**63) if covered.whole else covered.since
    named = (
        each for each in index.candidates(texts, before=before and before.created_at)
        if each.created_at > since and (each.session_id, each.message_id) not in stale
    )
    yield from heapq.merge(
        named, (each for each in changed if each.created_at > since),
        key=lambda each: -each.created_at,
    )
    if not covered.whole:
        newest = since if before is None else min(since, before.created_at)
        yield from scan(db, *scanned, newest=newest)


def _changed(db: Database, index: Index, newest: int) -> list[Candidate]:
    """Return the messages that changed since the index was written, and their sessions' titles."""
    ids = index.changed(db)
    messages, titles = [], {}
    for start in range(0, len(ids), _IDS_PER_QUERY):
        some = ids[start : start + _IDS_PER_QUERY]
        for session_id, message_id, created_at, session_created_at in db.connection.execute(
            "SELECT m.session_id, m.id, m.created_at, s.created_at FROM chat_messages m"
            f" JOIN chat_sessions s ON s.id = m.session_id WHERE m.id IN ({_marks(some)})", some,
        ).fetchall():
            name = text(session_id) or ""
            messages.append(Candidate(name, text(message_id) or "", number(created_at)))
            titles[name] = Candidate(name, None, number(session_created_at))
    found = [each for each in (*messages, *titles.values()) if each.created_at <= newest]
    return sorted(found, key=lambda each: -each.created_at)


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def scan(
    db: Database, condition: str, values: Sequence[Any], *, newest: int = NEWEST,
    parts: bool = True, titles: bool = True, test: str = "TRUE",
    values_of_test: Sequence[Any] = (),
) -> Iterator[Candidate]:
    """Yield every message and title of some sessions, newest first.

    The sessions' messages are merged; of each session a window of keys is read at a time.

    Args:
        db: The store.
        condition: The SQL condition on a session ``s``.
        values: Its parameters.
        newest: Epoch ms; nothing newer.
        parts: Whether messages are wanted.
        titles: Whether titles are wanted.
        test: An SQL condition on the messages ``m`` that are wanted.
        values_of_test: Its parameters.
    """
    latest = "(SELECT max(m.created_at) FROM chat_messages m WHERE m.session_id = s.id)"
    rows = db.connection.execute(
        f"SELECT s.id, s.created_at, {latest if parts else 'NULL'} FROM chat_sessions s"
        f" WHERE {condition}", list(values),
    ).fetchall()
    heap: list[tuple[int, int, Iterator[Candidate] | None, Candidate | None]] = []
    for order, (name, created_at, last) in enumerate(rows):
        session_id = text(name) or ""
        if titles and number(created_at) <= newest:
            title = Candidate(session_id, None, number(created_at))
            heap.append((-title.created_at, 2 * order, None, title))
        if last is not None:
            # Its messages are read when their time has come: the first entry has none.
            following = _messages(db, session_id, newest, test, values_of_test)
            heap.append((-min(number(last), newest), 2 * order + 1, following, None))
    heapq.heapify(heap)
    while heap:
        _, order, after, candidate = heapq.heappop(heap)
        if candidate is not None:
            yield candidate
        upcoming = next(after, None) if after is not None else None
        while upcoming is not None:
            if heap and -upcoming.created_at >= heap[0][0]:
                heapq.heappush(heap, (-upcoming.created_at, order, after, upcoming))
                break
            yield upcoming
            upcoming = next(after, None) if after is not None else None


def _messages(
    db: Database, session_id: str, newest: int, test: str, values_of_test: Sequence[Any]
) -> Iterator[Candidate]:
    tested = "" if test == "TRUE" else f" AND {test}"
    place = newest, LAST_CODE_POINT
    while True:
        rows = db.connection.execute(
            "SELECT m.created_at, m.id FROM chat_messages m WHERE m.session_id = ?"
            f" AND (m.created_at, m.id) < (?, ?){tested}"
            f" ORDER BY m.created_at DESC, m.id DESC LIMIT {_WINDOW}",
            (session_id, *place, *values_of_test),
        ).fetchall()
        for created_at, name in rows:
            yield Candidate(session_id, text(name) or "", number(created_at))
        if len(rows) < _WINDOW:
            return
        place = rows[-1]


def batches(candidates: Iterable[Candidate], before: Place | None) -> Iterator[list[Candidate]]:
    """Yield candidates in the order of all hits, in batches of a quarter of all before.

    A page that is full within a batch then has not read much more than it needed.

    Args:
        candidates: Ordered by ``created_at``, descending; in any order within one millisecond.
            A ``Pause`` among them ends the batch.
        before: The last hit of the page before; its message may have further hits.
    """
    looked, size, batch = 0, FIRST_BATCH, list[Candidate]()
    for candidate in _in_order(candidates):
        if type(candidate) is Pause:
            yield batch
            batch = []
            continue
        if before is not None and place_of(candidate) > (before.created_at, before.message_id):
            continue
        batch.append(candidate)
        if len(batch) >= size:
            yield batch
            looked += len(batch)
            size, batch = min(max(looked // 4, FIRST_BATCH), LARGEST_BATCH), []
    yield batch


def _in_order(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Yield candidates with those of one millisecond in order, each once."""
    run: list[Candidate] = []
    for candidate in chain(candidates, (None,)):
        if type(candidate) is Pause:
            yield candidate
            continue
        if candidate is not None and (not run or run[0].created_at == candidate.created_at):
            run.append(candidate)
            continue
        if len(run) > 1:
            unique = {(*place_of(each), each.message_id is None): each for each in run}
            run = [unique[place] for place in sorted(unique, reverse=True)]
        yield from run
        run = [candidate] if candidate is not None else []
