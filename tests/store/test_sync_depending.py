"""Units are read again for what they depend on, whatever comes first."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.ids import derived_session_id
from store.sources.base.protocol import Fact, FileStamp, Library, NoLibrary, Reading, Unit
from store.sync import depending, units
from store.sync.engine import Sync
from store.sync.forget import forget
from store.sync.library import StoredLibrary
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.store.sync_fakes import TABLES, LineSource, dump, line, run, write_lines


class Relatives(LineSource):
    """A fake agent whose sessions take their title from a note, and names from each other.

    ``<name>.note`` beside a session is its title. A line may have ``"tells": name`` and
    ``"wants": name``: the session that wants is titled after the session that tells.
    """

    def __init__(self) -> None:
        super().__init__()
        self.library: Library = NoLibrary()

    def use_library(self, library: Library) -> None:
        self.library = library

    def read(self, root: Path, unit: Unit) -> Reading:
        reading = super().read(root, unit)
        (draft,) = reading.sessions
        note = root / f"{draft.source_id}.note"
        reading.looked = [FileStamp.now(str(note))]
        draft.title = note.read_text() if note.exists() else "untitled"
        rows = [json.loads(record) for record in draft.records]
        reading.facts = [Fact(row["tells"], draft.source_id) for row in rows if "tells" in row]
        for row in rows:
            if "wants" not in row:
                continue
            reading.wants = {row["wants"]}
            told = [path.stem for path in sorted(root.glob("*.lines"))
                    if f'"tells": "{row["wants"]}"' in path.read_text()]  # fmt: skip
            told = told or [fact.session for fact in self.library.facts(row["wants"])]
            draft.title = f"after {told[0]}" if told else "alone"
        return reading


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db", create=True)
    yield opened
    opened.close()


def titles(database: Database) -> dict[str, str]:
    return dict(
        database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id'), "
            "json_extract(metadata_json, '$.title') FROM chat_sessions"
        ).fetchall()
    )


def test_a_file_that_was_looked_for_comes_changes_and_goes(
    database: Database, tmp_path: Path
) -> None:
    root, source = tmp_path / "source", Relatives()
    write_lines(root, "one", 2)
    write_lines(root, "two", 2)
    run(database, root, source)
    assert titles(database) == {"one": "untitled", "two": "untitled"}
    note = root / "one.note"
    for text in ("first", "second"):
        note.write_text(text)
        os.utime(note, ns=(len(text), len(text)))
        assert run(database, root, source).read == 1
        assert titles(database)["one"] == text
        assert run(database, root, source).read == 0
    note.unlink()
    assert run(database, root, source).read == 1
    assert run(database, root, source).read == 0


@pytest.mark.parametrize("first", ["child", "parent"])
def test_what_a_unit_wanted_may_come_later(
    database: Database, tmp_path: Path, first: str
) -> None:
    root, source = tmp_path / "source", Relatives()
    lines = {"child": line(1, wants="x"), "parent": line(2, tells="x")}
    root.mkdir()
    order = [first, *(lines.keys() - {first})]
    for name in order:
        (root / f"{name}.lines").write_text(lines[name])
        os.utime(root / f"{name}.lines", ns=(1, 1))
        run(database, root, source)
    assert titles(database)["child"] == "after parent"
    other = open_database(tmp_path / "other.db", create=True)
    source.read_units.clear()
    run(other, root, source)
    assert sorted(source.read_units) == ["child.lines", "parent.lines"]
    assert dump(other, TABLES) == dump(database, TABLES)
    other.close()


def at_call(number: int) -> Callable[[], bool]:
    """Return a function that says True from one call on."""
    left = iter(range(number))
    return lambda: next(left, None) is None


def test_a_sync_that_was_stopped_anywhere_goes_on_with_what_others_want(tmp_path: Path) -> None:
    for calls in range(100):
        root, source = tmp_path / f"{calls}", Relatives()
        root.mkdir()
        (root / "child.lines").write_text(line(1, wants="x"))
        database = open_database(tmp_path / f"{calls}.db", create=True)
        run(database, root, source)
        (root / "parent.lines").write_text(line(2, tells="x"))
        settings, targets = Settings(helpers=0), [Target(source, root)]
        stopped = Sync(database, settings, stopped=at_call(calls)).run(targets)
        Sync(database, settings).run(targets)
        assert titles(database) == {"child": "after parent", "parent": "untitled"}, calls
        assert Sync(database, settings).run(targets).read == 0
        assert not depending.pending_news(database)
        database.close()
        if not stopped.stopped:
            break
    assert calls > 4


def test_growth_of_the_one_who_told_reads_nobody_else(database: Database, tmp_path: Path) -> None:
    root, source = tmp_path / "source", Relatives()
    root.mkdir()
    (root / "child.lines").write_text(line(1, wants="x"))
    (root / "parent.lines").write_text(line(2, tells="x"))
    run(database, root, source)
    with (root / "parent.lines").open("a") as file:
        file.write(line(3))
    source.read_units.clear()
    run(database, root, source)
    assert source.read_units == ["parent.lines"]


def test_the_library_tells_what_a_file_that_is_gone_told(
    database: Database, tmp_path: Path
) -> None:
    root, source = tmp_path / "source", Relatives()
    root.mkdir()
    (root / "parent.lines").write_text(line(2, tells="x"))
    run(database, root, source)
    (root / "parent.lines").unlink()
    (root / "child.lines").write_text(line(1, wants="x"))
    run(database, root, source)
    assert titles(database)["child"] == "after parent"
    assert source.library.records("parent") == [line(2, tells="x").strip().encode()]


def test_units_of_another_root_are_read_again(database: Database, tmp_path: Path) -> None:
    one, other, source = tmp_path / "one", tmp_path / "other", Relatives()
    for root in (one, other):
        root.mkdir()
    (one / "child.lines").write_text(line(1, wants="x"))
    (other / "parent.lines").write_text(line(2, tells="x"))
    os.utime(other / "parent.lines", ns=(1, 1))
    Sync(database, Settings(helpers=0)).run([Target(source, one), Target(source, other)])
    assert titles(database)["child"] == "after parent"


def test_units_of_a_root_that_is_not_read_now_are_read_again_later(
    database: Database, tmp_path: Path
) -> None:
    one, other, source = tmp_path / "one", tmp_path / "other", Relatives()
    for root in (one, other):
        root.mkdir()
    (one / "child.lines").write_text(line(1, wants="x"))
    (other / "parent.lines").write_text(line(2, tells="x"))
    for root, read in ((one, 1), (other, 1), (one, 1), (one, 0)):
        assert run(database, root, source).read == read
    assert titles(database)["child"] == "after parent"


def test_what_hangs_on_a_unit_goes_with_it(database: Database, tmp_path: Path) -> None:
    root, source = tmp_path / "source", Relatives()
    root.mkdir()
    (root / "child.lines").write_text(line(1, wants="x", tells="y"))
    run(database, root, source)
    units.drop(database, source.kind, root, ["child.lines"])
    for table in ("source_units", "unit_files", "unit_facts", "unit_wants", "unit_news"):
        assert database.connection.execute(f"SELECT * FROM {table}").fetchall() == []


def test_nothing_is_told_of_a_forgotten_session(database: Database, tmp_path: Path) -> None:
    root, source = tmp_path / "source", Relatives()
    root.mkdir()
    (root / "parent.lines").write_text(line(2, tells="x"))
    run(database, root, source)
    assert len(source.library.facts("x")) == 1
    forget(database, [derived_session_id("fake", "parent")])
    assert source.library.facts("x") == []
    with (root / "parent.lines").open("a") as file:
        file.write(line(3))
    assert run(database, root, source).read == 1
    assert source.library.facts("x") == []


def test_facts_are_found_by_their_name(database: Database) -> None:
    """Without its hint SQLite reads all facts of the kind, once for each unit that asks."""
    asked: list[str] = []
    database.file.set_trace_callback(asked.append)
    StoredLibrary(database, "kind").facts("name")
    database.file.set_trace_callback(None)
    plan = database.connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}").fetchall()
    assert "name=?" in plan[0][3]
