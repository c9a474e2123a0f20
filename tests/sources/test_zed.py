"""Zed: the sample comes out as its EXPECTED.json says, and so do rows made by hand."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.zed import ZedSource
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading

SAMPLE = DATA / "zed"
EXPECTED = json.loads((SAMPLE / "EXPECTED.json").read_text())["sessions"]
READ = [one for one in EXPECTED if one.get("is_session")]
(TORN,) = [one for one in EXPECTED if one.get("unreadable")]
DRAFTS, PROBLEMS = grown.read_all(ZedSource(), SAMPLE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["title"]) for one in READ]
KEYS = ("input", "output", "cache_read", "cache_write")
STATUS = {"ok": "done", "interrupted": "cancelled"}


def events(draft: SessionDraft, name: str) -> list[dict[str, Any]]:
    return [part.data["data"] for one in draft.messages for part in one.parts
            if part.type == "data-event" and part.data["data"]["name"] == name]  # fmt: skip


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if one.role == "assistant"
            and not one.metadata.get("backscroll", {}).get("no_answer")]  # fmt: skip


def said(draft: SessionDraft, kind: str) -> list[PartDraft]:
    return [part for one in answers(draft) for part in one.parts if part.type == kind]


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    found = []
    for part in grown.calls(draft.messages):
        result = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        status = result.get("status", "no result")
        found.append({"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
                      "status": STATUS.get(status, status)})  # fmt: skip
    return found


def images(draft: SessionDraft) -> int:
    found = [part.type for one in draft.messages for part in one.parts]
    outputs = (part.data.get("output") for part in grown.calls(draft.messages))
    found += [block["type"] for output in outputs if isinstance(output, list) for block in output]
    return found.count("file")


def test_just_the_threads_expected() -> None:
    # Neither a draft nor a row of another agent's session is one.
    assert DRAFTS.keys() == {one["id"] for one in READ} | {TORN["id"]}
    (problem,) = PROBLEMS
    assert TORN["id"] in problem.reason and problem.path.endswith("threads/threads.db")


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert draft.title == expected["title"]
    own = expected["title"] != expected["summary_column"]
    assert draft.title_from == ("custom-title" if own else "title")
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert (draft.archived_at is not None) == expected["archived"]
    assert draft.workspace_root == expected["workspace"]
    assert draft.path == str(SAMPLE / expected["store"].partition("zed/")[2])
    extra = draft.metadata["backscroll"]
    assert extra.get("version") == expected["version"]
    assert extra.get("imported", False) == expected["imported"]
    if len(expected["folders"]) > 1:
        assert extra["folders"] == expected["folders"]
    else:
        assert expected["folders"] in ([], [draft.workspace_root])
    assert extra.get("git", []) == expected["git"]
    named = [one["branch"] for one in expected["git"] if one["worktree"] == expected["workspace"]]
    assert draft.metadata.get("git_branch") == (named[0] if named else None)
    model = draft.model
    assert ([model["model_id"]] if model else []) == expected["models"]
    assert ([model["provider_id"]] if model else []) == expected["providers"]
    assert expected["has_draft"] is False


def test_the_unreadable_row_is_shown_by_its_columns() -> None:
    draft = DRAFTS[TORN["id"]]
    assert (draft.title, draft.updated_at, draft.created_at, draft.archived_at) == (
        TORN["title"], TORN["updated_ms"], TORN["created_ms"], None)
    assert draft.partial and draft.messages == []


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert grown.prompts(draft.messages) == expected["prompts"]
    assert len(answers(draft)) == expected["assistant_messages"]
    assert len(said(draft, "text")) == expected["assistant_texts"]
    thoughts = said(draft, "reasoning")
    redacted = [part for part in thoughts
                if "redacted" in part.data.get("providerMetadata", {}).get("zed", {})]  # fmt: skip
    assert len(redacted) == expected["redacted_reasoning"]
    assert len(thoughts) - len(redacted) == expected["reasoning_texts"]
    assert images(draft) == expected["images"]
    meta = [one for one in draft.messages if one.metadata.get("origin") == "meta"]
    assert len(meta) == expected["hidden_messages"]
    assert len(events(draft, "continue")) == expected["continues"]
    if expected["version"] == "0.3.0":
        assert len(events(draft, "context")) == expected["mentions"]
    compactions = [one for one in draft.messages if "compaction" in one.metadata]
    assert len(compactions) == expected["compactions"]
    gone = [one for one in draft.messages
            if one.metadata.get("backscroll", {}).get("compacted_away")]  # fmt: skip
    assert len(gone) == expected["compacted_messages"]
    assert expected["unread"] == 0
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert calls(draft) == expected["tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_spending(draft: SessionDraft, expected: dict[str, Any]) -> None:
    used = grown.tokens(draft.messages)
    assert {key: used[key] for key in KEYS} == (expected["tokens"] or dict.fromkeys(KEYS, 0))
    assert any(used.values()) == (expected["tokens"] is not None)
    assert used["reasoning"] == 0


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_lineage(draft: SessionDraft, expected: dict[str, Any]) -> None:
    link = draft.lineage
    found = None if link is None else {"kind": link.kind, "parent": link.parent_source_id}
    assert found == expected["lineage"]


def test_a_helper_is_linked_to_its_call() -> None:
    (child,) = (one for one in DRAFTS.values() if one.lineage)
    assert child.lineage is not None
    call = grown.call(DRAFTS[child.lineage.parent_source_id], "toolu_b1")
    assert grown.extra(call)["child_session_source_id"] == child.source_id


def test_only_a_few_columns_are_asked_for_and_no_settings_opened(tmp_path: Path) -> None:
    root = tmp_path / "zed"
    shutil.copytree(SAMPLE, root)
    with sqlite3.connect(root / "db" / "0-stable" / "db.sqlite") as connection:
        connection.execute("CREATE TABLE kv_store (key TEXT, value TEXT)")
        connection.execute("INSERT INTO kv_store VALUES ('token', 'sk-secret')")
    connection.close()
    for name in ("settings.json", "conversations"):
        (root / name).write_text("sk-secret")
    found = reading(Target(ZedSource(), root))
    assert {"threads.db", "db.sqlite"} <= found.names()
    assert not found.names() & {"settings.json", "conversations"}
    asked = [line for line in found.sql if "select" in line.lower() and " from " in line.lower()]
    tables = {line.lower().partition(" from ")[2].split()[0] for line in asked}
    assert tables == {"threads", "sidebar_threads"}
    assert not [line for line in asked if "*" in line.replace("count(*)", "")]
    assert not [line for line in found.sql if "kv_store" in line]


# --- hand-made rows -------------------------------------------------------------------------


class Rows:
    """A database of threads, and one of a channel."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.path = folder / "threads" / "threads.db"
        self.side = folder / "db" / "0-preview" / "db.sqlite"
        for path in (self.path, self.side):
            path.parent.mkdir(parents=True)
        self.threads = sqlite3.connect(self.path, isolation_level=None)
        self.threads.execute("""CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL,
            updated_at TEXT NOT NULL, data_type TEXT NOT NULL, data BLOB NOT NULL)""")
        self.sidebar = sqlite3.connect(self.side, isolation_level=None)
        self.sidebar.execute("""CREATE TABLE sidebar_threads (session_id TEXT PRIMARY KEY,
            agent_id TEXT, title TEXT, updated_at TEXT, folder_paths TEXT,
            archived INTEGER DEFAULT 0)""")

    def put(self, *messages: Any, kind: str = "json", **more: Any) -> None:
        raw = json.dumps({"title": "t", "messages": messages, "version": "0.3.0"} | more).encode()
        body = zstandard.ZstdCompressor(3).compress(raw) if kind == "zstd" else raw
        self.threads.execute("INSERT OR REPLACE INTO threads (id, summary, updated_at, data_type,"
                             " data) VALUES ('one', 't', ?, ?, ?)", (grown.at(5), kind, body))

    def read(self) -> SessionDraft:
        return grown.only(ZedSource(), self.root)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    made = Rows(tmp_path / "zed")
    yield made
    made.threads.close()
    made.sidebar.close()


