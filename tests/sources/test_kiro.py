"""Kiro and Amazon Q: the samples of their four stores come out as EXPECTED.json says."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.protocol import FollowedSource, Problem
from store.sources.kiro import KiroSource
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading

TOP = DATA / "kiro"
EXPECTED = json.loads((TOP / "EXPECTED.json").read_text())
FILES, AMAZON, CLI = (
    TOP / "home" / place for place in
    (".kiro/sessions", ".local/share/amazon-q", ".local/share/kiro-cli"))  # fmt: skip
READ = [grown.read_all(KiroSource(), root) for root in (FILES, AMAZON, CLI)]
DRAFTS: dict[str, SessionDraft] = {key: one for drafts, _ in READ for key, one in drafts.items()}
SESSIONS = [pytest.param(DRAFTS.get(one["id"]), one, id=one["id"][:13])
            for one in EXPECTED["sessions"] if one["is_session"]]  # fmt: skip
KEYS = ("input", "output", "cache_read", "cache_write")
WORDS = {"ok": "done"}


def shown(draft: SessionDraft) -> list[MessageDraft]:
    return grown.visible(draft)


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in shown(draft) if one.role == "assistant" and one.parts]


def texts(draft: SessionDraft, kind: str = "text") -> list[str]:
    return [part.data["text"] for one in answers(draft) for part in one.parts
            if part.type == kind and part.data["text"]]  # fmt: skip


def events(draft: SessionDraft, name: str) -> list[Any]:
    return [part.data["data"]["details"] for one in draft.messages for part in one.parts
            if part.type == "data-event" and part.data["data"]["name"] == name]  # fmt: skip


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    found = []
    for part in grown.calls(shown(draft)):
        extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        status = extra.get("status", "no result")
        call = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
                "status": WORDS.get(status, status)}  # fmt: skip
        found.append(call | ({"exit_code": extra["exit_code"]} if "exit_code" in extra else {}))
    return found


def forgotten(draft: SessionDraft) -> int:
    """How many records the model does not get any more."""
    return len({number for one in draft.messages
                if one.metadata.get("backscroll", {}).get("compacted_away")
                for number in (*one.records, *(n for part in one.parts for n in part.records))})


def test_just_the_sessions_expected() -> None:
    assert [problems for _, problems in READ] == [[], [], []]
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"] if one["is_session"]}
    for one in EXPECTED["sessions"]:
        if one["is_session"]:
            place = DRAFTS[one["id"]].path
            assert Path(place).is_relative_to(TOP / one["store"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert draft.workspace_root == expected["workspace"]
    written = os.stat(draft.path).st_mtime_ns // 1_000_000
    times = [expected[key] or written for key in ("created_ms", "updated_ms")]
    assert [draft.created_at, draft.updated_at] == times
    extra = draft.metadata.get("backscroll", {})
    if "folders" in expected:
        assert extra["folders"] == expected["folders"]
    if expected["title"] is None:
        assert (draft.title, draft.title_from) == (expected["prompts"][0], "first-prompt")
    else:
        assert draft.title == expected["title"]
    models = [one.metadata["model"]["model_id"] for one in draft.messages
              if "model" in one.metadata]  # fmt: skip
    if not models and draft.model is not None:
        models = [draft.model["model_id"]]
    assert list(dict.fromkeys(models)) == expected["models"]
    assert extra.get("exported_from_v1", False) == expected.get("exported_from_v1", False)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert grown.prompts(shown(draft)) == expected["prompts"]
    hidden = [one for one in draft.messages if "hidden_at" in one.metadata]
    assert grown.prompts(hidden) == expected.get("rewound_prompts", [])
    assert len(answers(draft)) == expected["assistant_messages"]
    assert len(texts(draft)) == expected["assistant_texts"]
    assert len(texts(draft, "reasoning")) == expected["reasoning_texts"]
    files = [part for one in shown(draft) for part in one.parts if part.type == "file"]
    assert len(files) == expected["images"]
    assert all(part.data["url"].startswith("data:image/png;base64,iVBOR") for part in files)
    hooks = [one for one in shown(draft) if one.metadata.get("origin") == "meta"]
    assert len(events(draft, "notice")) + len(hooks) == expected["notices"]
    assert expected["unread"] == 0
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls_and_compaction(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert calls(draft) == expected["tool_calls"]
    summaries = [part for one in draft.messages for part in one.parts
                 if part.type == "data-compaction"]  # fmt: skip
    assert len(summaries) == expected["compactions"]
    if not expected.get("earlier_turns_lost"):
        assert forgotten(draft) == expected["compacted_messages"]
    else:
        assert draft.messages[0].metadata["compaction"] is True
    assert len(events(draft, "engine call")) == expected.get("engine_calls", 0)
    below = [{"id": one["id"], "name": one["subAgentName"], "status": one["status"]}
             for one in events(draft, "subagent")]  # fmt: skip
    assert below == expected.get("sub_executions", [])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_spending_and_lineage(draft: SessionDraft, expected: dict[str, Any]) -> None:
    used = grown.tokens(draft.messages)
    assert {key: used[key] for key in KEYS} == (expected["tokens"] or dict.fromkeys(KEYS, 0))
    credits = draft.metadata.get("backscroll", {}).get("credits")
    assert credits == expected.get("credits")
    told = expected["lineage"]
    if told is None:
        assert draft.lineage is None
        return
    assert draft.lineage is not None
    kinds = {"rewind": "fork", "subagent": "subagent"}
    assert draft.lineage.kind == kinds[told["kind"]]
    assert draft.lineage.parent_source_id == told["parent"]


def test_a_rewind_begins_with_copies() -> None:
    draft = DRAFTS["4fda6fbd-99e9-5723-894f-416fb54fb080"]
    assert [one.inherited_from == one.source_id for one in draft.messages] == [
        True, True, False, False]
    assert draft.lineage is not None
    assert draft.lineage.parent_message_source_id == draft.messages[1].source_id


def test_how_each_session_ended() -> None:
    states = {key[:8]: one.metadata.get("activity", {}).get("state") for key, one in DRAFTS.items()}
    assert states.pop("6b3b93d0") == "interrupted"
    assert set(states.values()) == {None}


def test_what_a_subagent_did_is_told_where_it_was_started() -> None:
    draft = DRAFTS["sess_e957b8e9-e71c-50ee-b589-781f8b871e6c"]
    (told,), (did,) = events(draft, "subagent"), events(draft, "steps of the subagent")
    assert told["prompt"] == "Check hello.txt" and told["response"] == "It says hi."
    assert did["steps"] == [
        {"tool": "fs_read", "input": {"path": "hello.txt"}, "output": "hi", "ok": True},
        {"text": "It says hi."}]


def test_what_a_call_is_for_is_apart_from_its_input() -> None:
    call = grown.call(DRAFTS["436bc2bc-14ce-564c-badd-1e2a18544e55"], "tooluse_c1")
    assert call.data["input"] == {"command": "make test"}
    assert call.data["callProviderMetadata"] == {"kiro": {"purpose": "Do the step"}}


def test_a_thought_stands_before_the_text_that_it_led_to() -> None:
    first = answers(DRAFTS["sess_e957b8e9-e71c-50ee-b589-781f8b871e6c"])[0]
    assert [part.type for part in first.parts] == [
        "tool-fs_write", "tool-execute_bash", "data-event", "reasoning", "text"]


# --- secrets and places ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["amazon-q", "kiro-cli"])
def test_only_conversations_are_selected(tmp_path: Path, name: str) -> None:
    shutil.copytree(TOP / "home/.local/share" / name, tmp_path / name)
    (tmp_path / name / "settings.json").write_text("secret")
    found = reading(Target(KiroSource(), tmp_path / name))
    own = {os.path.basename(one) for one in found.files if Path(one).parent == tmp_path / name}
    assert "data.sqlite3" in own and all(one.startswith("data.sqlite3") for one in own)
    words = " ".join(found.sql).lower()
    assert "from conversations" in words
    assert "auth_kv" not in words and "from state" not in words and "history" not in words
    assert not [line for line in found.sql if "select *" in line.lower()
                and " from conversations" not in line.lower()]  # fmt: skip


def test_only_files_of_sessions_are_opened(tmp_path: Path) -> None:
    root = tmp_path / ".kiro" / "sessions"
    shutil.copytree(FILES, root)
    (tmp_path / ".kiro" / "settings").mkdir()
    (root / "cli" / "6b3b93d0-1a50-59b1-b4a9-6a9716becee0.lock").write_text('{"pid": 1}')
    bucket = root / "05a34d2823e99940/sess_e957b8e9-e71c-50ee-b589-781f8b871e6c"
    (bucket / "snapshots").mkdir()
    for place in (root.parent / "settings/cli.json", bucket / "snapshots/1.json",
                  bucket / "tool-outputs.txt"):  # fmt: skip
        place.write_text("{}")
    found = reading(Target(KiroSource(), root))
    below = {Path(each).relative_to(root).as_posix() for each in found.files
             if Path(each).is_relative_to(root)}  # fmt: skip
    assert not [one for one in below if one.endswith((".lock", ".history", "tool-outputs.txt"))]
    assert not [one for one in below if "snapshots/" in one]
    assert not [one for one in found.files if "settings" in one]


def test_nothing_is_read_beside_a_database_that_is_not_there_yet(tmp_path: Path) -> None:
    root = tmp_path / "kiro-cli"
    root.mkdir()
    (root / "log.jsonl").write_text('{"kind": "Prompt"}\n')
    assert grown.read_all(KiroSource(), root) == ({}, [])


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert KiroSource().default_roots({}, home) == [
        home / ".kiro/sessions", home / ".local/share/kiro-cli", home / ".local/share/amazon-q"]
    named = {"KIRO_HOME": "/k", "XDG_DATA_HOME": "/d"}
    assert KiroSource().default_roots(named, home) == [
        Path("/k/sessions"), home / ".kiro/sessions", Path("/d/kiro-cli"), Path("/d/amazon-q")]
    shutil.copytree(FILES, tmp_path / ".kiro/sessions")
    sessions = tmp_path / ".kiro/sessions"
    for path in (tmp_path, tmp_path / ".kiro", sessions):
        assert KiroSource().recognise(path) == sessions
    for inner in ("cli", "05a34d2823e99940",
                  "05a34d2823e99940/sess_e957b8e9-e71c-50ee-b589-781f8b871e6c",
                  "cli/6b3b93d0-1a50-59b1-b4a9-6a9716becee0.jsonl"):  # fmt: skip
        assert KiroSource().recognise(sessions / inner) == sessions / inner
        assert grown.read_all(KiroSource(), sessions / inner)[0]
    assert KiroSource().recognise(CLI / "data.sqlite3") == CLI / "data.sqlite3"
    (tmp_path / "other.jsonl").write_text('{"role": "user"}\n')
    assert KiroSource().recognise(tmp_path / "other.jsonl") is None


# --- rows made by hand ----------------------------------------------------------------------


class Rows:
    """A database of conversations."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(folder / "data.sqlite3", isolation_level=None)
        self.connection.executescript("""
            CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT);
            CREATE TABLE conversations (key TEXT PRIMARY KEY, value TEXT);
            CREATE TABLE conversations_v2 (key TEXT, conversation_id TEXT, value TEXT,
                created_at INTEGER, updated_at INTEGER, PRIMARY KEY (key, conversation_id));
        """)

    def first(self, key: str, value: object) -> None:
        body = value if isinstance(value, str) else json.dumps(value)
        self.connection.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?)", (key, body))

    def later(self, key: str, name: str, value: object, at: int) -> None:
        body = value if isinstance(value, str) else json.dumps(value)
        self.connection.execute("INSERT OR REPLACE INTO conversations_v2 VALUES (?, ?, ?, ?, ?)",
                                (key, name, body, at, at))  # fmt: skip

    def read(self) -> tuple[dict[str, SessionDraft], list[Problem]]:
        return grown.read_all(KiroSource(), self.root)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Rows]:
    found = Rows(tmp_path / "kiro-cli")
    yield found
    found.connection.close()


