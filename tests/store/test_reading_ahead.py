"""A long unit that another process reads ahead: the library is as after reading it here."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from store.engine.database import open_database
from store.sources.base.drafts import ApiAnswer, MessageDraft, PartDraft, SessionDraft
from store.sources.base.protocol import Place, Reading, Step
from store.sources.claude_code import ClaudeCodeSource
from store.sync import long_units, reading_ahead
from store.sync.engine import Sync
from store.sync.frames import StepRead
from store.sync.settings import Settings
from store.sync.targets import Target
from store.system.programs import CommandLine
from tests.bench import claude_corpus
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

BYTES = 5_000_000
"""Three steps."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return claude_corpus.make_long(tmp_path_factory.mktemp("long"), BYTES)


def rows(root: Path, store: Path, helpers: int) -> dict[str, list[Any]]:
    database = open_database(store, create=True)
    Sync(database, Settings(helpers=helpers)).run([Target(ClaudeCodeSource(), root)])
    found = dump(database, (*TABLES, *SIDE_TABLES))
    database.close()
    return found


def nothing(file: Path) -> None:
    pass


def name_an_early_row(file: Path) -> None:
    """Append a prompt that goes on from the beginning: a rewind."""
    lines = file.read_bytes().splitlines()
    early, last = orjson.loads(lines[1]), orjson.loads(lines[0])
    last |= {"parentUuid": early["uuid"], "uuid": "from-the-beginning"}
    file.write_bytes(b"\n".join([*lines, orjson.dumps(last)]) + b"\n")


@pytest.mark.parametrize(
    ("change", "command", "sent"),
    [
        (nothing, reading_ahead.COMMAND, 2),
        (nothing, CommandLine.python("store.sync.jsontext"), 0),
        (name_an_early_row, reading_ahead.COMMAND, 1),
    ],
    ids=["to its end", "by a process that ends at once", "until it must be read whole"],
)
def test_a_unit_that_is_read_ahead_is_as_one_that_is_read_here(
    change: Callable[[Path], None],
    command: CommandLine,
    sent: int,
    made: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "home" / "projects" / made.parent.name / made.name
    file.parent.mkdir(parents=True)
    file.write_bytes(made.read_bytes())
    change(file)
    here = rows(tmp_path / "home", tmp_path / "here.db", helpers=0)

    received: list[StepRead] = []

    def count(step: StepRead) -> Step:
        received.append(step)
        return unpacked(step)

    unpacked = reading_ahead.unpacked
    monkeypatch.setattr(long_units, "AHEAD_BYTES", 0)
    monkeypatch.setattr(reading_ahead, "COMMAND", command)
    monkeypatch.setattr(reading_ahead, "unpacked", count)
    assert rows(tmp_path / "home", tmp_path / "ahead.db", helpers=1) == here
    assert len(received) == sent


@pytest.mark.parametrize("value", [["plain", 2**70, None, {"a": 0.5}], Decimal(1)])
def test_a_step_arrives_as_it_was_sent(value: object) -> None:
    def step() -> Step:
        part = PartDraft("tool-x", {"input": value}, 5, 6, "call", "done", (3, 4))
        answer = MessageDraft("m", "assistant", 5, 6, {"a": [1]}, [part], answer=ApiAnswer("id"))
        prompt = MessageDraft("n\ud800", "user", 7, 7, records=(9,))
        draft = SessionDraft("s", "p", "a", 1, 2, messages=[answer, prompt], records=[b"{}"])
        return Step(Reading([draft], [], ()), True, Place(1, 2, {}, b"c", {"n"}), True)

    assert reading_ahead.unpacked(reading_ahead.packed(step())) == step()
