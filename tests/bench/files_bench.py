"""Times reading the files and commands of a long session against decoding its calls."""

from __future__ import annotations

import statistics
import time

import orjson

from store.engine.database import open_database
from store.queries.touches import Touches, places, read, touches
from tests.bench.long_session import SESSION, long_store
from tests.bench.report import Limits, Line

ROUNDS = 7


def files(quick: bool) -> list[Line]:
    """Read what the calls of a long session touched; each round beside its floor."""
    parts = 2_000 if quick else 100_000
    database = open_database(long_store(parts))
    firsts, wholes, floors = [], [], []
    for _ in range(1 if quick else ROUNDS):
        started = time.perf_counter()
        found = Touches(places(database, SESSION))
        found.add(read(database, found.places, *found.next_batch))
        firsts.append(time.perf_counter() - started)
        started = time.perf_counter()
        found = touches(database, SESSION)
        wholes.append(time.perf_counter() - started)
        started = time.perf_counter()
        for (data,) in database.connection.execute(
            "SELECT data_json FROM chat_parts WHERE session_id = ? AND type LIKE 'tool-%'",
            (SESSION,),
        ):
            orjson.loads(data)
        floors.append(time.perf_counter() - started)
    database.close()
    details = {"commands": len(found.commands), "floor_s": statistics.median(floors)}
    paired = statistics.median(a / b for a, b in zip(wholes, floors, strict=True))
    return [
        Line("files", f"first files and commands of {parts:,} parts",
             statistics.median(firsts) * 1_000, "ms", None, Limits(value=150), details),
        Line("files", f"all files and commands of {parts:,} parts", statistics.median(wholes), "s",
             statistics.median(floors), Limits(), details, paired),
    ]  # fmt: skip
