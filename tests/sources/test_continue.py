"""Continue: the sample comes out exactly as its EXPECTED.json says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import PartDraft, SessionDraft
from store.sources.continue_dev import ContinueSource
from tests.sources import grown
from tests.sources.samples import DATA

SAMPLE = DATA / "continue" / "sessions"
EXPECTED = json.loads((DATA / "continue" / "EXPECTED.json").read_text())["sessions"]
DRAFTS, PROBLEMS = grown.read_all(ContinueSource(), SAMPLE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["id"][:8]) for one in EXPECTED]
KEYS = ("input", "output", "reasoning", "cache_read", "cache_write")
FORK, ORIGINAL = "d00a770e-91bd-48cf-9216-899339f9f2dc", "bb9cb2c5-6973-444b-b3e1-5d4997fc7121"


def prompts(draft: SessionDraft) -> list[str]:
    return ["\n".join(part.data["text"] for part in one.parts if part.type == "text")
            for one in draft.messages if one.metadata.get("origin") == "human"]  # fmt: skip


def parts(draft: SessionDraft, kind: str) -> list[PartDraft]:
    return [part for one in draft.messages for part in one.parts if part.type == kind]


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    found = []
    for part in (part for one in draft.messages for part in one.parts if part.tool_call_id):
        extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        found.append({"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
                      "status": extra.get("status", "no result")})  # fmt: skip
    return found


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == []
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED}


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    if expected["title"] == "Untitled Session":
        # A placeholder: the first prompt says more.
        assert (draft.title, draft.title_from) == (expected["prompts"][0], "first-prompt")
    else:
        assert (draft.title, draft.title_from) == (expected["title"], "title")
    assert draft.workspace_root == expected["workspace"]
    assert draft.created_at == expected["created_ms"]
    assert draft.metadata.get("backscroll", {}).get("mode") == expected["mode"]
    if expected["chat_model_title"]:
        assert draft.model == {
            "provider_id": "unknown", "model_id": expected["chat_model_title"]}


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(draft) == expected["prompts"]
    answers = [one for one in draft.messages
               if one.role == "assistant" and "no_answer" not in one.metadata.get(
                   "backscroll", {})]  # fmt: skip
    assert len(answers) == expected["assistant_messages"]
    texts = [part.data["text"] for one in answers for part in one.parts if part.type == "text"]
    assert texts == expected["assistant_texts"]
    assert len(parts(draft, "reasoning")) == expected["reasoning_items"]
    assert len(parts(draft, "file")) == expected["images"]
    models = [one.metadata["model"]["model_id"] for one in answers if "model" in one.metadata]
    assert list(dict.fromkeys(models)) == expected["models_used"]
    summaries = [part.data["data"]["summary"] for part in parts(draft, "data-compaction")]
    assert len(summaries) == expected["compactions_visible"]
    assert summaries == ([expected["summary"]] if expected["summary"] else [])
    assert calls(draft) == expected["tool_calls"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tokens(draft: SessionDraft, expected: dict[str, Any]) -> None:
    used = [one.metadata["usage"] for one in draft.messages
            if "usage" in one.metadata and one.parts]  # fmt: skip
    assert len(used) == expected["messages_with_usage"]
    assert {key: sum(one[key] for one in used) for key in KEYS} == (
        expected["tokens_from_messages"])
    own = [one.metadata["usage"] for one in draft.messages
           if "usage" in one.metadata and one.inherited_from is None]  # fmt: skip
    told = expected["usage_of_session"]
    if told is not None:
        # Each request of the session once, those too whose messages a compaction took out.
        asked = sum(one["input"] + one["cache_read"] for one in own)
        said = sum(one["output"] + one["reasoning"] for one in own)
        assert (asked, said) == (told["promptTokens"], told["completionTokens"])


def test_a_fork_is_known_by_what_its_total_lacks() -> None:
    fork = DRAFTS[FORK]
    assert fork.lineage is not None
    assert (fork.lineage.kind, fork.lineage.parent_source_id) == ("fork", ORIGINAL)
    assert [one.inherited_from for one in fork.messages] == ["0", "1", "2", None, None]
    assert all(one.lineage is None for name, one in DRAFTS.items() if name != FORK)


# --- hand-made sessions ---------------------------------------------------------------------


def session(folder: Path, name: str, *items: dict[str, Any], **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"sessionId": name, "history": items} | more))
    return path


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    own = {key: more.pop(key) for key in ("toolCalls", "usage", "toolCallId") if key in more}
    return {"message": {"role": role, "content": content} | own} | more


def call(name: str, status: str | None, output: str = "") -> dict[str, Any]:
    made = {"id": name, "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
    states = [] if status is None else [
        {"toolCallId": name, "status": status, "output": [{"content": output}]}]
    return said("assistant", "", toolCalls=[made], toolCallStates=states)


def read(folder: Path) -> dict[str, SessionDraft]:
    drafts, problems = grown.read_all(ContinueSource(), folder)
    assert problems == []
    return drafts


@pytest.mark.parametrize(
    ("status", "output", "state", "word"),
    [
        ("done", "x", "output-available", "ok"),
        ("errored", "Error (exit code 7): y", "output-error", "error"),
        ("canceled", "Permission denied by user", "output-denied", "denied"),
        ("canceled", "half of it", "output-error", "interrupted"),
        ("calling", "", "input-available", None),
        ("generated", "", "approval-requested", None),
        ("generating", "", "input-streaming", None),
        (None, "", "input-available", None),
    ],
)
def test_states_of_calls(
    tmp_path: Path, status: str | None, output: str, state: str, word: str | None
) -> None:
    session(tmp_path, "11111111", said("user", "go"), call("c", status, output))
    (part,) = (part for one in read(tmp_path)["11111111"].messages for part in one.parts
               if part.tool_call_id)  # fmt: skip
    extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
    assert (part.tool_state, part.data["state"], extra.get("status")) == (state, state, word)
    assert extra.get("exit_code") == (7 if "code 7" in output else None)


def test_a_thought_before_its_answer_and_a_result_without_a_call(tmp_path: Path) -> None:
    session(tmp_path, "11111111", said("user", "go"), said("thinking", "Hm."),
            said("assistant", "Yes."), said("tool", "lost", toolCallId="c"))
    draft = read(tmp_path)["11111111"]
    answer = draft.messages[1]
    assert [part.type for part in answer.parts] == ["reasoning", "text"]
    assert calls(draft) == [{"id": "c", "name": "unknown", "status": "ok"}]
    grown.check_records(draft)


def test_usage_of_the_other_providers_form(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 988, "completion_tokens": 20, "model": "claude",
             "prompt_tokens_details": {"cache_read_tokens": 512, "cached_tokens": 512,
                                       "cache_write_tokens": 7}, "cost_cents": 2.5}  # fmt: skip
    session(tmp_path, "11111111", said("assistant", "hi", usage=usage))
    (answer,) = read(tmp_path)["11111111"].messages
    assert answer.metadata["usage"] == {
        "input": 988, "output": 20, "reasoning": 0, "cache_read": 512, "cache_write": 7}
    assert answer.metadata["cost_usd"] == 0.025


def test_when_the_list_changes_only_what_it_says_anew_is_read_again(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    shutil.copytree(SAMPLE, root)
    source = ContinueSource()
    before = {unit.key: unit for unit in source.units(root, [])}
    listed = json.loads((root / "sessions.json").read_text())
    listed[2]["dateCreated"] = "1795862460000"
    (root / "sessions.json").write_text(json.dumps(listed))
    after = {unit.key: unit for unit in source.units(root, [])}
    assert [key for key in after if after[key] != before[key]] == [listed[2]["sessionId"] + ".json"]
    (root / "sessions.json").write_text("{")
    drafts, problems = grown.read_all(source, root)
    assert problems == [] and len(drafts) == len(EXPECTED)


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert ContinueSource().default_roots({}, home) == [home / ".continue/sessions"]
    named = ContinueSource().default_roots({"CONTINUE_GLOBAL_DIR": "/c"}, home)
    assert named == [Path("/c/sessions")]
    shutil.copytree(SAMPLE, tmp_path / ".continue" / "sessions")
    for path in (tmp_path, tmp_path / ".continue", tmp_path / ".continue" / "sessions"):
        assert ContinueSource().recognise(path) == tmp_path / ".continue" / "sessions"
    assert ContinueSource().recognise(SAMPLE / "sessions.json") is None
