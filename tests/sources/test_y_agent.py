"""y-agent's folder: both transcripts, the session tree, traces, damage, growth.

Expected values: read off the sample by hand with the published schema and line shapes.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from store.files.history import Point, points_of, session_files
from store.ids import derived_session_id
from store.queries.context import context_ids
from store.queries.originals import attachment
from store.sources.base.drafts import SessionDraft
from store.sources.base.protocol import Problem
from store.sources.registry import all_sources
from store.sources.y_agent import YAgentSource
from tests.sources import grown, row_sources
from tui.words.files import point_words

DATA = Path(__file__).parent.parent / "data" / "y-agent" / "data"
BUG = "5a025112-4deb-54c2-b0e5-dba39e8008ad"
BRANCH = "d5debcae-b6e5-5ba0-9609-538045487df3"
PLAN = "37827bae-d95f-58c1-8f5b-77a6db5c49e8"
OLD = "2bb44bcf-4f3e-52b0-8316-41556c017806"
CRASH = "1fb3db9f-c3c8-5d41-b3d9-3f75517051de"
UNUSED = "5e6956d8-d672-5165-b7f0-3adfded69882"
DELETED = "8e2b0315-1e4b-56b4-95d0-721b665114dd"
TRACE = "22311f73-d75e-5ec8-a20e-bbea71975770"
FIRST, FIXED = "8c2d5543-8304-5768-86aa-88d8cd33a9be", "38d3bbfe-d5e1-4259-8de0-291675402f90"
DRAFTS, PROBLEMS = grown.read_all(YAgentSource(), DATA)
TRACES = """
CREATE TABLE diag_traces(id TEXT, session_id TEXT, name TEXT, total_input_tokens INTEGER,
  total_output_tokens INTEGER);
CREATE TABLE diag_observations(id TEXT, trace_id TEXT, parent_id TEXT, obs_type TEXT, name TEXT,
  model TEXT, input TEXT, output TEXT, sequence INTEGER, depth INTEGER);
CREATE TABLE diag_scores(trace_id TEXT, name TEXT, value REAL);
"""
EVENTS = """
CREATE TABLE session_events(event_id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT,
  seq INTEGER, kind TEXT, payload TEXT, created_at TEXT);
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "state" / "y-agent" / "data"
    shutil.copytree(DATA, copy)
    return copy


def change(folder: Path, script: str) -> None:
    row_sources.written(folder / "y-agent.db", lambda c: c.executescript(script))


def append(folder: Path, session: str, *rows: dict[str, Any]) -> None:
    for ending in (".jsonl", ".display.jsonl"):
        path = folder / "transcripts" / f"{session}{ending}"
        with path.open("a") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")


def line(name: str, role: str, content: str, **metadata: Any) -> dict[str, Any]:
    return {"message_id": name, "role": role, "content": content,
            "timestamp": "2026-09-02T10:00:01.123456789Z", "metadata": metadata}  # fmt: skip


def read(folder: Path) -> dict[str, SessionDraft]:
    return grown.read_all(YAgentSource(), folder)[0]


def said(draft: SessionDraft) -> list[tuple[str, list[str]]]:
    return [(m.role, [p.type for p in m.parts]) for m in draft.messages]


def test_all_sessions_of_the_tree() -> None:
    assert DRAFTS.keys() == {BUG, BRANCH, PLAN, OLD, CRASH, UNUSED, DELETED}
    kinds = {name: (draft.lineage and draft.lineage.kind) for name, draft in DRAFTS.items()}
    assert kinds == {BUG: None, BRANCH: "fork", PLAN: "subagent", OLD: None, CRASH: None,
                     UNUSED: None, DELETED: None}  # fmt: skip
    assert {draft.workspace_root for draft in DRAFTS.values()} == {"/home/u/proj"}
    shelved = {name for name, draft in DRAFTS.items() if draft.archived_at is not None}
    assert shelved == {OLD, DELETED}
    for draft in DRAFTS.values():
        grown.check_records(draft)


