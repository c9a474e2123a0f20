"""llm: the genuine samples come out as the independent reader of ``EXPECTED.json`` has them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.llm import LlmSource
from tests.sources import grown, row_sources
from tests.sources.samples import DATA, FIRST, path_of
from tests.sources.watched import reading

ROOTS = {"0.36": DATA / "llm", "0.27.1": DATA / "llm" / "old-0.27.1"}
EXPECTED = {name: json.loads((root / "EXPECTED.json").read_text()) for name, root in ROOTS.items()}
READ = {name: grown.read_all(LlmSource(), root / "logs.db") for name, root in ROOTS.items()}
SESSIONS = [
    pytest.param(READ[name][0][one["id"]], one, id=f"{name} {one['title']}"[:30])
    for name, expected in EXPECTED.items() for one in expected["sessions"]
]  # fmt: skip
BUCKETS = ("input", "output", "reasoning", "cache_read", "cache_write")
AFTER_TREE = "What is a B-tree?"


def tokens(messages: list[MessageDraft]) -> dict[str, int]:
    used = [one.metadata["usage"] for one in messages if "usage" in one.metadata]
    return {bucket: sum(usage[bucket] for usage in used) for bucket in BUCKETS}


def shown(draft: SessionDraft, *, hidden: bool = False) -> list[MessageDraft]:
    return [one for one in draft.messages
            if ("hidden_at" in one.metadata) == hidden and one.role != "system"]  # fmt: skip


def texts(message: MessageDraft) -> str:
    return "\n".join(part.data["text"] for part in message.parts if part.type == "text")


def calls(messages: list[MessageDraft]) -> list[PartDraft]:
    return [part for one in messages for part in one.parts if part.tool_call_id]


def prompts(messages: list[MessageDraft]) -> list[MessageDraft]:
    return [one for one in messages if one.metadata.get("origin") == "human"]


@pytest.mark.parametrize("name", ROOTS)
def test_just_the_sessions_expected_and_all_tokens_once(name: str) -> None:
    (drafts, problems), expected = READ[name], EXPECTED[name]
    assert problems == []
    assert drafts.keys() == {one["id"] for one in expected["sessions"]}
    assert len(drafts) == expected["session_count"]
    messages = [one for draft in drafts.values() for one in draft.messages]
    assert tokens(messages) == expected["tokens_total"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert (draft.title, draft.workspace_root) == (expected["title"], expected["workspace"])
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    named = [one.metadata["model"]["model_id"] for one in draft.messages
             if "model" in one.metadata]  # fmt: skip
    assert list(dict.fromkeys(named)) == expected["models"]
    assert list(draft.system_prompts.values()) == (
        [expected["system"]] if expected["system"] else []
    )


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_turns_and_what_was_typed(draft: SessionDraft, expected: dict[str, Any]) -> None:
    asked = prompts(shown(draft))
    assert [texts(one) for one in asked] == expected["prompts"]
    typed = [one.metadata.get("backscroll", {}).get("display", texts(one)) for one in asked]
    assert typed == expected["prompts_typed"]
    answers = [one for one in shown(draft) if one.role == "assistant"]
    assert len(answers) == expected["assistant_messages"]
    thoughts = [part.data["text"] for one in draft.messages for part in one.parts
                if part.type == "reasoning"]  # fmt: skip
    assert thoughts == expected["reasoning"]
    if any(one.role == "assistant" and "system_prompt_digest" not in one.metadata
           for one in draft.messages):  # fmt: skip
        assert expected["system"] is None
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_every_row_is_there(draft: SessionDraft, expected: dict[str, Any]) -> None:
    rows = [json.loads(record) for record in draft.records]
    kept = [row for row in rows if row["table"] == "messages"]
    lost = shown(draft, hidden=True)
    if expected["generation"] == "thread":
        assert len(kept) - len(lost) == expected["messages_on_path"]
    responses = [row for row in rows if row["table"] == "responses"]
    assert len(responses) == expected["legacy_responses"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_a_branch_that_lost_is_hidden_and_counted(
    draft: SessionDraft, expected: dict[str, Any]
) -> None:
    lost = shown(draft, hidden=True)
    pairs = zip(lost[::2], lost[1::2], strict=True)
    assert [(texts(one), texts(other)) for one, other in pairs] == [
        (turn["prompt"], turn["answer"]) for turn in expected.get("off_path_turns", [])
    ]
    assert tokens(draft.messages) == expected["tokens"]


def test_a_lost_branch_begins_where_it_was_begun() -> None:
    (draft,) = (one for one in READ["0.36"][0].values() if one.title == AFTER_TREE)
    assert [texts(one)[:12] for one in draft.messages] == [
        "What is a B-", "A B-tree is ", "And how does", "A B+tree kee", "Halve it", "Three and a ",
        "Count slowly", "1 2 3 4 5 6 ",
    ]  # fmt: skip


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls(draft: SessionDraft, expected: dict[str, Any]) -> None:
    found = [
        {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
         "status": part.data["resultProviderMetadata"]["backscroll"]["status"]}
        for part in calls(draft.messages)
    ]  # fmt: skip
    assert found == expected["tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_attachments(draft: SessionDraft, expected: dict[str, Any]) -> None:
    given = [part for one in prompts(draft.messages) for part in one.parts if part.type == "file"]
    assert len(given) == expected["attachments"]
    made = [part for one in draft.messages if one.metadata.get("origin") == "meta"
            for part in one.parts]  # fmt: skip
    assert len(made) == expected["tool_output_attachments"]
    assert all(part.data["url"].startswith(("data:image/png;base64,", "file:///"))
               and part.data["mediaType"] == "image/png" for part in (*given, *made))  # fmt: skip


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_lineage_is_what_a_thread_says(draft: SessionDraft, expected: dict[str, Any]) -> None:
    copies = [one for one in draft.messages if one.inherited_from is not None]
    if expected["forked_from"] is None:
        # Two threads may begin with the same messages, and have nothing to do with each other.
        assert draft.lineage is None and copies == []
        return
    assert draft.lineage is not None
    assert (draft.lineage.kind, draft.lineage.parent_source_id) == ("fork", expected["forked_from"])
    parent = READ["0.36"][0][expected["forked_from"]]
    system = 1 if expected["system"] else 0
    assert len(copies) + system == expected["inherited_messages"]
    assert {one.inherited_from for one in copies} <= {one.source_id for one in parent.messages}
    assert draft.lineage.parent_message_source_id == copies[-1].source_id
    assert not any("usage" in one.metadata for one in copies)
    assert [one.created_at for one in copies] == [
        one.created_at for one in parent.messages[: len(copies)]
    ]


def test_errors_and_refusals() -> None:
    drafts = READ["0.36"][0].values()
    found = {draft.title: part for draft in drafts for part in calls(draft.messages)}
    assert found["Erase my disk"].tool_state == "output-denied"
    missing = found["Use the frobnicate tool"]
    assert missing.data["errorText"] == 'Error: tool "frobnicate" does not exist'
    assert missing.data["input"] == {"x": "é"}


# --- hand-made rows -------------------------------------------------------------------------


class Log:
    """A copy of a sample's log, to which rows are added."""

    def __init__(self, sample: Path, folder: Path) -> None:
        self.path = folder / "logs.db"
        shutil.copyfile(sample, self.path)
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.second = 0

    def insert(self, table: str, **values: Any) -> None:
        made = {key: json.dumps(value) if isinstance(value, dict) else value
                for key, value in values.items()}  # fmt: skip
        names = ", ".join(f'"{name}"' for name in made)
        marks = ", ".join("?" * len(made))
        self.connection.execute(
            f"INSERT INTO {table}({names}) VALUES ({marks})", tuple(made.values())
        )

    def message(self, name: str, parent: str | None, role: str, *parts: dict[str, Any]) -> str:
        self.insert("messages", hash=name, parent_hash=parent, role=role)
        for position, part in enumerate(parts):
            given = dict(part)
            kind, text = given.pop("type"), given.pop("text", None)
            payload = {"payload": given} if given else {}
            self.insert("parts", message_hash=name, position=position, type=kind, text=text,
                        **payload)  # fmt: skip
        return name

    def thread(self, thread: str, tip: str | None, **more: Any) -> None:
        self.insert("threads", id=thread, tip_message_hash=tip,
                    datetime_utc="2026-11-28 12:00:00+00:00", **more)  # fmt: skip

    def turn(self, thread: str, parent: str, tip: str, given: int = 10, said: int = 2) -> None:
        self.second += 1
        self.insert("turns", id=f"turn{self.second:02}", thread_id=thread, model="m",
                    parent_message_hash=parent, tip_message_hash=tip, input_tokens=given,
                    output_tokens=said, duration_ms=500,
                    datetime_utc=f"2026-11-28T12:00:{self.second:02}+00:00")  # fmt: skip

    def read(self) -> dict[str, SessionDraft]:
        drafts, problems = grown.read_all(LlmSource(), self.path)
        assert problems == []
        return drafts


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(ROOTS["0.36"] / "logs.db", tmp_path)
    yield made
    made.connection.close()


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Log]:
    made = Log(ROOTS["0.27.1"] / "logs.db", tmp_path)
    yield made
    made.connection.close()


