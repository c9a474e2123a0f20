"""Goose: the sample comes out as its EXPECTED.json says, and so do other versions' rows."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.queries.helpers import helper_ids
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.goose import GooseSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA

SAMPLE = DATA / "goose" / "sessions"
EXPECTED = [one for one in json.loads((DATA / "goose" / "EXPECTED.json").read_text())["sessions"]
            if not one.get("duplicate_of_database")]  # fmt: skip
DRAFTS, PROBLEMS = grown.read_all(GooseSource(), SAMPLE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["id"]) for one in EXPECTED]
KEYS = ("input", "output", "reasoning", "cache_read", "cache_write")
AT = 1_795_700_000


def prompts(draft: SessionDraft) -> list[str]:
    return ["\n".join(part.data["text"] for part in one.parts if part.type == "text")
            for one in draft.messages if one.metadata.get("origin") == "human"]  # fmt: skip


def parts(draft: SessionDraft, kind: str) -> list[PartDraft]:
    return [part for one in draft.messages for part in one.parts if part.type == kind]


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if one.role == "assistant"]


def texts(draft: SessionDraft, kind: str) -> list[str]:
    return [part.data["text"] for one in answers(draft) for part in one.parts
            if part.type == kind and part.data["text"]]  # fmt: skip


def all_calls(draft: SessionDraft) -> list[PartDraft]:
    return [part for one in draft.messages for part in one.parts if part.tool_call_id]


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    found = []
    for part in all_calls(draft):
        extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        status = "invalid call" if extra.get("invalid") else extra.get("status", "no result")
        name = None if extra.get("invalid") else part.type.removeprefix("tool-")
        found.append({"id": part.tool_call_id, "name": name,
                      "status": {"ok": "done"}.get(status, status)})  # fmt: skip
    return found


def tokens(draft: SessionDraft) -> dict[str, int] | None:
    used = [one.metadata["usage"] for one in draft.messages if "usage" in one.metadata]
    return {key: sum(usage[key] for usage in used) for key in KEYS} if used else None


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == []
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED}


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert (draft.title, draft.title_from) == (expected["title"], expected["title_from"])
    assert draft.workspace_root == expected["workspace"]
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert (draft.archived_at is not None) == expected["archived"]
    extra = draft.metadata["backscroll"]
    assert extra["session_type"] == expected["type"]
    assert extra.get("context_tokens") == expected["context_tokens_now"]
    model = draft.model or {}
    assert [model["model_id"]] if model else expected["models"] == []
    assert model.get("provider_id") == expected.get("provider")


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(draft) == expected["prompts"]
    assert len(parts(draft, "file")) == expected["images"]
    # The placeholder of redacted thinking has no words.
    assert len(texts(draft, "text")) == expected["assistant_texts"]
    assert len(texts(draft, "reasoning")) == expected["reasoning_texts"]
    notices = [part.data["data"]["details"] for part in parts(draft, "data-event")]
    assert notices == expected["notifications"]
    unseen = [one for one in draft.messages
              if one.metadata.get("origin") == "meta" or "compaction" in one.metadata]  # fmt: skip
    assert len(unseen) == expected["hidden_from_user"]
    gone = [one for one in draft.messages
            if one.metadata.get("backscroll", {}).get("compacted_away")]  # fmt: skip
    assert len(gone) == expected["compacted_messages"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert calls(draft) == expected["tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_spending(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert tokens(draft) == expected["tokens"]
    cost = sum(one.metadata.get("cost_usd", 0.0) for one in draft.messages)
    assert cost == pytest.approx(expected.get("cost") or 0.0)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_lineage(draft: SessionDraft, expected: dict[str, Any]) -> None:
    if expected["lineage"] is None:
        assert draft.lineage is None
        return
    assert draft.lineage is not None
    assert draft.lineage.kind == expected["lineage"]["kind"]
    assert draft.lineage.parent_source_id == expected["lineage"]["parent"]
    assert draft.lineage.parent_message_source_id == "msg_deleg"


def test_a_summary_is_a_compaction_and_what_follows_it_is_context() -> None:
    draft = DRAFTS["20260922_1"]
    (part,) = parts(draft, "data-compaction")
    assert part.data["data"]["summary"] == "Summary of the talk so far: step one was done."
    (meta,) = (one for one in draft.messages if one.metadata.get("origin") == "meta")
    assert meta.parts[0].data["text"] == "Go on from the summary, do not mention it."


def test_each_request_is_counted_at_its_time_with_its_model() -> None:
    draft = DRAFTS["20260922_1"]
    used = [(one.metadata.get("model", {}).get("model_id"), one.created_at,
             one.metadata["usage"]["input"]) for one in draft.messages
            if "usage" in one.metadata]  # fmt: skip
    assert used == [(None, 1_790_090_700_000, 38_000), ("gpt-5.2-mini", 1_790_090_800_000, 1_150),
                    ("gpt-5.2", 1_790_090_812_000, 850)]  # fmt: skip
    assert draft.messages == sorted(draft.messages, key=lambda one: one.created_at)


def test_hidden_sessions_are_listed_as_helpers_runs(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    shutil.copytree(SAMPLE, root)
    database = open_database(tmp_path / "library.db", create=True)
    for _ in range(2):
        Sync(database, Settings(helpers=0)).run([Target(GooseSource(), root)])
        assert len(helper_ids(database)) == 1
    shown = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.source.id') FROM chat_sessions WHERE id IN"
        " (SELECT session_id FROM session_links WHERE kind = 'helper')").fetchall()
    assert shown == [("20260924_3",)]
    database.close()


# --- hand-made rows -------------------------------------------------------------------------


class Rows:
    """A copy of the sample's database, to which rows are added."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sessions.db"
        shutil.copyfile(SAMPLE / "sessions.db", self.path)
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.insert("sessions", id="one", working_dir="/w", name="", session_type="user",
                    created_at="2026-11-27 10:00:00", updated_at="2026-11-27 10:00:00")  # fmt: skip

    def insert(self, table: str, **values: Any) -> None:
        marks = ", ".join("?" * len(values))
        self.connection.execute(
            f"INSERT INTO {table}({', '.join(values)}) VALUES ({marks})", tuple(values.values()))

    def message(self, role: str, *content: dict[str, Any], at: int = AT, **more: Any) -> None:
        self.insert("messages", session_id="one", role=role, content_json=json.dumps(content),
                    created_timestamp=at, **more)  # fmt: skip

    def read(self) -> SessionDraft:
        drafts, problems = grown.read_all(GooseSource(), self.path)
        assert problems == []
        return drafts["one"]


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    made = Rows(tmp_path)
    yield made
    made.connection.close()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words} | more


