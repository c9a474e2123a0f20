"""Cursor: the sample comes out as its EXPECTED.json says; hand-made stores beside."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import PartDraft, SessionDraft
from store.sources.base.protocol import Problem
from store.sources.cursor import CursorSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading, watched

HOME = DATA / "cursor/home"
USER, CLI = HOME / ".config/Cursor/User", HOME / ".cursor"
EXPECTED = json.loads((HOME.parent / "EXPECTED.json").read_text())
DRAFTS, PROBLEMS = grown.read_all(CursorSource(), HOME)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["id"][:8]) for one in EXPECTED["sessions"]]
STATUSES = {"ok": "done"}
Expected = dict[str, Any]


def about(draft: SessionDraft) -> Expected:
    found: Expected = draft.metadata["backscroll"]
    return found


def said(draft: SessionDraft, kind: str) -> list[PartDraft]:
    return [part for one in grown.visible(draft) if one.role == "assistant"
            for part in one.parts if part.type == kind and part.data["text"]]  # fmt: skip


def models(draft: SessionDraft) -> list[str]:
    found = {one.metadata["model"]["model_id"] for one in grown.visible(draft)
             if "model" in one.metadata}  # fmt: skip
    return sorted(found | ({draft.model["model_id"]} if draft.model else set()))


def call(part: PartDraft, running: str) -> Expected:
    result = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
    status = result.get("status", running)
    found = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
             "status": STATUSES.get(status, status)}  # fmt: skip
    return found | ({"exit_code": result["exit_code"]} if "exit_code" in result else {})


# --- the sample -----------------------------------------------------------------------------


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == []
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]}
    assert not DRAFTS.keys() & {one for one, _ in EXPECTED["not_sessions"]}
    mirrored = {path.stem for path in CLI.rglob("*.jsonl")}
    assert mirrored == set(EXPECTED["transcripts_that_mirror_a_session"])
    assert not any(draft.partial for draft in DRAFTS.values())


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_a_chat_says_of_itself(draft: SessionDraft, expected: Expected) -> None:
    assert about(draft)["surface"] == expected["surface"]
    assert (draft.title, draft.title_from) == (
        expected["title"],
        "first-prompt" if expected["title_from"] == "prompt" else "name",
    )
    assert draft.workspace_root == expected["workspace"]
    assert models(draft) == sorted(expected["models"])
    assert draft.updated_at == expected["updated_ms"]
    assert draft.created_at == expected.get("created_ms", expected["updated_ms"])
    assert about(draft).get("mode") == expected.get("mode")
    lineage = draft.lineage
    assert (lineage and {"kind": lineage.kind, "parent": lineage.parent_source_id}) == (
        expected["lineage"]
    )
    grown.check_records(draft)
    if expected["surface"] == "cli":
        name = Path(draft.path).parent.parent.name
        is_own = hashlib.md5(str(draft.workspace_root).encode()).hexdigest() == name
        assert is_own == expected["md5_matches"]
        assert about(draft).get("context_tokens") == expected["context_tokens_now"]
        assert about(draft).get("compacted_prompts", 0) == expected["compacted_prompts"]
        lines = [one for one in draft.messages if "compaction" in one.metadata]
        assert len(lines) == expected["summaries"]
    if expected["surface"] == "ide":
        assert about(draft).get("workspace_from") == expected["workspace_from"]
        assert draft.metadata.get("git_branch") == expected["git_branch"]
        assert (draft.archived_at is not None) == expected["archived"]
        running = draft.metadata.get("activity", {}).get("state") == "running"
        assert running == expected["generating"]
        for ours, theirs in (("nameless_calls", "nameless_tool_rows"),
                             ("compaction_marks", "compaction_markers"),
                             ("orphans", "hidden_orphan_bubbles"), ("missing", "missing_bubbles"),
                             ("unreadable", "unreadable_bubbles")):  # fmt: skip
            assert about(draft).get(ours, 0) == expected[theirs]
        assert about(draft).get("compacted_through") == expected["compacted_through"]
        summaries = [part.data["data"]["summary"] for one in draft.messages for part in one.parts
                     if part.type == "data-compaction"]  # fmt: skip
        assert "".join(summaries) == (expected["summary"] or "")
        hidden = [one for one in draft.messages if "hidden_at" in one.metadata]
        assert len(hidden) == expected["hidden_orphan_bubbles"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: Expected) -> None:
    assert grown.prompts(grown.visible(draft)) == expected["prompts"]
    assert len(said(draft, "text")) == expected["assistant_texts"]
    assert len(said(draft, "reasoning")) == expected.get("reasoning_texts", 0)
    running = "no result" if expected["surface"] == "cli" else "running"
    calls = [call(part, running) for part in grown.calls(grown.visible(draft))]
    assert calls == expected["tool_calls"]
    files = [part for one in draft.messages for part in one.parts if part.type == "file"]
    assert len(files) == expected.get("images", 0)
    counted = grown.tokens(draft.messages)
    assert counted == (expected["tokens"] or dict.fromkeys(grown.BUCKETS, 0))


def test_edits_have_their_lines_and_tasks_their_helpers() -> None:
    draft = DRAFTS["6abbade5-4975-4621-8063-40fffdafa587"]
    (file,) = grown.extra(grown.call(draft, "toolu_01C"))["structured"]["files"]
    assert (file["path"], file["additions"], file["deletions"]) == (
        "/home/mira/code/api/limit.py", 2, 0)  # fmt: skip
    child = grown.extra(grown.call(draft, "toolu_01F"))["child_session_source_id"]
    assert DRAFTS[child].lineage is not None
    old = DRAFTS["748db694-593a-4853-a68e-a3ba0b0b8818"]
    (file,) = grown.extra(grown.call(old, "call_old2"))["structured"]["files"]
    assert (file["path"], file["additions"]) == ("tools.py", 1)


def test_a_bubble_without_a_time_has_that_of_its_timing() -> None:
    draft = DRAFTS["748db694-593a-4853-a68e-a3ba0b0b8818"]
    assert [one.created_at - 1_750_000_000_000 for one in draft.messages] == [0, 4000, 8000]


def test_secrets_are_in_no_record() -> None:
    for draft in DRAFTS.values():
        kept = (
            b"".join(draft.records)
            + json.dumps([part.data for one in draft.messages for part in one.parts]).encode()
        )
        assert b"CANARY" not in kept and b"ncryptionKey" not in kept


def test_the_transcripts_count_where_nothing_else_has_the_chat() -> None:
    drafts, problems = grown.read_all(CursorSource(), CLI)
    assert problems == []
    alone = {name: draft for name, draft in drafts.items() if draft.partial}
    assert set(alone) == {"4eecd6c3-3c09-4dc1-81fb-53d665d97edc",
                          "6abbade5-4975-4621-8063-40fffdafa587"}  # fmt: skip
    parent = alone["6abbade5-4975-4621-8063-40fffdafa587"]
    assert grown.prompts(parent.messages) == [
        "Add a rate limit to the API.\nKeep it small.",
        "Now fix that test.",
    ]
    assert "[REDACTED]" not in [part.data["text"] for part in said(parent, "text")]
    lineage = alone["4eecd6c3-3c09-4dc1-81fb-53d665d97edc"].lineage
    assert lineage is not None and lineage.parent_source_id == parent.source_id


# --- hand-made chats of the editor ----------------------------------------------------------

AT = 1_795_900_000_000
ONE, TWO = "11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555"
SCHEMA = """
    CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
    CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