def grow(connection: sqlite3.Connection) -> None:
    """Go on with a thread, as a process of llm does in one transaction."""
    name, tip = connection.execute(
        "SELECT id, tip_message_hash FROM threads ORDER BY id LIMIT 1"
    ).fetchone()
    connection.execute("BEGIN")
    for made, parent, role, words in (("x1", tip, "user", "more"), ("x2", "x1", "assistant", "no")):
        connection.execute("INSERT INTO messages VALUES (?, ?, ?, NULL)", (made, parent, role))
        connection.execute("INSERT INTO parts(message_hash, position, type, text)"
                           " VALUES (?, 0, 'text', ?)", (made, f"{words} more"))  # fmt: skip
    connection.execute(
        "INSERT INTO turns(id, thread_id, parent_message_hash, tip_message_hash, model,"
        " input_tokens, output_tokens, duration_ms, datetime_utc) VALUES ('x', ?, 'x1', 'x2', 'm',"
        " 1, 1, 5, '2026-11-29T10:00:00+00:00')", (name,),
    )  # fmt: skip
    connection.execute("UPDATE threads SET tip_message_hash = 'x2' WHERE id = ?", (name,))
    connection.execute("COMMIT")


def add_tables_of_threads(old: Log) -> None:
    """Bring the tables of a log of 0.27 up to date, as a newer llm does when it opens it."""
    sample = sqlite3.connect(f"{(ROOTS['0.36'] / 'logs.db').as_uri()}?immutable=1", uri=True)
    for (sql,) in sample.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table'"
        " AND name IN ('threads', 'turns', 'messages', 'parts', 'part_attachments')"
    ):
        old.connection.execute(sql)
    sample.close()