def test_what_a_sub_agent_inherits_is_not_read(folder: Path) -> None:
    """The published schema has no column for it; another version's that has is read without."""
    columns: list[str] = []
    row_sources.written(folder / "y-agent.db", lambda c: columns.extend(
        str(name) for table in ("session_metadata", "chat_messages", "chat_checkpoints")
        for name, in c.execute("SELECT name FROM pragma_table_info(?)", (table,))))
    assert columns and not [name for name in columns if "knowledge" in name or "trust" in name]
    change(folder, "ALTER TABLE session_metadata ADD COLUMN knowledge_collections TEXT;"
           "ALTER TABLE session_metadata ADD COLUMN trust_level TEXT;"
           "UPDATE session_metadata SET knowledge_collections = '[\"docs\"]',"
           f" trust_level = 'full' WHERE id = '{PLAN}';")  # fmt: skip
    found, known = read(folder)[PLAN], DRAFTS[PLAN]
    assert (found.messages, found.metadata) == (known.messages, known.metadata)


def test_titles() -> None:
    titles = {name: (draft.title, draft.title_from) for name, draft in DRAFTS.items()}
    assert titles[BUG] == ("Fix the bug", "title")
    assert titles[OLD] == ("Renamed by hand", "manual-title")
    assert titles[CRASH] == ("crash", "first-prompt")


def test_what_was_shown_with_the_mark_where_the_context_begins(tmp_path: Path) -> None:
    draft = DRAFTS[BUG]
    assert said(draft) == [
        ("user", ["text", "data-snapshot"]),
        ("assistant", ["reasoning", "text", "tool-FileWrite", "tool-ShellExec"]),
        ("system", ["data-compaction"]),
        ("user", ["text", "file"]),
        ("assistant", ["reasoning", "text"]),
    ]
    assert draft.messages[2].parts[0].data["data"]["summary"] == "summary of the first turn"
    left_out = [m.metadata.get("backscroll", {}).get("in_context") for m in draft.messages]
    assert left_out == ["left out", "left out", None, None, None]
    database = grown.synced(YAgentSource(), DATA, tmp_path / "library.db")
    context = context_ids(database, derived_session_id("y-agent", BUG))
    names = [
        database.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id') FROM chat_messages WHERE id = ?",
            (name,),
        ).fetchone()[0]
        for name in context
    ]
    lines = (DATA / "transcripts" / f"{BUG}.jsonl").read_text().splitlines()
    assert names == [json.loads(text)["message_id"] for text in lines]


def test_a_turn_in_its_order() -> None:
    reasoning, text, write, shell = DRAFTS[BUG].messages[1].parts
    assert reasoning.data["text"] == "because"
    assert reasoning.data["providerMetadata"]["backscroll"]["duration_ms"] == 40
    assert text.data["text"] == "Fixed.\n"
    assert write.data["input"] == {"path": "a.py"} and write.data["output"] == "ok"
    assert (shell.tool_state, shell.data["errorText"]) == ("output-error", "1 failed")
    assert grown.extra(shell) == {"status": "error", "duration_ms": 12}


def test_usage_and_models() -> None:
    assert grown.tokens(DRAFTS[BUG].messages) == {
        "input": 200, "output": 40, "reasoning": 0, "cache_read": 0, "cache_write": 0,
    }  # fmt: skip
    own = [m for m in DRAFTS[BRANCH].messages if m.inherited_from is None]
    assert sum(grown.tokens(own).values()) == 0
    spent = sum(m.metadata.get("cost_usd", 0) for m in DRAFTS[BUG].messages)
    assert spent == pytest.approx(0.002)
    assert DRAFTS[BUG].model == {"provider_id": "p", "model_id": "gpt-x"}


