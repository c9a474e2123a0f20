"""The genuine samples come out as the independent reader of ``EXPECTED.json`` has them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.protocol import Problem
from store.sources.opencode import OpencodeSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target

DATA = Path(__file__).parent.parent / "data" / "opencode"
EXPECTED = json.loads((DATA / "EXPECTED.json").read_text())
ROOTS = {"opencode.db": DATA, "legacy/storage": DATA / "legacy"}
STATES = {"output-available": "completed", "output-error": "error"}
BUCKETS = ("input", "output", "reasoning", "cache_read", "cache_write")


def read_all(root: Path) -> dict[str, SessionDraft]:
    source, problems = OpencodeSource(), list[Problem]()
    found = {}
    for unit in list(source.units(root, problems)):
        reading = source.read(root, unit)
        problems += reading.problems
        found.update({draft.source_id: draft for draft in reading.sessions})
    assert problems == []
    return found


DRAFTS = {name: read_all(root) for name, root in ROOTS.items()}
SESSIONS = [
    pytest.param(DRAFTS[store][expected["id"]], expected, id=expected["id"][-6:])
    for store in ROOTS
    for expected in EXPECTED[store]["sessions"]
]


def usage_sum(messages: list[MessageDraft]) -> dict[str, int]:
    used = [message.metadata["usage"] for message in messages if "usage" in message.metadata]
    return {bucket: sum(usage[bucket] for usage in used) for bucket in BUCKETS}


def cost_sum(messages: list[MessageDraft]) -> float:
    return sum(float(message.metadata.get("cost_usd", 0.0)) for message in messages)


@pytest.mark.parametrize("store", ROOTS)
def test_each_store_holds_just_the_sessions_expected(store: str) -> None:
    expected = EXPECTED[store]
    assert DRAFTS[store].keys() == {session["id"] for session in expected["sessions"]}
    assert len(DRAFTS[store]) == expected["session_count"]
    children = [d for d in DRAFTS[store].values() if d.lineage and d.lineage.kind == "subagent"]
    assert len(children) == expected["child_sessions"]
    archived = [draft for draft in DRAFTS[store].values() if draft.archived_at is not None]
    assert len(archived) == expected["archived"]


@pytest.mark.parametrize("store", ROOTS)
def test_roles_and_tool_states_of_a_whole_store(store: str) -> None:
    messages = [m for draft in DRAFTS[store].values() for m in draft.messages]
    assert Counter(m.role for m in messages) == EXPECTED[store]["messages_by_role"]
    states = [STATES[p.tool_state] for m in messages for p in m.parts if p.tool_state]
    assert Counter(states) == EXPECTED[store]["tool_calls_by_status"]
    assert len(states) == EXPECTED[store]["tool_calls"]


@pytest.mark.parametrize("store", ROOTS)
def test_tokens_and_cost_of_a_whole_store_with_and_without_copies(store: str) -> None:
    messages = [m for draft in DRAFTS[store].values() for m in draft.messages]
    own = [message for message in messages if message.inherited_from is None]
    expected = EXPECTED[store]
    assert usage_sum(messages) == expected["tokens_naive_sum_of_all_sessions"]
    assert usage_sum(own) == expected["tokens_without_fork_copies"]
    assert cost_sum(messages) == pytest.approx(expected["cost_naive"])
    assert cost_sum(own) == pytest.approx(expected["cost_without_fork_copies"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert draft.title == expected["title"]
    assert draft.workspace_root == expected["directory"]
    assert draft.metadata["version"] == expected["version"]
    assert draft.created_at == expected["time_created"]
    assert draft.updated_at == expected["time_updated"]
    assert draft.archived_at == expected["time_archived"]
    own = draft.metadata["backscroll"]
    assert own["project_id"] == expected["project_id"]
    assert own.get("agent") == expected.get("agent")
    assert own.get("todos", []) == expected.get("todos", [])
    assert draft.model is not None
    assert draft.model["model_id"] == "mock-1" and draft.model["provider_id"] == "mock"
    assert draft.model.get("variant") == expected.get("model", {}).get("variant")


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_messages_and_their_order(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert [message.source_id for message in draft.messages] == expected["message_ids"]
    assert Counter(message.role for message in draft.messages) == expected["messages"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tool_calls_with_name_state_message_and_child(
    draft: SessionDraft, expected: dict[str, Any]
) -> None:
    calls = []
    for message in draft.messages:
        for part in message.parts:
            if part.tool_state is None:
                continue
            call = {
                "id": part.tool_call_id,
                "name": part.type.removeprefix("tool-"),
                "status": STATES[part.tool_state],
                "message_id": message.source_id,
            }
            own = part.data["resultProviderMetadata"]["backscroll"]
            if "child_session_source_id" in own:
                call["child_session"] = own["child_session_source_id"]
            calls.append(call)
    assert calls == expected["tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_part_types(draft: SessionDraft, expected: dict[str, Any]) -> None:
    names = {"data-patch": "patch"}
    found = Counter(
        "tool" if part.tool_state else names.get(part.type, part.type)
        for message in draft.messages
        for part in message.parts
    )
    steps = sum("usage" in message.metadata for message in draft.messages)
    assert {**found, "step-finish": steps} == expected["part_types"]
    errors = [m.metadata["backscroll"]["error"] for m in draft.messages
              if "error" in m.metadata.get("backscroll", {})]  # fmt: skip
    assert errors == expected["errors"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tokens_and_cost(draft: SessionDraft, expected: dict[str, Any]) -> None:
    own = [message for message in draft.messages if message.inherited_from is None]
    assert usage_sum(draft.messages) == expected["tokens_from_parts"]
    assert usage_sum(own) == expected["own_tokens"]
    assert cost_sum(draft.messages) == pytest.approx(expected["cost_from_parts"])
    assert cost_sum(own) == pytest.approx(expected["own_cost"])
    if expected["rollup"] is not None:
        assert usage_sum(draft.messages) == expected["rollup"]
        assert cost_sum(draft.messages) == pytest.approx(expected["rollup_cost"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_hidden_and_copied_messages(draft: SessionDraft, expected: dict[str, Any]) -> None:
    hidden = [m.source_id for m in draft.messages if "hidden_at" in m.metadata]
    assert hidden == expected["hidden_by_revert"]
    assert len({m.metadata["hidden_at"] for m in draft.messages if "hidden_at" in m.metadata}) <= 1
    copied = [m for m in draft.messages if m.inherited_from is not None]
    assert len(copied) == expected["inherited_messages"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_lineage(draft: SessionDraft, expected: dict[str, Any]) -> None:
    lineage = draft.lineage
    if "fork_of" in expected:
        assert lineage is not None
        assert (lineage.kind, lineage.parent_source_id) == ("fork", expected["fork_of"])
        originals = [m.inherited_from for m in draft.messages if m.inherited_from]
        parent = DRAFTS["opencode.db"][expected["fork_of"]]
        assert originals == [m.source_id for m in parent.messages[: len(originals)]]
        assert lineage.parent_message_source_id == originals[-1]
    elif expected["parent_id"] is not None:
        assert lineage is not None
        assert (lineage.kind, lineage.parent_source_id) == ("subagent", expected["parent_id"])
        assert lineage.tool_call_id == "call_task_0_0"
    else:
        assert lineage is None


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_first_texts(draft: SessionDraft, expected: dict[str, Any]) -> None:
    texts = [
        [message.role, part.data["text"]]
        for message in draft.messages
        for part in message.parts
        if part.type == "text"
    ]
    wanted = expected["first_texts"]
    assert [[role, text[: len(want[1])]] for (role, text), want in zip(texts, wanted)] == wanted  # noqa: B905


@pytest.mark.parametrize("name", ["main", "fork", "delegating", "archived", "reverted"])
def test_an_exported_file_reads_as_the_session_in_the_database(name: str) -> None:
    (draft,) = read_all(DATA / "exports" / f"export-{name}.json").values()
    same = DRAFTS["opencode.db"][draft.source_id]
    assert [(m.source_id, m.role, m.created_at) for m in draft.messages] == [
        (m.source_id, m.role, m.created_at) for m in same.messages
    ]
    assert [[p.data for p in m.parts] for m in draft.messages] == [
        [p.data for p in m.parts] for m in same.messages
    ]
    assert (draft.title, draft.archived_at) == (same.title, same.archived_at)


@pytest.fixture
def library(tmp_path: Path) -> Database:
    return open_database(tmp_path / "library.db", create=True)


def test_a_library_gets_rollups_links_and_hidden_messages(library: Database) -> None:
    Sync(library, Settings(helpers=0)).run([Target(OpencodeSource(), DATA)])
    rows = library.connection.execute(
        "SELECT json_extract(metadata_json, '$.source.id'), prompt_tokens, completion_tokens,"
        " reasoning_tokens, cache_read, cache_write, cost_usd, archived_at FROM chat_sessions"
    ).fetchall()
    expected = {one["id"]: one for one in EXPECTED["opencode.db"]["sessions"]}
    assert {row[0] for row in rows} == expected.keys()
    for source_id, *tokens, cost, archived in rows:
        one = expected[source_id]
        assert tokens == [one["rollup"][bucket] for bucket in BUCKETS]
        assert cost == pytest.approx(one["rollup_cost"])
        assert archived == one["time_archived"]
    kinds = library.connection.execute(
        "SELECT json_extract(c.metadata_json, '$.lineage.kind'),"
        " json_extract(p.metadata_json, '$.source.id'), c.parent_message_id IS NOT NULL"
        " FROM chat_sessions c JOIN chat_sessions p ON p.id = c.parent_id ORDER BY 1"
    ).fetchall()
    assert kinds == [
        ("fork", "ses_de0dc5c59ffePt6O6ToYCV1VqC", 1),
        ("subagent", "ses_de0dc25a0ffeuzjdzVR5U174bc", 1),
    ]
    (copies,) = library.connection.execute(
        "SELECT count(*) FROM chat_messages"
        " WHERE json_extract(metadata_json, '$.inherited_from') IS NOT NULL"
    ).fetchone()
    assert copies == 5
