"""Words of a source that no map of ours has are shown as they are."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.conversation.outcomes import outcome_of
from store.sync.targets import Target
from tests.sources.claude_rows import File
from tests.sources.claude_rows import read_one as read_claude
from tests.sources.codex_lines import Lines, read_one, thread_id
from tests.sources.odd_values import places, put, value_at
from tests.sources.samples import FIRST, SAMPLES, Sample, path_of

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


def test_what_tells_of_a_call_of_codex_in_new_words_is_kept(tmp_path: Path) -> None:
    """Of a new type, of a call of a new type, and without a call."""
    lines = Lines(thread_id(1))
    lines.user("go")
    call = lines.call("exec_command", cmd="ls")
    changes = {"a.txt": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+told by a diff\n"}}
    lines.event("item_completed", item={"type": WORD, "id": call, "said": "told of a call"})
    lines.event("item_completed", item={"type": WORD, "id": "other", "said": "told alone"})
    lines.event("item_completed", item={"type": "FileChange", "id": "none", "changes": changes})
    lines.event("item_completed", item={"type": "UserMessage", "id": "u", "content": []})
    lines.output(call, "x")
    parts = [part for message in read_one(lines, tmp_path).messages for part in message.parts]
    texts = "\0".join(text for part in parts for text in texts_in(part.data))
    assert all(said in texts for said in ("told of a call", "told alone", "told by a diff"))
    assert "UserMessage" not in texts


@pytest.mark.parametrize(("call", "result"), [(WORD, "tool_result"), ("tool_use", WORD)])
def test_what_a_result_of_claude_tells_is_kept_beside_a_block_that_is_new(
    call: str, result: str, tmp_path: Path
) -> None:
    file = File()
    file.user("go")
    file.assistant({"type": call, "id": "toolu_1", "name": "Edit", "input": {}}, id="m1")
    file.user([{"type": result, "tool_use_id": "toolu_1", "content": "told as text"}],
              toolUseResult={"structuredPatch": [{"lines": ["+told by a patch"]}]})  # fmt: skip
    texts = [text for message in read_claude(file, tmp_path).messages for part in message.parts
             for text in texts_in(part.data)]  # fmt: skip
    assert {"told as text", "+told by a patch"} <= set(texts)


def test_events_and_lines_of_codex_that_are_new(tmp_path: Path) -> None:
    """A file that has nothing else is a session too."""
    lines = Lines(thread_id(1))
    lines.event(WORD, message="told by an event")
    lines.add(f"{WORD}_line", {"note": "told by a line"})
    lines.event("mcp_startup_update", status="of no interest")
    lines.event("error", message="it broke")
    found = [part.data["data"] for message in read_one(lines, tmp_path).messages
             for part in message.parts]  # fmt: skip
    assert found == [
        {"name": WORD, "details": {"message": "told by an event"}},
        {"name": f"{WORD}_line", "details": {"note": "told by a line"}},
        {"message": "it broke"},
    ]


SHOWN = ("claude-code", "codex", "gemini", "cursor", "continue", "goose", "kiro", "kimi", "amp",
         "qwen", "droid", "zed", "openhands", "crush", "llm", "hub", "lionagi", "opencode", "pi",
         "vibe", "gptme", "langgraph", "openai-agents", "cline", "copilot-chat", "y-agent",
         "viben", "copilot", "chatgpt", "claude-ai", "kilo")  # fmt: skip
"""Kinds whose records and parts of an unknown type are shown as they are."""
TELLING = ("type", "role", "kind", "status", "state")
ELSEWHERE = {"engine call"}
"""What is said by another record too, in other words."""


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, str):
        yield value


def shown(sample: Sample, root: Path) -> dict[str, set[str]]:
    """All texts of each session."""
    source = type(sample.target().source)()
    return {
        draft.source_id: {text for message in draft.messages for part in message.parts
                          for text in texts_in(part.data)}
        for unit in source.units(root, []) for draft in source.read(root, unit).sessions
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_an_unknown_word_loses_no_session_and_no_text(sample: Sample, tmp_path: Path) -> None:
    """Each field that tells records, parts and states apart holds a new word in turn."""
    root = path_of(sample.copied(tmp_path))
    whole, wrong = shown(sample, root), []
    said = {text for texts in whole.values() for text in texts if " " in text and "\n" not in text}
    for place in places(root if root.is_dir() else root.parent):
        field = place.steps[-1] if place.steps else place.table and place.table[1]
        if field not in TELLING or not isinstance(value_at(place), str):
            continue
        body = place.file.read_bytes()
        try:
            if not put(place, WORD):
                continue
            now = shown(sample, root)
        finally:
            place.file.write_bytes(body)
        # A trajectory is known by its beginning.
        lost = [] if sample.kind == "swe-agent" else list(whole.keys() - now.keys())
        if sample.kind in SHOWN:
            there = "\0".join(text for texts in now.values() for text in texts)
            quoted = (text for text in said if json.dumps(text)[1:-1] not in there)
            lost += [text for text in quoted if text not in there and text not in ELSEWHERE]
        wrong += [(place, lost)] if lost else []
    assert wrong == []
