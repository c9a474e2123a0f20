"""A field that holds another JSON value than its program writes never ends a reading."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.engine.database import Database, open_database
from store.sync.prepared import prepare
from store.sync.writer import write_prepared
from tests.sources.codex_lines import Lines, read, thread_id
from tests.sources.odd_values import ODD, ODD_CELLS, Place, places, put
from tests.sources.samples import SAMPLES, Sample, path_of

pytestmark = pytest.mark.long


class Copy(NamedTuple):
    """A sample's own copy, the shapes of its values, and a store to write it into."""

    sample: Sample
    root: Path
    found: list[Place]
    database: Database

    def __repr__(self) -> str:
        return self.sample.name


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda sample: sample.name)
def copy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Copy]:
    folder = tmp_path_factory.mktemp("sample")
    root = path_of(request.param.copied(folder))
    found = places(root if root.is_dir() else root.parent)
    database = open_database(tmp_path_factory.mktemp("store") / "library.db", create=True)
    yield Copy(request.param, root, found, database)
    database.close()


def written(copy: Copy, changed: Place | None = None, damaged: Path | None = None) -> int:
    """Read units and write them; return how many sessions came.

    Args:
        copy: The sample.
        changed: Where a value is another; of a file of lines only its own units are read.
        damaged: A file whose bytes are damaged.
    """
    source = type(copy.sample.target().source)()
    lines = changed is not None and changed.file.suffix == ".jsonl"
    sessions = 0
    copy.database.connection.execute("BEGIN")
    try:
        for unit in source.units(copy.root, []):
            if lines and str(changed and changed.file) not in {s.path for s in unit.stamps}:
                continue
            try:
                reading = source.read(copy.root, unit)
            except ValueError:
                # A session that is one document is read again once that is whole.
                assert damaged is not None and unit.stamps[0].path == str(damaged)
                assert damaged.suffix == ".json"
                continue
            for draft in reading.sessions:
                write_prepared(copy.database, prepare(source.kind, draft))
                sessions += 1
    finally:
        copy.database.connection.execute("ROLLBACK")
    return sessions


def test_the_sample_has_many_kinds_of_values(copy: Copy) -> None:
    assert len(copy.found) >= copy.sample.values and written(copy) > 0


@settings(max_examples=20)
@given(st.data())
def test_any_value_may_be_another(copy: Copy, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(copy.found))
    in_cell = place.table is not None and not place.steps
    odd: Any = data.draw(st.sampled_from(ODD_CELLS if in_cell else ODD))
    whole = place.file.read_bytes()
    try:
        if put(place, odd):
            written(copy, place)
    finally:
        place.file.write_bytes(whole)


@settings(max_examples=12)
@given(st.data())
def test_any_bytes_may_be_damaged(copy: Copy, data: st.DataObject) -> None:
    files = sorted({place.file for place in copy.found if place.table is None})
    if not files:
        pytest.skip("is one database; its damage is told by SQLite")
    file = data.draw(st.sampled_from(files))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    whole = file.read_bytes()
    body = bytearray(whole)
    for _ in range(chance.randint(1, 30)):
        at = chance.randrange(len(body) + 1)
        if chance.random() < 0.5:
            body[at : at + 1] = bytes([chance.randrange(256)])
        else:
            del body[at : at + chance.randint(1, 400)]
    try:
        file.write_bytes(body)
        written(copy, damaged=file)
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize("output", [{}, {"type": {}}, {"a": [1]}, {"content": {}}])
def test_codex_an_output_that_is_an_object_is_kept(tmp_path: Path, output: object) -> None:
    lines = Lines(thread_id(1))
    lines.turn("one", "re one", "r1")
    lines.item("function_call", name="shell", arguments="{}", call_id="c1")
    lines.item("function_call_output", call_id="c1", output=output)
    drafts, problems = read(lines.write(tmp_path))
    assert problems == []
    (call,) = [p for m in drafts[thread_id(1)].messages for p in m.parts if p.tool_call_id]
    assert call.data["output"] == ({} if output == {"content": {}} else output)