def test_a_conversation_of_an_older_version_that_was_continued_is_one_session(old: Log) -> None:
    """Its messages keep their names, and a failed call stays one."""
    before = old.read()
    (name,) = (one.source_id for one in before.values() if one.title == "Divide 12 by zero, please")
    add_tables_of_threads(old)
    (call,) = calls(before[name].messages)
    old.message("u1", None, "user", text("Divide 12 by zero, please"))
    old.message("a1", "u1", "assistant", text("I will try."), {
        "type": "tool_call", "name": "divide", "arguments": {"a": 12, "b": 0},
        "tool_call_id": call.tool_call_id,
    })  # fmt: skip
    old.message("t1", "a1", "tool", {
        "type": "tool_result", "name": "divide", "output": "Error: division by zero",
        "tool_call_id": call.tool_call_id,
    })  # fmt: skip
    old.message("a2", "t1", "assistant", text("Division by zero is not possible."))
    old.message("u2", "a2", "user", text("Why?"))
    old.message("a3", "u2", "assistant", text("Nobody knows."))
    old.thread(name, "a3", name="Why?")
    old.turn(name, "u2", "a3", 30, 3)
    now = old.read()
    assert now.keys() == before.keys()
    draft, was = now[name], before[name]
    names = [one.source_id for one in was.messages]
    assert [one.source_id for one in draft.messages] == [*names, "u2", "a3"]
    assert draft.title == was.title
    assert [one.created_at for one in draft.messages[:-2]] == [
        one.created_at for one in was.messages
    ]
    (again,) = calls(draft.messages)
    assert (again.tool_state, call.tool_state) == ("output-error", "output-error")
    both = {key: count + {"input": 30, "output": 3}.get(key, 0)
            for key, count in tokens(was.messages).items()}  # fmt: skip
    assert tokens(draft.messages) == both


