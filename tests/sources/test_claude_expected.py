"""The genuine sample tree comes out exactly as its EXPECTED.json says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.claude_code import ClaudeCodeSource

DATA = Path(__file__).parent.parent / "data" / "claude-code"
ROOT = DATA / "home" / ".claude"
EXPECTED: dict[str, Any] = json.loads((DATA / "EXPECTED.json").read_text())
SESSIONS = {entry["session_id"]: entry for entry in EXPECTED["sessions"]}
BUCKETS = ("input", "output", "reasoning", "cache_read", "cache_write")


def read_all(root: Path) -> dict[str, SessionDraft]:
    source = ClaudeCodeSource()
    drafts: dict[str, SessionDraft] = {}
    problems: list[Any] = []
    for unit in source.units(root, problems):
        reading = source.read(root, unit)
        problems += reading.problems
        drafts |= {draft.source_id: draft for draft in reading.sessions}
    assert problems == []
    return drafts


@pytest.fixture(scope="module")
def drafts() -> dict[str, SessionDraft]:
    return read_all(ROOT)


def assistants(messages: Iterable[MessageDraft]) -> list[MessageDraft]:
    return [message for message in messages if message.role == "assistant"]


def tokens(messages: Iterable[MessageDraft]) -> dict[str, int]:
    total = dict.fromkeys(BUCKETS, 0)
    count = 0
    for message in messages:
        usage = message.metadata.get("usage")
        if usage is not None:
            count += 1
            for bucket in BUCKETS:
                total[bucket] += usage[bucket]
    total["output"] += total["reasoning"]
    return {"api_messages": count, **total}


def expected_tokens(entry: dict[str, Any]) -> dict[str, int]:
    return {key: entry[key] for key in ("api_messages", *BUCKETS)}


def visible(draft: SessionDraft) -> list[MessageDraft]:
    return [message for message in draft.messages if "hidden_at" not in message.metadata]


def words(message: MessageDraft) -> str:
    return " ".join(
        " ".join(part.data["text"] for part in message.parts if part.type == "text").split()
    )


def extra(message: MessageDraft) -> dict[str, Any]:
    found: dict[str, Any] = message.metadata.get("backscroll", {})
    return found


def blocks_of(messages: Iterable[MessageDraft]) -> dict[str, int]:
    """Count content blocks as they stood in the rows."""
    count: Counter[str] = Counter()
    for message in messages:
        if message.role != "assistant" and "interrupt" not in extra(message):
            continue  # other user rows hold a string, which is no block
        for part in message.parts:
            if part.type == "text":
                count["text"] += 1
            elif part.type == "reasoning":
                count["thinking"] += 1
            elif part.tool_call_id is not None:
                count["tool_use"] += 1
                if part.tool_state != "input-available":
                    count["tool_result"] += 1
                output = part.data.get("output")
                for block in output if isinstance(output, list) else []:
                    if block["type"] == "text":
                        count["tool_result/text"] += 1
                    elif block["mediaType"].startswith("image/"):
                        count["tool_result/image"] += 1
                    else:
                        count["tool_result/document"] += 1
    return dict(count)


def calls_of(draft: SessionDraft) -> list[dict[str, Any]]:
    return [
        {
            "id": part.tool_call_id,
            "name": part.type.removeprefix("tool-"),
            "status": part.data["resultProviderMetadata"]["backscroll"]["status"],
            "on_current_branch": "hidden_at" not in message.metadata,
        }
        for message in draft.messages
        for part in message.parts
        if part.tool_call_id is not None
    ]


def test_sessions(drafts: dict[str, SessionDraft]) -> None:
    main = {key for key, draft in drafts.items() if _kind(draft) != "subagent"}
    assert main == set(SESSIONS)
    assert len(main) == EXPECTED["session_files"]
    assert sum(1 for key in main if drafts[key].messages) == EXPECTED["sessions_with_messages"]


def _kind(draft: SessionDraft) -> str | None:
    return draft.lineage.kind if draft.lineage else None


@pytest.mark.parametrize("session_id", SESSIONS)
def test_session(session_id: str, drafts: dict[str, SessionDraft]) -> None:
    entry, draft = SESSIONS[session_id], drafts[session_id]
    assert len(draft.records) == entry["records"]
    assert draft.title == entry["title"]
    assert draft.workspace_root == (
        entry["first_cwd"] or ("/home/user/legacy" if entry["subagents"] else None)
    )
    assert draft.metadata.get("git_branch") == entry["git_branch"]
    assert ([draft.model["model_id"]] if draft.model else []) == entry["models"]
    if entry["records"]:
        assert draft.title_from == entry["title_source"]
        assert draft.metadata["version"] in entry["versions"]


@pytest.mark.parametrize("session_id", SESSIONS)
def test_history(session_id: str, drafts: dict[str, SessionDraft]) -> None:
    entry, shown = SESSIONS[session_id]["history"], visible(drafts[session_id])
    by_origin: dict[str, list[MessageDraft]] = {}
    for message in shown:
        if message.role == "user":
            by_origin.setdefault(message.metadata["origin"], []).append(message)
    typed = [
        message
        for message in shown
        if message.metadata.get("origin") in ("human", "command", "shell")
        and message.role == "user"
        and not extra(message).get("output")
    ]
    assert [words(message)[:120] for message in typed] == entry["prompts"]
    assert len(by_origin.get("human", [])) == entry["user_prompts"]
    assert len([m for m in typed if m.metadata["origin"] == "command"]) == entry["commands"]
    assert len([m for m in typed if m.metadata["origin"] == "shell"]) == entry["shell"]
    interrupts = [m for m in by_origin.get("meta", []) if "interrupt" in extra(m)]
    assert len(interrupts) == entry["interrupts"]
    assert len(by_origin.get("meta", [])) - len(interrupts) == entry["meta_user_rows"]
    assert len(by_origin.get("notification", [])) == entry["notifications"]
    kinds = Counter(part.type for message in shown for part in message.parts)
    assert kinds["data-compaction"] == entry["compact_summaries"]
    assert kinds["data-error"] == entry["synthetic_api_errors"]
    assert kinds["data-retry"] == entry["api_error_retries"]
    assert len(assistants(shown)) == entry["assistant_messages"]
    assert sum("aborted_at" in extra(m) for m in shown) == entry["aborted_mid_stream"]
    assert blocks_of(shown) == entry["blocks"]
    results = [p for m in shown for p in m.parts if p.tool_state not in (None, "input-available")]
    assert len(results) == entry["tool_result_rows"]


@pytest.mark.parametrize("session_id", SESSIONS)
def test_branches_and_tokens(session_id: str, drafts: dict[str, SessionDraft]) -> None:
    entry, draft = SESSIONS[session_id], drafts[session_id]
    everything = entry["all_branches"]
    humans = [m for m in draft.messages if m.metadata.get("origin") == "human"]
    assert len(humans) == everything["user_prompts"]
    assert len(assistants(draft.messages)) == everything["assistant_messages"]
    left = [m for m in humans if "hidden_at" in m.metadata]
    assert [words(message) for message in left] == entry["abandoned_tip_prompts"]
    batches = {m.metadata["hidden_at"] for m in draft.messages if "hidden_at" in m.metadata}
    assert len(batches) == max(entry["branches"] - 1, 0)
    assert tokens(draft.messages) == expected_tokens(entry["tokens_main"])
    assert calls_of(draft) == entry["tool_calls"]


@pytest.mark.parametrize("session_id", SESSIONS)
def test_context_after_compaction(session_id: str, drafts: dict[str, SessionDraft]) -> None:
    entry, shown = (
        SESSIONS[session_id]["context_after_last_compaction"],
        visible(drafts[session_id]),
    )
    start = 0
    for index, message in enumerate(shown):
        if message.parts and message.parts[0].type == "data-compaction":
            tail = message.parts[0].data["data"]["tail_start_id"]
            start = [m.source_id for m in shown].index(tail) if tail else index
    assert len(assistants(shown[start:])) == entry["assistant_messages"]
    humans = [m for m in shown[start:] if m.metadata.get("origin") == "human"]
    assert len(humans) == entry["user_prompts"]


@pytest.mark.parametrize("session_id", SESSIONS)
def test_forks(session_id: str, drafts: dict[str, SessionDraft]) -> None:
    entry, draft = SESSIONS[session_id], drafts[session_id]
    assert ([draft.lineage.parent_source_id] if draft.lineage else []) == entry["forked_from"]
    copies = [message for message in draft.messages if message.inherited_from is not None]
    if draft.lineage is None:
        assert copies == []
        return
    assert draft.lineage.kind == "fork"
    assert tokens(copies) == expected_tokens(entry["tokens_inherited_by_fork"])
    parent = drafts[draft.lineage.parent_source_id]
    assert [m.inherited_from for m in copies] == [m.source_id for m in parent.messages]
    assert draft.lineage.parent_message_source_id == parent.messages[-1].source_id


@pytest.mark.parametrize("session_id", SESSIONS)
def test_subagents(session_id: str, drafts: dict[str, SessionDraft]) -> None:
    entry = SESSIONS[session_id]
    children = {
        key: draft
        for key, draft in drafts.items()
        if _kind(draft) == "subagent"
        and draft.lineage
        and draft.lineage.parent_source_id == session_id
    }
    assert len(children) == len(entry["subagents"])
    for agent in entry["subagents"]:
        if agent["kind"] == "agent file":
            child = children[f"agent-{agent['agent_id']}:{session_id}"]
            assert child.path.endswith(agent["file"])
            assert child.lineage is not None
            assert child.lineage.tool_call_id == agent["tool_use_id"]
            assert len(assistants(child.messages)) == agent["assistant_messages"]
            assert child.metadata["backscroll"].get("agent_type") in (
                agent["agent_type"],
                "general-purpose",
            )
            assert child.metadata["backscroll"].get("warmup", False) == agent["warmup"]
            assert words(child.messages[0]) == agent["prompt"]
        else:
            (child,) = children.values()
            assert [words(child.messages[0])] == agent["prompts"]
        assert tokens(child.messages) == expected_tokens(agent["tokens"])
        assert [(call["id"], call["name"], call["status"]) for call in calls_of(child)] == [
            (call["id"], call["name"], call["status"]) for call in agent["tool_calls"]
        ]
    total = tokens([m for d in (drafts[session_id], *children.values()) for m in d.messages])
    assert total == expected_tokens(entry["tokens_with_subagents"])


def test_calls_name_their_subagents(drafts: dict[str, SessionDraft]) -> None:
    linked = 0
    for draft in drafts.values():
        lineage = draft.lineage
        if lineage is None or lineage.tool_call_id is None:
            continue
        parent = drafts[lineage.parent_source_id]
        owner = next(m for m in parent.messages if m.source_id == lineage.parent_message_source_id)
        part = next(p for p in owner.parts if p.tool_call_id == lineage.tool_call_id)
        found = part.data["resultProviderMetadata"]["backscroll"]["child_session_source_id"]
        assert found == draft.source_id
        linked += 1
    assert linked == 4


def test_tokens_of_all_files_count_each_api_message_once(drafts: dict[str, SessionDraft]) -> None:
    own = [m for draft in drafts.values() for m in draft.messages if m.inherited_from is None]
    assert tokens(own) == expected_tokens(EXPECTED["tokens_all_files_deduplicated"])
    every = tokens([m for draft in drafts.values() for m in draft.messages])
    added_up = EXPECTED["tokens_if_files_are_added_up"]
    assert {key: every[key] for key in added_up} == added_up


def test_side_file_is_named_by_its_part(drafts: dict[str, SessionDraft]) -> None:
    draft = drafts["32bb6361-96f9-4ed5-9d7a-49190e26b42c"]
    named = [
        part.data["resultProviderMetadata"]["backscroll"].get("attachment")
        for message in draft.messages
        for part in message.parts
        if part.tool_call_id is not None
    ]
    assert named == [None, None, None, None, "bwlzs0nv3.txt", None]
    (found,) = [a for a in draft.attachments if a.name == "bwlzs0nv3.txt"]
    assert (found.media_type, len(found.body)) == ("text/plain", 114893)


def test_every_record_is_used_at_most_by_its_own_session(drafts: dict[str, SessionDraft]) -> None:
    for draft in drafts.values():
        for message in draft.messages:
            numbers = [*message.records, *(n for p in message.parts for n in p.records)]
            assert all(0 <= number < len(draft.records) for number in numbers)
            assert numbers


def test_source_ids_are_unique(drafts: dict[str, SessionDraft]) -> None:
    for draft in drafts.values():
        ids = [message.source_id for message in draft.messages]
        assert len(ids) == len(set(ids))
