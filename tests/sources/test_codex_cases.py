"""Codex: texts that IDEs and older versions put in wrappers, and the files of early 2025."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.conversation.calls import describe
from store.sources.codex import CodexSource
from store.sources.registry import recognised
from tests.sources import grown
from tests.sources.codex_lines import Lines, extra, read, read_one, said, thread_id, tools

A = thread_id(1)
IDE = "# Context from my IDE setup:\n\n## Active file: a.ts\n\n## My request for Codex:\n{}\n"
FILES = "# Files mentioned by the user:\n\n## a.ts: src/a.ts\n\n## My request for Codex:\n{}\n"


@pytest.mark.parametrize("wrapper", [IDE, FILES])
def test_the_request_after_an_ides_context_is_the_prompt(wrapper: str, tmp_path: Path) -> None:
    lines = Lines(A)
    lines.turn(wrapper.format("first ask"), "Done.", "r1")
    lines.turn(wrapper.format("second ask"), "again", "r2")
    draft = read_one(lines, tmp_path)
    assert grown.prompts(draft.messages) == ["first ask", "second ask"]
    assert draft.title == "first ask"
    request, context = draft.messages[0].parts
    assert request.data["text"] == "first ask"
    assert context.type == "data-event" and context.data["data"]["name"] == "ide context"
    assert "a.ts" in context.data["data"]["details"]


def test_an_output_in_json_is_its_text(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("list")
    for text, code in (("a.txt\nb.txt\n", 0), ("no file\n", 1)):
        told = {"exit_code": code, "duration_seconds": 0.1}
        lines.output(
            lines.call("shell", command=["ls"]), json.dumps({"output": text, "metadata": told})
        )
    lines.item("custom_tool_call", name="apply_patch", call_id="p", input="*** Begin Patch")
    patched = {"output": "Success.\nA a\n", "metadata": {"exit_code": 0, "duration_seconds": 0}}
    lines.item("custom_tool_call_output", call_id="p", output=json.dumps(patched))
    parts = tools(read_one(lines, tmp_path).messages)
    assert [part.data["output"] for part in parts] == [
        "a.txt\nb.txt\n",
        "no file\n",
        "Success.\nA a\n",
    ]
    assert [extra(part)["exit_code"] for part in parts] == [0, 1, 0]
    assert [extra(part)["status"] for part in parts] == ["ok", "error", "ok"]
    assert [extra(part)["duration_ms"] for part in parts] == [100, 100, 0]


@pytest.mark.parametrize(
    ("output", "shown", "status"),
    [
        ('{"output": "x"}', '{"output": "x"}', "ok"),
        (
            '{"metadata": {}, "output": "a\\nb", "more": 1}',
            '{"metadata": {}, "output": "a\\nb", "more": 1}',
            "ok",
        ),
        ('{"output": "aborted by user", "metadata": {}}', "aborted by user", "interrupted"),
        ('{"torn": ', '{"torn": ', "ok"),
        ({"output": "a\nb", "metadata": {"exit_code": 3}}, "a\nb", "error"),
        (
            '{"content": [{"type": "text", "text": "a\\nb"}], "isError": true}',
            [{"type": "text", "text": "a\nb"}],
            "error",
        ),
    ],
)
def test_only_wrappers_are_taken_off(
    output: object, shown: object, status: str, tmp_path: Path
) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.output(lines.call("shell", command=["x"]), output)
    (part,) = tools(read_one(lines, tmp_path).messages)
    assert (part.data["output"], extra(part)["status"]) == (shown, status)


BLOCKS = '[{"type": "text", "text": "a\\nb"}]'


@pytest.mark.parametrize(("name", "shown"), [
    ("mcp__files__list", [{"type": "text", "text": "a\nb"}]), ("shell", BLOCKS),
])  # fmt: skip
def test_blocks_of_a_server_are_no_json(name: str, shown: object, tmp_path: Path) -> None:
    lines = Lines(A)
    lines.output(lines.call(name, path="/w"), BLOCKS)
    (part,) = tools(read_one(lines, tmp_path).messages)
    assert part.data["output"] == shown


@pytest.mark.parametrize("head", [
    "Exit code: 3\nWall time: 1.5 seconds\nOutput:\n",
    "Exit code: 3\nWall time: 1.5 seconds\nTotal output lines: 300\nOutput:\n",
    "Chunk ID: a\nWall time: 1.5000 seconds\nProcess exited with code 3\n"
    "Original token count: 9\nOutput:\n",
])
def test_what_an_outputs_head_tells_is_shown_beside_it(head: str, tmp_path: Path) -> None:
    lines = Lines(A)
    lines.output(lines.call("shell", command=["x"]), f"{head}one\ntwo")
    (part,) = tools(read_one(lines, tmp_path).messages)
    assert (extra(part)["exit_code"], extra(part)["duration_ms"]) == (3, 1500)
    told = describe(part.data)
    assert (told.body, told.word, told.milliseconds) == ("one\ntwo", "exit 3", 1500)


def test_an_output_without_its_call_is_text_too(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.user("go")
    lines.output("gone", json.dumps({"output": "a\nb", "metadata": {"exit_code": 0}}))
    (part,) = read_one(lines, tmp_path).messages[-1].parts
    assert (part.type, part.data["data"]["text"]) == ("data-result", "a\nb")


def test_outputs_without_an_id_are_of_the_open_calls_in_their_order(tmp_path: Path) -> None:
    lines = Lines(A)
    for command in ("one", "two"):
        lines.item("function_call", name="shell", arguments=json.dumps({"command": [command]}))
    for output in ("1", "2"):
        lines.item("function_call_output", output=output)
    parts = tools(read_one(lines, tmp_path).messages)
    assert [(part.data["input"]["command"], part.data["output"]) for part in parts] == [
        (["one"], "1"), (["two"], "2"),
    ]  # fmt: skip


OLD = "3b5a0b9e-6f0e-4a59-9d58-0e9d5c1f0a11"


def old_file(home: Path, items: list[object]) -> Path:
    session = {"timestamp": "2025-05-07T10:00:00.000Z", "id": OLD, "instructions": "be kind"}
    path = home / "sessions" / f"rollout-2025-05-07-{OLD}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"session": session, "items": items}, indent=2))
    return path


ITEMS: list[object] = [
    {"role": "user", "type": "message",
     "content": [{"type": "input_text", "text": "what is here"}]},
    {"id": "f", "type": "function_call", "name": "shell", "call_id": "c", "status": "completed",
     "arguments": '{"command":["ls"]}'},
    {"type": "function_call_output", "call_id": "c",
     "output": '{"output":"a\\n","metadata":{"exit_code":0,"duration_seconds":0}}'},
    {"id": "m", "type": "message", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "one file"}]},
]  # fmt: skip


def test_a_rollout_of_early_2025_is_read(tmp_path: Path) -> None:
    path = old_file(tmp_path, ITEMS)
    drafts, problems = read(tmp_path)
    assert problems == []
    draft = drafts[OLD]
    assert draft.title == "what is here" and draft.path == str(path)
    assert [said(message) for message in draft.messages] == [
        "what is here",
        "tool-shell",
        "one file",
    ]
    (part,) = tools(draft.messages)
    assert (part.data["output"], part.data["input"]) == ("a\n", {"command": ["ls"]})
    assert draft.created_at == draft.messages[0].created_at == 1746612000000
    grown.check_records(draft)
    for target in (path, tmp_path, tmp_path / "sessions"):
        assert recognised(target, [CodexSource()]) is not None


def test_a_rollout_of_early_2025_that_is_written_anew(tmp_path: Path) -> None:
    old_file(tmp_path, ITEMS[:1])
    source = CodexSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    assert len(follower.read(unit).sessions[0].messages) == 1
    path = old_file(tmp_path, ITEMS)
    (unit,) = source.units_at(tmp_path, [str(path)]) or []
    assert len(follower.read(unit).sessions[0].messages) == 3
    path.write_text(path.read_text()[:-40])
    _, problems = read(tmp_path)
    assert [(problem.path, problem.line) for problem in problems] == [(str(path), 0)]