"""
HEADS = """
    CREATE TABLE IF NOT EXISTS composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT,
        createdAt INTEGER, lastUpdatedAt INTEGER, isArchived INTEGER, isSubagent INTEGER,
        recency INTEGER, checkpointAt INTEGER, value TEXT);
"""


def put(user: Path, values: dict[str, Any], *, folder: str = "globalStorage") -> Path:
    """Write rows: session rows and bubbles, and values of a workspace's table."""
    path = user / folder / "state.vscdb"
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.executescript(SCHEMA)
        for key, value in values.items():
            is_row = key.startswith(("composerData:", "composer.content.", "bubbleId:"))
            table = "cursorDiskKV" if is_row else "ItemTable"
            body = value if isinstance(value, str | bytes) or value is None else json.dumps(value)
            made.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, body))
    return path


def head(user: Path, name: str, **told: Any) -> None:
    with contextlib.closing(sqlite3.connect(user / "globalStorage/state.vscdb")) as made, made:
        made.executescript(SCHEMA + HEADS)
        names = ", ".join(("composerId", *told))
        marks = ", ".join("?" * (1 + len(told)))
        made.execute(f"INSERT OR REPLACE INTO composerHeaders ({names}) VALUES ({marks})",
                     (name, *told.values()))  # fmt: skip


def bubble(place: int, text: str = "", kind: int = 2, **more: Any) -> Expected:
    return {"_v": 3, "type": kind, "text": text, "bubbleId": f"b{place}", **more}


def former(status: str | None = "completed", **more: Any) -> Expected:
    told = {"name": "run_terminal_cmd", "toolCallId": "c1", "params": '{"command":"x"}', **more}
    return {"capabilityType": 15, "toolFormerData": told | ({"status": status} if status else {})}


def chat(user: Path, *bubbles: Expected, name: str = ONE, **more: Any) -> Path:
    headers = [{"bubbleId": one["bubbleId"], "type": one["type"]} for one in bubbles]
    data = {"_v": 17, "composerId": name, "createdAt": AT, "lastUpdatedAt": AT,
            "status": "completed", "fullConversationHeadersOnly": headers,
            "unifiedMode": "agent", **more}  # fmt: skip
    rows = {f"bubbleId:{name}:{one['bubbleId']}": one for one in bubbles}
    return put(user, {f"composerData:{name}": data, **rows})


