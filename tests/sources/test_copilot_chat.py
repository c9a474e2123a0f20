"""Chats in VS Code: the sample comes out as its EXPECTED.json says; hand-made files beside."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.copilot_chat import CopilotChatSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading

ROOT = DATA / "copilot-chat/User"
EXPECTED = json.loads((ROOT.parent / "EXPECTED.json").read_text())
DRAFTS, PROBLEMS = grown.read_all(CopilotChatSource(), ROOT)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["id"]) for one in EXPECTED["sessions"]]
TITLES = {"custom-title": "custom", "title": "computed", "index": "index", "first-prompt": None}
Expected = dict[str, Any]


def about(message: MessageDraft | SessionDraft) -> Expected:
    found: Expected = message.metadata["backscroll"]
    return found


def is_cut(message: MessageDraft) -> bool:
    return bool(about(message).get("removed"))


def turns(draft: SessionDraft) -> list[list[MessageDraft]]:
    """Each turn of the chat as it is now: its prompt, and what followed."""
    found: list[list[MessageDraft]] = []
    for message in draft.messages:
        if is_cut(message) or "queued_at" in message.metadata:
            continue
        found += [[]] if message.role == "user" else []
        found[-1].append(message)
    return found


def said(messages: list[MessageDraft], kind: str) -> list[str]:
    return [part.data["text"] for one in messages if one.role == "assistant"
            for part in one.parts if part.type == kind]  # fmt: skip


def attachments(message: MessageDraft) -> list[str]:
    return [part.data["filename"] if part.type == "file" else part.data["data"]["details"]["name"]
            for part in message.parts if part.type != "text"]  # fmt: skip


def call(part: PartDraft) -> Expected:
    result = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
    marks = part.data.get("callProviderMetadata", {}).get("backscroll", {})
    found = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
             "status": result.get("status", "no_result")}  # fmt: skip
    found |= {"exit_code": result["exit_code"]} if "exit_code" in result else {}
    return found | {key: marks[key] for key in ("in_subagent", "hidden") if key in marks}


def edited(draft: SessionDraft) -> list[str]:
    return list(dict.fromkeys(
        path for one in draft.messages for part in one.parts
        if part.type == "data-patch"
        for path in part.data["data"]["files"]))  # fmt: skip


def test_just_the_chats_expected() -> None:
    assert PROBLEMS == []
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]}
    indexed: Expected = {}
    for path in ROOT.rglob("state.vscdb"):
        (value,) = (
            sqlite3.connect(f"file:{path}?immutable=1", uri=True)
            .execute("SELECT value FROM ItemTable WHERE key = 'chat.ChatSessionStore.index'")
            .fetchone()
        )
        indexed |= json.loads(value)["entries"]
    for one in EXPECTED["index_only"]:
        assert one["id"] not in DRAFTS
        entry = indexed[one["id"]]
        assert (entry["title"], entry["isExternal"], entry["isEmpty"]) == (
            one["title"], one["external"], one["empty"])  # fmt: skip
    for one in EXPECTED["sessions"]:
        assert (one["id"] in indexed) == one["in_index"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_a_chat_says_of_itself(draft: SessionDraft, expected: Expected) -> None:
    path = Path(draft.path)
    folder = path.parent
    where = (
        "emptyWindow"
        if folder.name == "emptyWindowChatSessions"
        else (f"workspace:{folder.parent.name}")
    )
    assert (where, path.name) == (expected["where"], expected["file"])
    assert draft.workspace_root == expected["workspace"]
    assert about(draft)["format_version"] == expected["schema_version"]
    assert TITLES[draft.title_from or "first-prompt"] == expected["title_from"]
    if expected["title_from"] is None:
        assert draft.title == expected["prompts"][0]
    else:
        assert draft.title == expected["title"]
    assert draft.created_at == expected["created_ms"]
    assert draft.updated_at == (expected["last_activity_ms"] or expected["created_ms"])
    assert about(draft).get("draft") == expected["draft"]
    waiting = [one for one in draft.messages if "queued_at" in one.metadata]
    assert len(waiting) == expected["pending_requests"]
    if "lines" in expected:
        assert len(draft.records) == expected["lines"]
        assert expected["torn_lines"] == 0
    assert all((folder / name).is_file() for name in expected.get("also", ()))


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: Expected) -> None:
    found = turns(draft)
    assert [grown.words(messages[0]) for messages in found] == expected["prompts"]
    assert ["".join(said(messages, "text")) for messages in found] == expected["answers"]
    current = [message for messages in found for message in messages]
    assert said(current, "reasoning") == expected["thinking"]
    assert [call(part) for part in grown.calls(current)] == expected["tool_calls"]
    assert edited(draft) == expected["edited_files"]
    cut = [one.source_id for one in draft.messages if is_cut(one) and one.role == "user"]
    assert cut == expected.get("removed_requests", [])
    assert all("hidden_at" in one.metadata for one in draft.messages if is_cut(one))
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_each_turn(draft: SessionDraft, expected: Expected) -> None:
    contexts, models = [], []
    for messages, one in zip(turns(draft), expected["turns"], strict=True):
        prompt, answer = messages
        assert about(prompt)["turn"] == one["state"]
        assert about(prompt).get("agent") == one["agent"]
        assert prompt.source_id == (one["requestId"] or "0")
        assert ["hidden_at" in message.metadata for message in messages] == [one["hidden"]] * 2
        assert attachments(prompt) == one["attachments"]
        model = answer.metadata.get("model", {}).get("model_id")
        assert model == one["model"]
        models += [model] if model else []
        errors = [part.data["data"]["message"] for part in answer.parts
                  if part.type == "data-error"]  # fmt: skip
        assert errors == ([one["error"]] if "error" in one else [])
        assert ("aborted_at" in about(answer)) == (one["state"] == "cancelled")
        contexts += [about(answer)["context_tokens"]] if "context_tokens" in about(answer) else []
        assert "usage" not in answer.metadata
    assert list(dict.fromkeys(models)) == expected["models"]
    assert contexts == expected["context_tokens_per_turn"]


def test_how_chats_ended() -> None:
    found = {
        name: draft.metadata.get("activity", {}).get("state") for name, draft in DRAFTS.items()
    }
    assert {name[:4]: state for name, state in found.items() if state} == {
        "6ee2": "interrupted", "ec9d": "waiting-input"}  # fmt: skip


def test_calls_have_the_arguments_and_results_of_the_rounds() -> None:
    draft = DRAFTS["520be233-3eea-151a-956c-0c2581c8fa06"]
    read, run, gone = grown.calls(draft.messages)
    assert read.data["input"]["startLine"] == 1
    assert read.data["output"] == "1: Habour\n2: Pier"
    assert run.data["input"]["command"] == "grep -c stop stops.txt"
    assert run.data["errorText"] == "grep: no match\n"
    assert gone.data["state"] == "output-denied"
    # A cut turn is hidden from when the chat went on.
    assert {one.metadata["hidden_at"] for one in draft.messages if is_cut(one)} == {1795700120000}


# --- hand-made chats ------------------------------------------------------------------------

AT = 1_795_900_000_000
ID = "11111111-2222-4333-8444-555555555555"


def request(number: int, *response: Any, **more: Any) -> Expected:
    return {
        "requestId": f"request_{number}", "timestamp": AT + 1000 * number,
        "message": {"text": f"prompt {number}", "parts": []}, "responseId": f"response_{number}",
        "response": list(response),
        "modelState": {"value": 1, "completedAt": AT + 1000 * number + 500},
        "modelId": "copilot/gpt-5-mini", **more,
    }  # fmt: skip


def chat(*requests: Expected, **more: Any) -> Expected:
    return {"version": 3, "sessionId": ID, "creationDate": AT,
            "responderUsername": "GitHub Copilot", "requests": list(requests), **more}  # fmt: skip


def push(items: list[Any] | None, *path: Any, i: int | None = None) -> Expected:
    found: Expected = {"kind": 2, "k": list(path or ("requests",))}
    found |= {"v": items} if items is not None else {}
    return found | ({"i": i} if i is not None else {})


def put(value: Any, *path: Any) -> Expected:
    return {"kind": 1, "k": list(path), "v": value}


def log(root: Path, *rows: Expected, name: str = ID) -> Path:
    return grown.write_lines(root / "workspaceStorage/w/chatSessions" / f"{name}.jsonl", rows)


def written(root: Path, *rows: Expected) -> SessionDraft:
    log(root, *rows)
    return grown.only(CopilotChatSource(), root)


def invoked(call_id: str = "c1", tool: str = "runTests", **more: Any) -> Expected:
    return {"kind": "toolInvocationSerialized", "toolCallId": call_id, "toolId": tool,
            "isConfirmed": {"type": 1}, "isComplete": True, **more}  # fmt: skip


def test_sets_pushes_and_deletes(tmp_path: Path) -> None:
    draft = written(
        tmp_path,
        {"kind": 0, "v": chat(customTitle="old")},
        push([request(1, {"value": "one "})]),
        push([{"value": "two "}, {"value": "three"}], "requests", 0, "response", i=0),
        push([{"value": "!"}], "requests", 0, "response"),
        put("two; ", "requests", 0, "response", 0, "value"),
        push([{"a": 1}], "requests", 0, "followups"),
        {"kind": 3, "k": ["customTitle"]},
        {"kind": 1, "k": ["requests", 0, "modelId"]},
    )
    assert said(draft.messages, "text") == ["two; three!"]
    assert draft.title == "prompt 1"
    assert "model" not in draft.messages[1].metadata


def test_cut_turns_are_hidden_and_come_back(tmp_path: Path) -> None:
    rows = [
        {"kind": 0, "v": chat(request(1), request(2))},
        push(None, i=1), push([request(3)]), push([], i=0), push([request(4)]),
    ]  # fmt: skip
    draft = written(tmp_path, *rows)
    assert grown.prompts(draft.messages) == [f"prompt {number}" for number in (1, 2, 3, 4)]
    assert grown.prompts(grown.visible(draft)) == ["prompt 4"]
    hidden = {one.source_id: one.metadata["hidden_at"] for one in draft.messages
              if one.role == "user" and is_cut(one)}  # fmt: skip
    assert hidden["request_2"] == AT + 3000
    assert hidden["request_1"] == hidden["request_3"] == AT + 4000
    # An undo of the restore brings them back.
    back = written(tmp_path, *rows[:2], push([request(2)]))
    assert grown.prompts(grown.visible(back)) == ["prompt 1", "prompt 2"]
    assert not any(is_cut(one) for one in back.messages)


def test_a_second_whole_state_counts(tmp_path: Path) -> None:
    draft = written(
        tmp_path, {"kind": 0, "v": chat(request(1, {"value": "half"}), request(2))},
        {"kind": 0, "v": chat(request(1, {"value": "whole"}))}, put("Named", "customTitle"),
    )  # fmt: skip
    assert grown.prompts(grown.visible(draft)) == ["prompt 1"]
    assert said(grown.visible(draft), "text") == ["whole"]
    assert (draft.title, draft.title_from) == ("Named", "custom-title")


@pytest.mark.parametrize("row", [
    {"kind": 7}, {"kind": 1, "k": "requests"}, {"kind": 1, "k": ["no", "where"], "v": 1},
    {"kind": 1, "k": ["requests", 9, "response"], "v": []}, {"kind": 0, "v": []},
    {"kind": 2, "k": ["requests"], "v": [], "i": -1}, {"kind": True},
])  # fmt: skip
def test_a_bad_change_costs_only_itself(tmp_path: Path, row: Expected) -> None:
    path = log(tmp_path, {"kind": 0, "v": chat(request(1))}, row, push([request(2)]))
    drafts, (problem,) = grown.read_all(CopilotChatSource(), tmp_path)
    assert grown.prompts(drafts[ID].messages) == ["prompt 1", "prompt 2"]
    assert (problem.path, problem.line) == (str(path), 2)


def test_a_log_that_is_no_chat_any_more_is_a_problem(tmp_path: Path) -> None:
    log(tmp_path, {"kind": 0, "v": chat(request(1))}, put(7, "requests"))
    drafts, (problem,) = grown.read_all(CopilotChatSource(), tmp_path)
    assert drafts == {} and problem.reason == "no chat of VS Code"


def test_an_id_that_is_no_text_costs_nothing(tmp_path: Path) -> None:
    draft = written(tmp_path, {"kind": 0, "v": chat(request(1, requestId=["x"], responseId=3))})
    assert grown.prompts(draft.messages) == ["prompt 1"]


def test_records_of_a_turn_that_grew(tmp_path: Path) -> None:
    grows = [push([{"value": "x" * n}], "requests", 0, "response", i=0) for n in range(1, 6)]
    draft = written(tmp_path, {"kind": 0, "v": chat(request(1))}, *grows)
    prompt, answer = draft.messages
    assert prompt.parts[0].records == (0,)
    assert (answer.parts[0].records, answer.records) == ((0, 5), (1, 2, 3, 4))


def test_a_torn_last_line_waits(tmp_path: Path) -> None:
    path = log(tmp_path, {"kind": 0, "v": chat(request(1))}, push([request(2)]))
    path.write_bytes(path.read_bytes()[:-30])
    drafts, (problem,) = grown.read_all(CopilotChatSource(), tmp_path)
    assert grown.prompts(drafts[ID].messages) == ["prompt 1"]
    assert problem.line == 2


@pytest.mark.parametrize("step", [None, 97])
def test_a_growing_log_is_followed(tmp_path: Path, step: int | None) -> None:
    path = log(tmp_path, {"kind": 0, "v": chat(request(1))}, push([request(2, {"value": "a"})]),
               push([{"value": "ab"}], "requests", 1, "response", i=0), push(None, i=1),
               push([request(3, {"value": "c"})]))  # fmt: skip
    grown.grows_like_a_whole(CopilotChatSource, tmp_path, path, step=step)


def test_a_rewritten_log_keeps_the_turns_it_had(tmp_path: Path) -> None:
    path = log(tmp_path / "User", {"kind": 0, "v": chat(request(1))}, push([request(2)]),
               push(None, i=1))  # fmt: skip
    database = open_database(tmp_path / "library.db", create=True)
    target = Target(CopilotChatSource(), tmp_path / "User")
    Sync(database, Settings(helpers=0)).run([target])
    grown.write_lines(path, [{"kind": 0, "v": chat(request(1), request(3))}])
    Sync(database, Settings(helpers=0)).run([target])
    shown = [
        row[0]
        for row in database.connection.execute(
            "SELECT json_extract(p.data_json, '$.text') FROM chat_messages m JOIN chat_parts p"
            " ON p.message_id = m.id WHERE m.role = 'user'"
            " AND json_extract(m.metadata_json, '$.hidden_at') IS NULL ORDER BY m.created_at, m.id"
        )
    ]
    assert shown == ["prompt 1", "prompt 3"]
    database.close()


@pytest.mark.parametrize(("more", "state", "status"), [
    ({"isConfirmed": {"type": 0}}, "output-denied", "denied"),
    ({"isConfirmed": {"type": 5}}, "output-denied", "denied"),
    ({"isConfirmed": False}, "output-denied", "denied"),
    ({"isConfirmed": None}, "output-denied", "denied"),
    ({"isConfirmed": True}, "output-available", "ok"),
    ({"isConfirmed": {"type": 4}, "isComplete": False}, "input-available", None),
    ({"isConfirmed": None, "isComplete": False}, "approval-requested", None),
    ({"resultDetails": {"input": "{}", "output": "bad", "isError": True}}, "output-error", "error"),
    ({"toolSpecificData": {"kind": "terminal", "commandLine": {"original": "x"},
                           "terminalCommandState": {"exitCode": 0}}}, "output-available", "ok"),
])  # fmt: skip
def test_states_of_calls(tmp_path: Path, more: Expected, state: str, status: str | None) -> None:
    draft = written(tmp_path, {"kind": 0, "v": chat(request(1, invoked(**more)))})
    (part,) = grown.calls(draft.messages)
    assert (part.tool_state, call(part)["status"]) == (state, status or "no_result")


def test_rounds_are_matched_by_id_then_by_tool(tmp_path: Path) -> None:
    rounds = [
        {
            "toolCalls": [
                {
                    "id": f"t{number}__vscode-{number}",
                    "name": name,
                    "arguments": json.dumps({"n": number}),
                }
                for number, name in enumerate(("read_file", "run_in_terminal", "read_file"), 1)
            ]
        }
    ]
    results = {"t3__vscode-3": {"content": [{"value": "three"}]}}
    parts = [invoked("t3", "copilot_readFile"),
             invoked("i", "copilot_readFile", subAgentInvocationId="s"),
             invoked("x", "copilot_readFile"), invoked("y", "run_in_terminal")]  # fmt: skip
    result = {"metadata": {"toolCallRounds": rounds, "toolCallResults": results}}
    draft = written(tmp_path, {"kind": 0, "v": chat(request(1, *parts, result=result))})
    found = grown.calls(draft.messages)
    assert [part.data["input"] for part in found] == [{"n": 3}, {}, {"n": 1}, {"n": 2}]
    assert found[0].data["output"] == "three"


def test_results_made_of_elements_and_results_without_text(tmp_path: Path) -> None:
    leaves = [{"type": 2, "text": "line 1"}, {"type": 2, "text": "line 2", "lineBreakBefore": True}]
    tree = {"node": {"type": 1, "children": [{"type": 1, "children": leaves}, None, {"type": 3}]}}
    rounds = [{"toolCalls": [{"id": "c1", "name": "runTests", "arguments": "{}"},
                             {"id": "c2", "name": "run_in_terminal", "arguments": "{}"}]}]
    results = {"c1": {"content": [{"$mid": 23, "value": tree}, {"value": "and text"}]},
               "c2": {"content": [{"value": {"node": []}}]}}  # fmt: skip
    noted = {"kind": "terminal", "commandLine": {"original": "ls"},
             "terminalCommandOutput": {"text": "out"}}  # fmt: skip
    draft = written(tmp_path, {"kind": 0, "v": chat(request(
        1, invoked("c1"), invoked("c2", "run_in_terminal", toolSpecificData=noted),
        result={"metadata": {"toolCallRounds": rounds, "toolCallResults": results}},
    ))})  # fmt: skip
    outputs = [part.data["output"] for part in grown.calls(draft.messages)]
    assert outputs == ["line 1\nline 2\nand text", "out"]


def test_old_documents(tmp_path: Path) -> None:
    old = {"responderUsername": "x", "sessionId": ID, "creationDate": AT, "requests": [
        {"message": "a", "response": ["b", {"value": "c"}], "isCanceled": True},
        {"message": {"text": "d"},
         "response": [{"kind": "markdownContent", "content": {"value": "e"}}],
         "result": {"errorDetails": {"message": "bad", "code": "c"}}, "isHidden": True},
    ]}  # fmt: skip
    path = tmp_path / "workspaceStorage/no-workspace/chatSessions" / f"{ID}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(old))
    draft = grown.only(CopilotChatSource(), tmp_path)
    assert said(draft.messages, "text") == ["bc", "e"]
    assert [about(one).get("turn") for one in draft.messages] == ["cancelled", None, "failed", None]
    assert grown.prompts(grown.visible(draft)) == ["a"]
    assert draft.names_count and draft.workspace_root is None


def test_the_document_is_read_while_its_log_is_empty(tmp_path: Path) -> None:
    path = log(tmp_path, {"kind": 0, "v": chat(request(1), request(2))})
    path.with_suffix(".json").write_text(json.dumps(chat(request(1))))
    assert len(grown.only(CopilotChatSource(), tmp_path).messages) == 4
    path.write_text("")
    assert len(grown.only(CopilotChatSource(), tmp_path).messages) == 2


def test_a_compaction_and_a_pending_turn(tmp_path: Path) -> None:
    done = {"metadata": {"summaries": [{"toolCallRoundId": "r", "text": "What was done."}]}}
    draft = written(
        tmp_path,
        {
            "kind": 0,
            "v": chat(request(1, {"value": "x"}, result=done), request(2, modelState={"value": 0})),
        },
    )
    prompt, summary, answer, asked = draft.messages
    assert summary.metadata["compaction"] and summary.role == "system"
    assert summary.parts[0].data["data"]["summary"] == "What was done."
    assert asked.role == "user"
    assert draft.metadata["activity"] == {
        "state": "running", "from": "guessed", "since": AT + 2000}  # fmt: skip


def test_other_parts_of_a_response(tmp_path: Path) -> None:
    where = {"$mid": 1, "fsPath": "/w/a b.py", "path": "/w/a b.py", "scheme": "file"}
    remote = {"$mid": 1, "path": "/w/c.py", "scheme": "vscode-remote",
              "external": "vscode-remote://ssh/w/c.py"}  # fmt: skip
    draft = written(
        tmp_path,
        {
            "kind": 0,
            "v": chat(
                request(
                    1,
                    {"kind": "thinking", "value": "", "id": "x"},
                    {"value": "See "},
                    {"kind": "inlineReference", "inlineReference": {"uri": where, "range": {}}},
                    {"value": " and "},
                    {"kind": "inlineReference", "inlineReference": {}, "name": "main"},
                    {"kind": "undoStop", "id": "u"},
                    {"value": "."},
                    {"kind": "notebookEditGroup", "uri": remote, "edits": []},
                    {"kind": "progressMessage", "content": {"value": "Working"}},
                    {"kind": "somethingNew", "x": 1},
                    {"kind": "warning", "content": "careful"},
                )
            ),
        },
    )
    assert said(draft.messages, "text") == ["See `/w/a b.py` and `main`."]
    assert edited(draft) == ["vscode-remote://ssh/w/c.py"]
    events = [part.data["data"] for part in draft.messages[1].parts if part.type == "data-event"]
    assert [(one["name"], one.get("details")) for one in events] == [
        ("progressMessage", "Working"),
        ("somethingNew", {"x": 1}),
        ("warning", "careful"),
    ]


@pytest.mark.parametrize("state", [
    {"version": 2, "linearHistory": [{"requestId": "request_1", "stops": [{"entries": [
        {"resource": "file:///w/a.py", "originalHash": "1", "currentHash": "2"},
        {"resource": "file:///w/same.py", "originalHash": "1", "currentHash": "1"}]}]}]},
    {"version": 5, "timeline": {"operations": [
        {"type": "textEdit", "uri": {"fsPath": "/w/a.py", "scheme": "file"},
         "requestId": "request_1"}]}},
])  # fmt: skip
def test_files_of_editing_sessions(tmp_path: Path, state: Expected) -> None:
    log(tmp_path, {"kind": 0, "v": chat(request(1), request(2))})
    beside = tmp_path / "workspaceStorage/w/chatEditingSessions" / ID / "state.json"
    beside.parent.mkdir(parents=True)
    beside.write_text(json.dumps(state))
    draft = grown.only(CopilotChatSource(), tmp_path)
    assert edited(draft) == ["/w/a.py"]
    assert "data-patch" in [part.type for part in draft.messages[1].parts]


@pytest.mark.parametrize(("place", "expected"), [
    ({"folder": "file:///home/mira/my%20app"}, "/home/mira/my app"),
    ({"folder": "file:///c%3A/work"}, "c:/work"),
    ({"folder": "vscode-remote://ssh-remote%2Bbox/srv"}, "vscode-remote://ssh-remote%2Bbox/srv"),
    ({"workspace": "file:///w/x.code-workspace"}, "/w/x.code-workspace"), ({}, None),
])  # fmt: skip
def test_workspaces(tmp_path: Path, place: Expected, expected: str | None) -> None:
    path = log(tmp_path, {"kind": 0, "v": chat(request(1))})
    (path.parent.parent / "workspace.json").write_text(json.dumps(place))
    assert grown.only(CopilotChatSource(), tmp_path).workspace_root == expected


def test_the_branch_of_the_repository(tmp_path: Path) -> None:
    draft = written(tmp_path, {"kind": 0, "v": chat(request(1), repoData={"localBranch": "main"})})
    assert draft.metadata["git_branch"] == "main"


def test_a_copy_for_another_window_is_listed_once(tmp_path: Path) -> None:
    path = log(tmp_path, {"kind": 0, "v": chat(request(1))})
    copy = tmp_path / "globalStorage/transferredChatSessions" / f"{ID}.json"
    copy.parent.mkdir(parents=True)
    copy.write_text(json.dumps(chat(request(1))))
    assert grown.only(CopilotChatSource(), tmp_path).path == str(path)
    path.unlink()
    assert grown.only(CopilotChatSource(), tmp_path).path == str(copy)


def test_what_moves_brings_its_chats(tmp_path: Path) -> None:
    root = tmp_path / "User"
    shutil.copytree(ROOT, root)
    source = CopilotChatSource()
    assert len(list(source.units(root, []))) == len(DRAFTS)
    one = "520be233-3eea-151a-956c-0c2581c8fa06"
    folder = root / "workspaceStorage/3ce812a2d36dd47658d0b9ad6ee403df"
    key = f"workspaceStorage/{folder.name}/chatSessions/{one}"
    for path in (folder / f"chatSessions/{one}.jsonl",
                 folder / f"chatEditingSessions/{one}/state.json"):  # fmt: skip
        assert [unit.key for unit in source.units_at(root, [str(path)]) or []] == [key]
    index = folder / "state.vscdb"
    assert source.units_at(root, [str(index)]) == []
    told = {"version": 1, "entries": {one: {"sessionId": one, "title": "Other"}}}
    database = sqlite3.connect(index)
    database.execute("UPDATE ItemTable SET value = ? WHERE key LIKE 'chat.%'", (json.dumps(told),))
    database.commit()
    database.close()
    os.utime(index, ns=(1, 1))
    assert key in [unit.key for unit in source.units_at(root, [str(index)]) or []]
    assert source.units_at(root, [str(folder / "other.txt")]) == []
    assert set(source.watch_paths(root)) >= {
        root / "workspaceStorage", root / "globalStorage/emptyWindowChatSessions"}  # fmt: skip


# --- places ---------------------------------------------------------------------------------


def test_where_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = CopilotChatSource()
    assert source.default_roots({}, tmp_path) == [tmp_path / ".config/Code/User"]
    for platform, variables, user, inner in (
        ("linux", {}, ".config/VSCodium/User", "workspaceStorage/x/chatSessions"),
        ("linux", {}, ".vscode-server/data/User", "globalStorage/emptyWindowChatSessions"),
        (
            "darwin",
            {},
            "Library/Application Support/Code - Insiders/User",
            "profiles/p/globalStorage/emptyWindowChatSessions",
        ),
        (
            "win32",
            {"APPDATA": str(tmp_path / "Roaming")},
            "Roaming/Cursor/User",
            "workspaceStorage/x/chatSessions",
        ),
    ):
        monkeypatch.setattr("store.sources.base.vscode.sys.platform", platform)
        (tmp_path / user / inner).mkdir(parents=True)
        assert tmp_path / user in source.default_roots(variables, tmp_path)


def test_roots_are_known_by_what_they_hold() -> None:
    source = CopilotChatSource()
    workspace = ROOT / "workspaceStorage/3ce812a2d36dd47658d0b9ad6ee403df"
    chats = workspace / "chatSessions"
    alone = chats / "0baeae35-e66e-cae0-c3a3-a6b4d37b200e.jsonl"
    for path, root, count in (
        (ROOT.parent, ROOT, 8), (ROOT, ROOT, 8), (workspace, workspace, 5), (chats, chats, 5),
        (workspace.parent, workspace.parent, 7), (alone, alone, 1),
    ):  # fmt: skip
        assert source.recognise(path) == root
        drafts, problems = grown.read_all(source, root)
        assert (len(drafts), problems) == (count, [])
    assert source.recognise(ROOT.parent / "EXPECTED.json") is None
    assert source.recognise(workspace / "workspace.json") is None


def test_only_the_index_is_selected(tmp_path: Path) -> None:
    root = tmp_path / "User"
    shutil.copytree(ROOT, root)
    for path in root.rglob("state.vscdb"):
        database = sqlite3.connect(path)
        database.execute("INSERT INTO ItemTable VALUES ('secret://x', 'sk-secret')")
        database.commit()
        database.close()
    found = reading(Target(CopilotChatSource(), root))
    asked = [sql for sql in found.sql if "ItemTable" in sql]
    assert asked and all("'chat.ChatSessionStore.index'" in sql for sql in asked)
    assert found.names() <= {"state.vscdb", "state.json", "workspace.json"} | {
        path.name for path in root.rglob("chatSessions/*")} | {
        path.name for path in root.rglob("emptyWindowChatSessions/*")} | {
        name for name in found.names() if "state.vscdb" in name}  # fmt: skip
