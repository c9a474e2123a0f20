"""Cline: the samples come out exactly as their EXPECTED.json says; hand-made files beside."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.values import epoch_ms
from store.sources.cline import ClineSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA, SAMPLES, path_of
from tests.sources.watched import reading

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


def test_answers_name_their_system_prompt() -> None:
    draft = SDK[FORKED]
    ((digest, text),) = draft.system_prompts.items()
    assert text == "(system prompt removed)"
    named = {one.metadata.get("system_prompt_digest") for one in draft.messages
             if one.role == "assistant"}  # fmt: skip
    assert named == {digest}


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


# --- hand-made sessions ---------------------------------------------------------------------

AT = 1_795_900_000_000
ONE = f"{AT}_abcde"


def said(role: str, *content: Any, **more: Any) -> Expected:
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    return {"role": role, "content": blocks, **more}


def use(name: str, call: str = "c1", **given: Any) -> Expected:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def result(content: Any, call: str = "c1", **more: Any) -> Expected:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def session(data: Path, *messages: Expected, name: str = ONE, **manifest: Any) -> Path:
    folder = data / "sessions" / name
    given = [{"id": f"m{place}", "ts": AT + 1000 * place, **one}
             for place, one in enumerate(messages)]  # fmt: skip
    body = {"version": 1, "agent": "lead", "sessionId": name, "messages": given}
    if manifest:
        told = {"version": 1, "session_id": name, "metadata": {}, **manifest}
        write(folder / f"{name}.json", told)
    return write(folder / f"{name}.messages.json", body)


def database(data: Path, *rows: Expected) -> Path:
    path = data / "db" / "sessions.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE IF NOT EXISTS sessions (session_id TEXT PRIMARY KEY,"
                     " status TEXT, status_lock INT, prompt TEXT, metadata_json TEXT,"
                     " parent_session_id TEXT, started_at TEXT, updated_at TEXT)")  # fmt: skip
        for row in rows:
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            made.execute(f"INSERT OR REPLACE INTO sessions ({names}) VALUES ({marks})",
                         tuple(row.values()))  # fmt: skip
    return path


def test_what_the_program_puts_around_a_prompt_is_left_out(tmp_path: Path) -> None:
    session(
        tmp_path,
        said("user", '<user_input mode="plan"><mode_notice>Plan only.</mode_notice>\n'
                     "a <b> </user_input></user_input>"),
        said("user", "cut off", metadata={"userRunSpan": 0}),
        said("user", "plain"),
    )  # fmt: skip
    draft = grown.only(ClineSource(), tmp_path)
    assert grown.prompts(draft.messages) == ["a <b> </user_input>", "plain"]
    assert draft.messages[1].metadata == {"origin": "meta"}


@pytest.mark.parametrize(("content", "more", "status", "words"), [
    ([{"query": "ls", "result": "a", "success": True}], {}, "ok", "a"),
    ([{"query": "a", "result": "1", "success": True}, {"query": "b", "result": "2"}], {}, "ok",
     "a\n1\nb\n2"),
    ([{"query": "x", "result": "", "error": "Command was aborted", "success": False}], {},
     "interrupted", "Command was aborted"),
    ('{"query":"e","result":"","error":"no match","success":false}', {}, "error", "no match"),
    ('{"text":"done","iterations":2}', {}, "ok", "done"),
    ("Blue", {}, "ok", "Blue"),
    ("{broken", {}, "ok", "{broken"),
    ("it broke", {"is_error": True}, "error", "it broke"),
    ('{"error":"This tool call was rejected by the user"}', {"is_error": True}, "denied",
     "This tool call was rejected by the user"),
])  # fmt: skip
def test_how_a_call_ended(
    tmp_path: Path, content: Any, more: Expected, status: str, words: str
) -> None:
    session(tmp_path, said("assistant", use("run_commands")), said("user", result(content, **more)))
    (call,) = grown.calls(grown.only(ClineSource(), tmp_path).messages)
    assert grown.extra(call)["status"] == status
    told = call.data.get("output", call.data.get("errorText"))
    assert (told or call.data["approval"]["reason"]) == words


def test_only_an_id_of_its_own_names_an_answer(tmp_path: Path) -> None:
    used = {"metrics": {"inputTokens": 9, "outputTokens": 1}}
    session(tmp_path, said("assistant", "a", **used), said("assistant", "b", id="m0", **used),
            said("assistant", "c", id=None, **used))  # fmt: skip
    answers = [one.answer for one in grown.only(ClineSource(), tmp_path).messages]
    assert [one.id if one else None for one in answers] == ["m0", None, None]


def test_results_are_joined_by_id_and_one_is_missing(tmp_path: Path) -> None:
    session(tmp_path, said("assistant", use("a", "1"), use("b", "2"), use("c", "3")),
            said("user", result("two", "2")), said("user", result("one", "1")))  # fmt: skip
    draft = grown.only(ClineSource(), tmp_path)
    assert [call.data.get("output") for call in grown.calls(draft.messages)] == ["one", "two", None]
    assert draft.metadata["activity"]["state"] == "running"


def test_a_prompt_is_of_the_row_until_there_are_messages(tmp_path: Path) -> None:
    session(tmp_path)
    source = ClineSource()
    assert grown.only(source, tmp_path).messages == []
    (unit,) = source.units(tmp_path, [])
    path = database(tmp_path, {"session_id": ONE, "prompt": "<user_input mode=\"act\">hi"
                               "</user_input>", "status": "running"})  # fmt: skip
    (moved,) = source.units_at(tmp_path, [str(path) + "-wal"]) or []
    assert moved != unit
    draft = source.read(tmp_path, moved).sessions[0]
    assert grown.prompts(draft.messages) == ["hi"]
    assert draft.metadata["activity"]["state"] == "running"
    assert source.units_at(tmp_path, [str(path)]) == []
    session(tmp_path, said("user", "hi"), started_at="2026-11-28T10:00:00Z")
    assert grown.prompts(grown.only(source, tmp_path).messages) == ["hi"]


def test_a_half_written_file_is_waited_for(tmp_path: Path) -> None:
    path = session(tmp_path, said("user", "hi"), said("assistant", "hello"))
    whole = path.read_bytes()
    source = ClineSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    assert len(follower.read(unit).sessions[0].messages) == 2
    path.write_bytes(whole[:-40])
    (torn,) = source.units_at(tmp_path, [str(path)]) or []
    reading = follower.read(torn)
    assert reading.sessions == [] and len(reading.problems) == 1
    path.write_bytes(whole)
    (unit,) = source.units_at(tmp_path, [str(path)]) or []
    reading = follower.read(unit)
    assert len(reading.sessions[0].messages) == 2 and reading.problems == []


def test_a_session_that_is_torn_when_it_is_first_read_is_there(tmp_path: Path) -> None:
    data = tmp_path / "data"
    path = session(data, said("assistant", use("spawn_agent", task="go")), prompt="hi",
                   started_at="2026-11-28T10:00:00Z")  # fmt: skip
    write(path.with_name("agent_1.messages.json"), {
        "agent": "subagent", "sessionId": f"{ONE}__agent_1", "messages": [said("user", "go")]})
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    drafts, problems = grown.read_all(ClineSource(), data)
    assert grown.prompts(drafts[ONE].messages) == ["hi"] and len(problems) == 1
    assert all(draft.partial for draft in drafts.values())
    library = open_database(tmp_path / "library.db", create=True)
    asked = "SELECT json_extract(m.metadata_json, '$.source.id') FROM chat_messages m ORDER BY 1"
    for body, found in ((whole[:-9], ["0", "prompt"]), (whole, ["0", "m0"]),
                        (whole[:-9], ["0", "m0"])):  # fmt: skip
        path.write_bytes(body)
        Sync(library, Settings(helpers=0)).run([Target(ClineSource(), data)])
        assert [name for (name,) in library.connection.execute(asked)] == found
    library.close()


def test_copies_are_known_by_time_where_the_parent_is_gone(tmp_path: Path) -> None:
    fork = {"forkedFromSessionId": "gone", "forkedAt": AT + 1500}
    session(tmp_path, said("user", "old"), said("assistant", "too"), said("user", "new"),
            metadata={"fork": fork, "title": "old (fork)"})  # fmt: skip
    draft = grown.only(ClineSource(), tmp_path)
    assert [one.inherited_from for one in draft.messages] == ["m0", "m1", None]
    assert draft.lineage is not None and draft.lineage.parent_message_source_id == "m1"


def test_a_subagents_child_is_its_own(tmp_path: Path) -> None:
    folder = session(tmp_path, said("assistant", use("spawn_agent", task="go"))).parent
    for name, parent in (("agent_1", ONE), ("agent_2", f"{ONE}__agent_1")):
        write(folder / f"{name}.messages.json", {
            "agent": "subagent", "sessionId": f"{ONE}__{name}", "messages": [said("user", "go")],
            "origin": {"parentThreadId": parent}})  # fmt: skip
    drafts, _ = grown.read_all(ClineSource(), tmp_path)
    links = {name.rpartition("__")[2]: draft.lineage for name, draft in drafts.items()}
    first, second = links["agent_1"], links["agent_2"]
    assert first is not None and (first.parent_source_id, first.tool_call_id) == (ONE, "c1")
    assert second is not None and second.parent_source_id == f"{ONE}__agent_1"


# --- hand-made tasks ------------------------------------------------------------------------

TASK = str(AT)


def shows(what: str, text: Any = "", **more: Any) -> Expected:
    asked = more.pop("ask", False)
    words = text if isinstance(text, str) else json.dumps(text)
    return {"type": "ask" if asked else "say", "ask" if asked else "say": what, "text": words,
            **more}  # fmt: skip


def task(data: Path, shown: list[Expected], history: list[Expected] | None, *,
         name: str = TASK) -> Path:  # fmt: skip
    folder = data / "tasks" / name
    if history is not None:
        write(folder / "api_conversation_history.json", history)
    given = [{"ts": AT + 1000 * place, **one} for place, one in enumerate(shown)]
    return write(folder / "ui_messages.json", given)


def test_a_call_is_shown_before_the_model_s_message_is_written(tmp_path: Path) -> None:
    shown = [shows("task", "go"), shows("api_req_started", {}), shows("text", "I look."),
             shows("command", "rm xREQ_APP", ask=True)]  # fmt: skip
    task(tmp_path, shown, [])
    draft = grown.only(ClineSource(), tmp_path)
    (call,) = grown.calls(draft.messages)
    assert (call.tool_state, call.data["input"]) == ("approval-requested", {"command": "rm x"})
    assert draft.metadata["activity"]["state"] == "waiting-approval"
    written = "I look.\n<execute_command>\n<command>rm x</command>\n"
    answer = said("assistant", written, ts=AT + 3500)
    task(tmp_path, shown, [answer])
    (again,) = grown.calls(grown.only(ClineSource(), tmp_path).messages)
    assert (again.tool_call_id, again.tool_state) == (call.tool_call_id, "approval-requested")
    denied = "[execute_command for 'rm x'] Result:\nThe user denied this operation."
    task(tmp_path, [*shown, shows("resume_task", ask=True)],
         [answer, said("user", denied, ts=AT + 3600)])  # fmt: skip
    (last,) = grown.calls(grown.only(ClineSource(), tmp_path).messages)
    assert grown.extra(last)["status"] == "denied"


@pytest.mark.parametrize(("provider", "told", "expected"), [
    ("anthropic", {}, 1000), ("openai", {}, 600), (None, {"apiProtocol": "anthropic"}, 600),
])
def test_what_the_input_counts(
    tmp_path: Path, provider: str | None, told: Expected, expected: int
) -> None:
    counted = {"tokensIn": 1000, "tokensOut": 5, "cacheReads": 300, "cacheWrites": 100, **told}
    more = {"modelInfo": {"providerId": provider, "modelId": "m"}} if provider else {}
    task(tmp_path, [shows("text", "go"), shows("api_req_started", counted, **more)], [])
    draft = grown.only(ClineSource(), tmp_path)
    assert grown.tokens(draft.messages) == {
        "input": expected, "output": 5, "reasoning": 0, "cache_read": 300, "cache_write": 100}


def test_retries_and_models_of_older_versions(tmp_path: Path) -> None:
    refused = json.dumps({"message": "busy", "status": 529})
    told = {"attempt": 1, "maxAttempts": 3, "delaySeconds": 2, "errorMessage": refused}
    path = task(tmp_path, [
        shows("task", "go"), shows("api_req_started", {"tokensIn": 1}),
        shows("error_retry", told), shows("error_retry", {**told, "failed": True}),
        shows("api_req_failed", refused, ask=True),
    ], [])  # fmt: skip
    used = [{"ts": AT, "model_id": "m-1", "model_provider_id": "anthropic"},
            {"ts": AT + 9000, "model_id": "m-2", "model_provider_id": "anthropic"}]  # fmt: skip
    write(path.with_name("task_metadata.json"), {"model_usage": used})
    draft = grown.only(ClineSource(), tmp_path)
    assert models(draft) == ["m-1"]
    assert data_of(draft, "retry") == [
        {"message": "busy", "attempt": 1, "max_attempts": 3, "delay_ms": 2000}]  # fmt: skip
    assert [one["message"] for one in data_of(draft, "error")] == ["busy", "busy"]
    assert draft.metadata["activity"]["state"] == "error"


def test_parameters_of_marked_up_calls_may_hold_tags(tmp_path: Path) -> None:
    body = ("<write_to_file><path>a.html</path><content>\n<p></content></p>\n</content>"
            "</write_to_file>")  # fmt: skip
    task(tmp_path, [shows("text", "go"), shows("api_req_started", {})],
         [said("assistant", body, ts=AT + 1500)])  # fmt: skip
    (call,) = grown.calls(grown.only(ClineSource(), tmp_path).messages)
    assert call.data["input"] == {"path": "a.html", "content": "<p></content></p>"}


def test_a_heading_of_several_lines_and_an_answer_that_was_chosen(tmp_path: Path) -> None:
    asked = {"question": "Which?", "options": ["a", "b"], "selected": "b"}
    call = "<execute_command><command>a\nb</command></execute_command>"
    question = "<ask_followup_question><question>Which?</question></ask_followup_question>"
    heading = "[ask_followup_question for 'Which?'] Result:\n<answer>\nb\n</answer>"
    history = [
        said("assistant", call, ts=AT + 1100),
        said("user", "[execute_command for 'a\nb'] Result:\nCommand failed with exit code 2.\n",
             ts=AT + 1200),
        said("assistant", question, ts=AT + 2100), said("user", heading, ts=AT + 3000),
    ]  # fmt: skip
    shown = [shows("task", "go"), shows("api_req_started", {}), shows("api_req_started", {}),
             shows("followup", asked, ask=True)]  # fmt: skip
    for given in (history, history[:2]):
        task(tmp_path, shown, given)
        first, second = grown.calls(grown.only(ClineSource(), tmp_path).messages)
        assert (grown.extra(first)["status"], grown.extra(first)["exit_code"]) == ("error", 2)
        assert (second.type, second.data["output"]) == ("tool-ask_followup_question", "b")


def test_many_tags_without_an_end_cost_little(tmp_path: Path) -> None:
    tags = "".join(f"<{tag}>" * 20_000 for tag in ("task", "mode_notice", "read_file", "path"))
    session(tmp_path / "one", said("user", tags))
    path = task(tmp_path / "two", [], [said("user", tags, ts=AT), said("assistant", tags, ts=AT)])
    path.unlink()
    for place in ("one", "two"):
        assert grown.only(ClineSource(), tmp_path / place)


def test_a_task_is_read_without_the_file_of_what_was_shown(tmp_path: Path) -> None:
    path = task(tmp_path, [], [
        said("user", "<task>\ngo\n</task>", "<environment_details>\n<task>no</task>", ts=AT),
        said("assistant", "Yes.\n<attempt_completion><result>Done.</result></attempt_completion>",
             ts=AT + 1),
    ])  # fmt: skip
    path.unlink()
    draft = grown.only(ClineSource(), tmp_path)
    assert draft.partial
    assert (grown.prompts(draft.messages), texts(draft)) == (["go"], ["Yes.", "Done."])


def test_a_list_that_moves_brings_its_task(tmp_path: Path) -> None:
    path = task(tmp_path, [shows("task", "go")], [])
    task(tmp_path, [shows("task", "other")], [], name=f"{AT + 1}")
    source = ClineSource()
    assert len(list(source.units(tmp_path, []))) == 2
    history = write(tmp_path / "state/taskHistory.json", [{"id": TASK, "task": "Named",
                                                           "isFavorited": True}])  # fmt: skip
    (unit,) = source.units_at(tmp_path, [str(history)]) or []
    draft = source.read(tmp_path, unit).sessions[0]
    assert (draft.title, about(draft)["favorite"]) == ("Named", True)
    assert [one.key for one in source.units_at(tmp_path, [str(path)]) or []] == [f"tasks/{TASK}"]
    (tmp_path / "globalState.json").write_text("{}")
    assert source.units_at(tmp_path, [str(tmp_path / "globalState.json")]) == []


def test_two_extensions_keep_their_lists_in_one_database(tmp_path: Path) -> None:
    names = ("rooveterinaryinc.roo-cline", "kilocode.kilo-code")
    with contextlib.closing(sqlite3.connect(tmp_path / "state.vscdb")) as made, made:
        made.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
        for name in names:
            listed = json.dumps({"taskHistory": [{"id": TASK, "task": f"Of {name}"}]})
            made.execute("INSERT INTO ItemTable VALUES (?, ?)", (name, listed))
            task(tmp_path / name, [shows("task", "go")], [])
    source = ClineSource()
    found = [grown.only(source, tmp_path / name).title for name in names]
    assert found == [f"Of {name}" for name in names]


def test_a_task_that_a_session_goes_on_with_is_listed_once(tmp_path: Path) -> None:
    own = tmp_path / ".cline/data"
    extension = tmp_path / ".config/Code/User/globalStorage/saoudrizwan.claude-dev"
    for data in (own, extension):
        task(data, [shows("task", "go")], [])
    session(own, said("user", "go"), said("assistant", "on"), name=TASK)
    source = ClineSource()
    assert source.default_roots({}, tmp_path) == [own, extension]
    assert [unit.key for unit in source.units(own, [])] == [f"sessions/{TASK}"]
    assert list(source.units(extension, [])) == []


# --- places ---------------------------------------------------------------------------------


def test_where_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ClineSource()
    assert source.default_roots({}, tmp_path) == [tmp_path / ".cline/data"]
    named = {"CLINE_DIR": "/c", "CLINE_SESSION_DATA_DIR": "/s"}
    assert source.default_roots(named, tmp_path) == [Path("/c/data"), Path("/s")]
    assert source.default_roots({"CLINE_DATA_DIR": "/d"}, tmp_path) == [Path("/d")]
    kilo, roo = "kilocode.kilo-code", "rooveterinaryinc.roo-cline"
    for platform, variables, user, name in (
        ("linux", {}, ".config/VSCodium/User", roo),
        ("linux", {"XDG_CONFIG_HOME": str(tmp_path / "moved")}, "moved/Cursor/User", kilo),
        ("linux", {}, ".vscode-server/data/User", kilo),
        ("darwin", {}, "Library/Application Support/Code - Insiders/User", roo),
        ("win32", {"APPDATA": str(tmp_path / "Roaming")}, "Roaming/Windsurf/User", kilo),
        ("linux", {"VSCODE_PORTABLE": str(tmp_path / "port")}, "port/user-data/User", roo),
    ):
        monkeypatch.setattr("store.sources.base.vscode.sys.platform", platform)
        folder = tmp_path / user / "globalStorage" / name
        folder.mkdir(parents=True)
        assert folder in source.default_roots(variables, tmp_path)


def test_roots_are_known_by_what_they_hold(tmp_path: Path) -> None:
    source, sdk = ClineSource(), SAMPLE / "sdk"
    shutil.copytree(sdk, tmp_path / ".cline/data")
    one = sdk / "sessions" / FORKED
    for path, root in (
        (tmp_path, tmp_path / ".cline/data"), (sdk / "sessions", sdk / "sessions"), (one, one),
        (one / f"{FORKED}.messages.json", one), (ROO, ROO), (ROO / "tasks", ROO / "tasks"),
    ):  # fmt: skip
        assert source.recognise(path) == root
        drafts, problems = grown.read_all(source, root)
        assert drafts and problems == []
    alone, _ = grown.read_all(source, one)
    assert about(alone[FORKED])["git_branch"] == "main"
    assert source.recognise(SAMPLE / "EXPECTED.json") is None
    assert source.recognise(sdk / "db") is None


def test_no_secret_is_opened_or_asked_for(tmp_path: Path) -> None:
    secrets = ("settings/providers.json", "settings/cline_mcp_settings.json", "secrets.json",
               "globalState.json", "db/hub-events-1.db", "db/teams.db")  # fmt: skip
    for sample in (one for one in SAMPLES if one.kind == "cline"):
        target = sample.copied(tmp_path)
        root = path_of(target)
        for name in secrets:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text("secret")
        found = reading(target)
        assert not found.names() & {Path(name).name for name in secrets}
        for asked in (sql for sql in found.sql if "ItemTable" in sql):
            assert f"'{root.name}'" in asked and "value FROM" in asked
    state = sqlite3.connect(tmp_path / "cline/vscode/User/globalStorage/state.vscdb")
    state.execute("INSERT INTO ItemTable VALUES ('secret://kilocode.kilo-code', 'sk-secret')")
    state.commit()
    state.close()
    drafts, _ = grown.read_all(ClineSource(), root)
    kept = b"".join(record for draft in drafts.values() for record in draft.records)
    assert b"sk-secret" not in kept and drafts["1790000000000"].title == "Explain the tide table"


def test_the_database_of_an_editor_is_watched() -> None:
    assert list(ClineSource().watch_paths(KILO)) == [KILO, STORAGE / "state.vscdb"]
    assert list(ClineSource().watch_paths(SAMPLE / "sdk")) == [SAMPLE / "sdk"]


def test_a_row_that_is_gone_leaves_status_and_start(tmp_path: Path) -> None:
    session(tmp_path, said("user", "do it"), said("assistant", "done"))
    rows = database(tmp_path, {
        "session_id": ONE, "status": "failed", "metadata_json": "{}",
        "started_at": "2026-01-02T03:04:05.000Z", "updated_at": "2026-01-02T04:00:00.000Z",
    })  # fmt: skip
    library = open_database(tmp_path / "library.db", create=True)
    target = Target(ClineSource(), tmp_path)
    told = "SELECT created_at, json_extract(metadata_json, '$.backscroll.status')"
    told += " FROM chat_sessions"
    Sync(library, Settings(helpers=0)).run([target])
    before = library.connection.execute(told).fetchall()
    with contextlib.closing(sqlite3.connect(rows)) as made, made:
        made.execute("DELETE FROM sessions")
    Sync(library, Settings(helpers=0)).run([target])
    assert library.connection.execute(told).fetchall() == before
    assert before[0][1] == "failed"
    library.close()


def test_calls_of_unknown_roles_and_blocks_are_shown(tmp_path: Path) -> None:
    session(tmp_path, said("user", "go"), said("planner", use("run_commands", command="ls")),
            said("user", result("a.txt")))  # fmt: skip
    (draft,) = [draft for unit in ClineSource().units(tmp_path, [])
                for draft in ClineSource().read(tmp_path, unit).sessions]  # fmt: skip
    (part,) = [part for message in draft.messages for part in message.parts if part.tool_call_id]
    assert (part.tool_state, part.data["output"]) == ("output-available", "a.txt")
    shown = [shows("text", "go"), shows("api_req_started", "{}"), shows("text", "I look")]
    history = [said("user", "go", ts=AT), said("planner", use("list_files", path="."), ts=AT + 9),
               said("user", result("b.txt"), ts=AT + 10)]  # fmt: skip
    task(tmp_path / "other", shown, history)
    (draft,) = [draft for unit in ClineSource().units(tmp_path / "other", [])
                for draft in ClineSource().read(tmp_path / "other", unit).sessions]  # fmt: skip
    (part,) = [part for message in draft.messages for part in message.parts if part.tool_call_id]
    assert (part.type, part.data["output"]) == ("tool-list_files", "b.txt")