def test_a_fork_inherits_what_it_copied() -> None:
    draft = DRAFTS[BRANCH]
    assert draft.lineage is not None
    assert (draft.lineage.parent_source_id, draft.lineage.parent_message_source_id) == (BUG, FIXED)
    assert [m.inherited_from for m in draft.messages] == [FIRST, FIXED, None]
    assert grown.words(draft.messages[-1]) == "other way"


def test_checkpoints_are_points_to_rewind_to() -> None:
    draft = DRAFTS[BUG]
    points = draft.metadata["backscroll"]["checkpoints"]
    assert [(p["turn"], p["message_count_before"]) for p in points] == [(1, 0), (2, 2)]
    at = [m.source_id for m in draft.messages if "checkpoint" in m.metadata.get("backscroll", {})]
    assert at == [point["message_source_id"] for point in points]
    assert at[0] == FIRST and draft.messages[3].source_id == at[1]


def test_nobody_can_rewind_to_a_checkpoint_that_is_no_longer_valid(folder: Path) -> None:
    change(folder, "UPDATE chat_checkpoints SET invalidated = 1 WHERE turn_number = 2")
    draft = read(folder)[BUG]
    points = draft.metadata["backscroll"]["checkpoints"]
    assert [(p["turn"], p["invalidated"]) for p in points] == [(1, False), (2, True)]
    assert "message_source_id" not in points[1]
    at = [m.source_id for m in draft.messages if "checkpoint" in m.metadata.get("backscroll", {})]
    assert at == [FIRST]


def test_a_sync_sees_that_a_checkpoint_is_no_longer_valid(folder: Path, tmp_path: Path) -> None:
    def points() -> list[bool]:
        db = grown.synced(YAgentSource(), folder, tmp_path / "library.db")
        rows = db.connection.execute("SELECT metadata_json FROM chat_sessions").fetchall()
        db.close()
        kept = [json.loads(row[0])["backscroll"].get("checkpoints") for row in rows]
        (found,) = (each for each in kept if each and len(each) == 2)
        return [point["invalidated"] for point in found]

    assert points() == [False, False]
    change(folder, "UPDATE chat_checkpoints SET invalidated = 1 WHERE turn_number = 2")
    assert points() == [False, True]


def test_a_crash_is_an_error_and_a_torn_line_a_problem() -> None:
    assert said(DRAFTS[CRASH]) == [("user", ["text"]), ("assistant", ["data-error"])]
    assert DRAFTS[CRASH].messages[1].parts[0].data["data"]["message"] == "provider 500"
    assert DRAFTS[CRASH].metadata["activity"]["state"] == "error"
    assert [(Path(p.path).name, p.line) for p in PROBLEMS] == [
        (f"{CRASH}.jsonl", 3), (f"{CRASH}.display.jsonl", 3),
    ]  # fmt: skip


def test_pins_of_the_program() -> None:
    own = DRAFTS[BUG].metadata["backscroll"]
    assert own["pinned"] is True and own["quick_slot"] == "1"
    assert "pinned" not in DRAFTS[OLD].metadata["backscroll"]


def test_all_types_and_states(folder: Path) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        for kind in ("main", "child", "branch", "ephemeral", "sub_agent", "canonical"):
            for state in ("active", "paused", "archived", "merged", "tombstone"):
                connection.execute(
                    "INSERT INTO session_metadata(id, parent_id, root_id, path, session_type,"
                    " state, transcript_path) VALUES (?, ?, ?, '[]', ?, ?, 'transcripts/x.jsonl')",
                    (f"{kind}-{state}", None if kind == "main" else BUG, BUG, kind, state),
                )

    row_sources.written(folder / "y-agent.db", fill)
    drafts = read(folder)
    kinds = {name: draft.lineage.kind for name, draft in drafts.items()
             if draft.lineage and name.endswith("-active")}  # fmt: skip
    assert kinds == {
        "child-active": "unknown", "branch-active": "fork", "ephemeral-active": "subagent",
        "sub_agent-active": "subagent", "canonical-active": "continuation",
    }  # fmt: skip
    states = {name: (draft.archived_at is not None, draft.metadata.get("activity", {}).get("state"))
              for name, draft in drafts.items() if name.startswith("main-")}  # fmt: skip
    assert states == {
        "main-active": (False, None), "main-paused": (False, "interrupted"),
        "main-archived": (True, "ended"), "main-merged": (True, "ended"),
        "main-tombstone": (True, "ended"),
    }  # fmt: skip


