"""Finds every value of a sample's files, and puts another JSON value in the place of one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

REMOVED = object()
"""Stands for a value that is taken out whole."""
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 1e300, 2**70, "", "x", "\ud800", "2026-11-27T22:33:28Z",
    [], [1], ["x"], [None], [{}], [[]], {}, {"x": 1}, {"type": {}}, {"type": "text", "text": 7},
    REMOVED,
)  # fmt: skip
ODD_CELLS: tuple[Any, ...] = (
    None, 0, -1, 1.5, 2**62, 1e300, "", "x", "{", "[1]", '{"type": {}}', "null", b"\0\xff",
)  # fmt: skip
"""What a column of a database may hold in place of a text or number."""
TELLING = ("type", "role", "kind", "name", "state", "status")
"""Keys by which programs tell their records apart."""
Step = str | int


class Place(NamedTuple):
    """Where a value stands.

    Attributes:
        file: The file.
        line: Of a file of lines from 0, else -1; in a database the row's number.
        table: With its column, in a database.
        steps: Keys and indexes from the record down.
    """

    file: Path
    line: int
    table: tuple[str, str] | None
    steps: tuple[Step, ...]


def places(folder: Path) -> list[Place]:
    """Return a place of each shape: the same field of records of the same kind counts once."""
    found: dict[tuple[object, ...], Place] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            for shape, place in _of_file(path):
                found.setdefault((path.suffix, *shape), place)
    return list(found.values())


def put(place: Place, odd: Any) -> bool:
    """Put a value in a place; False where the file cannot hold it there."""
    if place.table is not None:
        return _put_in_cell(place, place.table, odd)
    body = place.file.read_text("utf-8", "surrogateescape")
    if place.line < 0:
        place.file.write_text(_changed(body, place.steps, odd), "utf-8")
        return True
    lines = body.split("\n")
    if place.steps == ("text",):
        lines[place.line] = odd if isinstance(odd, str) and odd.isprintable() else ""
    elif place.file.suffix in (".yaml", ".yml"):
        key = lines[place.line].partition(":")[0]
        lines[place.line] = "" if odd is REMOVED else f"{key}: {json.dumps(odd)}"
    else:
        lines[place.line] = _changed(lines[place.line], place.steps, odd)
    place.file.write_text("\n".join(lines), "utf-8", "surrogateescape")
    return True


def value_at(place: Place) -> Any:
    """What a place holds; None where that is no JSON."""
    if place.table is not None:
        database = sqlite3.connect(place.file)
        (value,) = database.execute(
            f'SELECT "{place.table[1]}" FROM "{place.table[0]}" WHERE rowid = ?', (place.line,)
        ).fetchone()
        database.close()
        steps = place.steps[1:]
        value = json.loads(value) if place.steps else value
    elif place.file.suffix in (".json", ".jsonl"):
        text = place.file.read_text("utf-8", "surrogateescape")
        value = json.loads(text.split("\n")[place.line] if place.line >= 0 else text)
        steps = place.steps
    else:
        return None
    for step in steps:
        value = value[step]
    return value


def _changed(text: str, steps: tuple[Step, ...], odd: Any) -> str:
    record = json.loads(text)
    if not steps:
        return "" if odd is REMOVED else json.dumps(odd)
    holder = record
    for step in steps[:-1]:
        holder = holder[step]
    if odd is REMOVED:
        del holder[steps[-1]]
    else:
        holder[steps[-1]] = odd
    return json.dumps(record)


def _put_in_cell(place: Place, table: tuple[str, str], odd: Any) -> bool:
    name, column = table
    database = sqlite3.connect(place.file, isolation_level=None)
    try:
        database.execute("PRAGMA ignore_check_constraints = ON")
        if place.steps:
            sql = f'SELECT "{column}" FROM "{name}" WHERE rowid = ?'
            (text,) = database.execute(sql, (place.line,)).fetchone()
            odd = _changed(text, place.steps[1:], odd)
        sql = f'UPDATE "{name}" SET "{column}" = ? WHERE rowid = ?'
        database.execute(sql, (odd, place.line))
    except (sqlite3.IntegrityError, sqlite3.OperationalError):
        return False  # A constraint, or an index over the JSON of a column, does not let it in.
    finally:
        database.close()
    return True


def _of_file(path: Path) -> Iterator[tuple[tuple[object, ...], Place]]:
    body = path.read_bytes()
    if body.startswith(b"SQLite format 3\0"):
        yield from _of_database(path)
    elif path.suffix == ".jsonl":
        for number, line in enumerate(body.decode("utf-8", "replace").split("\n")):
            for shape, steps in _of_text(line):
                yield shape, Place(path, number, None, steps)
    elif path.suffix == ".json":
        for shape, steps in _of_text(body.decode()):
            yield shape, Place(path, -1, None, steps)
    elif path.suffix in (".yaml", ".yml"):
        for number, line in enumerate(body.decode().split("\n")):
            if ":" in line:
                yield (line.partition(":")[0],), Place(path, number, None, ("value",))
    elif path.suffix == ".md":
        for number, line in enumerate(body.decode().split("\n")):
            yield (line[:4],), Place(path, number, None, ("text",))


def _of_database(path: Path) -> Iterator[tuple[tuple[object, ...], Place]]:
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    tables = [
        row[0] for row in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
            " AND sql NOT LIKE '%WITHOUT ROWID%' AND name NOT LIKE 'sqlite_%'"
        )
    ]  # fmt: skip
    for table in tables:
        for row in database.execute(f'SELECT rowid AS "row", * FROM "{table}"'):
            for column in row.keys()[1:]:
                where = Place(path, row["row"], (table, column), ())
                yield (table, column), where
                value = row[column]
                for shape, steps in _of_text(value if isinstance(value, str) else ""):
                    yield (table, column, *shape), where._replace(steps=("json", *steps))
    database.close()


def _of_text(text: str) -> Iterator[tuple[tuple[object, ...], tuple[Step, ...]]]:
    """Yield what is in a text of JSON; nothing where it is torn, or only a number."""
    if text.startswith(("{", "[")):
        try:
            value = json.loads(text)
        except ValueError:
            return
        yield from steps_in(value)


def steps_in(value: Any) -> Iterator[tuple[tuple[object, ...], tuple[Step, ...]]]:
    """Yield what tells the shape of each value in a value, and the way to it."""
    yield (), ()
    if isinstance(value, dict):
        told = tuple(str(value[key])[:40] for key in TELLING if isinstance(value.get(key), str))
        for key, inner in value.items():
            # Keys that are ids or paths are no fields.
            name = key if key.replace("_", "").isalpha() else "*"
            for shape, steps in steps_in(inner):
                yield (told, name, *shape), (key, *steps)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            for shape, steps in steps_in(inner):
                yield ("[]", *shape), (position, *steps)