def prompt(words: str) -> dict[str, Any]:
    return {"Prompt": {"prompt": words}}


def cancelled(words: str | None, *ids: str) -> dict[str, Any]:
    results = [{"tool_use_id": one, "content": [{"Text": "cancelled"}], "status": "Error"}
               for one in ids]  # fmt: skip
    return {"CancelledToolUses": {"prompt": words, "tool_use_results": results}}


def entry(content: dict[str, Any], answer: str, *tools: str, name: str = "",
          **user: Any) -> dict[str, Any]:  # fmt: skip
    body: dict[str, Any] = {"message_id": name or f"m-{answer}", "content": answer}
    if tools:
        body["tool_uses"] = [{"id": one, "name": "execute_bash", "args": {}} for one in tools]
    return {"user": {"content": content, "timestamp": None, **user},
            "assistant": {"ToolUse" if tools else "Response": body}, "request_metadata": None}


def talk(*history: dict[str, Any], name: str = "c1", **more: Any) -> dict[str, Any]:
    return {"conversation_id": name, "history": list(history), "transcript": ["> copy"], **more}


def only(rows: Rows) -> SessionDraft:
    drafts, problems = rows.read()
    assert problems == []
    (draft,) = drafts.values()
    return draft


def test_what_was_typed_in_place_of_yes_is_a_prompt_and_a_denial(made: Rows) -> None:
    made.first("/w", talk(entry(prompt("go"), "a", "t1", "t2"),
                          entry(cancelled("do it otherwise", "t1"), "ok")))  # fmt: skip
    draft = only(made)
    assert grown.prompts(draft.messages) == ["go", "do it otherwise"]
    assert [one["status"] for one in calls(draft)] == ["denied", "denied"]