def asked(text: str = "go", **more: Any) -> Expected:
    return bubble(0, text, 1, **more)


def only(user: Path) -> SessionDraft:
    return grown.only(CursorSource(), user)


@pytest.mark.parametrize(("data", "state", "status"), [
    (former("loading"), "input-available", None), (former("running"), "input-available", None),
    (former("started"), "input-available", None), (former(None), "input-available", None),
    (former(result="plain"), "output-available", "ok"), (former(), "output-available", "ok"),
    (former(result=None), "output-available", "ok"),
    (former(result='{"output":"","exitCode":2}'), "output-available", "ok"),
    (former("error", result=None, error='{"clientVisibleErrorMessage":"bad"}'), "output-error",
     "error"),
    (former("cancelled", userDecision="rejected"), "output-denied", "denied"),
    (former("cancelled", result='{"rejected":true}'), "output-denied", "denied"),
    (former("cancelled"), "output-error", "interrupted"),
    (former("loading", userDecision="rejected"), "input-available", None),
    (former("new word", result='{"contents":"x"}'), "output-available", "ok"),
])  # fmt: skip
def test_states_of_calls(tmp_path: Path, data: Expected, state: str, status: str | None) -> None:
    chat(tmp_path, asked(), bubble(1, **data))
    (part,) = grown.calls(only(tmp_path).messages)
    assert part.tool_state == state
    assert (call(part, "none")["status"]) == STATUSES.get(str(status), status or "none")
    assert part.data["input"] == {"command": "x"}


def test_only_listed_bubbles_count(tmp_path: Path) -> None:
    count: Expected = {"tokenCount": {"inputTokens": 10, "outputTokens": 2}}
    path = chat(tmp_path, asked(), bubble(1, "one", createdAt="2026-11-29T10:00:00.000Z", **count))
    cut = bubble(8, "cut", createdAt="2026-11-29T10:00:05.000Z", **count)
    put(tmp_path, {f"bubbleId:{ONE}:b8": cut, f"bubbleId:{ONE}:b9": None})
    headers = [{"bubbleId": name} for name in ("b0", "gone", "b1", "b1")]
    put(tmp_path, {f"composerData:{ONE}": {
        "_v": 17, "createdAt": AT, "fullConversationHeadersOnly": headers}})  # fmt: skip
    draft = only(tmp_path)
    assert draft.path == str(path)
    assert [one.source_id for one in grown.visible(draft)] == ["b0", "b1"]
    assert [one.source_id for one in draft.messages if "hidden_at" in one.metadata] == ["b8"]
    assert grown.tokens(draft.messages)["input"] == 10
    assert (about(draft)["missing"], about(draft)["orphans"]) == (1, 1)


def test_answers_are_joined_until_words_follow_a_call(tmp_path: Path) -> None:
    chat(tmp_path, asked(), bubble(1, thinking={"text": "t", "signature": "s"}), bubble(2, "a"),
         bubble(3, **former()), bubble(4, **former(toolCallId="c2")), bubble(5, "b"),
         bubble(6, toolFormerData={"additionalData": {"status": "error"}}))  # fmt: skip
    draft = only(tmp_path)
    assert [[part.type.partition("-")[0] for part in one.parts] for one in draft.messages[1:]] == [
        ["reasoning", "text", "tool", "tool"],
        ["text"],
    ]
    assert about(draft)["nameless_calls"] == 1


def test_rich_text_images_and_files_of_a_prompt(tmp_path: Path) -> None:
    rich = {"root": {"children": [
        {"type": "paragraph", "children": [{"text": "see "}, {"type": "mention", "text": "@a.py"}]},
        {"type": "paragraph", "children": [{"text": "now"}]}]}}  # fmt: skip
    image = {"uuid": "u", "data": "aGk="}
    context = {"selectedImages": [image, {"path": "/tmp/b.png"}], "fileSelections": [
        {"uri": {"scheme": "file", "fsPath": "/w/a.py"}}]}  # fmt: skip
    chat(tmp_path, asked("", richText=json.dumps(rich), images=[image], context=context))
    (prompt,) = only(tmp_path).messages
    assert grown.words(prompt) == "see @a.py\nnow"
    assert [part.data["url"] for part in prompt.parts if part.type == "file"] == [
        "data:image/png;base64,aGk=",
        "file:///tmp/b.png",
    ]
    assert prompt.parts[-1].data["data"]["details"]["content"] == "/w/a.py"


@pytest.mark.parametrize("more", [
    {"fullConversationHeadersOnly": [], "text": "half typed"},
    {"fullConversationHeadersOnly": [{"bubbleId": "x"}]}, {"fullConversationHeadersOnly": None},
])  # fmt: skip
def test_drafts_and_what_has_just_begun_are_no_sessions(tmp_path: Path, more: Expected) -> None:
    chat(tmp_path, **more)
    assert grown.read_all(CursorSource(), tmp_path) == ({}, [])


