"""Call ids that start anew in each answer: no source takes two calls for one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.copilot import CopilotSource
from store.sources.pi import PiSource
from tests.sources import claude_rows, codex_lines, test_copilot, test_pi
from tests.sources.grown import only, read_all
from tests.sources.samples import SAMPLES, Sample, path_of


def claude(folder: Path) -> SessionDraft:
    file = claude_rows.File()
    for number in range(3):
        file.user(f"do {number}")
        file.assistant(claude_rows.tool("call_0", command=str(number)), id=f"msg_{number}")
        file.result("call_0", f"out {number}")
    return claude_rows.read_one(file, folder)


def codex(folder: Path) -> SessionDraft:
    lines = codex_lines.Lines(codex_lines.thread_id(1))
    for number in range(3):
        lines.user(f"do {number}")
        arguments = json.dumps({"command": str(number)})
        lines.item("function_call", name="shell", arguments=arguments, call_id="call_0")
        lines.output("call_0", f"out {number}")
        lines.says("done")
    return codex_lines.read_one(lines, folder)


def copilot(folder: Path) -> SessionDraft:
    events = test_copilot.Events(folder)
    for number in range(3):
        events("user.message", content=f"do {number}")
        events("assistant.message", messageId=f"m-{number}", content="", model="m", toolRequests=[
            {"toolCallId": "call_0", "name": "bash", "arguments": {"command": str(number)}},
        ])  # fmt: skip
        events("tool.execution_start", toolCallId="call_0", toolName="bash",
               arguments={"command": str(number)})  # fmt: skip
        events("tool.execution_complete", toolCallId="call_0", success=True,
               result={"content": f"out {number}"})  # fmt: skip
    return only(CopilotSource(), folder)


def pi(folder: Path) -> SessionDraft:
    rows, parent = [], None
    for number in range(3):
        asked, said, got = (f"{kind}{number}" for kind in "uar")
        rows.append(test_pi.user(asked, parent, 10 * number, f"do {number}"))
        rows.append(test_pi.answer(said, asked, 10 * number + 1,
                                   test_pi.bash("call_0", str(number))))  # fmt: skip
        rows.append(test_pi.result(got, said, 10 * number + 2, "call_0", f"out {number}"))
        parent = got
    test_pi.session(folder, test_pi.header(), *rows)
    return only(PiSource(), folder / "sessions")


@pytest.mark.parametrize("make", [claude, codex, copilot, pi], ids=lambda make: make.__name__)
def test_each_call_has_its_own_result(
    make: Callable[[Path], SessionDraft], tmp_path: Path
) -> None:
    draft = make(tmp_path)
    calls = [part for m in draft.messages for part in m.parts if part.tool_call_id == "call_0"]
    assert [part.data["input"]["command"] for part in calls] == ["0", "1", "2"]
    assert ["out" in str(part.data["output"]) for part in calls] == [True] * 3
    assert [str(part.data["output"]).split("out ")[1][0] for part in calls] == ["0", "1", "2"]


def test_a_codex_call_without_an_output_does_not_swallow_the_next(tmp_path: Path) -> None:
    lines = codex_lines.Lines(codex_lines.thread_id(1))
    for command in ("killed", "later"):
        lines.user(command)
        arguments = json.dumps({"command": command})
        lines.item("function_call", name="shell", arguments=arguments, call_id="call_0")
    lines.output("call_0", "out")
    draft = codex_lines.read_one(lines, tmp_path)
    calls = [part for m in draft.messages for part in m.parts if part.tool_call_id]
    assert [(p.data["input"]["command"], p.data.get("output")) for p in calls] == [
        ("killed", None), ("later", "out"),
    ]  # fmt: skip


NAMES_RECORDS = ("chatgpt", "gptme", "copilot")
"""Sources whose call ids name records or sessions too, or stand within texts."""
IN_FILES = [one for one in SAMPLES if one.kind not in NAMES_RECORDS]


def results_of(draft: SessionDraft) -> list[Any]:
    """Return each call of a session without its id."""
    return [
        re.sub(r"\S*call\S*", "", json.dumps([part.type, part.data.get("input"), part.tool_state,
                                              part.data.get("output")]))  # fmt: skip
        for message in draft.messages for part in message.parts if part.tool_call_id is not None
    ]


@pytest.mark.parametrize("sample", IN_FILES, ids=lambda sample: sample.name)
@pytest.mark.one_in(4)
def test_ids_that_begin_anew_in_each_answer_change_no_call(
    sample: Sample, tmp_path: Path
) -> None:
    target = sample.copied(tmp_path)
    before, _ = read_all(target.source, path_of(target))
    renamed: dict[bytes, bytes] = {}
    for draft in before.values():
        for message in draft.messages:
            ids = [part.tool_call_id for part in message.parts if part.tool_call_id is not None]
            for place, each in enumerate(ids):
                renamed.setdefault(json.dumps(each).encode(), b'"call_%d"' % place)
    for path in [path for path in tmp_path.rglob("*.json*") if path.is_file()]:
        body = path.read_bytes()
        for old in sorted(renamed, key=len, reverse=True):
            body = body.replace(old, renamed[old])
        path.write_bytes(body)
    again = sample.target(tmp_path)
    after, _ = read_all(again.source, path_of(again))
    assert {name: results_of(draft) for name, draft in after.items()} == {
        name: results_of(draft) for name, draft in before.items()}