def test_many_iterations_and_a_final_response(folder: Path) -> None:
    results = [{"tool_call_id": f"c{n}", "name": "Run", "arguments": f'{{"n":{n}}}',
                "success": True, "result_preview": str(n)} for n in range(3)]  # fmt: skip
    append(folder, OLD, line(
        "turn", "assistant", "done", tool_results=results, iteration_texts=["one", "two", ""],
        iteration_reasonings=["", "think"], iteration_tool_counts=[1, 2, 0],
        final_response="done", reasoning_content="last thought", input_tokens=5, output_tokens=1,
        cache_read_tokens=7, cache_write_tokens=2,
    ))  # fmt: skip
    message = read(folder)[OLD].messages[-1]
    shown = [part.data.get("text") or part.tool_call_id for part in message.parts]
    assert shown == ["one", "c0", "think", "two", "c1", "c2", "last thought", "done"]
    assert message.metadata["usage"] == {
        "input": 5, "output": 1, "reasoning": 0, "cache_read": 7, "cache_write": 2,
    }  # fmt: skip


def test_a_command_that_exits_with_an_error_failed_whatever_its_agent_says(folder: Path) -> None:
    results = [{"tool_call_id": f"c{code}", "name": "ShellExec", "arguments": "{}",
                "success": True, "result_preview": "x", "metadata": {"exit_code": code}}
               for code in (0, 3)]  # fmt: skip
    append(folder, BUG, line("codes", "assistant", "", tool_results=results))
    parts = [p for p in read(folder)[BUG].messages[-1].parts if p.tool_call_id]
    assert [part.tool_state for part in parts] == ["output-available"] * 2
    told = [grown.extra(part) for part in parts]
    assert [(each["status"], each["exit_code"]) for each in told] == [("ok", 0), ("error", 3)]


def test_calls_and_results_on_lines_of_their_own(folder: Path) -> None:
    calls = [{"id": "a", "name": "Ls", "arguments": "{}"}, {"id": "b", "name": "Rm",
                                                           "arguments": "{torn"}]  # fmt: skip
    append(folder, OLD, {**line("ask", "assistant", ""), "tool_calls": calls},
           {**line("answer", "tool", "files"), "tool_call_id": "a"})  # fmt: skip
    message = read(folder)[OLD].messages[-1]
    first, second = message.parts
    assert (first.tool_state, first.data["output"]) == ("output-available", "files")
    assert (second.tool_state, second.data["input"]) == ("input-available",
                                                         {"arguments": "{torn"})  # fmt: skip


def test_what_a_rewind_cut_off_is_hidden_where_the_mirror_has_it(folder: Path) -> None:
    change(folder, "INSERT INTO chat_messages(id, session_id, role, content, status, created_at)"
           f" VALUES ('cut', '{BUG}', 'user', 'never mind', 'tombstone',"
           " '2026-09-01T10:00:02.5+00:00');"
           f"UPDATE chat_messages SET status = 'pruned' WHERE id = '{FIXED}';")  # fmt: skip
    draft = read(folder)[BUG]
    hidden = [m for m in draft.messages if "hidden_at" in m.metadata]
    assert [grown.words(m) for m in hidden] == ["never mind"]
    assert hidden[0].metadata["hidden_at"] == hidden[0].created_at + 1
    assert draft.messages[1].metadata["backscroll"]["mirror_status"] == "pruned"


