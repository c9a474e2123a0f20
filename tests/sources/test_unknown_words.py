"""Words of a source that no map of ours has are shown as they are."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.conversation.outcomes import outcome_of
from store.sync.targets import Target
from tests.sources.codex_lines import Lines, read_one, thread_id
from tests.sources.samples import FIRST, path_of

WORD = "postponed-by-moon"


def activities(target: Target) -> list[dict[str, Any]]:
    kind, root = target.source, path_of(target)
    drafts = [draft for unit in kind.units(root, []) for draft in kind.read(root, unit).sessions]
    return [draft.metadata.get("activity") or {} for draft in drafts]


def _in_row(root: Path) -> None:
    with sqlite3.connect(root / "y-agent.db") as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute("UPDATE session_metadata SET state = ?", (WORD,))
    database.close()


def _in_configs(root: Path) -> None:
    for path in root.rglob("config.yaml"):
        lines = path.read_text().splitlines()
        said = [f'status: "{WORD}"' if line.startswith("status:") else line for line in lines]
        path.write_text("\n".join(said) + "\n")
    shutil.rmtree(root / "tasks", ignore_errors=True)


def _in_states(root: Path) -> None:
    for path in root.rglob("base_state.json"):
        state = json.loads(path.read_text())
        path.write_text(json.dumps({**state, "execution_status": WORD}))


@pytest.mark.parametrize(
    ("kind", "say"),
    [("y-agent", _in_row), ("viben", _in_configs), ("openhands", _in_states)],
)
def test_a_state_of_a_session(kind: str, say: Any, tmp_path: Path) -> None:
    target = FIRST[kind].copied(tmp_path)
    say(path_of(target))
    said = [each for each in activities(target) if each.get("word") == WORD]
    assert said and all(each["state"] == "unknown" for each in said)


def test_how_a_call_of_codex_ended(tmp_path: Path) -> None:
    lines = Lines(thread_id(1))
    lines.user("go")
    call = lines.call("exec_command", cmd="ls")
    lines.event("item_completed", item={"type": "CommandExecution", "id": call, "status": WORD})
    lines.output(call, "x")
    (part,) = [part for message in read_one(lines, tmp_path).messages
               for part in message.parts if part.tool_call_id == call]  # fmt: skip
    ended = outcome_of(part.data)
    assert (ended.word, ended.status) == (WORD, "ended")