def test_values_may_be_bytes_and_damage_costs_itself(tmp_path: Path) -> None:
    chat(tmp_path, asked(), bubble(1, "one"), bubble(2, "two"))
    put(tmp_path, {f"bubbleId:{ONE}:b1": b'{"type":2,"text":"bytes"}',
                   f"bubbleId:{ONE}:b2": '{"type":2,"te'})  # fmt: skip
    drafts, (problem,) = grown.read_all(CursorSource(), tmp_path)
    assert [part.data["text"] for part in said(drafts[ONE], "text")] == ["bytes"]
    assert "b2" in problem.reason and about(drafts[ONE])["unreadable"] == 1


def test_the_summary_of_older_versions(tmp_path: Path) -> None:
    told = {"lastBubbleId": "b2", "summary": {
        "summary": "So far.", "truncationLastBubbleIdInclusive": "b0"}}  # fmt: skip
    chat(tmp_path, asked(), bubble(1, "a"), bubble(2, "b"), latestConversationSummary=told)
    draft = only(tmp_path)
    (line,) = [one for one in draft.messages if "compaction" in one.metadata]
    assert line.parts[0].data["data"] == {
        "summary": "So far.", "tail_start_id": "b1", "auto": True}  # fmt: skip
    assert draft.messages[-1] is line and about(draft)["compacted_through"] == "b0"


@pytest.mark.parametrize(("told", "expected"), [
    ({"uri": {"scheme": "file", "fsPath": "/w", "path": "/w"}}, "/w"),
    ({"uri": {"scheme": "vscode-remote", "path": "/srv", "external": "vscode-remote://box/srv"}},
     "vscode-remote://box/srv"),
    ({"configPath": {"scheme": "file", "fsPath": "/w/a.code-workspace"}}, "/w/a.code-workspace"),
    ({"id": "empty-window"}, None),
])  # fmt: skip
def test_workspaces_by_identifier(tmp_path: Path, told: Expected, expected: str | None) -> None:
    chat(tmp_path, asked(), workspaceIdentifier=told)
    assert only(tmp_path).workspace_root == expected


def test_workspaces_titles_and_branches_of_other_tables(tmp_path: Path) -> None:
    chat(tmp_path, asked())
    chat(tmp_path, asked(), name=TWO)
    repositories = [{"branches": [{"branchName": "old", "lastInteractionAt": 1},
                                  {"branchName": "new", "lastInteractionAt": 2}]}]  # fmt: skip
    value = json.dumps({"name": "Named", "trackedGitRepos": repositories})
    head(tmp_path, ONE, workspaceId="w1", isArchived=1, recency=AT + 9000, value=value)
    listed = {"allComposers": [{"composerId": TWO, "name": "Listed", "createdOnBranch": "main"}]}
    for name in ("w1", "w2"):
        put(
            tmp_path,
            {"composer.composerData": listed if name == "w2" else {}},
            folder=f"workspaceStorage/{name}",
        )
        place = json.dumps({"folder": f"file:///home/{name}%20x"})
        (tmp_path / f"workspaceStorage/{name}/workspace.json").write_text(place)
    drafts, problems = grown.read_all(CursorSource(), tmp_path)
    assert problems == []
    one, two = drafts[ONE], drafts[TWO]
    assert (one.title, one.workspace_root, one.updated_at) == ("Named", "/home/w1 x", AT + 9000)
    assert one.metadata["git_branch"] == "new" and one.archived_at is not None
    assert (two.title, two.workspace_root) == ("Listed", "/home/w2 x")
    assert two.metadata["git_branch"] == "main"


def test_the_list_before_the_table_of_chats(tmp_path: Path) -> None:
    path = chat(tmp_path, asked())
    source = CursorSource()
    assert len(source.units_at(tmp_path, [str(path)]) or []) == 1
    listed = {"composerId": ONE, "name": "Listed", "isArchived": True,
              "workspaceIdentifier": {"uri": {"scheme": "file", "fsPath": "/w"}}}  # fmt: skip
    put(tmp_path, {"composer.composerHeaders": {"allComposers": [listed]}})
    assert len(source.units_at(tmp_path, [str(path)]) or []) == 1
    draft = only(tmp_path)
    assert (draft.title, draft.workspace_root) == ("Listed", "/w")
    assert draft.archived_at is not None


@pytest.mark.parametrize(("status", "more", "state"), [
    ("generating", {}, "running"), ("none", {"generatingBubbleIds": ["b1"]}, "running"),
    ("aborted", {}, "interrupted"), ("error", {}, "error"), ("completed", {}, None),
])  # fmt: skip
def test_activity(tmp_path: Path, status: str, more: Expected, state: str | None) -> None:
    chat(tmp_path, asked(), status=status, **more)
    assert only(tmp_path).metadata.get("activity", {}).get("state") == state