@pytest.mark.parametrize(
    ("kind", "state"),
    [("chat_progress", "running"), ("ask_user", "waiting-input"), ("chat_complete", "idle"),
     ("permission_request", "waiting-approval"), ("chat_error", "error")],
)  # fmt: skip
def test_the_newest_event_tells_what_a_session_does(folder: Path, kind: str, state: str) -> None:
    change(folder, EVENTS + "INSERT INTO session_events(session_id, seq, kind, created_at) VALUES"
           f"('{OLD}', 1, 'chat_started', '2026-09-03T00:00:00Z'),"
           f"('{BUG}', 1, '{kind}', '2026-09-03T00:00:00Z');")  # fmt: skip
    drafts = read(folder)
    assert drafts[BUG].metadata["activity"] == {
        "state": state, "from": "stored", "since": 1788393600000,
    }  # fmt: skip
    assert drafts[OLD].metadata["activity"]["state"] == "ended"


def test_traces_are_kept_without_keys(folder: Path, tmp_path: Path) -> None:
    request = json.dumps({"headers": {"Authorization": "Bearer sk-1"}, "prompt": "fix"})
    change(folder, TRACES + f"INSERT INTO diag_traces VALUES ('{TRACE}', '{PLAN}', 'turn', 9, 8),"
           f"('lost', '{PLAN}', 'other', 0, 0);"
           f"INSERT INTO diag_observations VALUES ('o1', '{TRACE}', NULL, 'generation', 'llm',"
           f" 'gpt-x', '{request}', '{{}}', 1, 0), ('o2', '{TRACE}', 'o1', 'tool', 'Run', NULL,"
           " '{}', '{}', 2, 1);"
           f"INSERT INTO diag_scores VALUES ('{TRACE}', 'helpful', 0.5);")  # fmt: skip
    draft = read(folder)[PLAN]
    message = draft.messages[1]
    found, other = message.metadata["backscroll"]["traces"]
    assert [step["obs_type"] for step in found["observations"]] == ["generation", "tool"]
    assert found["scores"] == [{"name": "helpful", "value": 0.5}] and other["id"] == "lost"
    assert message.metadata["usage"]["input"] == 100
    database = grown.synced(YAgentSource(), folder, tmp_path / "library.db")
    body = attachment(database, derived_session_id("y-agent", PLAN), f"trace-{TRACE}.json")
    assert b'"prompt": "fix"' in body and b"sk-1" not in body
    assert f"trace-{TRACE}.json" in grown.extra(message.parts[0])["attachment"]


def test_backups_of_files_come_along(folder: Path) -> None:
    (folder / "file-history" / BUG / "00ff@v1").write_text("before\n")
    draft = read(folder)[BUG]
    assert [(a.name, a.body) for a in draft.attachments] == [("00ff@v1", b"before\n")]
    (part,) = [p for m in draft.messages for p in m.parts if p.type == "data-snapshot"]
    assert part.data["data"]["files"][0]["path"] == "/home/u/proj/a.py"
    assert grown.extra(part)["attachment"] == ["00ff@v1"]


def test_where_it_is_found(folder: Path, tmp_path: Path) -> None:
    source = YAgentSource()
    home = tmp_path / "home"
    assert source.default_roots({}, home) == [home / ".local/state/y-agent/data"]
    assert source.default_roots({"XDG_STATE_HOME": str(tmp_path / "state")}, home) == [folder]
    file = folder / "y-agent.db"
    for path, root in ((folder, folder), (folder.parent, folder), (file, file)):
        assert source.recognise(path) == root
        assert [one.kind for one in all_sources() if one.recognise(path)] == ["y-agent"]
    assert len(list(source.units(file, []))) == 7


