"""Qwen Code: the genuine samples come out exactly as their EXPECTED.json says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.protocol import Fact, NoLibrary
from store.sources.base.values import epoch_ms
from store.sources.qwen import QwenSource
from store.sources.registry import all_sources, recognised
from tests.sources import grown
from tests.sources.samples import DATA

SAMPLE, OLDER = DATA / "qwen" / "qwen", DATA / "qwen" / "legacy-0.1.4"
EXPECTED = json.loads((DATA / "qwen" / "EXPECTED.json").read_text())
DRAFTS, PROBLEMS = grown.read_all(QwenSource(), SAMPLE)
OLDER_DRAFTS, OLDER_PROBLEMS = grown.read_all(QwenSource(), OLDER)
NEWER = EXPECTED["qwen"]["sessions"]
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["label"]) for one in NEWER]
BOTH = [*SESSIONS, *(pytest.param(OLDER_DRAFTS[one["id"]], one, id="older")
                     for one in EXPECTED["legacy-0.1.4"]["sessions"])]  # fmt: skip
PLAIN, FORK, TERMINAL = (
    "2fbaa13c-efdf-458a-ad45-24aa7db80153", "73ed7a10-74de-46f3-ab99-730034d95613",
    "288b23f6-5a06-46d1-8218-96a0e39cd6cf")
CALLER = "ee0d83c4-f37e-4436-adac-2f70c8cb737e"
AGENT = "general-purpose-call_agent_0_0_9_f001"
PROJECT = SAMPLE / "projects/-home-mira-code-api"


def hidden(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if "hidden_at" in one.metadata]


def calls(messages: list[MessageDraft]) -> list[dict[str, Any]]:
    return [
        {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
         "status": grown.extra(part)["status"] if "resultProviderMetadata" in part.data
         else "no result"}
        for part in grown.calls(messages)
    ]  # fmt: skip


def answers(messages: list[MessageDraft]) -> list[MessageDraft]:
    return [one for one in messages if one.role == "assistant" and one.parts]


def own(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if one.inherited_from is None]


def added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {key: one[key] + other[key] for key in one}


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == OLDER_PROBLEMS == []
    agents = {f"{one['id']}/{agent['agent_id']}" for one in NEWER for agent in one["subagents"]}
    assert DRAFTS.keys() == {one["id"] for one in NEWER} | agents
    assert EXPECTED["qwen"]["sessions_count"] == len(DRAFTS) - len(agents)
    assert EXPECTED["legacy-0.1.4"]["sessions_count"] == len(OLDER_DRAFTS)


@pytest.mark.parametrize(("draft", "expected"), BOTH)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    root = OLDER if expected.get("legacy") else SAMPLE
    assert draft.path == str(root / expected["file"])
    assert (draft.archived_at is not None) == expected["archived"]
    if expected["title"] is None:
        assert draft.title_from == "first-prompt"
    else:
        assert draft.title == expected["title"]
        assert {"user": "manual", "title": "auto"}[draft.title_from or ""] == (
            expected["title_source"])
    assert draft.workspace_root == expected["workspace"]
    assert draft.metadata.get("git_branch") == expected.get("git_branch")
    assert draft.metadata["backscroll"].get("versions") == expected.get("versions")
    assert draft.metadata["backscroll"].get("project_hash") == expected.get("project_hash")
    models = [one.metadata["model"]["model_id"] for one in answers(draft.messages)
              if "model" in one.metadata]  # fmt: skip
    assert list(dict.fromkeys(models)) == expected["models"]
    assert draft.model is not None and draft.model["model_id"] == expected["models"][-1]
    assert draft.created_at == epoch_ms(expected["created"])
    assert draft.updated_at == epoch_ms(expected["updated"])
    assert draft.metadata.get("activity") is None


@pytest.mark.parametrize(("draft", "expected"), BOTH)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    shown = grown.visible(draft)
    assert grown.prompts(shown) == expected["prompts"]
    assert grown.prompts(hidden(draft)) == expected.get("hidden_prompts", [])
    notices = [one for one in draft.messages if one.metadata.get("origin") == "notification"]
    assert [one.parts[0].data["text"] for one in notices] == expected.get("notifications", [])
    assert len(answers(shown)) == expected["assistant_messages"]
    assert len(answers(hidden(draft))) == expected.get("hidden_assistant_messages", 0)
    assert calls(shown) == expected["tool_calls"]
    assert calls(hidden(draft)) == expected.get("hidden_tool_calls", [])
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_happened_to_it(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert len({one.metadata["hidden_at"] for one in hidden(draft)}) == expected["rewinds"]
    compactions = [one for one in draft.messages if "compaction" in one.metadata]
    assert len(compactions) == expected["compactions"]
    errors = [part for one in draft.messages for part in one.parts if part.type == "data-error"]
    assert len(errors) == expected["api_errors"]
    parent = draft.lineage.parent_source_id if draft.lineage else None
    assert parent == expected["fork_of"]
    copied = sum(b'"forkedFrom"' in record for record in draft.records)
    assert copied == expected["copied_records"]
    of_copies = {number for one in draft.messages if one.inherited_from is not None
                 for number in (*one.records, *(n for part in one.parts for n in part.records))}
    assert len(of_copies) == expected["copied_records"]
    assert expected["bad_lines"] == 0


@pytest.mark.parametrize(("draft", "expected"), BOTH)
def test_tokens_of_one_book(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert grown.tokens(answers(own(draft))) == expected["tokens"]
    everything = grown.tokens(own(draft))
    for agent in expected.get("subagents", ()):
        helper = DRAFTS[f"{draft.source_id}/{agent['agent_id']}"]
        everything = added(everything, grown.tokens(own(helper)))
    assert everything == expected.get("tokens_all_requests", expected["tokens"])


def test_sums_of_both_stores() -> None:
    def total(drafts: dict[str, SessionDraft], *, said: bool) -> dict[str, int]:
        found = dict.fromkeys(grown.BUCKETS, 0)
        for draft in drafts.values():
            if not (said and "/" in draft.source_id):
                found = added(found, grown.tokens(answers(own(draft)) if said else own(draft)))
        return found

    newer, older = EXPECTED["qwen"], EXPECTED["legacy-0.1.4"]
    assert total(DRAFTS, said=True) == newer["tokens_sum"]
    assert total(DRAFTS, said=False) == newer["tokens_all_requests_sum"]
    assert total(OLDER_DRAFTS, said=True) == older["tokens_sum"]
    assert not any(older["tokens_all_requests_sum"].values())
    assert (newer["agent"], older["agent"]) == ("qwen-code", "qwen-code")


@pytest.mark.parametrize(
    ("caller", "expected"),
    [pytest.param(one["id"], agent) for one in NEWER for agent in one["subagents"]],
)
def test_a_subagent_is_a_session_of_its_own(caller: str, expected: dict[str, Any]) -> None:
    draft = DRAFTS[f"{caller}/{expected['agent_id']}"]
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id, draft.lineage.tool_call_id) == (
        "subagent", caller, expected["tool_call"])
    extra = draft.metadata["backscroll"]
    assert (extra["agent_type"], extra["status"]) == (expected["name"], expected["status"])
    assert grown.prompts(draft.messages) == expected["prompts"]
    assert len(answers(draft.messages)) == expected["assistant_records"]
    assert calls(draft.messages) == expected["tool_calls"]
    assert grown.tokens(draft.messages) == expected["tokens"]
    assert draft.title == "count files"
    call = grown.call(DRAFTS[caller], expected["tool_call"])
    assert grown.extra(call)["child_session_source_id"] == draft.source_id


def test_the_fork_begins_where_its_parent_was_left() -> None:
    lineage = DRAFTS[FORK].lineage
    assert lineage is not None
    last = answers(DRAFTS[PLAIN].messages)[-1].source_id
    assert (lineage.kind, lineage.parent_message_source_id) == ("fork", last)
    copies = [one.inherited_from for one in DRAFTS[FORK].messages if one.inherited_from]
    assert copies == [one.source_id for one in DRAFTS[PLAIN].messages]


def test_what_each_call_ended_with() -> None:
    plain = DRAFTS[PLAIN]
    assert grown.extra(grown.call(plain, "call_tools_0_0_1_f001"))["exit_code"] == 0
    (hunk,) = grown.extra(grown.call(plain, "call_tools_2_0_3_f001"))["structured"][
        "structuredPatch"]
    assert hunk["lines"] == ["-apples 3", "+apples 5", " pears 1"]
    denied = grown.call(DRAFTS[TERMINAL], "call_fail_0_0_23_f001")
    assert (denied.tool_state, denied.data["approval"]["approved"]) == ("output-denied", False)
    failed = grown.call(DRAFTS["7124fac8-fbde-4a6c-9495-d5edc5e9b901"], "call_fail_0_0_7_f001")
    assert (failed.tool_state, grown.extra(failed)["exit_code"]) == ("output-error", 3)


def test_a_compaction_and_commands() -> None:
    draft = DRAFTS[TERMINAL]
    (data,) = [part.data["data"] for one in draft.messages for part in one.parts
               if part.type == "data-compaction"]  # fmt: skip
    assert data["summary"].startswith("<state_snapshot>")
    assert (data["auto"], data["pre_tokens"]) == (False, 1350)
    typed = [grown.words(one) for one in draft.messages if one.metadata.get("origin") == "command"]
    assert typed == ["/rename Stock questions", 'Session renamed to "Stock questions"', "/compress"]


# --- hand-made files ------------------------------------------------------------------------


def record(number: int, kind: str, *parts: Any, parent: int | None = -1, **more: Any) -> dict[
    str, Any]:  # fmt: skip
    """Return a record whose parent is the one with the number before, unless it is named."""
    above = number - 1 if parent == -1 else parent
    data: dict[str, Any] = {
            "uuid": f"r{number}", "parentUuid": f"r{above}" if above else None, "sessionId": "one",
            "timestamp": grown.at(number), "type": kind, "cwd": "/w", "version": "0.24.4"}
    if parts:
        said = [{"text": part} if isinstance(part, str) else part for part in parts]
        data["message"] = {"role": "model" if kind == "assistant" else "user", "parts": said}
    return data | more


def answer(number: int, *parts: Any, parent: int | None = -1, used: int = 10) -> dict[str, Any]:
    usage = {"promptTokenCount": used, "candidatesTokenCount": 4, "totalTokenCount": used + 4}
    return record(number, "assistant", *parts, parent=parent, model="m", usageMetadata=usage)


def system(number: int, subtype: str, payload: Any = None, parent: int | None = -1) -> dict[
    str, Any]:  # fmt: skip
    return record(number, "system", parent=parent, subtype=subtype, systemPayload=payload or {})


def request(number: int, used: int, prompt: str = "one########0", **more: Any) -> dict[str, Any]:
    event = {"event.name": "qwen-code.api_response", "input_token_count": used, "model": "m",
             "output_token_count": 4, "total_token_count": used + 4, "prompt_id": prompt}
    return system(number, "ui_telemetry", {"uiEvent": event | more})


def call(name: str, tool: str = "read_file") -> dict[str, Any]:
    return {"functionCall": {"id": name, "name": tool, "args": {"a": 1}}}


def result(number: int, name: str, response: dict[str, Any], **told: Any) -> dict[str, Any]:
    part = {"functionResponse": {"id": name, "name": "read_file", "response": response}}
    return record(number, "tool_result", part, toolCallResult={"callId": name} | told)


def made(root: Path, *rows: dict[str, Any], name: str = "one", folder: str = "chats") -> Path:
    return grown.write_lines(root / "projects/-w" / folder / f"{name}.jsonl", rows)


def read(root: Path) -> SessionDraft:
    return grown.only(QwenSource(), root)


def shown(draft: SessionDraft) -> list[str]:
    return [grown.words(one) for one in grown.visible(draft) if one.parts]


def test_a_second_rewind_hides_what_the_first_one_led_to(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a"), answer(2, "A"), record(3, "user", "b"), answer(4, "B"),
         system(5, "rewind", parent=2), record(6, "user", "c"), answer(7, "C"),
         system(8, "rewind", parent=2), record(9, "user", "d"))
    draft = read(tmp_path)
    assert shown(draft) == ["a", "A", "d"]
    assert [grown.words(one) for one in hidden(draft)] == ["b", "B", "c", "C"]
    assert draft.metadata["activity"]["state"] == "running"


def test_records_beside_the_conversation_are_no_leaf(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a"), answer(2, "A"),
         system(3, "session_artifact_added", parent=None),
         system(4, "managed_session_state", parent=None))
    draft = read(tmp_path)
    assert (shown(draft), hidden(draft)) == (["a", "A"], [])


def test_a_parent_that_is_not_there_begins_the_path(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a"), answer(2, "A"), record(3, "user", "b", parent=9),
         answer(4, "B"))
    draft = read(tmp_path)
    assert shown(draft) == ["b", "B"]
    assert draft.metadata["backscroll"]["broken_at"] == "r9"


def test_a_damaged_line_costs_itself(tmp_path: Path) -> None:
    path = made(tmp_path, record(1, "user", "a"), answer(2, "A"), record(3, "user", "b"),
                answer(4, "B"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{torn\n", *lines[2:]]))
    drafts, problems = grown.read_all(QwenSource(), tmp_path)
    assert shown(drafts["one"]) == ["a", "b", "B"]
    assert len(problems) == 1


def test_pieces_of_one_record_are_one_message(tmp_path: Path) -> None:
    first, second = answer(2, "A"), answer(2, "more", call("c"))
    made(tmp_path, record(1, "user", "a"), first, second, first, result(3, "c", {"output": "x"}))
    draft = read(tmp_path)
    assert shown(draft) == ["a", "A|more"]
    assert calls(draft.messages) == [{"id": "c", "name": "read_file", "status": "ok"}]


def test_states_of_calls(tmp_path: Path) -> None:
    cancelled = {"error": "[Operation Cancelled] Reason: User did not allow tool call"}
    made(tmp_path, record(1, "user", "a"), answer(2, *map(call, "abcdefg")),
         result(3, "a", {"output": "x"}, status="success"),
         result(4, "b", {"error": "no"}, status="error"),
         result(5, "c", cancelled, status="cancelled", executionStatus="not_started"),
         result(6, "d", {"error": "stopped"}, status="cancelled", executionStatus="success"),
         result(7, "e", cancelled, status="cancelled"),
         result(8, "f", {"error": "failed"}, durationMs=7), answer(9, "done"))
    states = {one["id"]: one["status"] for one in calls(read(tmp_path).messages)}
    assert states == {"a": "ok", "b": "error", "c": "denied", "d": "interrupted", "e": "denied",
                      "f": "error", "g": "no result"}


def test_a_shell_command_that_0_5_calls_a_success(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a"), answer(2, call("c", "run_shell_command")),
         result(3, "c", {"output": "Output: x\nExit Code: 3\n"}, status="success"))
    part = grown.call(read(tmp_path), "c")
    assert (grown.extra(part)["status"], grown.extra(part)["exit_code"]) == ("ok", 3)


def test_a_prompt_with_files_is_what_was_typed(tmp_path: Path) -> None:
    made(tmp_path, system(1, "at_command", {"userText": "see @f"}),
         record(2, "user", "see @f", "\n--- Content from referenced files ---", "the text",
                "\n--- End of content ---",
                {"inlineData": {"mimeType": "image/png", "data": "QQ"}}))
    draft = read(tmp_path)
    assert grown.prompts(draft.messages) == ["see @f"]
    assert [part.type for part in draft.messages[0].parts] == ["text", "file"]
    assert draft.messages[1].metadata["origin"] == "meta"
    assert "the text" in grown.words(draft.messages[1])


@pytest.mark.parametrize(
    "subtype",
    ["notification", "cron", "mid_turn_user_message", "goal_runtime", "realtime_message"])
def test_what_nobody_typed_as_a_prompt(tmp_path: Path, subtype: str) -> None:
    made(tmp_path, record(1, "user", "a"),
         record(2, "user", "the words", subtype=subtype, systemPayload={"displayText": "Shown"}))
    draft = read(tmp_path)
    assert grown.prompts(draft.messages) == ["a"]
    assert grown.words(draft.messages[1]) == "Shown|the words"


def test_an_unknown_record_is_shown_as_what_it_says(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a"), system(2, "goal_state", {"goal": "win"}))
    (part,) = read(tmp_path).messages[1].parts
    assert part.data["data"] == {"name": "goal_state", "details": {"goal": "win"}}


def test_thoughts_inside_and_beside_the_answer(tmp_path: Path) -> None:
    def used(total: int) -> dict[str, int]:
        return {"promptTokenCount": 100, "cachedContentTokenCount": 30, "candidatesTokenCount": 20,
                "thoughtsTokenCount": 5, "totalTokenCount": total}

    made(tmp_path, record(1, "user", "a"),
         record(2, "assistant", "A", usageMetadata=used(120)),
         record(3, "assistant", "B", usageMetadata=used(125)))
    found = [one.metadata["usage"] for one in answers(read(tmp_path).messages)]
    assert found == [
        {"input": 70, "output": 15, "reasoning": 5, "cache_read": 30, "cache_write": 0},
        {"input": 70, "output": 20, "reasoning": 5, "cache_read": 30, "cache_write": 0}]


def test_a_request_is_counted_once_and_one_without_an_answer_too(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a"), request(2, 10), answer(3, "A"),
         request(4, 50), request(5, 20), answer(6, "B", used=20),
         request(7, 30, "one#memory#0", subagent_name="managed-auto-memory-extractor"),
         request(8, 40, "compress-1"), request(9, 70))
    draft = read(tmp_path)
    # The last one may still be answered.
    used = [one.metadata["usage"]["input"] for one in draft.messages if "usage" in one.metadata]
    assert used == [10, 50, 20, 30, 40]
    extra = [one.metadata["backscroll"] for one in draft.messages
             if one.role == "assistant" and not one.parts]  # fmt: skip
    assert [one["initiator"] for one in extra] == [
        "request", "managed-auto-memory-extractor", "compaction"]
    assert all(one["no_answer"] for one in extra)


def test_a_subagent_counts_itself_where_it_has_a_file(tmp_path: Path) -> None:
    told = request(2, 50, "one#x-c#0", subagent_name="x", subagent_id="x-c")
    made(tmp_path, record(1, "user", "a"), told)
    assert grown.tokens(read(tmp_path).messages)["input"] == 50
    made(tmp_path, record(1, "user", "b", isSidechain=True), answer(2, "B", used=50),
         name="agent-x-c", folder="subagents/one")
    drafts, _ = grown.read_all(QwenSource(), tmp_path)
    assert {name: grown.tokens(draft.messages)["input"] for name, draft in drafts.items()} == {
        "one": 0, "one/x-c": 50}


class Told(NoLibrary):
    """A library in which a subagent was brought in before its file went away."""

    def facts(self, name: str) -> list[Fact]:
        return [Fact(name, "one/x-c", "x-c")] if name == "agents:one" else []


def test_a_subagent_whose_file_is_gone_counts_itself_still(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a"),
         request(2, 50, "one#x-c#0", subagent_name="x", subagent_id="x-c"))
    source = QwenSource()
    source.use_library(Told())
    assert grown.tokens(grown.only(source, tmp_path).messages)["input"] == 0


def test_a_subagent_of_a_subagent_without_and_with_its_file_beside(tmp_path: Path) -> None:
    made(tmp_path, record(1, "user", "a", agentName="x"), answer(2, call("c2", "agent")),
         name="agent-x-c1", folder="subagents/one")
    path = made(tmp_path, record(1, "user", "b"), name="agent-y-c2", folder="subagents/one")
    beside = path.with_name("agent-y-c2.meta.json")
    beside.write_text(json.dumps({"agentType": "y", "toolUseId": "c2", "parentAgentId": "x-c1",
                                  "parentSessionId": "one", "status": "failed"}))
    drafts, problems = grown.read_all(QwenSource(), tmp_path)
    assert problems == []
    outer, inner = drafts["one/x-c1"].lineage, drafts["one/y-c2"].lineage
    assert outer is not None and (outer.parent_source_id, outer.tool_call_id) == ("one", "c1")
    assert inner is not None and (inner.parent_source_id, inner.tool_call_id) == ("one/x-c1", "c2")
    assert drafts["one/y-c2"].metadata["activity"]["state"] == "error"
    beside.write_text("{")
    drafts, problems = grown.read_all(QwenSource(), tmp_path)
    assert [problem.path for problem in problems] == [str(beside)]
    assert grown.prompts(drafts["one/y-c2"].messages) == ["b"]


def test_how_a_session_ended(tmp_path: Path) -> None:
    def state(*rows: dict[str, Any]) -> str | None:
        made(tmp_path, record(1, "user", "a"), *rows)
        found: str | None = read(tmp_path).metadata.get("activity", {}).get("state")
        return found

    failed = {"uiEvent": {"event.name": "qwen-code.api_error", "error": "429"}}
    assert state() == "running"
    assert state(answer(2, "A")) is None
    assert state(answer(2, call("c"))) == "running"
    assert state(record(2, "assistant", "half")) == "interrupted"
    assert state(answer(2, call("c")), result(3, "c", {"error": "x"}, status="cancelled",
                                              executionStatus="cancelled")) == "interrupted"
    assert state(system(2, "ui_telemetry", failed)) == "error"
    errors = [part for one in read(tmp_path).messages for part in one.parts
              if part.type == "data-error"]  # fmt: skip
    assert errors[0].data["data"] == {"message": "429"}


def test_the_last_title_counts(tmp_path: Path) -> None:
    titles = [system(2, "custom_title", {"customTitle": "First", "titleSource": "manual"}),
              system(3, "custom_title", {"customTitle": "Second", "titleSource": "auto"})]
    made(tmp_path, record(1, "user", "a"), *titles)
    draft = read(tmp_path)
    assert (draft.title, draft.title_from, draft.tells_title) == ("Second", "title", True)


def test_an_archived_session_is_the_same_one_moved(tmp_path: Path) -> None:
    path = made(tmp_path, record(1, "user", "a"), answer(2, "A"))
    (before,) = QwenSource().units(tmp_path, [])
    archive = path.parent / "archive"
    archive.mkdir()
    path.rename(archive / path.name)
    (after,) = QwenSource().units(tmp_path, [])
    assert after.key == before.key
    draft = read(tmp_path)
    assert draft.archived_at == draft.updated_at
    shutil.copy(archive / path.name, path)
    assert read(tmp_path).archived_at is None


def test_calls_and_thoughts_of_the_oldest_files(tmp_path: Path) -> None:
    done = [{"functionResponse": {"id": "c", "response": {"output": "text"}}}]
    rows = [
        {"id": "1", "timestamp": grown.at(1), "type": "user", "content": "a"},
        {"id": "2", "timestamp": grown.at(2), "type": "qwen", "content": "A", "model": "m",
         "thoughts": [{"subject": "S", "description": "D"}],
         "tokens": {"input": 10, "cached": 2, "output": 5, "thoughts": 3, "total": 15},
         "toolCalls": [{"id": "c", "name": "read_file", "args": {}, "status": "success",
                        "result": done, "timestamp": grown.at(4)},
                       {"id": "d", "name": "edit", "args": {}, "status": "executing"}]},
    ]  # fmt: skip
    folder = tmp_path / "tmp/abc/chats"
    folder.mkdir(parents=True)
    body = {"sessionId": "one", "projectHash": "abc", "messages": rows}
    (folder / "session-2025-09-01T10-00-00000000.json").write_text(json.dumps(body))
    draft = read(tmp_path)
    assert [part.type for part in draft.messages[1].parts] == [
        "reasoning", "text", "tool-read_file", "tool-edit"]
    assert calls(draft.messages) == [
        {"id": "c", "name": "read_file", "status": "ok"},
        {"id": "d", "name": "edit", "status": "no result"}]
    assert draft.messages[1].metadata["usage"] == {
        "input": 8, "output": 2, "reasoning": 3, "cache_read": 2, "cache_write": 0}
    assert draft.metadata["activity"]["state"] == "running"


def test_it_grows_as_it_is_written(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "q")
    path = tmp_path / "q" / PROJECT.relative_to(SAMPLE) / f"chats/{TERMINAL}.jsonl"
    grown.grows_like_a_whole(QwenSource, tmp_path / "q", path)


def test_no_message_goes_while_a_session_grows(tmp_path: Path) -> None:
    """A request is shown without an answer only once it can no longer get one."""
    shutil.copytree(SAMPLE, tmp_path / "q")
    path = tmp_path / "q" / PROJECT.relative_to(SAMPLE) / f"chats/{CALLER}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    before: set[str] = set()
    for count in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        drafts, _ = grown.read_all(QwenSource(), tmp_path / "q")
        now = {one.source_id for one in drafts[CALLER].messages}
        assert before <= now
        before = now


def test_accounts_keys_and_the_registry_are_never_opened(tmp_path: Path) -> None:
    home = tmp_path / ".qwen"
    shutil.copytree(SAMPLE, home)
    (home / "sessions").mkdir()
    for name in ("oauth_creds.json", "google_accounts.json", "mcp-oauth-tokens.json", ".env",
                 "settings.json", "sessions/12.json"):  # fmt: skip
        (home / name).write_text("{}")
        (home / name).chmod(0)
    source = QwenSource()
    assert source.recognise(tmp_path) == home
    stamps = {stamp.path for unit in source.units(home, []) for stamp in unit.stamps}
    folders = {Path(path).parent.name for path in stamps}
    assert folders == {"chats", CALLER}
    assert not any(path.endswith(".runtime.json") for path in stamps)
    others = [str(home / "usage_record.jsonl"), str(home / "sessions/12.json"),
              str(next(home.glob("tmp/*/logs.json")))]  # fmt: skip
    assert source.units_at(home, others) == []


def test_changed_files_name_their_sessions() -> None:
    source = QwenSource()
    agent = f"subagents/{CALLER}/agent-{AGENT}"
    paths = [str(PROJECT / f"chats/{PLAIN}.jsonl"), str(PROJECT / f"{agent}.meta.json")]
    units = source.units_at(SAMPLE, paths)
    assert units is not None
    assert {unit.key for unit in units} == {
        f"{PROJECT.name}/{PLAIN}", f"{CALLER}/agent-{AGENT}"}
    below = source.units_at(SAMPLE, [str(PROJECT)])
    assert below is not None and len(below) == 6
    assert source.units_at(SAMPLE, [str(SAMPLE)]) is None


@pytest.mark.parametrize("inner", ["", "projects", "projects/-home-mira-code-api",
                                   "projects/-home-mira-code-api/chats"])  # fmt: skip
def test_a_folder_inside_is_opened_by_name(inner: str) -> None:
    found = recognised(SAMPLE / inner, all_sources())
    assert found is not None and found[0].kind == "qwen"
    drafts, problems = grown.read_all(QwenSource(), found[1])
    assert PLAIN in drafts and problems == []


def test_a_file_is_opened_by_name(tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    shutil.copy(PROJECT / f"chats/{PLAIN}.jsonl", copy)
    found = recognised(copy, all_sources())
    assert found is not None and found[0].kind == "qwen"
    assert read(copy).source_id == PLAIN
    (older,) = OLDER.glob("tmp/*/chats/*.json")
    for path in (older, OLDER):
        found = recognised(path, all_sources())
        assert found is not None and found[0].kind == "qwen"


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert QwenSource().default_roots({}, home) == [home / ".qwen"]
    moved = {"QWEN_HOME": str(tmp_path / "a"), "QWEN_RUNTIME_DIR": str(tmp_path / "b")}
    assert QwenSource().default_roots(moved, home) == [
        tmp_path / "b", tmp_path / "a", home / ".qwen"]