def test_a_response_that_was_brought_into_turns_counts_once(old: Log) -> None:
    (name,) = (one.source_id for one in old.read().values() if one.title == "What is a B-tree?")
    add_tables_of_threads(old)
    (response,) = old.connection.execute(
        "SELECT id FROM responses WHERE conversation_id = ? ORDER BY id LIMIT 1", (name,)
    ).fetchone()
    old.message("u1", None, "user", text("What is a B-tree?"))
    old.message("a1", "u1", "assistant", text("A tree."))
    old.thread(name, "a1")
    old.turn(name, "u1", "a1", 7, 3)
    old.connection.execute("UPDATE turns SET id = ?", (response,))
    draft = old.read()[name]
    others = old.connection.execute(
        "SELECT sum(output_tokens) FROM responses WHERE conversation_id = ? AND id <> ?",
        (name, response),
    ).fetchone()
    assert tokens(draft.messages)["output"] == 3 + others[0]


def test_a_paused_call_a_call_of_the_provider_and_hidden_thoughts(log: Log) -> None:
    log.message("u1", None, "user", text("go"))
    log.message(
        "a1", "u1", "assistant", {"type": "reasoning", "text": "", "redacted": True},
        {"type": "tool_call", "name": "search", "arguments": {"q": "x"}, "tool_call_id": "c1",
         "server_executed": True},
        {"type": "tool_result", "name": "search", "output": "found", "tool_call_id": "c1",
         "server_executed": True},
        {"type": "tool_call", "name": "slow", "arguments": {}, "tool_call_id": "c2"},
    )  # fmt: skip
    log.thread("one", "a1", name="go")
    log.turn("one", "u1", "a1")
    thought, search, slow = log.read()["one"].messages[1].parts
    assert thought.data["providerMetadata"]["backscroll"]["redacted"] is True
    assert (search.tool_state, search.data["providerExecuted"]) == ("output-available", True)
    assert slow.tool_state == "input-available"


def test_attachments_by_path_address_and_bytes(log: Log) -> None:
    for name, values in (("p", {"path": "/x/a b.pdf"}), ("u", {"url": "https://x.example/a"}),
                         ("c", {"content": b"hi"})):  # fmt: skip
        log.insert("attachments", id=name, type="application/pdf", **values)
    attached = ({"type": "attachment", "attachment": {"id": name}} for name in "puc")
    log.message("u1", None, "user", text("go"), *attached)
    log.thread("one", "u1")
    files = log.read()["one"].messages[0].parts[1:]
    assert [part.data["url"] for part in files] == [
        "file:///x/a%20b.pdf", "https://x.example/a", "data:application/pdf;base64,aGk="
    ]  # fmt: skip
    assert files[0].data["filename"] == "a b.pdf"


def test_details_of_a_provider_that_are_not_known_split_nothing(log: Log) -> None:
    log.message("u1", None, "user", text("go"))
    log.message("a1", "u1", "assistant", text("no"))
    log.thread("one", "a1")
    log.turn("one", "u1", "a1", 100, 20)
    log.connection.execute(
        "UPDATE turns SET token_details = ? WHERE thread_id = 'one'",
        (json.dumps({"cache_read_input_tokens": 50, "prompt_tokens_details": None}),),
    )
    assert tokens(log.read()["one"].messages) == {
        "input": 100, "output": 20, "reasoning": 0, "cache_read": 0, "cache_write": 0
    }  # fmt: skip


def test_the_table_of_the_first_versions(tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, model TEXT, timestamp TEXT,"
                       " prompt TEXT, system TEXT, response TEXT, chat_id INTEGER, debug TEXT,"
                       " duration_ms INTEGER)")  # fmt: skip
    rows = [("one", "Be brief", None), ("two", None, 1), ("other", None, None)]
    for number, (prompt, system, chat) in enumerate(rows, 1):
        connection.execute(
            "INSERT INTO log VALUES (?, 'm', ?, ?, ?, 'said', ?, NULL, 70)",
            (number, f"2023-06-1{number} 10:00:00.123", prompt, system, chat),
        )
    connection.close()
    assert LlmSource().recognise(path) == path
    drafts, problems = grown.read_all(LlmSource(), path)
    assert problems == []
    assert {name: [texts(one) for one in draft.messages] for name, draft in drafts.items()} == {
        "log-1": ["one", "said", "two", "said"], "log-3": ["other", "said"]
    }  # fmt: skip
    assert list(drafts["log-1"].system_prompts.values()) == ["Be brief"]