def user(words: str, name: str = "u") -> dict[str, Any]:
    return {"User": {"id": name, "content": [{"Text": words}]}}


def agent(*content: Any, **results: Any) -> dict[str, Any]:
    return {"Agent": {"content": list(content), "tool_results": results}}


def use(call: str = "c", **more: Any) -> dict[str, Any]:
    return {"ToolUse": {"id": call, "name": "terminal", "input": {"command": "ls"}} | more}


def result(content: Any, *, error: bool = False, output: Any = None) -> dict[str, Any]:
    return {"is_error": error, "content": content, "output": output}


@pytest.mark.parametrize("kind", ["json", "zstd"])
def test_both_forms_and_the_first_table_are_read(rows: Rows, kind: str) -> None:
    rows.put(user("hello"), agent({"Text": "hi"}), kind=kind)
    draft = rows.read()
    assert grown.prompts(draft.messages) == ["hello"]
    assert (draft.created_at, draft.updated_at) == (grown.ms(5), grown.ms(5))


def test_an_unknown_form_costs_only_its_row(rows: Rows) -> None:
    rows.put(user("hello"))
    rows.threads.execute("INSERT INTO threads VALUES ('two', 'Two', '', 'lz4', x'00')")
    drafts, problems = grown.read_all(ZedSource(), rows.root)
    assert drafts.keys() == {"one", "two"} and "lz4" in problems[0].reason


