"""The sample comes out as the independent reader of ``EXPECTED.json`` has it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from store.ids import derived_session_id
from store.queries.inspection import part_detail
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.hub import HubSource
from tests.sources import grown
from tui.cli import permissions
from tui.words.permissions import scope_lines, scope_of

DATA = Path(__file__).parent.parent / "data" / "hub"
FILE = DATA / "hub.db"
EXPECTED = json.loads((DATA / "EXPECTED.json").read_text())["sessions"]
STATES = {
    "input-streaming": "pending",
    "input-available": "running",
    "output-available": "completed",
    "output-error": "error",
}
ACTIVITY = {"idle": "idle", "busy": "running", "retry": "retrying", "archived": "ended"}
DRAFTS, PROBLEMS = grown.read_all(HubSource(), FILE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["slug"]) for one in EXPECTED]


def rows_of(draft: SessionDraft, numbers: tuple[int, ...]) -> list[dict[str, Any]]:
    return [json.loads(draft.records[number]) for number in numbers]


def spoken(message: MessageDraft) -> list[str]:
    """Return the texts of a message that were neither made by the hub nor left out."""
    found = []
    for part in message.parts:
        if part.type == "text" and message.role != "system":
            own = part.data.get("providerMetadata", {}).get("backscroll", {})
            if not own.get("synthetic") and not own.get("ignored"):
                found.append(part.data["text"])
    return found


def test_just_the_sessions_expected_and_no_problems() -> None:
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED} and PROBLEMS == []


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    own = draft.metadata["backscroll"]
    assert (draft.title, own["slug"]) == (expected["title"], expected["slug"])
    assert own["status"] == expected["status"]
    assert (draft.archived_at is not None) == expected["archived"]
    assert draft.metadata["activity"]["state"] == ACTIVITY[expected["status"]]
    assert draft.metadata["activity"]["from"] == "stored"
    assert draft.metadata["version"] == expected["version"]
    assert own["provider"] == expected["provider"]
    assert own.get("role_name") == expected["role_name"]
    assert own.get("account_id") == expected["account"]
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])


def test_what_a_session_belongs_to_by_name() -> None:
    by_slug = {draft.metadata["backscroll"]["slug"]: draft.metadata["backscroll"]
               for draft in DRAFTS.values()}
    own = by_slug["fix-the-ferry-timetable"]
    assert (own["account"], own["project"], own["workspace"]) == ("ada", "harbour", "harbour-main")
    gone = next(one for one in by_slug.values() if one.get("account_id") is None)
    assert "account" not in gone and "workspace" not in gone and gone["project"] == "harbour"
    lines = [line.text for line in scope_lines(scope_of({"backscroll": own}), 60)]
    assert lines[1:-1] == ["read    harbour/**", "write   harbour/timetable/**", "trust   spoke"]
    assert scope_of({"backscroll": {"data": {"scope": ["odd"]}}}) == {}
    assert scope_lines({"x\x1b": {"deep": 1}}, 40)[1].text == 'x␛      {"deep": 1}'


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_parents_are_coordinators(draft: SessionDraft, expected: dict[str, Any]) -> None:
    parent = draft.lineage.parent_source_id if draft.lineage else None
    assert parent == expected["parent"]
    assert draft.lineage is None or draft.lineage.kind == "subagent"
    children = [d for d in DRAFTS.values() if d.lineage and d.lineage.parent_source_id
                == draft.source_id]  # fmt: skip
    kind = "child" if parent else "coordinator" if children else "root"
    assert kind == expected["kind"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_messages_in_order(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert [message.source_id for message in draft.messages] == expected["message_ids"]
    assert Counter(message.role for message in draft.messages) == expected["messages"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_parts_in_order_across_the_wrap_of_the_ids(
    draft: SessionDraft, expected: dict[str, Any]
) -> None:
    kept = [row["id"] for row in map(json.loads, draft.records) if row["table"] == "parts"]
    assert kept == expected["part_ids"]
    types = [row["type"] for row in map(json.loads, draft.records) if row["table"] == "parts"]
    assert Counter(types) == expected["part_types"]
    for message in draft.messages:
        first = [
            row["id"]
            for part in message.parts
            for row in rows_of(draft, part.records[-1:])
            if row["table"] == "parts"
        ]
        assert first == [name for name in expected["part_ids"] if name in first]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls_show_their_newest_row_and_keep_the_others(
    draft: SessionDraft, expected: dict[str, Any]
) -> None:
    found = []
    for message in draft.messages:
        for part in message.parts:
            if part.tool_state is None:
                continue
            found.append(
                {
                    "id": part.tool_call_id,
                    "name": part.type.removeprefix("tool-"),
                    "status": STATES[part.tool_state],
                    "message_id": message.source_id,
                    "rows": [row["id"] for row in reversed(rows_of(draft, part.records))],
                }
            )
    assert found == expected["tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_first_and_last_texts(draft: SessionDraft, expected: dict[str, Any]) -> None:
    user = next(message for message in draft.messages if message.role == "user")
    assert "\n".join(spoken(user)) == expected["first_user_text"]
    assert [text for m in draft.messages for text in spoken(m)][-1] == expected["last_text"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tokens_and_cost(draft: SessionDraft, expected: dict[str, Any]) -> None:
    usage = dict(expected["usage"])
    cost = usage.pop("cost")
    assert grown.tokens(draft.messages) == usage
    spent = sum(message.metadata.get("cost_usd", 0.0) for message in draft.messages)
    assert spent == pytest.approx(cost)
    said = draft.metadata["backscroll"].get("data", {})
    assert said.get("tokens") == expected["usage_in_session_data"]
    assert said.get("cost") == expected["cost_in_session_data"]


def part(slug: str, call_id: str) -> PartDraft:
    (draft,) = [d for d in DRAFTS.values() if d.metadata["backscroll"]["slug"] == slug]
    return grown.call(draft, call_id)


def test_what_calls_returned() -> None:
    read = part("fix-the-ferry-timetable", "call_ferry_01")
    assert read.data["output"][0]["text"] == "departs,arrives\n07:40,08:10\n19:40,20:10\n"
    assert [one["mediaType"] for one in read.data["output"][1:]] == ["image/png", "text/plain"]
    assert grown.extra(read)["status"] == "ok" and grown.extra(read)["duration_ms"] == 750
    check = part("fix-the-ferry-timetable", "call_ferry_02")
    assert check.data["errorText"].startswith("exit 2\n")
    own = grown.extra(check)
    assert (own["status"], own["exit_code"], own["duration_ms"]) == ("error", 2, 7500)
    pending = part("fix-the-ferry-timetable-k3v9", "call_run_2")
    assert pending.data["rawInput"] == '{"pattern": "19:4'
    assert grown.extra(part("fix-the-ferry-timetable", "call_spawn_2"))["compacted"] is True


def test_files_name_what_they_were_made_of() -> None:
    draft = DRAFTS["dd1b9f45-cc95-415b-81bf-5712d7becaa6"]
    files = [p.data for m in draft.messages for p in m.parts if p.type == "file"]
    sources = [one["providerMetadata"]["backscroll"]["source"] for one in files]
    assert [source["type"] for source in sources] == ["file", "symbol", "resource"]
    assert sources[1]["range"]["end"] == {"line": 24, "character": 3}
    assert files[2]["url"] == "data:application/json;base64,eyJiZXJ0aCI6IDN9"


def test_a_compaction_marks_where_the_context_begins() -> None:
    draft = DRAFTS["f09cbc26-5059-4553-82bb-40e7268a706a"]
    marked = [m for m in draft.messages if m.parts and m.parts[0].type == "data-compaction"]
    assert [m.source_id for m in marked] == ["64fd490e-a9e5-4b81-aacb-79cc068c8bf4"]
    assert marked[0].metadata["origin"] == "meta"
    assert marked[0].parts[0].data["data"]["tail_start_id"] is None


def test_models_workspaces_and_errors() -> None:
    child = DRAFTS["4e59f4a2-58c8-478f-873c-14531a5c2444"]
    assert child.model == {"provider_id": "openai", "model_id": "gpt-5"}
    assert {d.workspace_root for d in DRAFTS.values() if d.lineage} == {"/home/user/harbour"}
    failed = DRAFTS["9473ab9c-50bb-48af-9160-ac8643b70d66"].messages[1]
    assert [part.type for part in failed.parts] == ["data-error"]
    assert failed.parts[0].data["data"]["name"] == "APIError"
    newer = DRAFTS["160fa7c0-d6ea-4e00-97b9-31376b5d66de"].messages[1]
    unknown = next(part for part in newer.parts if part.type == "data-event")
    assert unknown.data["data"]["name"] == "citation"
    assert unknown.data["data"]["details"]["confidence"] == 0.83


def test_the_scope_is_beside_the_rules_in_the_inspector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = grown.synced(HubSource(), FILE, tmp_path / "library.db")
    session = derived_session_id("hub", "dd1b9f45-cc95-415b-81bf-5712d7becaa6")
    (part,) = db.connection.execute(
        "SELECT id FROM chat_parts WHERE session_id = ? LIMIT 1", (session,)).fetchone()
    assert part_detail(db, session, part).scope["trust"] == "spoke"
    assert permissions.run(argparse.Namespace(
        store=str(tmp_path / "library.db"), session=session, json=False, allow=[], deny=[],
        ask=[], remove=[])) == 0
    assert "scope of the role  write  harbour/timetable/**" in capsys.readouterr().out


def test_a_library_of_it(tmp_path: Path) -> None:
    database = grown.synced(HubSource(), FILE, tmp_path / "library.db")
    rows = database.connection.execute(
        "SELECT id, prompt_tokens, completion_tokens, parent_id FROM chat_sessions"
    ).fetchall()
    found = {row[0]: row[1:] for row in rows}
    for one in EXPECTED:
        parent = one["parent"] and derived_session_id("hub", one["parent"])
        assert found[derived_session_id("hub", one["id"])] == (
            one["usage"]["input"], one["usage"]["output"], parent,
        )  # fmt: skip
