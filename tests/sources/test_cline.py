"""Cline: the samples come out exactly as their EXPECTED.json says; hand-made files beside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.values import epoch_ms
from store.sources.cline import ClineSource
from tests.sources import grown
from tests.sources.samples import DATA

SAMPLE = DATA / "cline"
EXPECTED = json.loads((SAMPLE / "EXPECTED.json").read_text())
STORAGE = SAMPLE / "vscode/User/globalStorage"
ROO, KILO = STORAGE / "rooveterinaryinc.roo-cline", STORAGE / "kilocode.kilo-code"
SDK, SDK_PROBLEMS = grown.read_all(ClineSource(), SAMPLE / "sdk")
SESSIONS = [pytest.param(SDK[one["id"]], one, id=one["id"]) for one in EXPECTED["sdk"]]
PLACES = {"legacy": SAMPLE / "legacy", "vscode/rooveterinaryinc.roo-cline": ROO,
          "vscode/kilocode.kilo-code": KILO}  # fmt: skip
TASKS = {name: grown.read_all(ClineSource(), place) for name, place in PLACES.items()}
LISTED = [pytest.param(TASKS[place][0][one["id"]], one, id=one["id"])
          for place in PLACES for one in EXPECTED[place]["sessions"]]  # fmt: skip
FORKED, FORK, RESTORED = ("1795861609161_zmeb2", "1795861635402_6f8tw", "1795861648329_r0t8h")
STATUSES = {"no result": "no_result", "interrupted": "error"}
"""How the samples name what the library tells in more words."""
Expected = dict[str, Any]


def texts(draft: SessionDraft) -> list[str]:
    return [part.data["text"] for one in draft.messages if one.role == "assistant"
            for part in one.parts if part.type == "text" and part.data["text"]]  # fmt: skip


def data_of(draft: SessionDraft, kind: str) -> list[Any]:
    return [part.data["data"] for one in draft.messages for part in one.parts
            if part.type == f"data-{kind}"]  # fmt: skip


def status_of(part: PartDraft) -> str:
    extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
    return str(extra.get("status", "no_result"))


def calls(draft: SessionDraft) -> list[Expected]:
    return [{"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
             "status": STATUSES.get(status_of(part), status_of(part))}
            for part in grown.calls(draft.messages)]  # fmt: skip


def own(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if one.inherited_from is None]


def cost(messages: list[MessageDraft]) -> float | None:
    found = [one.metadata["cost_usd"] for one in messages if "cost_usd" in one.metadata]
    return round(sum(found), 9) if found else None


def models(draft: SessionDraft) -> list[str]:
    found = [one.metadata["model"]["model_id"] for one in draft.messages
             if "model" in one.metadata]  # fmt: skip
    return sorted(set(found))


def records(draft: SessionDraft) -> list[Any]:
    return [json.loads(record) for record in draft.records]


def about(draft: SessionDraft) -> Expected:
    found: Expected = draft.metadata["backscroll"]
    return found


# --- sessions -------------------------------------------------------------------------------


def test_just_the_sessions_expected() -> None:
    assert SDK_PROBLEMS == []
    assert SDK.keys() == {one["id"] for one in EXPECTED["sdk"]}


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_a_session_says_of_itself(draft: SessionDraft, expected: Expected) -> None:
    assert draft.title == expected["title"]
    assert draft.workspace_root == expected["workspace"]
    assert about(draft).get("git_branch") == expected["git_branch"]
    assert draft.model is not None
    assert draft.model["provider_id"] == expected["provider"]
    assert draft.model["model_id"] == expected["model_in_manifest"]
    assert models(draft) == sorted(expected["models_used"])
    assert draft.created_at == epoch_ms(expected["created"])
    assert draft.updated_at == epoch_ms(expected["file_updated"])
    assert about(draft)["status"] == expected["status_db"]
    kept = {("row" if "metadata_json" in one else "manifest"): one for one in records(draft)
            if "session_id" in one}  # fmt: skip
    assert ("manifest" in kept, "row" in kept) == (expected["has_manifest"], expected["in_db"])
    assert kept["row"]["updated_at"] == expected["updated_db"]
    assert kept.get("manifest", {}).get("status") == expected["status_manifest"]
    assert (not draft.partial) == expected["has_messages_file"]
    assert expected["torn"] is None


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said_in_a_session(draft: SessionDraft, expected: Expected) -> None:
    assert grown.prompts(draft.messages) == expected["prompts"]
    assert [one.source_id for one in draft.messages if one.source_id == "prompt"] == []
    assert expected["prompt_in_row_only"] is None
    assert sum(one.role == "assistant" for one in draft.messages) == expected["assistant_messages"]
    assert texts(draft) == expected["assistant_texts"]
    assert [one["message"] for one in data_of(draft, "error")] == expected["error_messages"]
    made = [one for one in draft.messages if one.metadata.get("origin") == "meta"]
    assert len(made) == expected["synthetic_user_messages"]
    assert calls(draft) == expected["tool_calls"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_a_session_cost(draft: SessionDraft, expected: Expected) -> None:
    assert grown.tokens(own(draft)) == expected["tokens_own"]
    assert grown.tokens(draft.messages) == expected["tokens_with_inherited"]
    assert cost(own(draft)) == expected["cost_own"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_where_a_session_comes_from(draft: SessionDraft, expected: Expected) -> None:
    kinds = {"root": None, "fork": "fork", "restore": "fork", "subagent": "subagent",
             "team": "subagent"}  # fmt: skip
    lineage = draft.lineage
    assert (lineage.kind if lineage else None) == kinds[expected["kind"]]
    assert (lineage.parent_source_id if lineage else None) == expected["parent"]
    assert about(draft).get("restored_before_run") == expected["restored_before_run"]
    agents = {"subagent": "subagent", "team": "teammate"}
    assert about(draft)["agent"] == agents.get(expected["kind"], "lead")
    copied = {number for one in draft.messages if one.inherited_from is not None
              for part in one.parts if not part.type.startswith("data-")
              for number in part.records}  # fmt: skip
    assert len(copied) == expected["inherited_messages"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_the_line_of_a_compaction(draft: SessionDraft, expected: Expected) -> None:
    told = expected["compaction"]
    lines = [place for place, one in enumerate(draft.messages) if "compaction" in one.metadata]
    assert len(lines) == (told is not None)
    if told is None:
        return
    before = {number for one in draft.messages[: lines[0]] for part in one.parts
              for number in part.records}  # fmt: skip
    assert len(before) == told["source_message_count"]
    (body,) = data_of(draft, "compaction")
    assert bool(body["summary"]) == told["has_summary"]
    assert len(records(draft)[-1]["messages"]) == told["kept_messages"]
    assert body["tail_start_id"] in {one.source_id for one in draft.messages}


def test_calls_name_the_sessions_that_they_started() -> None:
    for parent, name, child in (
        ("1795861547026_0qnz7", "spawn_agent", "__agent_1795861547426_t76xmf"),
        ("1795861551778_85uac", "team_run_task", "__teamtask__scout__hKWJvY"),
    ):
        (call,) = [part for part in grown.calls(SDK[parent].messages)
                   if part.type == f"tool-{name}"]  # fmt: skip
        assert grown.extra(call)["child_session_source_id"] == parent + child
        lineage = SDK[parent + child].lineage
        assert lineage is not None and lineage.tool_call_id == call.tool_call_id


def test_forks_name_their_last_copied_message() -> None:
    for name in (FORK, RESTORED):
        lineage = SDK[name].lineage
        assert lineage is not None and lineage.parent_message_source_id == "msg_xSzkP_EH"


def test_how_sessions_ended() -> None:
    found = {name: draft.metadata.get("activity", {}).get("state") for name, draft in SDK.items()}
    assert {name: state for name, state in found.items() if state} == {
        "1795861556809_seifp": "error"}  # fmt: skip


# --- tasks ----------------------------------------------------------------------------------


def raw(draft: SessionDraft) -> Iterator[Expected]:
    for one in records(draft):
        if one.get("say") == "api_req_started":
            yield json.loads(one["text"])


@pytest.mark.parametrize("place", PLACES)
def test_just_the_tasks_expected(place: str) -> None:
    drafts, problems = TASKS[place]
    assert problems == []
    assert drafts.keys() == {one["id"] for one in EXPECTED[place]["sessions"]}
    assert EXPECTED[place]["history_without_folder"] == []


@pytest.mark.parametrize(("draft", "expected"), LISTED)
def test_what_a_task_says_of_itself(draft: SessionDraft, expected: Expected) -> None:
    assert (draft.title, draft.workspace_root) == (expected["title"], expected["workspace"])
    assert about(draft).get("listed", False) == expected["in_history"]
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert models(draft) == sorted(expected["models_used"])
    assert about(draft).get("favorite", False) == expected["favorite"]
    assert about(draft).get("status") == expected["status"]
    assert (draft.lineage.parent_source_id if draft.lineage else None) == expected["parent"]
    assert about(draft).get("root") == expected["root"]
    assert about(draft).get("children", []) == expected["children"]
    assert expected["torn"] is None and not draft.partial


@pytest.mark.parametrize(("draft", "expected"), LISTED)
def test_what_was_said_in_a_task(draft: SessionDraft, expected: Expected) -> None:
    assert grown.prompts(draft.messages) == expected["prompts"]
    answers = [part.data.get("output") for part in grown.calls(draft.messages)
               if part.type == "tool-ask_followup_question"]  # fmt: skip
    assert answers == expected["followup_answers"]
    assert texts(draft) == expected["assistant_texts"]
    found = calls(draft)
    for one, call in zip(found, expected["tool_calls"], strict=True):
        if call["id"] is None:
            # A call that is marked up in text has no id; it is named by its place.
            assert ":" in one["id"]
            one["id"] = None
    assert found == expected["tool_calls"]
    lines = [one for one in draft.messages if "compaction" in one.metadata]
    assert len(lines) == expected["condense_events"]
    assert about(draft).get("messages_replaced", 0) == expected["hidden_api_messages"]
    cut = [one for one in draft.messages if one.metadata.get("backscroll", {}).get("cut")]
    assert len(cut) == expected["partial_left"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), LISTED)
def test_what_a_task_cost(draft: SessionDraft, expected: Expected) -> None:
    assert about(draft).get("requests", 0) == expected["api_requests"]
    assert about(draft).get("failed_requests", 0) == expected["failed_requests"]
    assert sum("role" in one for one in records(draft)) == expected["api_messages"]
    sums: dict[str, Any] = dict.fromkeys(expected["raw_token_sums"], 0)
    for one in raw(draft):
        sums = {key: value + one[key] for key, value in sums.items()}
    assert sums | {"cost": round(sums["cost"], 9)} == expected["raw_token_sums"]
    assert grown.tokens(draft.messages) == expected["tokens"]
    assert (cost(draft.messages) or 0) == expected["raw_token_sums"]["cost"]


def test_a_task_names_the_task_that_it_started() -> None:
    drafts = TASKS["vscode/rooveterinaryinc.roo-cline"][0]
    parent, child = sorted(drafts)[:2]
    (call,) = grown.calls(drafts[parent].messages)
    assert grown.extra(call)["child_session_source_id"] == child


def test_how_tasks_ended() -> None:
    drafts = chain.from_iterable(found.items() for found, _ in TASKS.values())
    found = {name: draft.metadata.get("activity", {}).get("state") for name, draft in drafts}
    assert {name: state for name, state in found.items() if state} == {
        "1795862072049": "waiting-approval", "1795862134532": "running"}  # fmt: skip
