"""The genuine sample home comes out exactly as its EXPECTED.json says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.values import epoch_ms
from store.sources.codex import CodexSource
from tests.sources.codex_lines import DATA, api, extra, read, said, shown, spent, tools

HOME = DATA / "home"
EXPECTED: dict[str, Any] = json.loads((DATA / "EXPECTED.json").read_text())
THREADS: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in EXPECTED["threads"]}
each_thread = pytest.mark.parametrize("name", THREADS)


@pytest.fixture(scope="module")
def drafts() -> dict[str, SessionDraft]:
    found, problems = read(HOME)
    assert problems == []
    return found


def humans(messages: list[MessageDraft]) -> list[str]:
    return [said(m) for m in messages if m.metadata.get("origin") == "human"]


def test_threads_archive_and_segments_are_counted(drafts: dict[str, SessionDraft]) -> None:
    units = list(CodexSource().units(HOME, []))
    files = [[s for s in unit.stamps if not s.path.endswith("#facts")] for unit in units]
    assert set(drafts) == set(THREADS) and len(drafts) == EXPECTED["thread_count"]
    assert sum(map(len, files)) == EXPECTED["segment_files"]
    assert sum(len(each) > 1 for each in files) == EXPECTED["threads_with_several_segments"]
    archived = [name for name, draft in drafts.items() if draft.archived_at is not None]
    assert archived == [name for name, entry in THREADS.items() if entry["archived"]]
    assert len(archived) == EXPECTED["archived"]


def test_forks_and_subagents_name_their_parents(drafts: dict[str, SessionDraft]) -> None:
    def parents(kind: str) -> dict[str, str]:
        return {
            name: draft.lineage.parent_source_id
            for name, draft in drafts.items()
            if draft.lineage is not None and draft.lineage.kind == kind
        }

    assert parents("fork") == EXPECTED["forks"]
    assert parents("subagent") == EXPECTED["subagents"]
    for edge in EXPECTED["spawn_edges"]:
        parent, child = edge["parent_thread_id"], edge["child_thread_id"]
        lineage = drafts[child].lineage
        assert lineage is not None
        (call,) = [p for p in tools(drafts[parent].messages)
                   if extra(p).get("child_session_source_id") == child]  # fmt: skip
        assert lineage.tool_call_id == call.tool_call_id
        owner = next(m for m in drafts[parent].messages if call in m.parts)
        assert lineage.parent_message_source_id == owner.source_id


def test_spent_tokens_count_reverted_turns_and_no_copies(drafts: dict[str, SessionDraft]) -> None:
    assert api(spent(drafts.values())) == EXPECTED["spent_usage_total_incl_reverted_turns"]


def test_own_tokens_are_those_of_the_standing_files(drafts: dict[str, SessionDraft]) -> None:
    total = dict.fromkeys(("input", "cached_input", "output", "reasoning"), 0)
    for name, entry in THREADS.items():
        used = api(spent([_of_head(drafts[name], entry["head"])]))
        assert used == entry["own_usage"], name
        total = {key: total[key] + used[key] for key in total}
    assert total == EXPECTED["own_usage_total"]


def _of_head(draft: SessionDraft, head: str) -> SessionDraft:
    """Return a draft with only the messages of its newest file."""
    line = json.loads((HOME / head).read_text().partition("\n")[0])
    began = epoch_ms(line["timestamp"]) or 0
    kept = [message for message in draft.messages if message.created_at >= began]
    return SessionDraft(draft.source_id, draft.path, "codex", 0, 0, messages=kept)


@each_thread
def test_titles_follow_name_own_prompt_preview(
    drafts: dict[str, SessionDraft], name: str
) -> None:
    entry, draft = THREADS[name], drafts[name]
    assert draft.title == (entry["title"] or entry["db_title"] or entry["preview"])
    assert draft.title_from == ("name" if entry["title"] else "first-prompt")


@each_thread
def test_sessions_say_where_when_and_by_what(
    drafts: dict[str, SessionDraft], name: str
) -> None:
    entry, draft = THREADS[name], drafts[name]
    assert draft.workspace_root == entry["cwd"]
    assert draft.metadata["version"] == entry["cli_version"]
    assert draft.metadata["git_branch"] == "main"
    assert draft.metadata["backscroll"]["history_mode"] == entry["history_mode"]
    assert (draft.created_at, draft.updated_at) == (entry["created_at_ms"], entry["updated_at_ms"])
    assert Path(draft.path) == HOME / entry["head"]
    spawn = entry["source"].get("subagent", {}) if isinstance(entry["source"], dict) else {}
    if spawn:
        nickname = spawn["thread_spawn"]["agent_nickname"]
        assert draft.metadata["backscroll"]["agent_nickname"] == nickname
    else:
        assert draft.metadata["backscroll"]["entrypoint"] == entry["source"]


@each_thread
def test_prompts_of_people_stand_in_order(drafts: dict[str, SessionDraft], name: str) -> None:
    assert humans(shown(drafts[name].messages)) == THREADS[name]["user_messages"]


@each_thread
def test_answers_and_reasoning_are_counted(drafts: dict[str, SessionDraft], name: str) -> None:
    entry = THREADS[name]
    answers = [m for m in shown(drafts[name].messages) if m.role == "assistant"]
    kinds = [part.type for message in answers for part in message.parts]
    assert kinds.count("text") == entry["assistant_messages"]
    assert kinds.count("reasoning") == entry["reasoning_items"]
    every = [part.type for m in drafts[name].messages for part in m.parts]
    assert every.count("data-compaction") == entry["compactions"]


@each_thread
def test_calls_have_their_names_outputs_and_exit_codes(
    drafts: dict[str, SessionDraft], name: str
) -> None:
    found = [
        {
            "id": part.tool_call_id,
            "name": part.type.removeprefix("tool-"),
            "status": "output" if part.tool_state == "output-available" else part.tool_state,
            "exit_code": extra(part).get("exit_code"),
        }
        for part in tools(shown(drafts[name].messages))
    ]
    assert found == THREADS[name]["tool_calls"]


@each_thread
def test_turns_end_as_they_ended(drafts: dict[str, SessionDraft], name: str) -> None:
    ended = [
        "aborted" if "aborted_at" in m.metadata["backscroll"] else "complete"
        for m in shown(drafts[name].messages)
        if "turn_duration_ms" in m.metadata.get("backscroll", {})
    ]
    assert ended == THREADS[name]["turns"]


@each_thread
def test_requests_of_the_standing_file_are_counted_once(
    drafts: dict[str, SessionDraft], name: str
) -> None:
    entry = THREADS[name]
    own = _of_head(drafts[name], entry["head"]).messages
    ids = [m.metadata["backscroll"]["response_id"] for m in own if "usage" in m.metadata]
    assert len(ids) == len(set(ids)) == entry["own_requests"]


@each_thread
def test_total_as_the_program_counts_it_is_kept(
    drafts: dict[str, SessionDraft], name: str
) -> None:
    entry, kept = THREADS[name], drafts[name].metadata["backscroll"]["total_token_usage"]
    assert kept == entry["last_total_token_usage"]
    assert kept["total_tokens"] == entry["tokens_used"]


def test_the_programs_own_totals_count_inherited_tokens_again(
    drafts: dict[str, SessionDraft],
) -> None:
    kept = [draft.metadata["backscroll"]["total_token_usage"] for draft in drafts.values()]
    totals = [total["total_tokens"] for total in kept]
    assert sum(totals) == EXPECTED["naive_sum_of_threads_tokens_used"]
    assert sum(spent(drafts.values()).values()) < sum(totals) + 1300


@each_thread
def test_lines_are_kept_inherited_ones_by_their_owner(
    drafts: dict[str, SessionDraft], name: str
) -> None:
    entry, draft = THREADS[name], drafts[name]
    lines = [(HOME / path).read_bytes().splitlines() for path in entry["segments"]]
    assert draft.records == [line for segment in lines for line in segment]
    assert len(lines[-1]) == entry["own_lines"]
    used = {
        number
        for message in draft.messages
        for group in (message.records, *(part.records for part in message.parts))
        for number in group
    }
    assert used == set(range(len(draft.records)))
    assert any(m.inherited_from for m in draft.messages) == (
        name in EXPECTED["forks"] and entry["inherited_lines"] > 0
    )


def test_a_forks_prefix_is_its_parents_and_marked(drafts: dict[str, SessionDraft]) -> None:
    for child, parent in EXPECTED["forks"].items():
        copied = [m for m in drafts[child].messages if m.inherited_from is not None]
        originals = drafts[parent].messages[: len(copied)]
        assert [m.inherited_from for m in copied] == [m.source_id for m in originals]
        assert [[p.data for p in m.parts] for m in copied] == [
            [p.data for p in m.parts] for m in originals
        ]
        lineage = drafts[child].lineage
        assert lineage is not None
        assert lineage.parent_message_source_id == originals[-1].source_id


def test_reverted_turns_are_one_hidden_batch(drafts: dict[str, SessionDraft]) -> None:
    (entry,) = [entry for entry in THREADS.values() if entry["hidden_lines"]]
    draft = drafts[entry["id"]]
    hidden = [m for m in draft.messages if "hidden_at" in m.metadata]
    assert [said(m) for m in hidden] == ["MOCK:hello2 second question", "Second answer."]
    assert {m.metadata["hidden_at"] for m in hidden} == {entry["created_at_ms"]}
    cut = entry["head_base"]["end_ordinal_exclusive"]
    rewound = range(cut, len((HOME / entry["segments"][0]).read_bytes().splitlines()))
    assert len(rewound) == entry["hidden_lines"]
    assert {n for m in hidden for p in m.parts for n in p.records} <= set(rewound)


def test_patches_can_be_drawn(drafts: dict[str, SessionDraft]) -> None:
    (part,) = [p for d in drafts.values() for p in tools(d.messages)
               if p.tool_call_id == "call_tools_2_0"]  # fmt: skip
    structured = extra(part)["structured"]
    assert structured["files"] == [{"path": "/home/user/project/a.txt", "change": "update"}]
    assert structured["structuredPatch"] == [
        {"file": "/home/user/project/a.txt", "oldStart": 1, "oldLines": 2, "newStart": 1,
         "newLines": 2, "lines": ["-alpha", "+ALPHA", " second line"]}
    ]  # fmt: skip


def test_reasoning_keeps_what_is_encrypted(drafts: dict[str, SessionDraft]) -> None:
    parts = [p for d in drafts.values() for m in d.messages for p in m.parts
             if p.type == "reasoning"]  # fmt: skip
    kept = {p.data["providerMetadata"]["openai"]["reasoningEncryptedContent"] for p in parts}
    assert "ENC-mock-1-0" in kept and all(name.startswith("ENC-mock-") for name in kept)