def test_damage_costs_only_itself(folder: Path) -> None:
    (folder / "transcripts" / f"{BUG}.display.jsonl").unlink()
    (folder / "transcripts" / f"{OLD}.jsonl").unlink()
    (folder / "transcripts" / f"{OLD}.display.jsonl").unlink()
    (folder / "transcripts" / "nobody.jsonl").write_text("{}\n")
    (folder / "session-hub.json").write_text("{torn")
    (folder / "file-history" / BUG / "_snapshots.json").write_text("{torn")
    with (folder / "transcripts" / f"{PLAN}.display.jsonl").open("ab") as file:
        file.write(b'\xff\xfe\n[1]\n{"role":"oracle","content":"?"}\n')
    change(folder, f"DELETE FROM session_metadata WHERE id = '{CRASH}';"
           f"UPDATE session_metadata SET parent_id = 'gone' WHERE id = '{BRANCH}';")  # fmt: skip
    drafts, problems = grown.read_all(YAgentSource(), folder)
    assert drafts.keys() == {BUG, BRANCH, PLAN, OLD, UNUSED, DELETED}
    assert [m.role for m in drafts[BUG].messages] == ["system", "user", "assistant"]
    assert drafts[OLD].messages == []
    assert drafts[PLAN].messages[-1].metadata["backscroll"]["role"] == "oracle"
    reasons = [problem.reason for problem in problems]
    assert sum("transcript is missing" in reason for reason in reasons) == 3
    assert sum("transcript of a session that is not there" in reason for reason in reasons) == 3
    assert any("its parent gone is not there" in reason for reason in reasons)
    assert any("file history: no JSON" in reason for reason in reasons)
    assert sum(Path(p.path).name == f"{PLAN}.display.jsonl" for p in problems) == 2


def test_a_transcript_followed_reads_as_one_read_whole(folder: Path) -> None:
    name = f"{PLAN}.display.jsonl"
    path = folder / "transcripts" / name
    source, follower = YAgentSource(), None
    body = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"")
    source.units_at(folder, [str(path)])
    for piece in body:
        with path.open("ab") as file:
            file.write(piece)
        moved = source.units_at(folder, [str(path)])
        assert moved is not None and [unit.key for unit in moved] == [f"y-agent.db/{PLAN}"]
        follower = follower or source.follower(folder, moved[0])
        reading = follower.read(moved[0])
    assert reading.sessions == [read(folder)[PLAN]]
    (unit,) = [one for one in source.units(folder, []) if one.key.endswith(PLAN)]
    assert [(s.path, s.inode, s.size, s.mtime_ns) for s in reading.stamps] == [
        (s.path, s.inode, s.size, s.mtime_ns) for s in unit.stamps
    ]


def test_a_rewind_that_cuts_the_files(folder: Path) -> None:
    source = YAgentSource()
    (unit,) = [one for one in source.units(folder, []) if one.key.endswith(BUG)]
    follower = source.follower(folder, unit)
    assert len(follower.read(unit).sessions[0].messages) == 5
    for ending in (".jsonl", ".display.jsonl"):
        path = folder / "transcripts" / f"{BUG}{ending}"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:1]))
    (unit,) = [one for one in source.units(folder, []) if one.key.endswith(BUG)]
    assert len(follower.read(unit).sessions[0].messages) == 2


def test_a_poll_of_many_sessions_reads_the_one_that_grew(folder: Path) -> None:
    change(folder, "INSERT INTO session_metadata(id, root_id, path, session_type, transcript_path)"
           " WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 499)"
           f" SELECT 's' || i, '{BUG}', '[]', 'main', 'transcripts/none.jsonl' FROM n;"
           )  # fmt: skip
    source, path = YAgentSource(), folder / "transcripts" / f"{OLD}.jsonl"
    assert len(source.units_at(folder, [str(path)]) or ()) == 507
    append(folder, OLD, line("new", "user", "more"))
    assert [u.key for u in source.units_at(folder, [str(path)]) or ()] == [f"y-agent.db/{OLD}"]


