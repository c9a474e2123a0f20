"""A round: a random stream, recorded and looked at."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from store.engine.database import open_database
from tests.fuzz.looking import look_at_all
from tests.store.test_recorder_odd import any_line, lines, recorded


def run(seed: int) -> None:
    """Do one round in a folder of its own."""
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder) / "store.db", create=True)
        recorded(database, lines(*(any_line(random_) for _ in range(80))))
        look_at_all(database)
        database.close()
