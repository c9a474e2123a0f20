"""What rows of opencode's database become; stores made by hand where the samples lack it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import PartDraft, SessionDraft
from tests.sources.opencode_rows import Rows, finish, opencode_id, read_store, text, tool

SESSION = "ses_one"


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    made = Rows(tmp_path / "opencode.db")
    made.session(SESSION)
    return made


def read(rows: Rows, session_id: str = SESSION) -> SessionDraft:
    drafts, problems = read_store(rows.path)
    assert problems == []
    return drafts[session_id]


def only_part(rows: Rows, data: dict[str, Any]) -> PartDraft:
    rows.message(SESSION, "assistant", data)
    (part,) = read(rows).messages[-1].parts
    return part


def own(part: PartDraft) -> dict[str, Any]:
    extra = part.data["resultProviderMetadata"]["backscroll"]
    assert isinstance(extra, dict)
    return extra


def test_a_call_is_streamed_then_runs_then_is_done(rows: Rows) -> None:
    time = {"start": 1_700_000_001_000, "end": 1_700_000_003_500}
    rows.message(
        SESSION, "assistant",
        tool("c1", status="pending", input={}, raw='{"comm'),
        tool("c2", status="running", input={"command": "ls"}, time={"start": time["start"]}),
        tool("c3", status="completed", input={"command": "ls"}, output="a\n", title="ls",
             metadata={"output": "a\n", "exit": 0}, time=time),
        tool("c4", status="error", input={}, error="no such file", time=time),
    )  # fmt: skip
    parts = read(rows).messages[0].parts
    assert [part.tool_state for part in parts] == [
        "input-streaming", "input-available", "output-available", "output-error",
    ]  # fmt: skip
    assert parts[0].data["rawInput"] == '{"comm'
    assert parts[2].data["output"] == "a\n"
    assert own(parts[2]) == {
        "status": "ok", "duration_ms": 2500, "exit_code": 0, "title": "ls",
        "structured": {"exit": 0},
    }  # fmt: skip
    assert (parts[2].created_at, parts[2].updated_at) == (time["start"], time["end"])
    assert parts[3].data["errorText"] == "no such file" and own(parts[3])["status"] == "error"


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ({"status": "completed", "output": "x", "metadata": {"exit": 3}}, "error"),
        ({"status": "completed", "output": "x", "metadata": {"exit": 0}}, "ok"),
        ({"status": "completed", "output": "x\n<bash_metadata>\nUser aborted the command",
          "metadata": {"exit": None}}, "interrupted"),
        ({"status": "error", "error": "The user rejected permission to use this tool"}, "denied"),
        ({"status": "error", "error": "Tool execution aborted"}, "interrupted"),
    ],
)  # fmt: skip
def test_what_really_happened_stands_beside_the_programs_word(
    rows: Rows, state: dict[str, Any], status: str
) -> None:
    part = only_part(rows, tool("c", **state))
    assert own(part)["status"] == status
    word = {"completed": "output-available", "error": "output-error"}[state["status"]]
    assert part.tool_state == word


def test_a_tool_that_the_model_made_up_failed(rows: Rows) -> None:
    part = only_part(rows, tool("c", "invalid", status="completed", input={}, output="no"))
    assert (part.tool_state, own(part)["status"]) == ("output-available", "error")


def test_files_that_a_call_brought_stand_in_its_output(rows: Rows) -> None:
    image = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="}
    part = only_part(rows, tool("c", "read", status="completed", output="ok", attachments=[image]))
    assert part.data["output"] == [
        {"type": "text", "text": "ok"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA=="},
    ]


def test_output_that_was_cut_is_brought_along_whole(rows: Rows) -> None:
    folder = rows.path.parent / "tool-output"
    folder.mkdir()
    (folder / "tool_1").write_text("the whole output")
    (folder / "other").write_text("not ours")
    metadata = {"truncated": True, "outputPath": str(folder / "tool_1")}
    done = tool("c1", status="completed", output="the whole…", metadata=metadata)
    odd = tool("c2", status="completed", output="", metadata={"outputPath": "/x/../other"})
    rows.message(SESSION, "assistant", done, odd)
    draft = read(rows)
    assert own(draft.messages[0].parts[0])["attachment"] == "tool_1"
    assert [(file.name, file.body) for file in draft.attachments] == [
        ("tool_1", b"the whole output")
    ]


def test_usage_is_the_sum_of_the_steps_and_a_messages_own_only_without_steps(rows: Rows) -> None:
    last = {"input": 5, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    two = [finish(input=7, output=1), text("again"), finish(input=5, output=2)]
    rows.message(SESSION, "assistant", *two, tokens=last, cost=1.0)
    rows.message(SESSION, "assistant", text("old"), tokens=last, cost=0.25)
    rows.message(SESSION, "assistant", text("none"), tokens={"input": 0}, cost=0)
    metadata = [message.metadata for message in read(rows).messages]
    assert metadata[0]["usage"] == {
        "input": 12, "output": 3, "reasoning": 0, "cache_read": 0, "cache_write": 0,
    }  # fmt: skip
    assert metadata[0]["cost_usd"] == 1.0
    assert (metadata[1]["usage"]["input"], metadata[1]["cost_usd"]) == (5, 0.25)
    assert "usage" not in metadata[2] and "cost_usd" not in metadata[2]


def test_errors_aborts_and_retries(rows: Rows) -> None:
    api = {"name": "APIError", "data": {"message": "overloaded", "statusCode": 529,
                                        "isRetryable": True}}  # fmt: skip
    retry = {"type": "retry", "attempt": 2, "error": api, "time": {"created": 1}}
    rows.message(SESSION, "assistant", retry, error=api)
    aborted = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
    rows.message(SESSION, "assistant", text("Wo"), error=aborted,
                 time={"created": rows.now, "completed": rows.now + 50})  # fmt: skip
    failed, stopped = read(rows).messages
    assert failed.parts[0].data["data"] == {
        "attempt": 2, "message": "overloaded", "status": 529, "name": "APIError",
    }  # fmt: skip
    assert failed.parts[0].type == "data-retry"
    assert failed.parts[1].data == {
        "type": "data-error",
        "data": {"name": "APIError", "message": "overloaded", "status": 529, "retryable": True},
    }
    assert stopped.metadata["backscroll"]["error"] == "MessageAbortedError"
    assert stopped.metadata["backscroll"]["aborted_at"] > stopped.created_at


def test_reasoning_patches_snapshots_agents_files_and_what_is_unknown(rows: Rows) -> None:
    rows.message(
        SESSION, "assistant",
        {"type": "step-start", "snapshot": "abc"},
        {"type": "reasoning", "text": "hm", "time": {"start": 1_700_000_000_100,
         "end": 1_700_000_000_300}, "metadata": {"anthropic": {"signature": "s"}}},
        {"type": "patch", "hash": "abc", "files": ["/a"]},
        {"type": "snapshot", "snapshot": "def"},
        {"type": "hologram", "depth": 3},
    )  # fmt: skip
    rows.message(
        SESSION, "user", text("see"),
        {"type": "file", "mime": "text/plain", "filename": "a", "url": "file:///a"},
        {"type": "agent", "name": "review", "source": {"value": "@review"}},
    )  # fmt: skip
    answer, prompt = read(rows).messages
    assert answer.metadata["snapshot_id"] == "abc"
    assert [part.type for part in answer.parts] == [
        "step-start", "reasoning", "data-patch", "data-snapshot", "data-event",
    ]  # fmt: skip
    assert answer.parts[1].data["providerMetadata"] == {
        "anthropic": {"signature": "s"}, "backscroll": {"duration_ms": 200},
    }  # fmt: skip
    assert answer.parts[4].data["data"] == {"name": "hologram", "details": {"depth": 3}}
    assert [part.type for part in prompt.parts] == ["text", "file", "data-agent"]
    assert prompt.metadata["origin"] == "human"


def test_who_wrote_a_user_message(rows: Rows) -> None:
    shell = "The following tool was executed by the user"
    subtask = {"type": "subtask", "agent": "general", "prompt": "p", "description": "d"}
    rows.message(SESSION, "user", text("hi"))
    rows.message(SESSION, "user", text(shell, synthetic=True))
    rows.message(SESSION, "user", text("Summarize the task", synthetic=True))
    rows.message(SESSION, "user", subtask)
    rows.message(SESSION, "user", text("Called the Read tool", synthetic=True), text("hi"))
    origins = [message.metadata["origin"] for message in read(rows).messages]
    assert origins == ["human", "shell", "meta", "command", "human"]


def test_model_and_agent_of_each_message(rows: Rows) -> None:
    model = {"providerID": "q", "modelID": "n", "variant": "high"}
    rows.message(SESSION, "user", text("a"), agent="plan", model=model, system="Be brief.")
    rows.message(SESSION, "assistant", text("b"), mode="plan", finish="stop", variant="high")
    draft = read(rows)
    asked, answered = draft.messages
    assert asked.metadata["model"] == {"provider_id": "q", "model_id": "n", "variant": "high"}
    assert asked.metadata["agent"] == "plan"
    digest = asked.metadata["system_prompt_digest"]
    assert draft.system_prompts == {digest: "Be brief."}
    assert answered.metadata["model"] == {"provider_id": "p", "model_id": "m", "variant": "high"}
    assert answered.metadata["backscroll"]["finish_reason"] == "stop"
    assert draft.model == answered.metadata["model"]


def test_a_revert_into_a_message_hides_its_end_and_what_follows(rows: Rows) -> None:
    rows.message(SESSION, "user", text("one"))
    cut = rows.message(SESSION, "assistant", text("kept"))
    part = rows.part(SESSION, cut, text("gone"))
    rows.message(SESSION, "user", text("two"))
    rows.connection.execute(
        "UPDATE session SET revert = json_object('messageID', ?, 'partID', ?)", (cut, part)
    )
    messages = read(rows).messages
    assert [(m.source_id == f"{cut}:reverted", "hidden_at" in m.metadata) for m in messages] == [
        (False, False), (False, False), (True, True), (False, True),
    ]  # fmt: skip
    assert [[p.data["text"] for p in m.parts] for m in messages] == [
        ["one"], ["kept"], ["gone"], ["two"],
    ]  # fmt: skip
    assert messages[2].metadata["hidden_at"] == messages[3].metadata["hidden_at"]


def test_a_revert_is_by_place_where_ids_have_wrapped(tmp_path: Path) -> None:
    wrap = 1_786_706_395_136
    rows = Rows(tmp_path / "opencode.db", now=wrap - 100)
    rows.session(SESSION)
    first = rows.message(SESSION, "user", text("one"), at=wrap - 2)
    second = rows.message(SESSION, "user", text("two"), at=wrap + 2)
    third = rows.message(SESSION, "user", text("three"), at=wrap + 4)
    assert first > third > second
    rows.connection.execute("UPDATE session SET revert = json_object('messageID', ?)", (second,))
    messages = read(rows).messages
    assert [m.source_id for m in messages] == [first, second, third]
    assert ["hidden_at" in m.metadata for m in messages] == [False, True, True]


def test_parts_keep_their_order_where_ids_have_wrapped(tmp_path: Path) -> None:
    wrap = 1_786_706_395_136
    rows = Rows(tmp_path / "opencode.db", now=wrap - 100)
    rows.session(SESSION)
    message = rows.message(SESSION, "assistant", at=wrap - 5)
    for place, at in enumerate((wrap - 3, wrap - 1, wrap + 1, wrap + 3)):
        rows.part(SESSION, message, text(str(place)), opencode_id("prt", at))
    draft = read(rows)
    assert [part.data["text"] for part in draft.messages[0].parts] == ["0", "1", "2", "3"]


def test_a_compaction_is_the_answer_that_sums_up(rows: Rows) -> None:
    rows.message(SESSION, "user", text("one"))
    kept = rows.message(SESSION, "assistant", text("done"))
    request = {"type": "compaction", "auto": True, "tail_start_id": kept}
    asked = rows.message(SESSION, "user", request)
    rows.message(SESSION, "assistant", {"type": "step-start"}, text("We did one."),
                 finish(input=9, output=4), parentID=asked, summary=True)  # fmt: skip
    rows.message(SESSION, "assistant", text(""), parentID=asked, summary=True)
    messages = read(rows).messages
    assert messages[2].metadata["origin"] == "meta"
    assert messages[2].parts[0].data["data"]["name"] == "compaction"
    assert [part.type for part in messages[3].parts] == ["step-start", "data-compaction"]
    assert messages[3].parts[1].data["data"] == {
        "summary": "We did one.", "tail_start_id": kept, "auto": True, "summary_tokens": 4,
    }  # fmt: skip
    assert messages[3].metadata["compaction"] is True
    assert [part.type for part in messages[4].parts] == ["text"]


def test_forks_of_forks_are_copied_from_where_the_last_copy_was_written(rows: Rows) -> None:
    times = [rows.tick(), rows.tick(), rows.tick()]
    for at, role in zip(times, ("user", "assistant", "user"), strict=True):
        rows.message(SESSION, role, text(role), at=at)
    rows.session("ses_two", title="Talk (fork #1)")
    copies = [rows.message("ses_two", "user", at=times[0]),
              rows.message("ses_two", "assistant", at=times[1])]  # fmt: skip
    more = rows.message("ses_two", "user", text("other"))
    rows.session("ses_three", title="Talk (fork #2)")
    rows.message("ses_three", "user", at=times[0])
    rows.session("ses_four", title="Talk (fork #2)")
    for at, role in ((times[0], "user"), (times[1], "assistant")):
        rows.message("ses_four", role, at=at)
    moved = rows.connection.execute(
        "SELECT time_created FROM message WHERE id = ?", (more,)
    ).fetchone()[0]
    rows.message("ses_four", "user", at=moved)
    drafts, _ = read_store(rows.path)
    lineages = {
        name: (draft.lineage.kind, draft.lineage.parent_source_id)
        for name, draft in drafts.items()
        if draft.lineage is not None
    }
    assert lineages == {
        "ses_two": ("fork", SESSION),
        "ses_three": ("fork", SESSION),
        "ses_four": ("fork", "ses_two"),
    }
    assert [m.inherited_from for m in drafts["ses_four"].messages] == [*copies, more]


def test_share_todos_archive_and_a_title_that_nobody_gave(rows: Rows) -> None:
    rows.session("ses_two", title="New session - 2026-11-27T22:45:59.078Z",
                 share_url="https://opncd.ai/s/x", time_archived=START)  # fmt: skip
    rows.insert("todo", session_id="ses_two", position=0, content="Do it", status="pending",
                priority="high", time_created=1, time_updated=1)  # fmt: skip
    draft = read(rows, "ses_two")
    assert draft.title_from == "placeholder" and draft.archived_at == START
    assert draft.metadata["backscroll"]["share_url"] == "https://opncd.ai/s/x"
    assert draft.metadata["backscroll"]["todos"] == [
        {"content": "Do it", "status": "pending", "priority": "high"}
    ]


START = 1_700_000_009_000


def test_the_second_engine_is_read_too(rows: Rows) -> None:
    rows.second(SESSION, "agent-switched", {"agent": "plan", "time": {"created": 1}})
    rows.second(SESSION, "user", {"text": "hi", "time": {"created": 1},
                                  "files": [{"uri": "file:///a", "mime": "text/plain"}]})
    call = {
        "type": "tool", "id": "c1", "name": "bash", "time": {"created": 10, "completed": 30},
        "state": {"status": "completed", "input": {"command": "ls"}, "structured": {"exit": 2},
                  "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    }  # fmt: skip
    failed = {"type": "tool", "id": "c2", "name": "read",
              "state": {"status": "error", "input": {}, "error": {"type": "unknown",
                                                                  "message": "gone"}}}
    rows.second(SESSION, "assistant", {
        "agent": "plan", "model": {"id": "m", "providerID": "p", "variant": "high"},
        "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "done"}, call,
                    failed],
        "snapshot": {"start": "abc"}, "finish": "stop", "cost": 0.5,
        "tokens": {"input": 3, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 0}},
        "time": {"created": 1, "completed": 2},
    })  # fmt: skip
    rows.second(SESSION, "shell", {"callID": "c3", "command": "ls", "output": "x",
                                   "time": {"created": 1, "completed": 2}})
    rows.second(SESSION, "synthetic", {"text": "note", "time": {"created": 1}})
    rows.second(SESSION, "compaction", {"reason": "auto", "summary": "All of it.", "recent": "",
                                        "time": {"created": 1}})
    last = rows.second(SESSION, "user", {"text": "and?", "time": {"created": 1}})
    draft = read(rows)
    assert [m.role for m in draft.messages] == [
        "system", "user", "assistant", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    switched, asked, answered, shell, note, compacted, _ = draft.messages
    assert switched.parts[0].data["data"]["name"] == "agent-switched"
    assert [part.type for part in asked.parts] == ["text", "file"]
    assert [part.type for part in answered.parts] == [
        "step-start", "reasoning", "text", "tool-bash", "tool-read",
    ]  # fmt: skip
    assert answered.parts[3].data["output"] == "a\nb"
    assert own(answered.parts[3])["status"] == "error" and own(answered.parts[3])["exit_code"] == 2
    assert answered.parts[4].data["errorText"] == "gone"
    assert answered.metadata["usage"]["cache_read"] == 4 and answered.metadata["cost_usd"] == 0.5
    assert answered.metadata["model"]["variant"] == "high"
    assert shell.parts[0].data["input"] == {"command": "ls"}
    assert note.metadata["origin"] == "meta"
    assert compacted.parts[0].data["data"]["summary"] == "All of it."
    assert draft.updated_at == draft.messages[-1].updated_at > draft.created_at
    assert draft.messages[-1].source_id == last


def test_what_both_engines_wrote_is_there_once(rows: Rows) -> None:
    rows.message(SESSION, "user", text("one"))
    rows.second(SESSION, "user", {"text": "one", "time": {"created": 1}})
    rows.connection.execute("UPDATE session_message SET time_created = ?", (rows.now - 25,))
    rows.second(SESSION, "model-switched", {"model": {"id": "n", "providerID": "p"}})
    rows.second(SESSION, "user", {"text": "two", "time": {"created": 1}})
    found = [p.data.get("text") for m in read(rows).messages for p in m.parts]
    assert found == ["one", None, "two"]


def test_a_prompt_that_waits_for_its_turn_is_queued(rows: Rows) -> None:
    rows.second(SESSION, "user", {"text": "one", "time": {"created": 1}})
    for number, promoted in ((1, 5), (2, None)):
        rows.insert("session_input", id=f"msg_{number}", session_id=SESSION, delivery="queue",
                    prompt={"text": f"prompt {number}"}, admitted_seq=number,
                    promoted_seq=promoted, time_created=rows.now)  # fmt: skip
    messages = read(rows).messages
    assert [m.parts[0].data["text"] for m in messages] == ["one", "prompt 2"]
    assert messages[1].metadata["queued_at"] == rows.now and "queued_at" not in messages[0].metadata
