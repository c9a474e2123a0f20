"""The genuine Gemini CLI sample comes out exactly as its EXPECTED.json says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.values import epoch_ms
from store.sources.gemini import GeminiSource
from tests.sources.grown import (
    calls,
    check_records,
    extra,
    prompts,
    read_all,
    snapshot,
    synced,
    tokens,
    visible,
    words,
)

DATA = Path(__file__).parent.parent / "data" / "gemini"
EXPECTED: dict[str, Any] = json.loads((DATA / "EXPECTED.json").read_text())
SESSIONS = {entry["id"]: entry for entry in EXPECTED["sessions"]}


@pytest.fixture(scope="module")
def drafts() -> dict[str, SessionDraft]:
    found, problems = read_all(GeminiSource(), DATA)
    assert problems == []
    return found


def counted(messages: list[MessageDraft]) -> dict[str, int]:
    """Return our buckets as the sample counts them."""
    sums = tokens(messages)
    return {
        "input": sums["input"] + sums["cache_read"],
        "output": sums["output"],
        "cached": sums["cache_read"],
        "thoughts": sums["reasoning"],
        "total": sum(sums.values()),
    }


def told(messages: list[MessageDraft]) -> list[dict[str, Any]]:
    found = []
    for part in calls(messages):
        status = {"output-available": "success", "output-error": "error"}[str(part.tool_state)]
        entry = {"id": part.tool_call_id, "name": part.type[5:], "status": status}
        child = extra(part).get("child_session_source_id")
        found.append(entry | ({"child_session": child} if child else {}))
    return found


def test_sessions(drafts: dict[str, SessionDraft]) -> None:
    assert set(drafts) == set(SESSIONS)
    assert len(drafts) == EXPECTED["session_count"]
    agents = [draft for draft in drafts.values() if draft.lineage]
    assert len(agents) == EXPECTED["subagent_sessions"]


@pytest.mark.parametrize("session_id", SESSIONS)
def test_session(session_id: str, drafts: dict[str, SessionDraft]) -> None:
    entry, draft = SESSIONS[session_id], drafts[session_id]
    own = draft.metadata["backscroll"]
    assert draft.path.endswith(entry["files"][0])
    assert draft.workspace_root == "/home/user/project"
    assert own["session_kind"] == entry["kind"]
    assert own.get("summary") == entry["summary"]
    assert own["start_time"] == entry["start"]
    assert draft.updated_at == epoch_ms(entry["last_updated"])
    assert own.get("rewinds", 0) == entry["rewinds"]
    assert own.get("checkpoint_sets", 0) == entry["checkpoint_sets"]
    parent = draft.lineage.parent_source_id if draft.lineage else None
    assert parent == entry["parent_session"]
    assert draft.model == {"provider_id": "google", "model_id": "gemini-2.5-flash"}
    check_records(draft)


@pytest.mark.parametrize("session_id", SESSIONS)
@pytest.mark.parametrize("view", ["ever", "live"])
def test_messages(session_id: str, view: str, drafts: dict[str, SessionDraft]) -> None:
    entry, draft = SESSIONS[session_id][view], drafts[session_id]
    messages = draft.messages if view == "ever" else visible(draft)
    answers = [message for message in messages if message.role == "assistant"]
    context = [m for m in messages if m.metadata.get("origin") == "meta"]
    assert prompts(messages) == entry["user_prompts"]
    assert len(prompts(messages)) == entry["records"]["user"]
    assert len(answers) == entry["records"]["gemini"]
    assert len(context) == entry["records"].get("context", 0)
    assert told(messages) == entry["tool_calls"]
    assert counted(messages) == entry["tokens"]
    assert sum("usage" in m.metadata for m in answers) == entry["requests_with_tokens"]


def test_tokens_of_all_sessions(drafts: dict[str, SessionDraft]) -> None:
    every = [message for draft in drafts.values() for message in draft.messages]
    assert counted(every) == EXPECTED["tokens_ever"]
    assert counted(every) == EXPECTED["tokens_deduped_by_message_id"]


def by_label(drafts: dict[str, SessionDraft], label: str) -> SessionDraft:
    return next(drafts[key] for key, entry in SESSIONS.items() if entry["label"] == label)


def test_titles(drafts: dict[str, SessionDraft]) -> None:
    found = {(d.title, d.title_from) for d in drafts.values()}
    assert ("Mock session summary line", "summary") in found
    assert ("MOCK:sub count the files", "first-prompt") in found


def test_rewound_turns_are_one_hidden_batch(drafts: dict[str, SessionDraft]) -> None:
    draft = by_label(drafts, "rewound")
    hidden = [m for m in draft.messages if "hidden_at" in m.metadata]
    assert [words(m)[:27] for m in hidden[1:]] == ["MOCK:hello2 second question", "Second answer."]
    assert {m.metadata["hidden_at"] for m in hidden} == {epoch_ms("2026-11-27T22:38:35.621Z")}


def test_a_resume_restores_without_copies(drafts: dict[str, SessionDraft]) -> None:
    draft = by_label(drafts, "resumed")
    assert [words(m)[:14] for m in draft.messages if m.role == "assistant"] == [
        "Hello! I am th", "Checking both ", "Both files are",
    ]  # fmt: skip
    first = draft.messages[2]
    assert first.created_at == epoch_ms("2026-11-27T22:38:15.602Z")
    assert [part.type for part in first.parts] == ["reasoning", "text"]
    assert draft.created_at == epoch_ms("2026-11-27T22:38:15.531Z")


def test_tool_parts(drafts: dict[str, SessionDraft]) -> None:
    failed, missing = calls(by_label(drafts, "fail").messages)
    assert failed.tool_state == "output-available"
    assert (extra(failed)["status"], extra(failed)["exit_code"]) == ("error", 3)
    assert extra(failed)["duration_ms"] == 1795819100999 - 1795819100906
    assert missing.data["errorText"] == "File not found: /home/user/project/missing.txt"
    assert extra(missing)["status"] == "error"
    shell, read, edit = calls(by_label(drafts, "plain").messages)
    assert (extra(shell)["exit_code"], extra(shell)["status"]) == (0, "ok")
    assert read.data["output"] == "alpha\nsecond line\n"
    assert extra(edit)["structured"]["structuredPatch"] == [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2,
         "lines": ["-alpha", "+ALPHA", " second line"]}
    ]  # fmt: skip


def test_subagent_is_linked_to_its_call(drafts: dict[str, SessionDraft]) -> None:
    child = next(draft for draft in drafts.values() if draft.lineage)
    assert child.lineage is not None and child.lineage.kind == "subagent"
    parent = drafts[child.lineage.parent_source_id]
    owner = next(m for m in parent.messages if m.source_id ==
                 child.lineage.parent_message_source_id)  # fmt: skip
    assert [p.tool_call_id for p in calls([owner])] == [child.lineage.tool_call_id]


def test_source_is_untouched(tmp_path: Path) -> None:
    before = snapshot(DATA)
    database = synced(GeminiSource(), DATA, tmp_path / "store.db")
    count = database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()[0]
    database.close()
    assert count == EXPECTED["session_count"]
    assert snapshot(DATA) == before