def test_a_call_without_an_answer_is_open(rows: Rows) -> None:
    rows.put(user("go"), agent(use()))
    (part,) = grown.calls(rows.read().messages)
    assert part.tool_state == "input-available"
    rows.put(user("go"), agent(use(is_input_complete=False, raw_input='{"comm', input={})))
    draft = rows.read()
    (part,) = grown.calls(draft.messages)
    assert (part.tool_state, part.data["rawInput"]) == ("input-streaming", '{"comm')
    assert draft.metadata["activity"]["state"] == "running"


@pytest.mark.parametrize(("content", "shown"), [
    ([{"Text": "a"}, {"Text": "b"}], "a\nb"), ({"Text": "a"}, "a"), ("a", "a"),
    ({"type": "text", "text": "a"}, "a"), ([], {"raw": 1}),
])  # fmt: skip
def test_results_of_all_versions(rows: Rows, content: Any, shown: Any) -> None:
    rows.put(user("go"), agent(use(), c=result(content, output={"raw": 1})))
    (part,) = grown.calls(rows.read().messages)
    assert part.data["output"] == shown


def test_an_image_of_a_tool_is_shown(rows: Rows) -> None:
    rows.put(user("go"), agent(use(), c=result([{"Text": "a"}, {"Image": {"source": "QQ=="}}])))
    (part,) = grown.calls(rows.read().messages)
    assert part.data["output"][1]["url"] == "data:image/png;base64,QQ=="


@pytest.mark.parametrize(("text", "status"), [
    ("Permission to run tool denied by user", "denied"),
    ("Tool canceled by user", "interrupted"), ("Tool canceled by user!", "error"),
])  # fmt: skip
def test_how_a_call_failed(rows: Rows, text: str, status: str) -> None:
    rows.put(user("go"), agent(use(), c=result([{"Text": text}], error=True)))
    (part,) = grown.calls(rows.read().messages)
    assert grown.extra(part)["status"] == status


def test_a_failing_command_has_its_exit_code(rows: Rows) -> None:
    text = 'Command "x" failed with exit code 7.'
    rows.put(user("go"), agent(use(), c=result([{"Text": text}], error=True)))
    (part,) = grown.calls(rows.read().messages)
    assert grown.extra(part) == {"status": "error", "exit_code": 7}


def test_an_id_that_comes_again_is_paired_within_its_answer(rows: Rows) -> None:
    rows.put(user("go"), *(agent(use(), c=result(words)) for words in ("first", "second")))
    found = [part.data["output"] for part in grown.calls(rows.read().messages)]
    assert found == ["first", "second"]


def test_several_compactions_and_unknown_tags(rows: Rows) -> None:
    native = {"Compaction": {"ProviderNative": {"provider": "p", "items": [1]}}}
    rows.put(user("one"), native, user("two", "v"), {"Compaction": {"Summary": "s"}},
             {"Later": 1}, user("three", "w"), agent({"Later": {}}, "Odd"))  # fmt: skip
    draft = rows.read()
    assert grown.prompts(draft.messages) == ["one", "two", "three"]
    gone = [grown.words(one) for one in draft.messages
            if one.metadata.get("backscroll", {}).get("compacted_away")]  # fmt: skip
    assert gone == ["one", "two"]
    assert len(events(draft, "Later")) == 2
    grown.check_records(draft)


