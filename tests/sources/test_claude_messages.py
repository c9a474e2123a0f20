"""What rows become: messages, parts, tool states, usage, events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.conversation.outcomes import outcome_of
from tests.sources.claude_rows import START, File, call, extra, read, read_one, said, shape, tool


def test_rows_of_one_api_message_are_one_message(tmp_path: Path) -> None:
    file = File()
    file.user("hello", permissionMode="plan")
    file.assistant(
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        "first",
        tool("t1", command="ls"),
        id="msg_1",
        effort="high",
        requestId="req_1",
        thinkingDurationMs=1200,
    )
    file.result("t1", "a b", {"stdout": "a b", "stderr": "", "interrupted": False})
    draft = read_one(file, tmp_path)
    user, answer = draft.messages
    assert user.metadata["origin"] == "human"
    assert user.metadata["backscroll"] == {"permission_mode": "plan"}
    assert [part.type for part in answer.parts] == ["reasoning", "text", "tool-Bash"]
    assert answer.parts[0].data == {
        "type": "reasoning",
        "text": "hm",
        "state": "done",
        "providerMetadata": {
            "anthropic": {"signature": "sig"},
            "backscroll": {"duration_ms": 1200},
        },
    }
    assert answer.source_id == "msg_1"
    assert (answer.created_at, answer.updated_at) == (START + 2000, START + 5000)
    assert answer.metadata["model"] == {"provider_id": "anthropic", "model_id": "claude-opus-5-5"}
    assert answer.metadata["backscroll"] == {"request_id": "req_1", "effort": "high"}
    part = answer.parts[2]
    assert part.data == {
        "type": "tool-Bash",
        "toolCallId": "t1",
        "state": "output-available",
        "input": {"command": "ls"},
        "output": "a b",
        "resultProviderMetadata": {
            "backscroll": {
                "status": "ok",
                "duration_ms": 1000,
                "exit_code": 0,
                "structured": {"stdout": "a b", "stderr": "", "interrupted": False},
            }
        },
    }
    assert (part.created_at, part.updated_at) == (START + 4000, START + 5000)
    assert part.records == (3, 4)
    assert draft.model == {
        "provider_id": "anthropic",
        "model_id": "claude-opus-5-5",
        "variant": "high",
    }


def test_message_of_old_versions_has_all_blocks_in_one_row(tmp_path: Path) -> None:
    file = File(version="0.2.126")
    file.user("hi")
    file.row(
        "assistant",
        costUSD=0.25,
        durationMs=900,
        message={
            "id": "msg_1",
            "role": "assistant",
            "model": "claude-3-7",
            "content": [{"type": "text", "text": "a"}, tool("t1"), tool("t2")],
        },
    )
    file.result("t2", "two")
    file.result("t1", "one")
    draft = read_one(file, tmp_path)
    answer = draft.messages[1]
    assert [part.data.get("output") for part in answer.parts] == [None, "one", "two"]
    assert answer.metadata["backscroll"] == {"cost_usd": 0.25, "duration_ms": 900}
    assert "usage" not in answer.metadata


def test_usage_counts_once_with_the_largest_output(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    details = {"thinking_tokens": 30}
    file.assistant("a", id="msg_1", output=2)
    file.assistant(
        "b",
        id="msg_1",
        usage={
            "input_tokens": 5,
            "output_tokens": 90,
            "output_tokens_details": details,
            "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 8,
        },
    )
    file.assistant("c", id="msg_1", output=3)
    draft = read_one(file, tmp_path)
    assert draft.messages[1].metadata["usage"] == {
        "input": 5,
        "output": 60,
        "reasoning": 30,
        "cache_read": 7,
        "cache_write": 8,
    }


def test_a_gateway_that_gives_every_answer_one_id(tmp_path: Path) -> None:
    file = File()
    file.user("one")
    file.assistant("first", tool("call_1"), id="msg_same", output=3)
    file.result("call_1")
    file.assistant("still first", id="msg_same", output=4)
    file.user("two")
    second = file.assistant("second", id="msg_same", output=5)
    draft = read_one(file, tmp_path)
    assert [message.role for message in draft.messages] == ["user", "assistant"] * 2
    assert [len(message.parts) for message in draft.messages] == [1, 3, 1, 1]
    assert draft.messages[3].source_id == second
    assert [m.metadata["usage"]["output"] for m in draft.messages[1::2]] == [4, 5]


def test_a_prompt_between_the_rows_of_one_answer(tmp_path: Path) -> None:
    file = File()
    file.user("one")
    file.assistant("first", id="msg_1", requestId="req_1", output=3)
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": "meanwhile"}
    file.row("attachment", attachment=queued)
    file.assistant("second", id="msg_1", requestId="req_1", output=20)
    file.user("two")
    file.assistant("of a gateway", id="msg_1", requestId="req_2", output=7)
    draft = read_one(file, tmp_path)
    assert shape(draft) == [
        ("user", "one"),
        ("assistant", "first|second"),
        ("user", "meanwhile"),
        ("user", "two"),
        ("assistant", "of a gateway"),
    ]
    usage = [m.metadata["usage"]["output"] for m in draft.messages if m.role == "assistant"]
    assert usage == [20, 7]


def test_parallel_results_that_hang_off_their_own_calls(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    one = file.assistant(tool("t1"), id="msg_1")
    two = file.assistant(tool("t2"), id="msg_1")
    file.result("t2", "two", parent=two)
    last = file.result("t1", "one", parent=one)
    note = file.user("an image", isMeta=True, parent="1111-row-4")
    file.assistant("done", id="msg_2", parent=last)
    draft = read_one(file, tmp_path)
    assert shape(draft) == [
        ("user", "hi"),
        ("assistant", "tool-Bash|tool-Bash"),
        ("user", "an image"),
        ("assistant", "done"),
    ]
    assert [call(draft, name).data["output"] for name in ("t1", "t2")] == ["one", "two"]
    assert draft.messages[2].source_id == note


REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


@pytest.mark.parametrize(
    ("fields", "status", "state"),
    [
        ({"content": "ok"}, "ok", "output-available"),
        ({"content": "Exit code 3\n2", "is_error": True}, "error", "output-error"),
        (
            {
                "content": REJECTED,
                "is_error": True,
                "toolDenialKind": "user-rejected",
                "toolDenialBeforeRun": True,
                "structured": "User rejected tool use",
            },
            "denied",
            "output-denied",
        ),
        (
            {"content": REJECTED, "is_error": True, "toolDenialKind": "user-rejected"},
            "interrupted",
            "output-error",
        ),
        (
            {"content": REJECTED, "is_error": True, "structured": "User rejected tool use"},
            "denied",
            "output-denied",
        ),
        (
            {"content": "Permission to use Bash with x has been denied.", "is_error": True},
            "denied",
            "output-denied",
        ),
        (
            {"content": "[Request interrupted by user for tool use]", "is_error": True},
            "interrupted",
            "output-error",
        ),
        (
            {
                "content": "stopped",
                "is_error": True,
                "permissionDecision": {"decision": "reject", "source": "hook"},
            },
            "denied",
            "output-denied",
        ),
    ],
)
def test_status_of_a_call(fields: dict[str, Any], status: str, state: str, tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    file.assistant(tool("t1"), id="msg_1")
    file.result("t1", **fields)
    part = call(read_one(file, tmp_path), "t1")
    assert (extra(part)["status"], part.tool_state, part.data["state"]) == (status, state, state)
    if state == "output-denied":
        assert part.data["approval"]["approved"] is False
        assert part.data["approval"]["reason"] == fields["content"]
    elif state == "output-error":
        assert part.data["errorText"] == fields["content"]


def test_call_without_result_is_left_open(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    file.assistant(tool("t1", command="sleep 100"), id="msg_1")
    part = call(read_one(file, tmp_path), "t1")
    assert part.tool_state == "input-available"
    assert "resultProviderMetadata" not in part.data


def test_exit_code_and_structured_results_of_any_shape(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    file.assistant(tool("t1"), tool("t2", "mcp__x__y"), tool("t3", "Read"), id="msg_1")
    file.result("t1", "Exit code 127\nnot found", "Error: Exit code 127\nnot found", is_error=True)
    file.result("t2", [{"type": "text", "text": "m"}], [{"type": "text", "text": "m"}])
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ"}}
    file.result("t3", [image], {"type": "image", "file": {"base64": "QQ", "type": "image/png"}})
    draft = read_one(file, tmp_path)
    assert extra(call(draft, "t1"))["exit_code"] == 127
    assert extra(call(draft, "t1"))["structured"] == "Error: Exit code 127\nnot found"
    assert extra(call(draft, "t2"))["structured"] == [{"type": "text", "text": "m"}]
    assert call(draft, "t2").data["output"] == [{"type": "text", "text": "m"}]
    assert call(draft, "t3").data["output"] == [
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QQ"}
    ]
    assert extra(call(draft, "t3"))["structured"] == {
        "type": "image",
        "file": {"type": "image/png"},
    }


@pytest.mark.parametrize(
    ("state", "told"),
    [("completed", ("ok", "")), ("async_launched", ("ok", "")), ("parked", ("ended", "parked"))],
)
def test_state_of_an_agent_in_its_own_word(
    state: str, told: tuple[str, str], tmp_path: Path
) -> None:
    file = File()
    file.user("hi")
    file.assistant(tool("t1", "Task"), id="msg_1")
    file.result("t1", "done", {"status": state})
    found = outcome_of(call(read_one(file, tmp_path), "t1").data)
    assert (found.status, found.word) == told


def test_result_without_its_call_is_shown(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    file.result("lost", "42")
    file.user("more")
    draft = read_one(file, tmp_path)
    assert shape(draft) == [("user", "hi"), ("system", "data-result"), ("user", "more")]
    assert draft.messages[1].parts[0].data["data"]["text"] == "42"


def test_result_that_stands_before_its_call(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    file.result("t1", "early")
    file.assistant(tool("t1"), id="msg_1")
    draft = read_one(file, tmp_path)
    assert call(draft, "t1").data["output"] == "early"
    assert [message.role for message in draft.messages] == ["user", "assistant"]


def test_images_and_documents_of_a_prompt(tmp_path: Path) -> None:
    file = File()
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "UEQ"}
    image = {"type": "base64", "media_type": "image/jpeg", "data": "SlA"}
    file.user(
        [
            {"type": "text", "text": "look"},
            {"type": "image", "source": image},
            {"type": "document", "title": "a.pdf", "source": pdf},
        ]
    )
    parts = read_one(file, tmp_path).messages[0].parts
    assert [part.data for part in parts[1:]] == [
        {"type": "file", "mediaType": "image/jpeg", "url": "data:image/jpeg;base64,SlA"},
        {
            "type": "file",
            "mediaType": "application/pdf",
            "url": "data:application/pdf;base64,UEQ",
            "filename": "a.pdf",
        },
    ]


@pytest.mark.parametrize(
    ("text", "fields", "origin"),
    [
        ("words", {}, "human"),
        ("words", {"origin": {"kind": "human"}}, "human"),
        ("words", {"isMeta": True}, "meta"),
        ("<command-name>/init</command-name>", {}, "command"),
        ("<local-command-stdout>x</local-command-stdout>", {}, "command"),
        ("<bash-input>ls</bash-input>", {}, "shell"),
        ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", {}, "shell"),
        ("<local-command-caveat>c</local-command-caveat>", {}, "meta"),
        ("<task-notification>done</task-notification>", {}, "notification"),
        ("report", {"origin": {"kind": "task-notification"}}, "notification"),
        ("[Request interrupted by user]", {}, "meta"),
        ("<b>bold</b>", {}, "human"),
        ('<teammate-message teammate_id="a">\nhi</teammate-message>', {}, "notification"),
        ("<ide_opened_file>a.md</ide_opened_file>", {}, "meta"),
        ("<ide_selection>x\ny</ide_selection>\n<system-reminder>r</system-reminder>", {}, "meta"),
        ("<ide_opened_file>a.md</ide_opened_file>\nfix it", {}, "human"),
    ],
)
def test_origin(text: str, fields: dict[str, Any], origin: str, tmp_path: Path) -> None:
    file = File()
    file.user(text, **fields)
    assert read_one(file, tmp_path).messages[0].metadata["origin"] == origin


def test_commands_and_shell_lines_are_named(tmp_path: Path) -> None:
    file = File()
    file.user("<command-name>/init</command-name>\n<command-args>now</command-args>")
    file.user("<bash-input>ls -l</bash-input>")
    draft = read_one(file, tmp_path)
    first, second = (message.metadata["backscroll"] for message in draft.messages)
    assert first == {"command": {"name": "/init", "args": "now"}}
    assert second == {"shell": "ls -l"}
    assert draft.title == "/init now"


def test_local_commands_are_system_messages(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    for content in (
        "<command-name>/rename</command-name><command-args>x</command-args>",
        "<local-command-stdout>done</local-command-stdout>",
    ):
        file.row("system", subtype="local_command", content=content)
    draft = read_one(file, tmp_path)
    assert [(m.role, m.metadata.get("backscroll")) for m in draft.messages[1:]] == [
        ("system", {"command": {"name": "/rename", "args": "x"}}),
        ("system", {"output": True}),
    ]


def test_queued_prompt_is_a_user_message(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant(tool("t1"), id="msg_1")
    file.result("t1")
    queued = {"type": "queued_command", "prompt": "and that too", "commandMode": "prompt"}
    file.row("attachment", attachment={**queued, "origin": {"kind": "human"}})
    file.row("attachment", attachment={**queued, "commandMode": "task-notification"})
    file.assistant("ok", id="msg_2")
    draft = read_one(file, tmp_path)
    assert shape(draft)[2] == ("user", "and that too")
    assert [m.metadata.get("origin") for m in draft.messages] == [
        "human",
        None,
        "human",
        "notification",
        None,
    ]


def test_errors_and_retries(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.row(
        "system",
        subtype="api_error",
        level="error",
        error={"status": 529, "message": "overloaded"},
        retryInMs=500,
        retryAttempt=1,
        maxRetries=10,
    )
    file.assistant(
        "API Error: 529 overloaded",
        id="5f0c",
        model="<synthetic>",
        isApiErrorMessage=True,
        apiErrorStatus=529,
        error="server_error",
        usage={"input_tokens": 0, "output_tokens": 0},
    )
    draft = read_one(file, tmp_path)
    assert draft.messages[1].parts[0].data == {
        "type": "data-retry",
        "data": {
            "message": "overloaded",
            "status": 529,
            "delay_ms": 500,
            "attempt": 1,
            "max_attempts": 10,
        },
    }
    failed = draft.messages[2]
    assert failed.parts[0].data == {
        "type": "data-error",
        "data": {
            "message": "API Error: 529 overloaded",
            "status": 529,
            "error_type": "server_error",
        },
    }
    assert "usage" not in failed.metadata and "model" not in failed.metadata
    assert failed.metadata["backscroll"]["synthetic"] is True
    assert draft.model is None


def test_interruption_marks_the_answer(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant("half an ans", id="msg_1", isAbortedMidStream=True)
    file.user(
        [{"type": "text", "text": "[Request interrupted by user]"}],
        interruptedMessageId="msg_1",
    )
    draft = read_one(file, tmp_path)
    assert draft.messages[1].metadata["backscroll"]["aborted_at"] == START + 2000
    assert draft.messages[2].metadata["backscroll"] == {"interrupt": "msg_1"}


def test_system_attachment_and_unknown_rows(tmp_path: Path) -> None:
    file = File()
    file.row("attachment", attachment={"type": "hook_success", "content": "x"})
    file.user("go")
    file.row("attachment", attachment={"type": "environment", "snapshot": {}})
    file.row("attachment", attachment={"type": "hook_blocking_error", "blockingError": "no"})
    file.row("system", subtype="informational", content="blocked by a hook")
    file.row("hologram", colour="blue")
    file.note("from-the-future", value=1)
    file.assistant("hi", id="msg_1")
    file.row("system", subtype="turn_duration", durationMs=4321)
    draft = read_one(file, tmp_path)
    assert shape(draft) == [
        ("user", "go"),
        ("system", "data-event"),
        ("system", "blocked by a hook"),
        ("system", "data-event"),
        ("assistant", "hi"),
    ]
    assert draft.messages[0].records == (0, 2)
    assert draft.messages[1].parts[0].data["data"] == {
        "name": "hook_blocking_error",
        "details": {"blockingError": "no"},
    }
    assert draft.messages[3].parts[0].data["data"] == {
        "name": "hologram",
        "details": {"colour": "blue"},
    }
    assert draft.messages[4].metadata["backscroll"]["turn_duration_ms"] == 4321
    assert len(draft.records) == 9


def test_system_prompt_and_tools(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    schema = {"name": "Bash", "input_schema": {"type": "object"}}
    snapshot = {
        "type": "prompt_snapshot",
        "systemPrompt": ["You are", "helpful"],
        "tools": [{"name": "Bash", "description": "runs", "schema": schema}],
    }
    file.row("attachment", attachment=snapshot)
    file.assistant("hi", id="msg_1")
    draft = read_one(file, tmp_path)
    digest = draft.messages[1].metadata["system_prompt_digest"]
    assert draft.system_prompts == {digest: "You are\n\nhelpful"}
    assert draft.metadata["backscroll"]["tools"] == ["Bash"]
    (catalogue,) = draft.attachments
    assert catalogue.name == "tool-catalogue.json"
    assert b'"description":"runs"' in catalogue.body


def test_notes_tell_about_the_session(tmp_path: Path) -> None:
    file = File()
    file.note("queue-operation", operation="enqueue", content="sent")
    file.note("queue-operation", operation="dequeue")
    file.user("sent", entrypoint="cli")
    file.note("queue-operation", operation="enqueue", content="never sent")
    file.note("cost-state", totalCostUSD=1.5)
    file.note("permission-mode", permissionMode="plan")
    file.note("permission-mode", permissionMode="default")
    draft = read_one(file, tmp_path)
    assert draft.metadata.pop("activity")["state"] == "running"
    assert draft.metadata == {
        "git_branch": "main",
        "version": "2.1.332",
        "backscroll": {
            "entrypoint": "cli",
            "cost": {"usd": 1.5, "from": "cost-state", "totals": {"": 1.5}},
            "permission_mode": "default",
        },
    }
    assert [m.metadata.get("queued_at") for m in draft.messages] == [None, file.at]


def test_project_is_the_first_cwd_and_changes_are_told(tmp_path: Path) -> None:
    file = File(cwd="/one")
    file.user("go")
    file.cwd = "/two"
    file.assistant("there", id="msg_1", gitBranch="topic")
    draft = read_one(file, tmp_path)
    assert draft.workspace_root == "/one"
    assert draft.metadata["git_branch"] == "topic"
    assert draft.messages[1].metadata["backscroll"] == {"git_branch": "topic", "cwd": "/two"}


def test_session_id_is_the_file_name(tmp_path: Path) -> None:
    file = File()
    file.user("go", session_id="other", sessionId="another")
    file.write(tmp_path, "named")
    drafts, _ = read(tmp_path)
    assert list(drafts) == ["named"]
    assert drafts["named"].path == str(tmp_path / "named.jsonl")


def test_redacted_thinking_server_tools_and_unknown_blocks(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant(
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]},
        {"type": "container_upload", "file_id": "f"},
        id="msg_1",
    )
    answer = read_one(file, tmp_path).messages[1]
    assert answer.parts[0].data["providerMetadata"] == {"anthropic": {"redactedData": "xyz"}}
    assert answer.parts[1].data["providerExecuted"] is True
    assert answer.parts[1].data["output"] == [{"url": "u"}]
    assert answer.parts[2].data["data"]["name"] == "container_upload"
    assert said(answer) == "reasoning|tool-web_search|data-event"