@pytest.mark.parametrize(("words", "status"), [
    ("I deny this tool request. Ask a follow up question clarifying the expected action",
     "denied"),
    ("The user interrupted the tool execution.", "interrupted"), (None, "interrupted"),
])  # fmt: skip
def test_the_programs_own_words_are_no_prompts(made: Rows, words: str | None, status: str) -> None:
    made.first("/w", talk(entry(prompt("go"), "a", "t1"), entry(cancelled(words, "t1"), "ok")))
    draft = only(made)
    assert grown.prompts(draft.messages) == ["go"]
    assert [one["status"] for one in calls(draft)] == [status]


def test_a_call_without_a_next_entry_has_no_result(made: Rows) -> None:
    made.first("/w", talk(entry(prompt("go"), "a", "t1")))
    draft = only(made)
    assert calls(draft)[0]["status"] == "no result"
    assert draft.metadata["activity"]["state"] == "running"


def test_results_are_joined_by_id_past_an_answer_in_two_pieces(made: Rows) -> None:
    result = {"ToolUseResults": {"tool_use_results": [
        {"tool_use_id": "t1", "content": [{"Json": {"a": 1}}], "status": "Success"}]}}
    made.first("/w", talk(entry(prompt("go"), "a", "t1"), entry(result, "b", "lost"),
                          entry(prompt("next"), "c")))  # fmt: skip
    assert [one["status"] for one in calls(only(made))] == ["done", "no result"]