def test_helpers_and_candidates_are_found_by_their_parents(tmp_path: Path) -> None:
    user = tmp_path / "User"
    chat(user, asked(), bubble(1, **former(name="task_v2")), subagentComposerIds=[TWO],
         subComposerIds=["c-1"])  # fmt: skip
    chat(user, asked(), name=TWO)
    chat(user, asked(), name="c-1", isBestOfNSubcomposer=True)
    head(user, TWO, isSubagent=1)
    drafts, _ = grown.read_all(CursorSource(), user)
    for name in (TWO, "c-1"):
        lineage = drafts[name].lineage
        assert lineage is not None and (lineage.kind, lineage.parent_source_id) == ("subagent", ONE)
    assert about(drafts["c-1"])["candidate"]
    (part,) = grown.calls(drafts[ONE].messages)
    assert grown.extra(part)["child_session_source_id"] == TWO


def test_a_large_database_is_looked_through_by_its_newest_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sources.cursor.source._LARGE", 0)
    monkeypatch.setattr("store.sources.cursor.source._RECENT", 1)
    names = [f"{number}1111111-2222-4333-8444-555555555555" for number in range(4)]
    for name in names:
        path = chat(tmp_path, asked(), bubble(1, "a"), name=name)
    source = CursorSource()
    units = source.units_at(tmp_path, [str(path)]) or []
    assert len(units) == 4
    # The same as a process that has read nothing yet sees.
    assert list(CursorSource().units(tmp_path, [])) == list(source.units(tmp_path, []))
    put(tmp_path, {f"bubbleId:{names[0]}:b1": bubble(1, "ab")})
    with watched() as found:
        moved = {unit.key[-36:] for unit in source.units_at(tmp_path, [str(path)]) or []}
    assert names[0] in moved and len(moved) < 4
    assert not any("GROUP BY" in sql for sql in found.sql)
    assert list(CursorSource().units(tmp_path, [])) == list(source.units(tmp_path, []))


def test_a_helper_without_a_mark_is_named_by_its_parent(tmp_path: Path) -> None:
    chat(tmp_path / "User", asked(), name=TWO)
    database = open_database(tmp_path / "library.db", create=True)
    target = Target(CursorSource(), tmp_path / "User")
    Sync(database, Settings(helpers=0)).run([target])
    chat(tmp_path / "User", asked(), subagentComposerIds=[TWO])
    Sync(database, Settings(helpers=0)).run([target])
    found = database.connection.execute(
        "SELECT count(*) FROM chat_sessions WHERE parent_id IS NOT NULL"
    ).fetchone()
    database.close()
    assert found == (1,)


def test_what_moved_is_read_alone(tmp_path: Path) -> None:
    path = chat(tmp_path, asked(), bubble(1, "a"))
    chat(tmp_path, asked(), name=TWO)
    source = CursorSource()
    assert len(source.units_at(tmp_path, [str(path)]) or []) == 2
    assert source.units_at(tmp_path, [f"{path}-wal"]) == []
    put(tmp_path, {f"bubbleId:{ONE}:b1": bubble(1, "ab")})
    (unit,) = source.units_at(tmp_path, [f"{path}-wal"]) or []
    draft = source.follower(tmp_path, unit).read(unit).sessions[0]
    assert [part.data["text"] for part in said(draft, "text")] == ["ab"]
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute("UPDATE cursorDiskKV SET value = ? WHERE key = ?",
                     (json.dumps(bubble(1, "abc")), f"bubbleId:{ONE}:b1"))  # fmt: skip
    (unit,) = source.units_at(tmp_path, [str(path)]) or []
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute("UPDATE cursorDiskKV SET value = replace(value, 'abc', 'xyz')")
    (unit,) = source.units_at(tmp_path, [str(path)]) or []
    assert unit.key.endswith(ONE)
    put(tmp_path, {f"composerData:{TWO}": None})
    assert [one.key for one in source.units(tmp_path, [])] == [f"state.vscdb/{ONE}"]
    assert list(source.watch_paths(tmp_path)) == [path, path.with_name("state.vscdb-wal")]


def test_an_id_in_several_stores_is_one_chat(tmp_path: Path) -> None:
    user, cli = tmp_path / ".config/Cursor/User", tmp_path / ".cursor"
    chat(user, asked("editor"))
    for name in (ONE, TWO):
        store(cli, [prompt("command line")], name=name)
        transcript(cli, name, "transcript")
    transcript(cli, "33333333-2222-4333-8444-555555555555", "alone")
    source = CursorSource()
    roots = source.default_roots({}, tmp_path)
    assert {user, cli} <= set(roots)
    found = [draft for root in (user, cli) for draft in grown.read_all(source, root)[0].values()]
    assert [grown.prompts(draft.messages) for draft in found] == [
        ["editor"],
        ["command line"],
        ["alone"],
    ]
    assert list(grown.read_all(CursorSource(), tmp_path)[0]) == [one.source_id for one in found]


