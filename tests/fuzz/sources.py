"""A round: a sample of a source, damaged in a few places, synced and looked at."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from store.engine.database import Database, open_database
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.fuzz.looking import OUR_FAULT, look_at_all
from tests.sources.odd_values import ODD, ODD_CELLS, Place, places, put
from tests.sources.samples import SAMPLES, path_of

LONG = "x" * 100_000
HOSTILE: tuple[Any, ...] = (
    *ODD, 10**25, -(10**25), 253402300800000, -62135596800001, "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "\x1b]52;c;eA==\x07", "--yolo", "../../../x", LONG, {"type": ["x"]},
    {"a": {"b": {"c": [[[[]]]]}}}, [{"type": "text", "text": None}, 3, None],
)
_DEEP = "[" * 1200 + "]" * 1200


def round_of(seed: int, folder: Path) -> None:
    """Damage a sample and read it.

    Args:
        seed: Decides on everything.
        folder: An empty folder for the copy and the store.
    """
    random_ = random.Random(seed)
    sample = random_.choice(SAMPLES)
    target = sample.copied(folder / "sample")
    whole = _texts(target, folder / "whole.db")
    changed = _damage(random_, path_of(target))
    database = _synced(target, folder / "store.db")
    try:
        for path, line, reason in database.connection.execute(
            "SELECT path, line, reason FROM source_problems"
        ):
            assert not OUR_FAULT.search(reason), f"{sample.name}: {path}:{line}: {reason}"
        left = look_at_all(database)
        # A Codex thread goes on in several files, each of which needs the ones before it.
        if changed is not None and left and sample.kind != "codex":
            _check_neighbours(database, whole, changed, sample.name)
    finally:
        database.close()


def _synced(target: Target, store: Path) -> Database:
    database = open_database(store, create=True)
    Sync(database, Settings(helpers=0)).run([target])
    return database


def _texts(target: Target, store: Path) -> dict[str, set[str]]:
    """Return by file the ids of the parts that an undamaged sample gives."""
    database = _synced(target, store)
    try:
        return _by_file(database)
    finally:
        database.close()


def _by_file(database: Database) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path, data in database.connection.execute(
        "SELECT json_extract(s.metadata_json, '$.source.path'), p.data_json FROM chat_parts p"
        " JOIN chat_sessions s ON s.id = p.session_id JOIN chat_messages m ON m.id = p.message_id"
        " WHERE p.type = 'text'"
        " AND json_extract(m.metadata_json, '$.source.inherited_from') IS NULL"
    ):
        found.setdefault(str(path), set()).add(str(json.loads(data).get("text")))
    return found


def _check_neighbours(
    database: Database, whole: dict[str, set[str]], changed: Path, name: str
) -> None:
    """Assert that sessions of other files say all that they said."""
    now = _by_file(database)
    for path, texts in whole.items():
        if path != str(changed) and Path(path).suffix == ".jsonl":
            lost = texts - set().union(*now.values())
            assert not lost, f"{name}: damage to {changed} cost {path} {sorted(lost)[:2]}"


def _damage(random_: random.Random, root: Path) -> Path | None:
    """Damage a sample; return the file where it is one file of lines alone."""
    top = root if root.is_dir() else root.parent
    found = places(top)
    if random_.random() < 0.6:
        hit = {_put_value(random_, random_.choice(found)) for _ in range(random_.randint(1, 3))}
    else:
        files = sorted({place.file for place in found})
        hit = {_damage_bytes(random_, random_.choice(files))}
    (file, *others) = hit
    return file if not others and file.suffix == ".jsonl" else None


def _put_value(random_: random.Random, place: Place) -> Path:
    in_cell = place.table is not None and not place.steps
    value = random_.choice(ODD_CELLS if in_cell else HOSTILE)
    try:
        put(place, value)
        if random_.random() < 0.05 and place.table is None:
            body = place.file.read_text("utf-8", "surrogateescape")
            place.file.write_text(
                body.replace('"text"', f'"deep":{_DEEP},"text"', 1), "utf-8", "surrogateescape")
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # An earlier change took the place away.
    return place.file


def _damage_bytes(random_: random.Random, file: Path) -> Path:
    body = bytearray(file.read_bytes())
    kind = random_.choice(["flip", "cut", "drop", "repeat", "glue", "swap", "nul", "encode"])
    at = random_.randrange(len(body) + 1)
    if kind == "flip":
        for _ in range(random_.randint(1, 30)):
            where = random_.randrange(len(body) or 1)
            body[where : where + 1] = bytes([random_.randrange(256)])
    elif kind == "cut":
        del body[at:]
    elif kind == "drop":
        del body[at : at + random_.randint(1, 400)]
    elif kind == "nul":
        body[at:at] = b"\0" * random_.randint(1, 5000)
    elif kind == "encode" and file.suffix != ".db":
        body = bytearray(body.decode("utf-8", "replace").encode(
            random_.choice(["utf-16", "utf-16-le", "utf-8-sig", "utf-32"])))
    else:
        lines = body.split(b"\n")
        one, other = random_.randrange(len(lines)), random_.randrange(len(lines))
        if kind == "repeat":
            lines[one:one] = [lines[other]] * random_.randint(1, 3)
        elif kind == "glue":
            lines[one : one + 2] = [bytearray().join(lines[one : one + 2])]
        else:
            lines[one], lines[other] = lines[other], lines[one]
        body = bytearray(b"\n".join(lines))
    file.write_bytes(body)
    return file


def run(seed: int) -> None:
    """Do one round in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        round_of(seed, Path(folder))