def test_what_hooks_printed_is_beside_the_prompt(made: Rows) -> None:
    made.first("/w", talk(entry(prompt("go"), "a", additional_context="hook says")))
    draft = only(made)
    assert grown.prompts(draft.messages) == ["go"] and draft.title == "go"
    assert events(draft, "context") == ["hook says"]


def test_empty_and_torn_values_cost_themselves(made: Rows) -> None:
    made.first("/empty", "")
    made.first("/torn", '{"conversation_id": "x", "history": [{"us')
    made.first("/list", "[]")
    made.first("/w", talk(entry(prompt("go"), "a"), model="old-model"))
    drafts, problems = made.read()
    assert drafts.keys() == {"c1"} and len(problems) == 3
    assert drafts["c1"].model == {"provider_id": "kiro", "model_id": "old-model"}


def test_a_torn_newest_row_leaves_the_one_before(made: Rows) -> None:
    made.later("/old", "c1", talk(entry(prompt("go"), "a")), 1_768_000_000_000)
    made.later("/new", "c1", '{"history": [', 1_768_000_005_000)
    drafts, problems = made.read()
    assert drafts["c1"].workspace_root == "/old" and len(problems) == 1


def test_one_conversation_of_both_tables_is_one_session(made: Rows) -> None:
    made.first("/w", talk(entry(prompt("go"), "a")))
    made.later("/w", "c1", talk(entry(prompt("go"), "a"), entry(prompt("on"), "b")),
               1_768_000_000_000)  # fmt: skip
    assert grown.prompts(only(made).messages) == ["go", "on"]