def test_a_deleted_chat_hides_its_transcript_and_an_empty_one_does_not(tmp_path: Path) -> None:
    user, cli = tmp_path / ".config/Cursor/User", tmp_path / ".cursor"
    chat(user, name=ONE)
    put(user, {f"composerData:{TWO}": None})
    for name in (ONE, TWO):
        transcript(cli, name, name)
    drafts, problems = grown.read_all(CursorSource(), tmp_path)
    assert problems == [] and list(drafts) == [ONE]
    source = CursorSource()
    path = cli / f"projects/home-w/agent-transcripts/{TWO}/{TWO}.jsonl"
    assert source.units_at(tmp_path, [str(path)]) == []


# --- hand-made chats of the command line ----------------------------------------------------


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def prompt(text: str) -> Expected:
    tagged = f"<user_query>\n{text}\n</user_query>"
    return {"role": "user", "content": [{"type": "text", "text": tagged}]}


def answer(*blocks: Any) -> Expected:
    content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
    return {"role": "assistant", "content": content}


def used(call_id: str = "c1", **args: Any) -> Expected:
    return {"type": "tool-call", "toolCallId": call_id, "toolName": "Shell", "args": args}


def result(value: Any, call_id: str = "c1", **more: Any) -> Expected:
    return {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": call_id,
                "toolName": "Shell",
                "result": value,
                **more,
            }
        ],
    }


def store(
    cli: Path,
    *roots: list[Expected],
    name: str = ONE,
    lost: bool = False,
    plain: bool = False,
    **meta: Any,
) -> Path:
    """Write a chat: a root for each list of messages."""
    path = cli / "chats" / ("0" * 32) / name / "store.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB)")
        made.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)")
        root = b""
        for nth, messages in enumerate(roots):
            root = b""
            for message in messages:
                body = json.dumps(message).encode()
                digest = hashlib.sha256(body)
                made.execute(
                    "INSERT OR IGNORE INTO blobs VALUES (?, ?)", (digest.hexdigest(), body)
                )
                root += field(1, digest.digest())
            root += field(5, field(1, field(1, 1000 + nth))) + field(9, b"file:///w%20x")
            root += field(26, AT + 1000 * (nth + 1))
            made.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)",
                         (hashlib.sha256(root).hexdigest(), root))  # fmt: skip
        latest = "f" * 64 if lost else hashlib.sha256(root).hexdigest()
        told = json.dumps({"agentId": name, "latestRootBlobId": latest, "name": "New Agent",
                           "createdAt": AT, "blobEncryptionKey": "CANARY", **meta})  # fmt: skip
        made.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)",
                     (told if plain else told.encode().hex(),))  # fmt: skip
    return path


def transcript(cli: Path, name: str, text: str) -> Path:
    path = cli / "projects/home-w/agent-transcripts" / name / f"{name}.jsonl"
    return grown.write_lines(path, [
        {"role": "user", "message": {"content": [
            {"type": "text", "text": f"<user_query>\n{text}\n</user_query>"}]}},
        {"role": "assistant", "message": {"content": [
            {"type": "tool_use", "name": "Read", "input": {"path": "a"}}]}}])  # fmt: skip


@pytest.mark.parametrize(("value", "more", "status", "code"), [
    ("fine", {}, "ok", None), ("x", {"isError": True}, "error", None),
    ("Error: no", {}, "error", None), ("Error: shown", {"isError": False}, "ok", None),
    ("Command exited with code 3", {}, "ok", 3), ({"any": 1}, {}, "ok", None),
])  # fmt: skip
def test_results_of_the_command_line(
    tmp_path: Path, value: Any, more: Expected, status: str, code: int | None
) -> None:
    store(tmp_path, [prompt("go"), answer("a", used(command="x")), result(value, **more)])
    (part,) = grown.calls(only(tmp_path).messages)
    assert (grown.extra(part)["status"], grown.extra(part).get("exit_code")) == (status, code)


def test_only_what_the_root_names_in_its_order(tmp_path: Path) -> None:
    path = store(tmp_path, [prompt("one"), answer("a"), prompt("again"), answer("b"),
                            prompt("again"), answer("b")], plain=True)  # fmt: skip
    with contextlib.closing(sqlite3.connect(path)) as made, made:
        made.execute(
            "INSERT INTO blobs VALUES ('draft', ?)", (json.dumps(prompt("draft")).encode(),)
        )
        made.execute("INSERT INTO blobs VALUES ('torn', ?)", (b'{"role":"us',))
    drafts, (problem,) = grown.read_all(CursorSource(), tmp_path)
    draft = drafts[ONE]
    assert grown.prompts(draft.messages) == ["one", "again", "again"]
    assert "torn" in problem.reason
    assert (draft.workspace_root, draft.title, about(draft)["context_tokens"]) == (
        "/w x", "one", 1000)  # fmt: skip
    grown.check_records(draft)
    assert b"CANARY" not in b"".join(draft.records)