def test_a_writer_is_seen_and_left_alone(folder: Path) -> None:
    update = f"UPDATE session_metadata SET title = 'x' WHERE id = '{OLD}'"
    file = folder / "y-agent.db"
    moved = row_sources.check_live(YAgentSource(), file, lambda c: c.execute(update))
    assert [unit.key for unit in moved] == [f"y-agent.db/{OLD}"]


def test_nothing_is_touched(folder: Path, tmp_path: Path) -> None:
    row_sources.check_untouched(YAgentSource(), folder / "y-agent.db", tmp_path / "library.db")


def test_a_locked_one_is_read_later(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "y-agent.db"
    row_sources.check_locked(YAgentSource, file, tmp_path / "library.db", monkeypatch)


def test_damaged_and_missing_databases(folder: Path) -> None:
    row_sources.check_damaged(YAgentSource, folder / "y-agent.db")


def test_one_that_goes_away(folder: Path, tmp_path: Path) -> None:
    file = folder / "y-agent.db"
    row_sources.check_disappears(YAgentSource, file, tmp_path / "library.db")
    problems: list[Problem] = []
    assert list(YAgentSource().units(folder, problems)) == [] == problems


def mutation(call: str, before: bytes | None, after: bytes | None, **more: Any) -> str:
    found = {"tool_call_id": call, "session_id": BUG, "agent_id": "root", "operation": "modify",
             "absolute_path": "/home/u/proj/new.py", "is_new_file": before is None}
    for key, body in (("before_hash", before), ("after_hash", after)):
        if body is not None:
            found[key] = f"sha256:{sha256(body).hexdigest()}"
    return json.dumps(found | more) + "\n"


def points(folder: Path, place: Path) -> list[Point]:
    db = grown.synced(YAgentSource(), folder, place)
    of = session_files(db, derived_session_id("y-agent", BUG))
    (key,) = [key for key, file in of.files.items() if file.changed and key.endswith("/new.py")]
    found = points_of(db, of, key)
    db.close()
    return found


def test_the_journal_of_mutations_confirms_contents(folder: Path, tmp_path: Path) -> None:
    journal = folder / "file-mutations.jsonl"
    body, call = b"one\n", "w1"
    written = {"tool_call_id": call, "name": "FileWrite", "success": True, "result_preview": "ok",
               "arguments": json.dumps({"path": "/home/u/proj/new.py", "content": "one\n"})}
    append(folder, BUG, line("m-new", "assistant", "Done", tool_results=[written],
                             iteration_tool_counts=[1]))
    plain = points(folder, tmp_path / "a.db")
    assert plain[-1].operation == "" and plain[-1].content.body == body
    units = {unit.key: unit.stamps for unit in YAgentSource().units(folder, [])}
    journal.write_text(mutation(call, None, body, operation="create") + mutation("other", b"", b"")
                       + "{damaged}\n" + mutation(call, b"x", b"y", session_id="s") + "{torn")
    problems: list[Problem] = []
    moved = {unit.key: unit.stamps for unit in YAgentSource().units(folder, problems)}
    assert [key for key in units if units[key][0] != moved[key][0]] == [f"y-agent.db/{BUG}"]
    assert [(Path(one.path).name, one.line) for one in problems
            if one not in PROBLEMS and "mutations" in one.path] == [("file-mutations.jsonl", 3)]
    (first, last) = points(folder, tmp_path / "b.db")[-2:]
    assert first.content.origin == "missing" and point_words(last) == "written (create)"
    assert last.content.source.endswith("as the agent's journal confirms")
    draft = read(folder)[BUG]
    (part,) = [one for message in draft.messages for one in message.parts
               if one.tool_call_id == call]
    assert b"file-mutations.jsonl" in draft.records[part.records[-1]]
    journal.write_text(mutation(call, b"another", b"other\n"))
    seen, wrong = points(folder, tmp_path / "c.db")[-2:]
    assert not wrong.content.is_known and "another hash" in wrong.content.source
    assert not seen.content.is_known