def test_one_conversation_in_two_folders_of_the_first_table(made: Rows) -> None:
    made.first("/a", talk(entry(prompt("go"), "a")))
    made.first("/b", talk(entry(prompt("go"), "a"), entry(prompt("on"), "b")))
    draft = only(made)
    assert (draft.workspace_root, len(draft.messages)) == ("/b", 4)


def test_a_summary_is_all_that_is_left_of_earlier_turns(made: Rows) -> None:
    summary = ["all so far", {"stream_end_timestamp_ms": 1_768_000_000_000, "message_id": "s"}]
    made.first("/w", talk(entry(prompt("go"), "a"), latest_summary=summary, tangent_state={}))
    draft = only(made)
    assert draft.messages[0].parts[0].data["data"]["summary"] == "all so far"
    assert draft.metadata["backscroll"]["tangent"] is True


def test_a_summary_before_the_next_turn_is_a_session(made: Rows) -> None:
    made.first("/w", talk(latest_summary=["all so far", None]))
    made.first("/empty", talk(name="c2"))
    draft = only(made)
    assert [one.metadata for one in draft.messages] == [{"compaction": True}]


def test_a_conversation_that_grows_is_read_again_alone(made: Rows) -> None:
    made.later("/a", "c1", talk(entry(prompt("go"), "a")), 1_768_000_000_000)
    made.later("/b", "c2", talk(entry(prompt("other"), "b"), name="c2"), 1_768_000_000_000)
    source = KiroSource()
    path = str(made.root / "data.sqlite3")
    assert len(source.units_at(made.root, [path]) or ()) == 2
    made.later("/a", "c1", talk(entry(prompt("go"), "a"), entry(prompt("on"), "c")),
               1_768_000_009_000)  # fmt: skip
    (unit,) = source.units_at(made.root, [path]) or []
    (draft,) = source.follower(made.root, unit).read(unit).sessions
    assert grown.prompts(draft.messages) == ["go", "on"]


def test_a_session_of_files_takes_the_place_of_its_row(made: Rows, tmp_path: Path) -> None:
    name = "a1519c84-34fe-5627-9ad2-8bd90346c09d"
    made.later("/w", name, talk(entry(prompt("an old state"), "a"), name=name), 1_768_000_000_000)
    for first, second in ((made.root, FILES), (FILES, made.root)):
        database = grown.synced(KiroSource(), first, tmp_path / f"{first.name}.db")
        Sync(database).run([Target(KiroSource(), second)])
        found = database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.path'), json_extract(metadata_json,"
            " '$.title') FROM chat_sessions WHERE json_extract(metadata_json, '$.source.id') = ?",
            (name,)).fetchall()  # fmt: skip
        assert found == [(str(FILES / "cli" / f"{name}.jsonl"), "Count files")]
        database.close()


# --- files made by hand ---------------------------------------------------------------------


def line(kind: str, name: str | None = None, *content: Any, **more: Any) -> dict[str, Any]:
    blocks = [{"kind": "text", "data": one} if isinstance(one, str) else one for one in content]
    data = ({"message_id": name} if name else {}) | {"content": blocks} | more
    return {"version": "v1", "kind": kind, "data": data}


