"""Genuine rollouts of 0.98.0 and 0.171.0: compactions, interrupts, failures, rewinds, forks."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from store.queries.context import context_ids
from store.sources.base.drafts import SessionDraft
from store.sources.codex import CodexSource
from tests.sources.codex_lines import (
    DATA,
    Lines,
    extra,
    read,
    read_one,
    said,
    shape,
    shown,
    spent,
    thread_id,
    tools,
)
from tests.sources.grown import synced

VERSIONS = ("0.98.0", "0.171.0")
both = pytest.mark.parametrize("version", VERSIONS)


@cache
def drafts(version: str) -> dict[str, SessionDraft]:
    found, problems = read(DATA / version)
    assert problems == []
    return found


def titled(version: str, title: str) -> SessionDraft:
    (found,) = [draft for draft in drafts(version).values() if draft.title == title]
    return found


@both
def test_context_that_the_program_sends_is_told_from_prompts(version: str) -> None:
    draft = titled(version, "SLEEPY interrupt")
    origins = [m.metadata.get("origin") for m in draft.messages if m.role != "assistant"]
    assert [said(m) for m in draft.messages if m.metadata.get("origin") == "human"] == [
        "SLEEPY interrupt", "go on",
    ]  # fmt: skip
    assert set(origins) == {"meta", "human"}


def test_a_warning_between_call_and_output_is_no_prompt_and_parts_no_answer() -> None:
    draft = titled("0.98.0", "TOOLS please")
    (warning,) = [m for m in draft.messages if said(m).startswith("Warning: apply_patch")]
    assert warning.metadata["origin"] == "meta"
    answers = [m for m in draft.messages if m.role == "assistant"]
    assert all(m.parts and "usage" in m.metadata for m in answers) and len(answers) == 5


@both
def test_usage_of_each_response_is_counted_once(version: str) -> None:
    draft = titled(version, "hello one")
    used = [m.metadata["usage"] for m in draft.messages if "usage" in m.metadata]
    assert len(used) == (4 if version == "0.98.0" else 5)
    assert all(u["cache_read"] == 100 and u["reasoning"] == 7 and u["output"] == 43 for u in used)
    total = draft.metadata["backscroll"]["total_token_usage"]["total_tokens"]
    assert sum(spent([draft]).values()) == total


@both
def test_copies_in_forks_are_not_spent_again(version: str) -> None:
    every = drafts(version).values()
    forks = [draft for draft in every if draft.lineage is not None]
    assert forks and {draft.lineage.kind for draft in forks if draft.lineage} == {"fork"}
    for fork in forks:
        own = [m for m in fork.messages if m.inherited_from is None and m.role == "assistant"]
        assert len(own) == 1
        total = fork.metadata["backscroll"]["total_token_usage"]["total_tokens"]
        assert sum(spent([fork]).values()) < total


@both
def test_copies_name_their_originals_and_their_times(version: str) -> None:
    forks = [draft for draft in drafts(version).values() if draft.lineage is not None]
    assert forks
    for fork in forks:
        assert fork.lineage is not None
        parent = drafts(version)[fork.lineage.parent_source_id]
        names = {message.source_id: message for message in parent.messages}
        copied = [m for m in fork.messages if m.inherited_from is not None]
        for message in copied:
            original = names[message.inherited_from or ""]
            assert said(message) == said(original)
            assert message.created_at == original.created_at
        assert fork.lineage.parent_message_source_id == copied[-1].inherited_from


@both
def test_a_compaction_holds_its_summary(version: str) -> None:
    draft = titled(version, "hello one")
    (message,) = [m for m in draft.messages if m.metadata.get("compaction")]
    data = message.parts[0].data["data"]
    assert data["summary"].endswith("SUMMARY: we greeted and looked at files.")
    assert data["auto"] is False and data["tail_start_id"] is None
    # The request for the summary is paid for: its usage stands with an answer.
    assert message.role == ("assistant" if version == "0.98.0" else "system")


@both
def test_the_context_holds_the_prompts_before_a_compactions_summary(
    version: str, tmp_path: Path
) -> None:
    db = synced(CodexSource(), DATA / version, tmp_path / "store.db")
    ((session,),) = db.connection.execute(
        "SELECT session_id FROM chat_parts WHERE type = 'data-compaction'").fetchall()
    texts = [
        text for one in context_ids(db, session) for (text,) in db.connection.execute(
            "SELECT coalesce(json_extract(data_json, '$.text'), type) FROM chat_parts"
            " WHERE message_id = ?", (one,))
    ]  # fmt: skip
    assert texts[:4] == ["hello one", "hello two", "data-compaction", "after compaction"]
    db.close()


def test_a_compaction_keeps_as_many_prompts_as_it_names(tmp_path: Path) -> None:
    lines = Lines(thread_id(1))
    for number in range(3):
        lines.turn(f"q{number}", f"a{number}", f"r{number}")
    told = [{"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            for role, kind, text in (
                ("user", "input_text", "<environment_context>x</environment_context>"),
                ("user", "input_text", "q2"), ("user", "input_text", "SUMMARY"))]  # fmt: skip
    lines.add("compacted", {"message": "SUMMARY", "replacement_history": told})
    (part,) = [part for message in read_one(lines, tmp_path).messages for part in message.parts
               if part.type == "data-compaction"]  # fmt: skip
    assert (part.data["data"]["kept_prompts"], part.data["data"]["kept_items"]) == (1, 3)


@both
def test_an_interrupted_call_and_its_answer_say_so(version: str) -> None:
    draft = titled(version, "SLEEPY interrupt")
    (call,) = tools(draft.messages)
    assert extra(call)["status"] == "interrupted" and call.tool_state == "output-available"
    answer = next(m for m in draft.messages if call in m.parts)
    assert answer.metadata["backscroll"]["finish_reason"] == "interrupted"
    (mark,) = [m for m in draft.messages if m.metadata.get("backscroll", {}).get("interrupt")]
    assert mark.metadata["origin"] == "meta"


@both
def test_a_killed_run_leaves_its_call_open(version: str) -> None:
    (call,) = tools(titled(version, "SLEEPY killed").messages)
    assert call.tool_state == "input-available" and "output" not in call.data


def test_a_failed_turn_is_an_error() -> None:
    draft = titled("0.171.0", "ERR400 please")
    (part,) = [p for m in draft.messages for p in m.parts if p.type == "data-error"]
    assert part.data["data"]["message"] == "mock says no"


@both
def test_pictures_are_files_without_the_tags_around_them(version: str) -> None:
    draft = titled(version, "see this")
    (prompt,) = [m for m in draft.messages if said(m).startswith("see this")][:1]
    assert [part.type for part in prompt.parts] == ["text", "file"]
    file = prompt.parts[1].data
    assert file["mediaType"] == "image/png" and file["url"].startswith("data:image/png;base64,")
    assert file["filename"] == ("Image #1" if version == "0.98.0" else "p.png")


@both
def test_answers_name_the_model_of_their_turn(version: str) -> None:
    draft = titled(version, "see this")
    models = [m.metadata["model"] for m in draft.messages if m.role == "assistant"]
    assert models == [
        {"provider_id": "mock", "model_id": "gpt-5.5"},
        {"provider_id": "mock", "model_id": "gpt-5.6-mini", "variant": "high"},
    ]
    assert draft.model == models[-1]


@both
def test_failed_commands_and_patches_are_told(version: str) -> None:
    calls = tools(titled(version, "TOOLS please").messages)
    codes = [extra(call).get("exit_code") for call in calls][:4]
    assert codes == [0, 4, None, 0]
    states = [extra(call)["status"] for call in calls][:4]
    assert states == ["ok", "error", "ok" if version == "0.98.0" else "error", "ok"]
    assert calls[2].data["input"]["plan"][1] == {"step": "b", "status": "in_progress"}


def test_shell_lines_that_a_person_ran_are_told() -> None:
    draft = titled("0.171.0", "hello one")
    (line,) = [m for m in draft.messages if m.metadata.get("origin") == "shell"]
    assert line.metadata["backscroll"]["shell"] == "echo shelled"


def test_what_a_late_item_tells_goes_to_its_call() -> None:
    calls = tools(titled("0.171.0", "hello one").messages)
    assert extra(calls[-1])["exit_code"] == -1 and extra(calls[-1])["status"] == "interrupted"


def test_old_rewinds_hide_turns() -> None:
    draft = titled("0.98.0", "Named by user")
    hidden = [m for m in draft.messages if "hidden_at" in m.metadata]
    assert [said(m).split("|")[-1] for m in hidden] == [
        "hello d2", "Answer to: hello d2", "hello d3", "Answer to: hello d3",
    ]  # fmt: skip
    assert len({m.metadata["hidden_at"] for m in hidden}) == 1
    assert [text for role, text in shape(draft) if role == "user"] == ["hello d1", "hello d4"]


def test_two_reverts_are_two_batches() -> None:
    draft = titled("0.171.0", "Named by user")
    hidden = [(said(m), m.metadata["hidden_at"]) for m in draft.messages
              if "hidden_at" in m.metadata and m.role == "user"]  # fmt: skip
    assert [text for text, _ in hidden] == ["hello d2", "hello d3", "hello d5"]
    assert hidden[0][1] == hidden[1][1] < hidden[2][1]
    prompts = [said(m) for m in shown(draft.messages) if m.metadata.get("origin") == "human"]
    assert prompts == ["hello d1", "hello d4", "hello d6"]


def test_a_fork_of_a_reverted_thread_starts_at_its_segment() -> None:
    draft = titled("0.171.0", "in the fork")
    parent = titled("0.171.0", "Named by user")
    assert draft.lineage is not None and draft.lineage.parent_source_id == parent.source_id
    prompts = [said(m) for m in draft.messages if m.metadata.get("origin") == "human"]
    assert prompts == ["hello d1", "hello d4", "in the fork"]
    assert not any("hidden_at" in m.metadata for m in draft.messages)


@both
def test_archived_threads_are_archived_when_they_ended_at_the_latest(version: str) -> None:
    draft = titled(version, "hello archived")
    assert draft.archived_at == draft.updated_at
    assert sum(each.archived_at is not None for each in drafts(version).values()) == 1
