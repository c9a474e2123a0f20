"""The base of all files of JSON lines: appended bytes are read once, other changes whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.sources.base import growing
from store.sources.base.drafts import SessionDraft
from store.sources.base.growing import (
    BuiltUnit,
    Changed,
    GrowingFile,
    UnitFiles,
    UnitFollower,
    stamp_of,
)
from store.sources.base.protocol import FileStamp, Problem, Reading, Unit
from store.system.paths import open_regular

Change = Callable[[Path], object]


def build(unit: Unit, files: UnitFiles, problems: list[Problem]) -> list[SessionDraft]:
    """One session a file, titled by the numbers of its lines."""
    return [
        SessionDraft(path, path, "test", 0, 0, str([one.data["n"] for one in file.lines]))
        for path, file in files.lines.items()
    ]


def unit_of(*paths: Path) -> Unit:
    return Unit("unit", tuple(FileStamp.now(str(path)) for path in paths if path.exists()), 0)


class Clock:
    """Moves a file's time on, as two writes may be within one tick of the file system."""

    now = 10**18

    def touch(self, path: Path) -> None:
        self.now += 1_000_000
        os.utime(path, ns=(self.now, self.now))


def titles(reading: Reading) -> list[str | None]:
    return [session.title for session in reading.sessions]


def append(body: bytes) -> Change:
    return lambda path: path.open("ab").write(body)


def replaced(body: bytes) -> Change:
    def change(path: Path) -> None:
        other = path.with_suffix(".new")
        other.write_bytes(body)
        other.replace(path)

    return change


CHANGES: dict[str, Change] = {
    "appended": append(b'{"n":3}\n'),
    "torn": append(b'{"n":3}\n{"n":'),
    "cut": lambda path: path.write_bytes(b'{"n":1}\n'),
    "emptied": lambda path: path.write_bytes(b""),
    "rewritten in place": lambda path: path.write_bytes(b'{"n":7}\n{"n":8}\n'),
    "rewritten and longer": lambda path: path.write_bytes(b'{"n":7}\n{"n":8}\n{"n":9}\n'),
    "replaced": replaced(b'{"n":1}\n{"n":2}\n{"n":5}\n'),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_follower_reads_what_a_fresh_one_would(change: Change, tmp_path: Path) -> None:
    path, clock = tmp_path / "a.jsonl", Clock()
    path.write_bytes(b'{"n":1}\n{"n":2}\n')
    clock.touch(path)
    follower = UnitFollower(lambda unit: BuiltUnit(build))
    assert titles(follower.read(unit_of(path))) == ["[1, 2]"]
    for body in (b"", b'"more":0}\n' if change is CHANGES["torn"] else b'{"n":4}\n'):
        if body:
            append(body)(path)
        else:
            change(path)
        clock.touch(path)
        now, fresh = unit_of(path), UnitFollower(lambda unit: BuiltUnit(build))
        assert follower.read(now) == fresh.read(now)


def test_only_appended_bytes_are_parsed(tmp_path: Path) -> None:
    path, taken = tmp_path / "a.jsonl", list[int]()

    class Counted(GrowingFile):
        def take(self, records: Any) -> None:
            found = list(records)
            taken.extend(record.data["n"] for record in found)
            super().take(found)

    path.write_bytes(b'{"n":1}\n')
    file = Counted(str(path))
    file.read([])
    append(b'{"n":2}\n')(path)
    file.read([])
    assert taken == [1, 2]
    assert [record.number for record in file.lines] == [0, 1]


def test_a_line_that_was_not_at_its_end_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}')
    file = GrowingFile(str(path))
    file.read([])
    append(b' {"n":2}\n')(path)
    with pytest.raises(Changed):
        file.read([])


def test_a_file_that_went_away_leaves_the_others(tmp_path: Path) -> None:
    one, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    one.write_bytes(b'{"n":1}\n')
    other.write_bytes(b'{"n":2}\n')
    follower = UnitFollower(lambda unit: BuiltUnit(build))
    assert titles(follower.read(unit_of(one, other))) == ["[1]", "[2]"]
    one.unlink()
    assert titles(follower.read(unit_of(one, other))) == ["[2]"]


def test_a_reader_that_failed_is_not_used_again(tmp_path: Path) -> None:
    path, fails = tmp_path / "a.jsonl", [False]
    path.write_bytes(b'{"n":1}\n')

    def failing(unit: Unit, files: UnitFiles, problems: list[Problem]) -> list[SessionDraft]:
        if fails[0]:
            raise ValueError
        return build(unit, files, problems)

    follower = UnitFollower(lambda unit: BuiltUnit(failing))
    follower.read(unit_of(path))
    append(b'{"n":2}\n')(path)
    fails[0] = True
    with pytest.raises(ValueError):
        follower.read(unit_of(path))
    fails[0] = False
    assert titles(follower.read(unit_of(path))) == ["[1, 2]"]


def test_a_first_reading_that_fails_halfway_starts_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}\n{"n":3}\n')
    monkeypatch.setattr(growing, "CHUNK", 8)

    class Failing:
        def __init__(self, file: Any) -> None:
            self.file, self.left = file, 2

        def read(self, size: int) -> Any:
            self.left -= 1
            if self.left < 0:
                raise OSError(5, "Input/output error")
            return self.file.read(size)

        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def fileno(self) -> int:
            return int(self.file.fileno())

    class Kept(BuiltUnit):
        """Keeps a file that could not be read, as the readers of Claude Code and Codex do."""

        def take(self, unit: Unit) -> None:
            super(UnitFiles, self).take(unit)

    follower = UnitFollower(lambda unit: Kept(build))
    with monkeypatch.context() as patched:
        patched.setattr(growing, "open_regular", lambda path: Failing(open_regular(path)))
        reading = follower.read(unit_of(path))
    assert [problem.reason for problem in reading.problems] == ["Input/output error"]
    reading = follower.read(unit_of(path))
    assert (titles(reading), reading.problems) == (["[1, 2, 3]"], [])


def bodies(unit: Unit, files: UnitFiles, problems: list[Problem]) -> list[SessionDraft]:
    """One session, titled by the other files' bytes."""
    return [SessionDraft("s", "s", "test", 0, 0, str(sorted(files.bodies.values())))]


def test_a_side_file_is_read_when_it_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, read = tmp_path / "a.json", tmp_path / "b.json", list[str]()

    def noted(path: str) -> Any:
        read.append(Path(path).name)
        return open_regular(path)

    monkeypatch.setattr(growing, "open_regular", noted)
    one.write_bytes(b"1")
    other.write_bytes(b"2")

    def moved() -> Unit:
        return Unit("unit", tuple(stamp_of(str(path), path.stat()) for path in (one, other)), 0)

    follower = UnitFollower(lambda unit: BuiltUnit(bodies))
    assert titles(follower.read(moved())) == ["[b'1', b'2']"]
    other.write_bytes(b"22")
    assert titles(follower.read(moved())) == ["[b'1', b'22']"]
    assert read == ["a.json", "b.json", "b.json"]


def test_a_side_file_that_cannot_be_read_any_more_is_left_out(tmp_path: Path) -> None:
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    follower = UnitFollower(lambda unit: BuiltUnit(bodies))
    follower.read(unit_of(one, other))
    other.unlink()
    other.mkdir()
    reading = follower.read(unit_of(one, other))
    assert titles(reading) == ["[b'1']"]
    assert [problem.path for problem in reading.problems] == [str(other)]