def use(call: str) -> dict[str, Any]:
    return {"kind": "toolUse", "data": {"toolUseId": call, "name": "shell", "input": {}}}


def gave(call: str, text: str, status: str = "success") -> dict[str, Any]:
    return {"kind": "toolResult", "data": {"toolUseId": call, "status": status,
                                           "content": [{"kind": "text", "data": text}]}}


def lines(folder: Path, name: str, *rows: Any, **state: Any) -> Path:
    path = grown.write_lines(folder / "cli" / f"{name}.jsonl", rows)
    if state:
        path.with_suffix(".json").write_text(json.dumps({"session_id": name, **state}))
    return path


def test_lines_without_their_document_are_a_session(tmp_path: Path) -> None:
    path = lines(tmp_path, "one", line("Prompt", "p", "hello", meta={"timestamp": 1785571200}))
    draft = grown.only(KiroSource(), tmp_path)
    assert (draft.source_id, draft.title, draft.created_at) == ("one", "hello", 1785571200000)
    assert draft.metadata["activity"]["state"] == "running" and draft.workspace_root is None
    path.unlink()
    (tmp_path / "cli" / "one.json").write_text('{"session_id": "one"}')
    assert grown.read_all(KiroSource(), tmp_path) == ({}, [])


def test_a_line_that_was_written_twice_is_one_message(tmp_path: Path) -> None:
    asked, answer = line("Prompt", "p", "go"), line("AssistantMessage", "a", "yes", use("t1"))
    lines(tmp_path, "one", asked, asked, answer, answer,
          line("ToolResults", "r", gave("t1", "fine")), line("Prompt", "p2", "go"))  # fmt: skip
    draft = grown.only(KiroSource(), tmp_path)
    assert grown.prompts(draft.messages) == ["go", "go"]
    assert texts(draft) == ["yes"] and [one["status"] for one in calls(draft)] == ["done"]


def test_a_cleared_session_keeps_what_was_said(tmp_path: Path) -> None:
    lines(tmp_path, "one", line("Prompt", "p", "first"), line("AssistantMessage", "a", "1"),
          {"version": "v1", "kind": "Clear"}, line("Prompt", "p2", "second"),
          {"version": "v1", "kind": "CancelledPrompt"}, {"version": "v1", "kind": "ResetTo",
                                                         "data": {"target_index": 0}})
    draft = grown.only(KiroSource(), tmp_path)
    assert grown.prompts(draft.messages) == ["first", "second"]
    assert forgotten(draft) == 2
    second = next(one for one in draft.messages if one.source_id == "p2")
    assert second.metadata["backscroll"] == {"not_in_context": True}


def test_results_are_read_once_and_denials_by_their_words(tmp_path: Path) -> None:
    results = {"t1": {"tool": None, "result": {"Success": {"items": [{"Text": "twice"}]}}}}
    lines(tmp_path, "one", line("Prompt", "p", "go"),
          line("AssistantMessage", "a", "", use("t1"), use("t2"), use("t3")),
          line("ToolResults", "r", gave("t1", "fine"), gave("t2", "no such file", "error"),
               gave("t3", "User denied tool execution", "error"), results=results))  # fmt: skip
    draft = grown.only(KiroSource(), tmp_path)
    assert [one["status"] for one in calls(draft)] == ["done", "error", "denied"]
    assert grown.call(draft, "t1").data["output"] == "fine"


def test_a_subagent_is_one_only_with_a_parent(tmp_path: Path) -> None:
    said = line("Prompt", "p", "go")
    lines(tmp_path, "top", said, session_created_reason="subagent")
    lines(tmp_path, "below", line("Prompt", "q", "look"), session_created_reason="subagent",
          parent_session_id="top")  # fmt: skip
    drafts, _ = grown.read_all(KiroSource(), tmp_path)
    assert drafts["top"].lineage is None
    assert drafts["below"].lineage is not None and drafts["below"].lineage.kind == "subagent"


def turn(*ids: str, **more: Any) -> dict[str, Any]:
    return {"message_ids": list(ids), "metering_usage": [{"value": 0.5, "unit": "credit"}], **more}