def test_damage_costs_only_itself(log: Log) -> None:
    change = log.connection.execute
    log.message("u1", "nowhere", "user", text("go"), {"type": "odd", "x": 1})
    log.message("u2", "u2", "user", {"type": "tool_result", "output": "?", "tool_call_id": "c"})
    log.thread("one", "u1")
    log.thread("two", "u2")
    log.turn("one", "u1", "missing")
    log.turn("nobody", "u1", "u1")
    change("UPDATE parts SET payload = '{' WHERE type = 'odd'")
    change("UPDATE turns SET datetime_utc = 5, input_tokens = 'x', output_tokens = -3"
           " WHERE thread_id = 'one'")  # fmt: skip
    drafts, problems = grown.read_all(LlmSource(), log.path)
    told = " ".join(problem.reason for problem in problems)
    for reason in ("nowhere is missing", "turn turn01 is missing", "no JSON object",
                   "of call c, which is missing", "thread nobody"):  # fmt: skip
        assert reason in told
    assert [one.source_id for one in drafts["one"].messages] == ["u1", "turn01"]
    assert len(drafts["two"].messages) == 1
    for draft in drafts.values():
        grown.check_records(draft)
    assert len(drafts) == EXPECTED["0.36"]["session_count"] + 2


def test_places_follow_the_variables(tmp_path: Path) -> None:
    roots = LlmSource().default_roots
    usual = tmp_path / ".config" / "io.datasette.llm"
    assert roots({}, tmp_path) == [usual]
    assert roots({"LLM_USER_PATH": "/x"}, tmp_path) == [Path("/x"), usual]
    moved = Path("/c/io.datasette.llm")
    assert roots({"XDG_CONFIG_HOME": "/c"}, tmp_path) == [moved]


def test_places_of_other_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    (root,) = LlmSource().default_roots({"XDG_CONFIG_HOME": "/c"}, tmp_path)
    assert root == tmp_path / "Library/Application Support/io.datasette.llm"
    monkeypatch.setattr("sys.platform", "win32")
    (root,) = LlmSource().default_roots({"APPDATA": "/roaming"}, tmp_path)
    assert root == Path("/roaming/io.datasette.llm")


# --- live, locked, damaged, left alone ----------------------------------------------------------


def test_what_another_process_logs_is_seen(log: Log) -> None:
    source = LlmSource()
    assert source.units_at(log.path, [str(log.path)])
    assert source.units_at(log.path, [str(log.path)]) == []
    before = grown.snapshot(log.path.parent)
    assert grown.snapshot(log.path.parent) == before
    grow(log.connection)
    (unit,) = source.units_at(log.path, [str(log.path)]) or []
    (draft,) = source.read(log.path, unit).sessions
    assert [texts(one) for one in draft.messages[-2:]] == ["more more", "no more"]


def test_a_log_that_is_brought_up_to_date_while_it_is_followed(old: Log) -> None:
    source = LlmSource()
    assert source.units_at(old.path, [str(old.path)])
    add_tables_of_threads(old)
    old.message("u1", None, "user", text("new"))
    old.thread("one", "u1")
    assert "logs.db/one" in {unit.key for unit in source.units_at(old.path, [str(old.path)]) or []}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return row_sources.copied(ROOTS["0.36"] / "logs.db", folder)


def test_a_live_writer_is_left_alone(file: Path) -> None:
    (unit,) = row_sources.check_live(LlmSource(), file, grow)
    assert unit.key.startswith("logs.db/")


def test_a_killed_writers_wal_is_read(file: Path) -> None:
    row_sources.check_killed(LlmSource, file, grow)


def test_nothing_of_a_log_is_touched(file: Path, tmp_path: Path) -> None:
    row_sources.check_untouched(LlmSource(), file, tmp_path / "library.db")


def test_a_lock_is_waited_out(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_sources.check_locked(LlmSource, file, tmp_path / "library.db", monkeypatch)


def test_damaged_files_are_named(file: Path) -> None:
    row_sources.check_damaged(LlmSource, file)


def test_a_log_that_goes_away_costs_only_itself(file: Path, tmp_path: Path) -> None:
    row_sources.check_disappears(LlmSource, file, tmp_path / "library.db")


def test_no_secret_is_opened_or_asked_for(tmp_path: Path) -> None:
    target = FIRST["llm"].copied(tmp_path)
    secrets = ("keys.json", "extra-openai-models.yaml")
    for name in secrets:
        (path_of(target) / name).write_text("secret")
    found = reading(target)
    assert "logs.db" in found.names() and not found.names() & set(secrets)
    asked = " ".join(found.sql).lower()
    assert "from turns" in asked and "response_json" not in asked and "prompt_json" not in asked