def test_messages_in_the_order_of_rows_without_a_root(tmp_path: Path) -> None:
    store(tmp_path, [prompt("one"), answer("a")], lost=True)
    assert grown.prompts(only(tmp_path).messages) == ["one"]


def test_a_compacted_chat_has_its_whole_history(tmp_path: Path) -> None:
    first = [prompt("one"), answer("a"), prompt("two"), answer("b")]
    summary = {
        "role": "user",
        "content": "<conversation_summary>\nSo far.\n</conversation_summary>",
    }
    store(tmp_path, first, [summary, prompt("two"), answer("b"), prompt("three")])
    draft = only(tmp_path)
    assert grown.prompts(draft.messages) == ["one", "two", "three"]
    assert about(draft)["compacted_prompts"] == 1
    (line,) = [one for one in draft.messages if "compaction" in one.metadata]
    assert "So far." in line.parts[0].data["data"]["summary"]
    assert not any("hidden_at" in one.metadata for one in draft.messages)


def test_a_compaction_without_a_summary_is_a_line(tmp_path: Path) -> None:
    store(tmp_path, [prompt("one"), answer("a"), prompt("two")], [prompt("two"), answer("b")])
    draft = only(tmp_path)
    assert [one.role for one in draft.messages] == [
        "user", "assistant", "system", "user", "assistant"]  # fmt: skip
    assert draft.messages[2].parts[0].data["data"]["tail_start_id"] == draft.messages[3].source_id


def test_what_was_cut_off_its_end_is_hidden(tmp_path: Path) -> None:
    begin = [prompt("one"), answer("a")]
    store(tmp_path, [*begin, prompt("wrong"), answer("b")], [*begin, prompt("right")])
    draft = only(tmp_path)
    assert grown.prompts(grown.visible(draft)) == ["one", "right"]
    assert grown.prompts(draft.messages) == ["one", "wrong", "right"]


def test_a_file_beside_tells_title_folder_and_times(tmp_path: Path) -> None:
    path = store(tmp_path, [prompt("one")])
    beside = {"schemaVersion": 1, "title": "Named", "cwd": "/cwd", "createdAtMs": AT - 5000,
              "updatedAtMs": AT + 5000, "isSubagent": True}  # fmt: skip
    path.with_name("meta.json").write_text(json.dumps(beside))
    draft = only(tmp_path)
    assert (draft.title, draft.workspace_root, draft.created_at, draft.updated_at) == (
        "Named", "/cwd", AT - 5000, AT + 5000)  # fmt: skip
    assert about(draft)["helper"] == "subagent"
    path.with_name("meta.json").write_text('{"title": ')
    drafts, (problem,) = grown.read_all(CursorSource(), tmp_path)
    assert problem.path.endswith("meta.json") and drafts[ONE].title == "one"


def test_a_growing_chat_is_followed(tmp_path: Path) -> None:
    path = store(tmp_path, [prompt("one")])
    transcript(tmp_path, TWO, "alone")
    source = CursorSource()
    assert [unit.key for unit in source.units(tmp_path, [])] == [
        f"chats/{'0' * 32}/{ONE}",
        f"transcripts/home-w/{TWO}/{TWO}.jsonl",
    ]
    store(tmp_path, [prompt("one")], [prompt("one"), answer("a")])
    for changed in (path, path.with_name("store.db-wal"), path.parent, path.parent.parent):
        (unit,) = source.units_at(tmp_path, [str(changed)]) or []
        (draft,) = source.follower(tmp_path, unit).read(unit).sessions
        assert len(draft.messages) == 2
    text = tmp_path / f"projects/home-w/agent-transcripts/{TWO}/{TWO}.jsonl"
    (unit,) = source.units_at(tmp_path, [str(text)]) or []
    assert unit.key.endswith(f"{TWO}.jsonl")
    assert source.units_at(tmp_path, [str(tmp_path / "cli-config.json")]) == []
    assert source.units_at(tmp_path, [str(tmp_path)]) is None
    assert set(source.watch_paths(tmp_path)) == {tmp_path / "chats", tmp_path / "projects"}


def test_transcripts_of_plain_text(tmp_path: Path) -> None:
    path = tmp_path / f"agent-transcripts/{ONE}.txt"
    path.parent.mkdir()
    path.write_text(
        "user:\n<user_query>\nHow many?\n</user_query>\n\nassistant:\n[Thinking] \nCount.\n"
        "[Tool call] Read\n  path: a.txt\n[Tool result] Read\n\nassistant:\nThree.\n"
    )
    draft = only(tmp_path)
    assert grown.prompts(draft.messages) == ["How many?"]
    (part,) = grown.calls(draft.messages)
    assert (part.type, part.data["input"]) == ("tool-Read", {"path": "a.txt"})
    assert [one.data["text"] for one in said(draft, "text")] == ["Three."]
    assert CursorSource().recognise(path) == path