def test_what_copied_turns_spent_is_the_parents(tmp_path: Path) -> None:
    spent = turn("p", "a", input_token_count=10)
    state = {"session_state": {"conversation_metadata": {"user_turn_metadatas": [spent]}}}
    both = line("Prompt", "p", "go"), line("AssistantMessage", "a", "ok")
    lines(tmp_path, "old", *both, **state)
    lines(tmp_path, "new", *both, parent_session_id="old", session_created_reason="rewind", **state)
    drafts, _ = grown.read_all(KiroSource(), tmp_path)
    assert grown.tokens(drafts["old"].messages)["input"] == 10
    assert grown.tokens(drafts["new"].messages)["input"] == 0
    assert drafts["old"].metadata["backscroll"]["credits"] == 0.5
    assert "credits" not in drafts["new"].metadata["backscroll"]


def test_tokens_of_a_turn_whose_answer_is_lost_are_counted(tmp_path: Path) -> None:
    spent = turn("gone", output_token_count=7)
    lines(tmp_path, "one", line("Prompt", "p", "go"), session_state={
        "conversation_metadata": {"user_turn_metadatas": [spent]}})  # fmt: skip
    draft = grown.only(KiroSource(), tmp_path)
    assert grown.tokens(draft.messages)["output"] == 7
    assert draft.messages[-1].metadata["backscroll"]["no_answer"] is True


@pytest.mark.parametrize("step", [None, 37])
def test_lines_that_grow_read_as_a_whole(tmp_path: Path, step: int | None) -> None:
    shutil.copytree(FILES, tmp_path / "sessions")
    root = tmp_path / "sessions"
    for path in ("cli/436bc2bc-14ce-564c-badd-1e2a18544e55.jsonl",
                 "05a34d2823e99940/sess_e957b8e9-e71c-50ee-b589-781f8b871e6c/messages.jsonl"):
        grown.grows_like_a_whole(KiroSource, root, root / path, step=step)


def test_a_document_that_moves_is_read_again(tmp_path: Path) -> None:
    shutil.copytree(FILES, tmp_path / "sessions")
    root, source = tmp_path / "sessions", KiroSource()
    assert isinstance(source, FollowedSource)
    path = root / "cli" / "6b3b93d0-1a50-59b1-b4a9-6a9716becee0.json"
    path.write_text(path.read_text().replace("Compacted talk", "Another title"))
    (unit,) = source.units_at(root, [str(path)]) or []
    (draft,) = source.follower(root, unit).read(unit).sessions
    assert draft.title == "Another title"
    assert source.units_at(root, [str(path.with_suffix(".history"))]) == []
    assert source.units_at(root, [str(root)]) is None


# --- folders of the third engine made by hand -------------------------------------------------


