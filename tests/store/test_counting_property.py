"""However a sample's files are copied, renamed, reordered and forked, it costs the same."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.engine.database import open_database
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.samples import SAMPLES, Sample, path_of
from tests.store.counted import counted

SUFFIXES = (" (1)", " - Copy", " copy 2", " (mira's conflicted copy 2026-11-20)", "-renamed")
NAMES = {
    "claude-code": "*.jsonl", "codex": "rollout-*.jsonl", "gemini": "session-*.json*",
    "pi": "*.jsonl", "qwen": "*-*.json*", "copilot": "events.jsonl", "aider": "*.md",
}  # fmt: skip
"""The files of a source that hold sessions."""
FILES = [sample for sample in SAMPLES if sample.kind in NAMES]
EXAMPLES = int(os.environ.get("BACKSCROLL_COUNTING_EXAMPLES", "4"))
"""Ways of copying that are tried for each sample."""


def spent(target: Target) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(Path(folder) / "library.db", create=True)
        Sync(database, Settings(helpers=0)).run([target])
        whole = counted(database)
        database.close()
    return whole.total, round(whole.told_usd, 6)


def copy_beside(path: Path, chance: random.Random) -> None:
    shutil.copy2(path, path.with_name(f"{path.stem}{chance.choice(SUFFIXES)}{path.suffix}"))


def copy_folder(path: Path, chance: random.Random) -> None:
    """Copy the folder of a file, with all that lies in it, under another name."""
    other = path.parent.with_name(f"{path.parent.name}-{chance.randrange(1000)}")
    shutil.copytree(path.parent, other, dirs_exist_ok=True)


def cut(path: Path, chance: random.Random) -> None:
    """Leave a copy of what the file held earlier, whole lines of it."""
    lines = path.read_bytes().splitlines(keepends=True)
    if path.suffix != ".jsonl" or len(lines) < 3:
        return
    kept = lines[: chance.randrange(2, len(lines))]
    path.with_name(f"{path.stem} (2){path.suffix}").write_bytes(b"".join(kept))


def later(path: Path, chance: random.Random) -> None:
    """Give a file another time, so that it is read in another order."""
    at = 1_700_000_000 + chance.randrange(10_000_000)
    os.utime(path, (at, at))


CHANGES = (copy_beside, copy_folder, cut, later)


@pytest.mark.parametrize("sample", FILES, ids=lambda sample: sample.name)
@pytest.mark.one_in(3)
def test_copies_cost_nothing(sample: Sample) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = spent(sample.copied(Path(folder)))

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
    @given(st.integers(0, 2**32), st.integers(1, 6))
    def copied(seed: int, times: int) -> None:
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            target = sample.copied(Path(folder))
            root = path_of(target)
            for _ in range(times):
                files = [root] if root.is_file() else sorted(root.rglob(NAMES[sample.kind]))
                change = chance.choice(CHANGES)
                if not (change is copy_folder and root in (root, *files[0].parents[:1])):
                    change(chance.choice(files), chance)
            assert spent(target) == before

    copied()


def test_a_claude_code_fork_of_each_session_costs_nothing(tmp_path: Path) -> None:
    """A fork that says nothing of its own, with and without the marks of new versions."""
    (sample,) = [one for one in SAMPLES if one.kind == "claude-code"]
    target = sample.copied(tmp_path)
    before = spent(target)
    for place, (path, rows) in enumerate(sessions_of(target)):
        name = f"{place:08d}-0000-4000-8000-000000000000"
        forked = [{**row, "sessionId": name} for row in rows]
        for row in forked if place % 2 else ():
            if row["type"] == "assistant":
                row["requestSessionId"] = path.stem
        path.with_name(f"{name}.jsonl").write_text(lines_of(forked))
    assert spent(target) == before


def test_a_claude_code_session_that_is_replayed_costs_nothing(tmp_path: Path) -> None:
    """The same rows stand once more on another branch of the file, under other uuids."""
    (sample,) = [one for one in SAMPLES if one.kind == "claude-code"]
    target = sample.copied(tmp_path)
    before = spent(target)
    for path, rows in sessions_of(target):
        again = [
            {**row, "uuid": f"{row['uuid']}-r", "parentUuid": again_of(row.get("parentUuid"))}
            for row in rows
        ]
        with path.open("a") as out:
            out.write(lines_of(again))
    assert spent(target) == before


def again_of(uuid: Any) -> str | None:
    return f"{uuid}-r" if isinstance(uuid, str) else None


def sessions_of(target: Target) -> list[tuple[Path, list[dict[str, Any]]]]:
    """Return the session files of a Claude Code root, with their rows."""
    found = []
    for path in sorted(path_of(target).rglob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        rows = [row for row in rows if "uuid" in row]
        if rows and not path.name.startswith("agent-"):
            found.append((path, rows))
    return found


def lines_of(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
