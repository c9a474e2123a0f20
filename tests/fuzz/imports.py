"""A round: an export of the demo, changed in a few places, imported and looked at."""

from __future__ import annotations

import functools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from store.demo import make_demo
from store.engine.database import open_database
from store.errors import BackscrollError
from store.exports.reading import read_session
from store.exports.registry import writer
from store.imports.reading import import_file
from store.queries import sessions
from tests.fuzz.looking import OUR_FAULT, look_at_all
from tests.fuzz.sources import HOSTILE
from tests.sources.odd_values import REMOVED


@functools.cache
def _lines() -> tuple[str, ...]:
    """Return the demo's sessions as ``export --to jsonl`` writes them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.db"
        make_demo(path)
        database = open_database(path)
        text = "".join(
            piece
            for row in sessions.page(database, sessions.SessionFilter(archived="include"))[:6]
            for piece in writer("jsonl")(read_session(database, row.id, "all"))
        )
        database.close()
    return tuple(text.splitlines())


def _changed(random_: random.Random, line: str) -> str:
    value = json.loads(line)
    holder: Any = value
    while True:
        inner = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not inner:
            return line
        step = random_.choice(inner)
        if isinstance(holder[step], dict | list) and holder[step] and random_.random() < 0.8:
            holder = holder[step]
            continue
        holder[step] = random_.choice([item for item in HOSTILE if item is not REMOVED])
        return json.dumps(value)


def run(seed: int) -> None:
    """Do one round in a folder of its own."""
    random_ = random.Random(seed)
    lines = list(_lines())
    for _ in range(random_.randint(1, 6)):
        at = random_.randrange(len(lines))
        lines[at] = _changed(random_, lines[at])
    if random_.random() < 0.3:
        at = random_.randrange(len(lines))
        lines[at] = lines[at][: random_.randrange(len(lines[at]) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export.jsonl"
        file.write_text("\n".join(lines), "utf-8", "surrogatepass")
        database = open_database(Path(folder) / "store.db", create=True)
        try:
            for result in import_file(database, file):
                for problem in result.problems:
                    assert not OUR_FAULT.search(problem), problem
        except BackscrollError as error:
            assert not OUR_FAULT.search(str(error)), str(error)
        look_at_all(database)
        database.close()