def record(name: str, type_: str, at: int = 1, **payload: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": grown.at(at), "payload": {"type": type_, **payload}}


def folder(root: Path, name: str, *rows: Any, **state: Any) -> Path:
    place = root / "0123456789abcdef" / name
    grown.write_lines(place / "messages.jsonl", rows)
    if state:
        (place / "session.json").write_text(json.dumps({"id": name, **state}))
    return place


def test_a_compaction_takes_records_from_the_model_alone(tmp_path: Path) -> None:
    folder(tmp_path, "sess_1", record("u1", "user", content="one"),
           record("a1", "assistant", content="1"),
           record("t1", "tombstone", kind="summarization", effectiveFromMessageId="u1"),
           record("s1", "assistant", content="so far", operationType="Summary"),
           record("u2", "user", content="two"), record("a2", "assistant", content="2"),
           record("t2", "tombstone", kind="summarization", effectiveFromMessageId="s1"),
           record("s2", "assistant", content="all", operationType="Summary"),
           record("t3", "tombstone", kind="checkpoint_revert", effectiveFromMessageId="nowhere"))
    draft = grown.only(KiroSource(), tmp_path)
    assert grown.prompts(shown(draft)) == ["one", "two"]
    assert forgotten(draft) == 4
    assert texts(draft) == ["1", "2"]


def test_hooks_are_no_prompts_and_steering_is_one(tmp_path: Path) -> None:
    folder(tmp_path, "sess_1", record("u1", "user", content="go", source="chat"),
           record("u2", "user", content="hook words", source="hook"),
           record("u3", "user", content="left", source="steer"),
           record("x", "turn_start", executionId="e"),
           record("y", "pending_interaction", executionId="call-9"))  # fmt: skip
    draft = grown.only(KiroSource(), tmp_path)
    assert grown.prompts(draft.messages) == ["go", "left"]
    assert draft.metadata["activity"]["state"] == "waiting-approval"


def test_states_of_calls_are_those_of_their_results(tmp_path: Path) -> None:
    def call(name: str, status: str) -> dict[str, Any]:
        return record(f"{name}-call", "tool_call", toolCallId=name, toolName="x", args={},
                      status=status, executionId="e")  # fmt: skip

    folder(tmp_path, "sess_1", record("u1", "user", content="go"),
           call("a", "approved"), record("a-r", "tool_result", toolCallId="a", success=True,
                                         content="fine"),
           call("b", "completed"), record("b-r", "tool_result", toolCallId="b", success=False,
                                          content="bad"), call("c", "denied"),
           record("z", "turn_end", stopReason="cancelled"))  # fmt: skip
    draft = grown.only(KiroSource(), tmp_path)
    assert [one["status"] for one in calls(draft)] == ["done", "error", "denied"]
    assert draft.metadata["activity"]["state"] == "interrupted"


def test_a_call_of_the_engine_is_none_of_the_model(tmp_path: Path) -> None:
    folder(tmp_path, "sess_1", record("u1", "user", content="go"),
           record("e-call", "tool_call", toolCallId="e", executionId="e", toolName="fetch"),
           record("e-result", "tool_result", toolCallId="e", success=True, content="{}"))
    draft = grown.only(KiroSource(), tmp_path)
    assert calls(draft) == [] and len(events(draft, "engine call")) == 1


def test_a_converted_session_counts_what_is_its_own(tmp_path: Path) -> None:
    name = "11111111-2222-4333-8444-555555555555"
    lines(tmp_path, name, line("Prompt", "p0", "cleared"), {"version": "v1", "kind": "Clear"},
          line("Prompt", "p", "go"), line("AssistantMessage", "a", "ok"))  # fmt: skip
    usage = [{"unit": "credit", "usage": 0.25}]
    folder(tmp_path, f"cli_{name}_ab12cd34", record("u1", "user", content="go"),
           record("a1", "assistant", content="ok"),
           record("x1", "usage_summary", promptTurnSummaries=usage),
           record("u2", "user", content="on"), record("a2", "assistant", content="sure"),
           record("x2", "usage_summary", promptTurnSummaries=usage), title="New Session")
    drafts, _ = grown.read_all(KiroSource(), tmp_path)
    draft = drafts[f"cli_{name}_ab12cd34"]
    assert draft.lineage is not None and draft.lineage.parent_source_id == name
    assert [one.inherited_from for one in draft.messages] == ["p", "a", None, None]
    assert draft.metadata["backscroll"]["credits"] == 0.25
    assert (draft.title, draft.title_from) == ("go", "first-prompt")


def test_a_rewound_folder_begins_with_copies(tmp_path: Path) -> None:
    first = record("u1", "user", content="go"), record("a1", "assistant", content="ok")
    spent = record("x1", "usage_summary", promptTurnSummaries=[{"unit": "credit", "usage": 1}])
    folder(tmp_path, "sess_1", *first, spent)
    folder(tmp_path, "sess_2", *first, spent, record("u2", "user", content="else"),
           parentSessionId="sess_1", createdReason="rewind")  # fmt: skip
    draft = grown.read_all(KiroSource(), tmp_path)[0]["sess_2"]
    assert draft.lineage is not None and draft.lineage.kind == "fork"
    assert [one.inherited_from for one in draft.messages] == ["u1", "a1", None]
    assert "credits" not in draft.metadata["backscroll"]
