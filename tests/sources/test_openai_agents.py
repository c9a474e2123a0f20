"""OpenAI Agents SDK: the genuine samples are as ``EXPECTED.json`` has them, and hand-made rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.openai_agents import OpenaiAgentsSource
from store.sources.registry import all_sources, recognised
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources import grown, row_sources
from tests.sources.samples import DATA
from tests.sources.watched import reading

ROOT = DATA / "openai-agents"
EXPECTED = {
    "agents.db": json.loads((ROOT / "EXPECTED.json").read_text()),
    "advanced.db": json.loads((ROOT / "EXPECTED.advanced.json").read_text()),
}
READ = {name: grown.read_all(OpenaiAgentsSource(), ROOT / name) for name in EXPECTED}
SESSIONS = [
    pytest.param(READ[name][0][one["id"]], one, id=f"{name} {one['id']}")
    for name, expected in EXPECTED.items() for one in expected["sessions"]
]  # fmt: skip


def texts(messages: list[MessageDraft], role: str) -> list[str]:
    return [part.data["text"] for one in messages if one.role == role
            for part in one.parts if part.type == "text"]  # fmt: skip


def parts(messages: list[MessageDraft], kind: str) -> list[PartDraft]:
    return [part for one in messages for part in one.parts if part.type == kind]


def check_path(messages: list[MessageDraft], expected: dict[str, Any]) -> None:
    """Assert what a session, or a branch of one, is expected to hold."""
    assert grown.prompts(messages) == expected["prompts"]
    answers = texts(messages, "assistant")
    assert answers == expected["answers"]
    assert len(answers) == expected["assistant_messages"]
    thoughts = [part.data["text"] for part in parts(messages, "reasoning")]
    assert thoughts == expected["reasoning"]
    assert [
        {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
         "status": grown.extra(part)["status"]} for part in grown.calls(messages)
    ] == expected["tool_calls"]  # fmt: skip
    assert len(parts(messages, "file")) == expected["images"]
    models = [one.metadata["model"]["model_id"] for one in messages if "model" in one.metadata]
    assert list(dict.fromkeys(models)) == expected["models"]


@pytest.mark.parametrize("name", EXPECTED)
def test_just_the_sessions_expected(name: str) -> None:
    (drafts, problems), expected = READ[name], EXPECTED[name]
    assert problems == []
    assert expected["agent"] == OpenaiAgentsSource.kind and expected["file"] == name
    assert list(drafts) == [one["id"] for one in expected["sessions"]]
    assert len(drafts) == expected["session_count"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert expected["title"] is None and draft.title_from == "first-prompt"
    assert draft.title == grown.prompts(grown.visible(draft))[0]
    assert draft.workspace_root == expected["workspace"]
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert draft.metadata["backscroll"]["table"] == expected["table"]
    kept = [json.loads(record)["table"] for record in draft.records]
    assert kept.count(expected["table"]) == expected["rows"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_turns_calls_and_tokens(draft: SessionDraft, expected: dict[str, Any]) -> None:
    if "branches" not in expected:
        check_path(draft.messages, expected)
        assert expected["tokens"] is None
        assert not any("usage" in one.metadata for one in draft.messages)
        return
    check_path(grown.visible(draft), expected["branches"][expected["latest_branch"]])
    assert grown.tokens(draft.messages) == expected["tokens"]
    assert expected["orphan_rows"] == 0
    if not any(expected["tokens"].values()):
        # Nothing was stored: what was used is unknown, not 0.
        assert not any("usage" in one.metadata for one in draft.messages)


def test_a_branch_is_what_it_shares_and_its_own_hidden_messages() -> None:
    draft, expected = READ["advanced.db"][0]["adv-1"], EXPECTED["advanced.db"]["sessions"][0]
    main = expected["branches"]["main"]
    assert len([one for one in READ["advanced.db"][0]["adv-1"].records
                if json.loads(one)["table"] == "agent_messages"]) == main["items"] + 4  # fmt: skip
    hidden = [one for one in draft.messages if "hidden_at" in one.metadata]
    found = {}
    for asked, answer in zip(hidden[::2], hidden[1::2], strict=True):
        at = draft.messages.index(hidden[0])
        shared = [one for one in draft.messages[:at] if "hidden_at" not in one.metadata]
        found[grown.words(asked)] = [*shared, asked, answer]
    for name, branch in expected["branches"].items():
        if name != "main":
            path = found[branch["prompts"][-1]]
            check_path(path, branch)
            assert (len(path), len(path) - 2) == (branch["items"], branch["shared_with_main"])


def test_a_turn_of_several_requests_is_counted_behind_it() -> None:
    draft = READ["advanced.db"][0]["adv-1"]
    counted = {one.source_id: one.metadata for one in draft.messages if "usage" in one.metadata}
    assert counted["2"]["usage"]["input"] == 30
    assert counted["usage-2"]["backscroll"] == {"no_answer": True, "initiator": "turn"}
    assert counted["usage-6"]["model"]["model_id"] == "mock-1"


# --- hand-made rows -------------------------------------------------------------------------


class Agents:
    """A database as a program with sessions makes it."""

    def __init__(self, path: Path, sessions: str = "agent_sessions",
                 messages: str = "agent_messages") -> None:  # fmt: skip
        self.path, self.sessions, self.messages = path, sessions, messages
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.executescript(
            f'CREATE TABLE "{sessions}" (session_id TEXT PRIMARY KEY, created_at TIMESTAMP,'
            f' updated_at TIMESTAMP); CREATE TABLE "{messages}" (id INTEGER PRIMARY KEY'
            " AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL, created_at"
            f' TIMESTAMP, FOREIGN KEY (session_id) REFERENCES "{sessions}" (session_id));'
        )

    def add(self, session: str, *items: Any, at: str = "2026-11-28 10:00:00") -> None:
        self.connection.execute(
            f'INSERT INTO "{self.sessions}" VALUES (?, ?, ?) ON CONFLICT DO UPDATE'
            " SET updated_at = excluded.updated_at", (session, at, at),
        )  # fmt: skip
        for item in items:
            data = item if isinstance(item, str) else json.dumps(item)
            self.connection.execute(
                f'INSERT INTO "{self.messages}"(session_id, message_data, created_at)'
                " VALUES (?, ?, ?)", (session, data, at),
            )  # fmt: skip

    def branch(self, session: str, branch: str, *rows: int) -> None:
        """Give a branch rows of structure."""
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS message_structure (id INTEGER PRIMARY KEY, session_id TEXT,"
            " message_id INTEGER, branch_id TEXT, message_type TEXT, sequence_number INTEGER,"
            " user_turn_number INTEGER)"
        )
        for place, row in enumerate(rows):
            self.connection.execute(
                "INSERT INTO message_structure(session_id, message_id, branch_id,"
                " sequence_number, user_turn_number) VALUES (?, ?, ?, ?, 1)",
                (session, row, branch, place),
            )

    def draft(self, session: str = "one") -> SessionDraft:
        drafts, problems = grown.read_all(OpenaiAgentsSource(), self.path)
        assert problems == []
        return drafts[session]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Agents]:
    agents = Agents(tmp_path / "conversations.db")
    yield agents
    agents.connection.close()


def asked(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, response: str | None = None) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "message", "role": "assistant", "id": "__fake_id__",
                            "content": [{"type": "output_text", "text": text}]}  # fmt: skip
    return item | ({"provider_data": {"model": "m", "response_id": response}} if response else {})


def call(call_id: str, name: str = "look", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments,
            "id": "__fake_id__", **more}  # fmt: skip


def output(call_id: str, text: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def test_tables_of_other_names(tmp_path: Path) -> None:
    made = Agents(tmp_path / "state.db", "my sessions", 'my ""messages')
    made.add("a/b ü", asked("hi"), said("yes"))
    made.connection.close()
    found = recognised(made.path, all_sources())
    assert found is not None and found[0].kind == "openai-agents"
    draft = made.draft("a/b ü")
    assert draft.metadata["backscroll"] == {"table": 'my "messages'}
    assert [grown.words(one) for one in draft.messages] == ["hi", "yes"]


def test_two_pairs_of_tables_in_a_file(made: Agents) -> None:
    made.add("one", asked("usual"))
    other = Agents(made.path, "my_sessions", "my_messages")
    other.add("one", asked("other"))
    other.add("two", asked("third"))
    other.connection.close()
    drafts, problems = grown.read_all(OpenaiAgentsSource(), made.path)
    assert problems == []
    assert {name: grown.prompts(draft.messages) for name, draft in drafts.items()} == {
        "one": ["usual"], "my_messages:one": ["other"], "two": ["third"]
    }  # fmt: skip


def test_a_name_that_two_files_have_is_of_two_sessions(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        made = Agents(tmp_path / name)
        made.add("one", asked(f"in {name}"))
        made.connection.close()
    database = grown.synced(OpenaiAgentsSource(), tmp_path, tmp_path / "store" / "library")
    later = Agents(tmp_path / "0.db")
    later.add("one", asked("in 0.db"))
    later.connection.close()
    Sync(database).run([Target(OpenaiAgentsSource(), tmp_path)])
    rows = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.source.id'), json_extract(metadata_json, '$.title')"
        " FROM chat_sessions ORDER BY 2"
    ).fetchall()
    assert [title for _, title in rows] == ["in 0.db", "in a.db", "in b.db"]
    assert rows[1][0] == "one" and all(name.startswith("one@") for name, _ in (rows[0], rows[2]))


def test_order_is_of_rows_not_of_times(made: Agents) -> None:
    made.add("one", asked("first"), at="2026-11-28 10:00:05")
    made.add("one", said("second"), at="2026-11-28 10:00:01")
    assert [grown.words(one) for one in made.draft().messages] == ["first", "second"]


def test_answers_are_parted_by_what_the_model_was_sent(made: Agents) -> None:
    made.add("one", asked("go"), said("a", "r1"), call("c1"), call("c2"), output("c1", "1"),
             output("c2", "2"), said("b", "r2"), said("c", "r3"))  # fmt: skip
    answers = [one for one in made.draft().messages if one.role == "assistant"]
    assert [len(one.parts) for one in answers] == [3, 1, 1]
    assert [part.data.get("output") for part in answers[0].parts[1:]] == ["1", "2"]


def test_two_sessions_that_say_the_same_in_a_second_are_counted_twice(made: Agents) -> None:
    for session in ("one", "two"):
        made.add(session, asked("go"), said("Hello!"))
    answers = {made.draft(session).messages[1].answer for session in ("one", "two")}
    assert len(answers) == 2 and None not in answers


def test_ids_of_items_and_calls_may_repeat(made: Agents) -> None:
    made.add("one", asked("go"), call("c", arguments='{"n": 1}'), output("c", "1"),
             call("c", arguments='{"n": 2}'), output("c", "2"))  # fmt: skip
    found = grown.calls(made.draft().messages)
    assert [(part.data["input"], part.data["output"]) for part in found] == [
        ({"n": 1}, "1"), ({"n": 2}, "2")
    ]  # fmt: skip


def test_states_of_calls(made: Agents) -> None:
    failed = "An error occurred while running the tool. Please try again. Error: boom"
    made.add("one", asked("go"), call("a"), call("b"), call("c"), call("d", arguments="{broken"),
             output("a", "An error occurred"), output("b", failed),
             output("c", "Tool execution was not approved."))  # fmt: skip
    found = grown.calls(made.draft().messages)
    assert [part.tool_state for part in found] == [
        "output-available", "output-error", "output-denied", "input-available"
    ]  # fmt: skip
    assert found[3].data["input"] == {} and found[3].data["rawInput"] == "{broken"


def test_a_killed_run_ends_with_its_prompt(made: Agents) -> None:
    made.add("one", asked("go"), said("done"), asked("again"))
    assert made.draft().metadata["activity"]["state"] == "running"
    made.add("one", said("done again"))
    assert "activity" not in made.draft().metadata


def test_calls_of_the_provider_and_of_other_kinds(made: Agents) -> None:
    made.add(
        "one", asked("go"),
        {"type": "web_search_call", "id": "ws_1", "status": "completed",
         "action": {"type": "search", "query": "x"}},
        {"type": "mcp_call", "id": "mcp_1", "name": "list", "server_label": "files",
         "arguments": '{"p": 1}', "output": None, "error": "no such place"},
        {"type": "shell_call", "call_id": "s1", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "s1", "output": [
            {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}]},
        {"type": "computer_call", "call_id": "k1", "action": {"type": "click", "x": 1}},
        {"type": "computer_call_output", "call_id": "k1", "output": {
            "type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}},
        {"type": "apply_patch_call", "call_id": "p1", "operation": {"path": "a"}},
        {"type": "apply_patch_call_output", "call_id": "p1", "status": "failed", "output": "no"},
    )  # fmt: skip
    search, mcp, shell, click, patch = grown.calls(made.draft().messages)
    assert (search.type, search.tool_call_id, search.tool_state) == (
        "tool-web_search", "ws_1", "output-available"
    )  # fmt: skip
    assert search.data["providerExecuted"] and search.data["input"]["query"] == "x"
    assert (mcp.type, mcp.data["errorText"]) == ("tool-list", "no such place")
    assert mcp.data["callProviderMetadata"] == {"backscroll": {"server": "files"}}
    assert grown.extra(shell) == {"status": "ok", "exit_code": 2}
    assert click.data["output"][0]["mediaType"] == "image/png"
    assert (patch.tool_state, patch.data["input"]) == ("output-error", {"path": "a"})


def test_an_approval_that_waits_and_one_that_was_refused(made: Agents) -> None:
    request = {"type": "mcp_approval_request", "id": "q1", "name": "drop", "arguments": "{}",
               "server_label": "db"}  # fmt: skip
    made.add("one", asked("go"), request)
    draft = made.draft()
    assert draft.metadata["activity"]["state"] == "waiting-approval"
    assert grown.call(draft, "q1").tool_state == "approval-requested"
    made.add("one", {"type": "mcp_approval_response", "approval_request_id": "q1",
                     "approve": False, "reason": "no"})  # fmt: skip
    assert grown.call(made.draft(), "q1").tool_state == "output-denied"


def test_content_of_all_kinds(made: Agents) -> None:
    made.add("one", {"role": "developer", "content": "be brief"}, {"role": "user", "content": [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "https://x.example/a.png"},
        {"type": "input_file", "file_data": "data:text/plain;base64,aGk=", "filename": "a.txt"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
    ]}, {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": [
            {"type": "refusal", "refusal": "I will not."}]},
        {"type": "compaction", "encrypted_content": "gAAA"}, {"type": "brand_new", "x": 1},
    )  # fmt: skip
    system, user, answer, compaction, new = made.draft().messages
    assert (system.role, system.metadata["backscroll"]["role"]) == ("system", "developer")
    assert [part.data.get("url", "")[:16] for part in user.parts] == [
        "", "https://x.exampl", "data:text/plain;", "file-id:file-1", "data:audio/mp3;b"
    ]  # fmt: skip
    thought, refusal = answer.parts
    assert thought.data["providerMetadata"] == {"backscroll": {"redacted": True}}
    assert "gAAA" not in json.dumps(thought.data)
    assert refusal.data["text"] == "I will not."
    assert compaction.parts[0].type == "data-compaction"
    assert new.parts[0].data["data"] == {"name": "brand_new", "details": {"x": 1}}


def test_encrypted_items_are_named_as_such(made: Agents) -> None:
    made.add("one", {"__enc__": 1, "v": 1, "kid": "k", "payload": "gAAAAB"})
    (message,) = made.draft().messages
    assert message.parts[0].data["data"] == {"name": "encrypted"}


def test_the_branch_that_was_written_to_last_is_shown(made: Agents) -> None:
    made.add("one", asked("a"), said("b"), asked("c"), said("d"), asked("e"), asked("lost"))
    made.branch("one", "main", 1, 2, 3, 4)
    made.branch("one", "other", 1, 2, 5)
    draft = made.draft()
    assert [grown.words(one) for one in grown.visible(draft)] == ["a", "b", "e"]
    assert [grown.words(one) for one in draft.messages if "hidden_at" in one.metadata] == [
        "c", "d", "lost"
    ]  # fmt: skip
    assert draft.metadata["backscroll"]["branch"] == "other"
    made.add("plain", asked("no branches"))
    assert grown.prompts(made.draft("plain").messages) == ["no branches"]


def test_damage_costs_only_itself(made: Agents) -> None:
    made.add("one", asked("go"), "{broken", output("nowhere", "x"), "[1]")
    made.connection.execute(
        "INSERT INTO agent_messages(session_id, message_data, created_at)"
        " VALUES ('lost', '{\"role\": \"user\", \"content\": 7}', 'x')"
    )
    drafts, problems = grown.read_all(OpenaiAgentsSource(), made.path)
    told = " ".join(problem.reason for problem in problems)
    assert "message 2 holds no JSON object" in told and "of call nowhere" in told
    assert [one.role for one in drafts["one"].messages] == ["user", "system", "assistant", "system"]
    assert len(drafts["lost"].messages) == 1
    for draft in drafts.values():
        grown.check_records(draft)


def test_no_usual_place(tmp_path: Path) -> None:
    assert OpenaiAgentsSource().default_roots({}, tmp_path) == []
    assert OpenaiAgentsSource().recognise(ROOT) == ROOT


# --- live, locked, damaged, left alone ----------------------------------------------------------


def grow(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute("INSERT INTO agent_messages(session_id, message_data, created_at)"
                       " VALUES ('poetry', ?, '2026-11-29 10:00:00')",
                       (json.dumps(asked("more")),))  # fmt: skip
    connection.execute("UPDATE agent_sessions SET updated_at = '2026-11-29 10:00:00'"
                       " WHERE session_id = 'poetry'")  # fmt: skip
    connection.execute("COMMIT")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return row_sources.copied(ROOT / "agents.db", folder)


def test_a_live_writer_is_left_alone(file: Path) -> None:
    (unit,) = row_sources.check_live(OpenaiAgentsSource(), file, grow)
    assert unit.key == "agents.db/poetry"


def test_items_that_were_taken_back_are_seen(file: Path) -> None:
    source = OpenaiAgentsSource()
    assert source.units_at(file, [str(file)])
    row_sources.written(file, lambda one: one.execute(
        "DELETE FROM agent_messages WHERE id = (SELECT max(id) FROM agent_messages)"))  # fmt: skip
    (unit,) = source.units_at(file, [str(file)]) or []
    assert unit.key == "agents.db/approval"


def test_a_killed_writers_wal_is_read(file: Path) -> None:
    row_sources.check_killed(OpenaiAgentsSource, file, grow)


def test_nothing_of_a_file_is_touched(file: Path, tmp_path: Path) -> None:
    row_sources.check_untouched(OpenaiAgentsSource(), file, tmp_path / "library.db")


def test_a_lock_is_waited_out(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_sources.check_locked(OpenaiAgentsSource, file, tmp_path / "library.db", monkeypatch)


def test_damaged_files_are_named(file: Path) -> None:
    row_sources.check_damaged(OpenaiAgentsSource, file)


def test_a_file_that_goes_away_costs_only_itself(file: Path, tmp_path: Path) -> None:
    row_sources.check_disappears(OpenaiAgentsSource, file, tmp_path / "library.db")


def test_only_its_own_tables_are_asked_for(file: Path) -> None:
    row_sources.written(file, lambda one: one.executescript(
        "CREATE TABLE api_keys(secret); INSERT INTO api_keys VALUES ('hidden')"))  # fmt: skip
    found = reading(Target(OpenaiAgentsSource(), file))
    asked = [sql.lower() for sql in found.sql if not sql.lower().startswith("pragma")]
    assert any("agent_messages" in sql for sql in asked)
    assert not any("api_keys" in sql for sql in asked)