def request(call: str, name: str = "developer__shell") -> dict[str, Any]:
    value = {"name": name, "arguments": {"command": "ls"}}
    return {"type": "toolRequest", "id": call, "toolCall": {"status": "success", "value": value}}


def response(call: str, value: Any) -> dict[str, Any]:
    return {"type": "toolResponse", "id": call,
            "toolResult": {"status": "success", "value": value}}  # fmt: skip


def test_an_answer_that_is_a_row_a_chunk_is_one_answer(rows: Rows) -> None:
    rows.message("user", text("go"))
    for words in ("The ans", "wer is", " 42."):
        rows.message("assistant", text(words))
    rows.message("assistant", text("I look."), request("c"))
    draft = rows.read()
    assert texts(draft, "text") == ["The answer is 42.", "I look."]
    assert len(answers(draft)) == 2
    grown.check_records(draft)


def test_a_call_that_waits_for_its_confirmation(rows: Rows) -> None:
    asked = {"type": "actionRequired", "data": {"actionType": "toolConfirmation", "id": "c"}}
    rows.message("assistant", request("c"))
    rows.message("assistant", asked)
    draft = rows.read()
    assert [part.tool_state for part in all_calls(draft)] == ["approval-requested"]
    assert draft.metadata["activity"]["state"] == "waiting-approval"
    rows.message("user", response("c", {"content": [text("done")]}))
    (call,) = all_calls(rows.read())
    assert (call.data["state"], call.data["approval"]) == (
        "output-available", {"id": "c", "approved": True})


def test_an_id_that_comes_again_is_paired_in_order(rows: Rows) -> None:
    for words in ("first", "second"):
        rows.message("assistant", request("same"))
        rows.message("user", response("same", {"content": [text(words)]}))
    assert [part.data["output"] for part in all_calls(rows.read())] == ["first", "second"]


def test_a_result_of_an_older_version_is_the_list_itself(rows: Rows) -> None:
    rows.message("assistant", request("c"))
    rows.message("user", response("c", [text("a", annotations={"audience": ["assistant"]}),
                                        text("a", annotations={"audience": ["user"]})]))
    (call,) = all_calls(rows.read())
    assert call.data["output"] == "a"


