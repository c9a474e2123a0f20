"""Times the replay of a long session: reading it, going to a moment, playing on."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from pathlib import Path

from store.engine.database import Database, open_database
from store.queries.sessions import get
from store.replay.axis import Axis
from store.replay.reading import timed_page
from store.store import Store
from tests.bench.long_session import SESSION, long_store
from tests.bench.report import Limits, Line
from tui.replay.document import Recording, ReplayDocument
from tui.replay.reading import SessionReading
from tui.transcript.item import Setting

ROUNDS = 5
MOMENTS = 40
PAGE = 2_000


def replay(quick: bool) -> list[Line]:
    """Read a long session for a replay, then cut its document at moments."""
    parts = 2_000 if quick else 100_000
    database = open_database(long_store(parts))
    rng, opened, floors, sought, played = random.Random(parts), [], [], [], []
    for _ in range(1 if quick else ROUNDS):
        started = time.perf_counter()
        document = _opened(database)
        opened.append(time.perf_counter() - started)
        started = time.perf_counter()
        database.connection.execute(
            'SELECT id, message_id, "index", type, length(data_json), tool_state, created_at,'
            " updated_at FROM chat_parts WHERE session_id = ?", (SESSION,)).fetchall()
        floors.append(time.perf_counter() - started)
        moments = document.timeline.moments
        for _ in range(MOMENTS):
            sought.append(_shown(document, rng.choice(moments)))
        middle = len(moments) // 2
        document.show_at(moments[middle])
        played += [_shown(document, at) for at in moments[middle + 1:middle + 1 + MOMENTS]]
    database.close()
    first = asyncio.run(_first_moment(long_store(parts)))
    paired = statistics.median(a / b for a, b in zip(opened, floors, strict=True))
    return [
        Line("replay", f"reading {parts:,} parts for a replay", statistics.median(opened), "s",
             statistics.median(floors), Limits(), {"all": opened}, paired),
        Line("replay", f"first moment of {parts:,} parts", first, "ms", None, Limits(value=300)),
        Line("replay", f"going to a moment of {parts:,} parts, p95", _late(sought), "ms", None,
             Limits(value=100), {"median": statistics.median(sought)}),
        Line("replay", f"playing on in {parts:,} parts, p95", _late(played), "ms", None,
             Limits(value=33), {"median": statistics.median(played)}),
    ]  # fmt: skip


async def _first_moment(path: Path) -> float:
    """Return how long it takes until the first moment can be shown, in ms."""
    async with Store.open(path) as store:
        started = time.perf_counter()
        row = await store.read(get, SESSION)
        assert row is not None
        reading = SessionReading(
            store, row, lambda: 0, lambda: Setting(width=120, measure=100))
        async for piece in reading.pieces(None):
            if piece is not None:
                piece.document.show_at(piece.axis.begin)
                break
        return (time.perf_counter() - started) * 1_000


def _opened(database: Database) -> ReplayDocument:
    recording, after = Recording(), None
    while True:
        page, after = timed_page(database, SESSION, after, PAGE)
        recording.add(page)
        if after is None:
            break
    recorded = recording.take()
    Axis(recorded.timeline.moments, recorded.timeline.writing)
    return ReplayDocument(recorded, Setting(width=120, measure=100))


def _shown(document: ReplayDocument, at: int) -> float:
    """Return how long it takes to cut a document at a moment, in ms."""
    started = time.perf_counter()
    document.show_at(at)
    return (time.perf_counter() - started) * 1_000


def _late(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]