def test_words_between_calls_of_an_old_transcript(tmp_path: Path) -> None:
    path = tmp_path / f"agent-transcripts/{ONE}.txt"
    path.parent.mkdir()
    path.write_text(
        "assistant:\n[Thinking] Weigh both.\nThen choose.\n\nI look.\n[Tool call] Shell\n"
        "  command=ls\n  note: one\n    two\nNow the file.\n[Tool result] Shell\n\nIt is there.\n"
        '[Tool call] Read\n  {"path": "a.txt"}\n[Tool result]\nthree lines\n\nDone.\n'
    )
    (answer,) = grown.only(CursorSource(), path).messages
    assert [part.data.get("text") or part.data["input"] for part in answer.parts] == [
        "Weigh both.\nThen choose.", "I look.", {"command": "ls", "note": "one\n    two"},
        "Now the file.", "It is there.", {"path": "a.txt"}, "Done."]  # fmt: skip
    assert [part.data.get("output") for part in grown.calls([answer])] == [None, "three lines"]


# --- places ---------------------------------------------------------------------------------


def test_where_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = CursorSource()
    user = "Cursor/User"
    for platform, variables, roots in (
        ("linux", {}, [".cursor", f".config/{user}"]),
        ("linux", {"XDG_CONFIG_HOME": str(tmp_path / "c")}, ["c/cursor", f"c/{user}"]),
        ("linux", {"CURSOR_CONFIG_DIR": str(tmp_path / "d")}, ["d", f".config/{user}"]),
        ("darwin", {}, [".cursor", f"Library/Application Support/{user}"]),
        ("win32", {"APPDATA": str(tmp_path / "r")}, [".cursor", f"r/{user}"]),
    ):
        monkeypatch.setattr("store.sources.base.vscode.sys.platform", platform)
        assert source.default_roots(variables, tmp_path) == [tmp_path / each for each in roots]


def test_roots_are_known_by_what_they_hold() -> None:
    source = CursorSource()
    chats = CLI / "chats"
    one = chats / "ac9baa230cdc784cf086ee989f10ce6f/0cd1320d-706c-4505-b616-198a20f28e0e"
    texts = CLI / "projects/home-mira-code-api/agent-transcripts"
    for path, count in (
        (HOME, 9), (USER, 7), (USER / "globalStorage/state.vscdb", 6), (CLI, 4), (chats, 2),
        (one.parent, 1), (one, 1), (one / "store.db", 1), (texts, 3),
        (USER / "workspaceStorage/a81f5e0c7b394d26b5c4d3e2f1a09876/state.vscdb", 1),
    ):  # fmt: skip
        assert source.recognise(path) == path
        drafts, problems = grown.read_all(CursorSource(), path)
        assert (len(drafts), problems) == (count, [])
    assert source.recognise(one / "meta.json") is None
    assert source.recognise(DATA / "copilot-chat/User") is None


def test_no_secret_is_opened_or_selected(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(HOME, home)
    for name in ("cli-config.json", "mcp.json", "projects/home-mira-code-api/mcp-auth.json"):
        (home / ".cursor" / name).write_text('{"token": "CANARY"}')
    for root in (home / ".config/Cursor/User", home / ".cursor"):
        found = reading(Target(CursorSource(), root))
        names = {name for name in found.names() if not name.startswith("state.vscdb")}
        assert names <= {"store.db", "store.db-wal", "store.db-shm", "meta.json", "workspace.json",
                         *(path.name for path in home.rglob("*.jsonl"))}  # fmt: skip
        keys = ("composer.composerData", "composer.composerHeaders",
                "workbench.panel.aichat.view.aichat.chatdata")  # fmt: skip
        for sql in found.sql:
            assert "cursorAuth" not in sql
            if "FROM ItemTable" in sql:
                assert any(f"key = '{key}'" in sql for key in keys)
            if "cursorDiskKV" in sql and "FROM cursorDiskKV" in sql:
                assert any(f"'{kind}" in sql for kind in (
                    "composerData:", "bubbleId:", "composer.content."))  # fmt: skip


def test_a_place_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    chat(tmp_path, asked())
    head(tmp_path, ONE, workspaceId="w")
    place = tmp_path / "workspaceStorage/w/workspace.json"
    place.mkdir(parents=True)
    drafts, problems = grown.read_all(CursorSource(), tmp_path)
    assert drafts[ONE].workspace_root is None
    assert problems == [Problem(str(place), 0, "not a regular file")]
    place.rmdir()
    assert grown.read_all(CursorSource(), tmp_path)[1] == []