def test_times_in_ms_and_in_seconds_have_one_order(rows: Rows) -> None:
    rows.message("user", text("second"), at=(AT + 5) * 1000)
    rows.message("user", text("first"), at=AT)
    draft = rows.read()
    assert prompts(draft) == ["first", "second"]
    assert [one.created_at for one in draft.messages] == [AT * 1000, (AT + 5) * 1000]


def test_hidden_characters_are_dropped_and_context_is_no_prompt(rows: Rows) -> None:
    rows.message("user", text("hel\U000e0041lo"), text("ctx", annotations={
        "audience": ["assistant"]}))
    draft = rows.read()
    assert prompts(draft) == ["hello"]
    assert [one.metadata["origin"] for one in draft.messages] == ["meta", "human"]


def test_what_the_ledger_lacks_is_counted_once(rows: Rows) -> None:
    rows.connection.execute(
        "UPDATE sessions SET accumulated_input_tokens = 100, accumulated_output_tokens = 10,"
        " accumulated_cost = 0.5 WHERE id = 'one'")
    rows.insert("usage_ledger", session_id="one", created_timestamp=AT, model="m",
                input_tokens=60, output_tokens=20, cost=0.2)  # fmt: skip
    rows.message("user", text("go"))
    draft = rows.read()
    assert tokens(draft) == {"input": 100, "output": 20, "reasoning": 0, "cache_read": 0,
                             "cache_write": 0}  # fmt: skip
    assert sum(one.metadata.get("cost_usd", 0) for one in draft.messages) == pytest.approx(0.5)


def test_values_of_the_environment_are_not_kept(rows: Rows) -> None:
    rows.connection.execute(
        "UPDATE sessions SET extension_data = '{\"env\": \"sk-secret\"}' WHERE id = 'one'")
    rows.message("user", text("go"))
    assert not [record for record in rows.read().records if b"sk-secret" in record]


def test_a_thread_of_schema_10_has_the_messages(rows: Rows) -> None:
    rows.connection.executescript("""
        ALTER TABLE sessions ADD COLUMN thread_id TEXT;
        CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, user_set_name BOOLEAN,
            working_dir TEXT, archived_at TIMESTAMP, metadata_json TEXT);
        CREATE TABLE thread_messages (id INTEGER PRIMARY KEY, thread_id TEXT, role TEXT,
            content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
        UPDATE sessions SET thread_id = 't' WHERE id = 'one';
        INSERT INTO threads VALUES ('t', 'Named thread', 1, '/t', NULL, '{}');
    """)
    rows.insert("thread_messages", thread_id="t", role="user", created_timestamp=AT,
                content_json=json.dumps([text("hello")]))  # fmt: skip
    draft = rows.read()
    assert (draft.title, draft.title_from, prompts(draft)) == ("Named thread", "user", ["hello"])


def test_the_first_schema_is_read(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    connection.executescript("""
        CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT,
            created_at TIMESTAMP, updated_at TIMESTAMP, accumulated_total_tokens INTEGER,
            accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,
            content_json TEXT, created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER);
        INSERT INTO sessions VALUES ('20251001_1', 'Old title', '/w', '2025-10-01 08:00:00',
            '2025-10-01 08:00:05', 30, 20, 10);
        INSERT INTO messages VALUES (1, '20251001_1', 'user', '[{"type":"text","text":"hi"}]',
            1759305600, NULL, NULL);
    """)
    connection.close()
    drafts, problems = grown.read_all(GooseSource(), tmp_path)
    draft = drafts["20251001_1"]
    assert problems == [] and draft.title == "Old title" and prompts(draft) == ["hi"]
    assert tokens(draft) == {"input": 20, "output": 10, "reasoning": 0, "cache_read": 0,
                             "cache_write": 0}  # fmt: skip
    assert (draft.created_at, draft.updated_at) == (1_759_305_600_000, 1_759_305_605_000)


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert GooseSource().default_roots({}, home) == [home / ".local/share/goose/sessions"]
    named = {"GOOSE_PATH_ROOT": "/g", "XDG_DATA_HOME": "/d"}
    assert GooseSource().default_roots(named, home) == [
        Path("/g/data/sessions"), Path("/d/goose/sessions")]
    assert GooseSource().default_roots({"GOOSE_PATH_ROOT": "relative"}, home) == [
        home / ".local/share/goose/sessions"]
    shutil.copytree(SAMPLE, tmp_path / "goose" / "sessions")
    for path in (tmp_path, tmp_path / "goose", tmp_path / "goose" / "sessions"):
        assert GooseSource().recognise(path) == tmp_path / "goose" / "sessions"
    old = SAMPLE / "20250701_101500.jsonl"
    assert GooseSource().recognise(old) == old