def test_mentions_of_all_forms_are_no_prompt(rows: Rows) -> None:
    uris: list[Any] = [
        {"Selection": {"abs_path": "/a", "line_range": {}}}, "PastedImage", {"Rule": {}}, None]
    mentions = [{"Mention": {"uri": uri, "content": "pasted"}} for uri in uris]
    rows.put({"User": {"id": "u", "content": [{"Text": "see "}, *mentions, {"Text": "it"}]}})
    draft = rows.read()
    assert grown.prompts(draft.messages) == ["see it"]
    names = [one["details"]["name"] for one in events(draft, "context")]
    assert names == ["/a", "PastedImage", "Rule", ""]


def test_without_a_total_the_requests_are_added(rows: Rows) -> None:
    used = {"u": {"input_tokens": 5, "output_tokens": 2}, "v": {"input_tokens": 1}}
    rows.put(user("go"), request_token_usage=used, cumulative_token_usage={})
    assert grown.tokens(rows.read().messages)["input"] == 6


def test_a_result_in_a_prompt_with_words_is_both(rows: Rows) -> None:
    rows.put(
        {"id": 0, "role": "assistant", "text": "I look.", "tool_uses": [
            {"id": "c", "name": "grep", "input": {}}], "tool_results": []},
        {"id": 1, "role": "user", "text": "and this", "tool_uses": [],
         "tool_results": [result("found") | {"tool_use_id": "c"}]},
        {"id": 2, "role": "user", "text": "", "tool_results": [
            result("lost") | {"tool_use_id": "x"}]},
    )  # fmt: skip
    draft = rows.read()
    assert grown.prompts(draft.messages)[0] == "and this"
    assert grown.call(draft, "c").data["output"] == "found"
    grown.check_records(draft)


def test_what_must_not_be_kept_is_not(rows: Rows) -> None:
    tree = {"worktree_path": "/w", "git_state": {
        "remote_url": "https://sk-secret@x", "diff": "+sk-secret", "current_branch": "b"}}
    rows.put(user("go"), draft_prompt=[{"text": "sk-secret"}],
             initial_project_snapshot={"worktree_snapshots": [tree]})  # fmt: skip
    draft = rows.read()
    assert not [record for record in draft.records if b"sk-secret" in record]
    assert (draft.workspace_root, draft.metadata["git_branch"]) == ("/w", "b")


def test_the_sidebar_of_the_first_form_is_followed(rows: Rows) -> None:
    rows.threads.execute("ALTER TABLE threads ADD COLUMN folder_paths TEXT")
    rows.put(user("go"))
    rows.threads.execute("UPDATE threads SET folder_paths = '/w'")
    source = ZedSource()
    assert [unit.key for unit in source.units_at(rows.root, [str(rows.path)]) or ()] == [
        "threads.db/one"]
    assert source.units_at(rows.root, [str(rows.side)]) == []
    rows.sidebar.execute(
        "INSERT INTO sidebar_threads VALUES ('one', NULL, 't', ?, NULL, 1)", (grown.at(9),))
    (unit,) = source.units_at(rows.root, [str(rows.side)]) or []
    (draft,) = source.read(rows.root, unit).sessions
    assert draft.archived_at == grown.ms(9)
    assert str(rows.side) in {str(path) for path in source.watch_paths(rows.root)}


def test_a_damaged_sidebar_costs_only_itself(rows: Rows) -> None:
    rows.put(user("go"))
    rows.side.write_bytes(b"no database")
    drafts, problems = grown.read_all(ZedSource(), rows.root)
    assert drafts.keys() == {"one"} and problems[0].path == str(rows.side)


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert ZedSource().default_roots({}, home) == [home / ".local/share/zed"]
    assert ZedSource().default_roots({"XDG_DATA_HOME": "/d"}, home) == [Path("/d/zed")]
    for path in (SAMPLE, SAMPLE / "threads", SAMPLE / "threads" / "threads.db"):
        assert ZedSource().recognise(path) == path
    assert ZedSource().recognise(SAMPLE / "db" / "0-stable" / "db.sqlite") is None
    assert ZedSource().recognise(tmp_path) is None
