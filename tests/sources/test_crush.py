"""Crush: the sample comes out as the independent reader of ``EXPECTED.json`` has it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.config import SourceSettings
from store.engine.database import Database, open_database
from store.ids import derived_session_id
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.protocol import Problem
from store.sources.crush import CrushSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target, default_targets
from tests.sources import grown, row_sources
from tests.sources.samples import DATA, FIRST, path_of
from tests.sources.watched import reading

SAMPLE = DATA / "crush"
EXPECTED = json.loads((SAMPLE / "EXPECTED.json").read_text())
FILE = SAMPLE / EXPECTED["sessions"][0]["db"]
DRAFTS, PROBLEMS = grown.read_all(CrushSource(), FILE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["label"]) for one in EXPECTED["sessions"]]
PLAIN, SUMMARISED = (next(one["id"] for one in EXPECTED["sessions"] if one["label"] == label)
                     for label in ("plain", "summarised"))  # fmt: skip
AT = 1_795_700_000


def prompts(draft: SessionDraft) -> list[str]:
    return [part.data["text"] for one in draft.messages if one.metadata.get("origin") == "human"
            for part in one.parts if part.type == "text"]  # fmt: skip


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if one.role == "assistant"]


def cost(draft: SessionDraft) -> float:
    return sum(float(one.metadata.get("cost_usd", 0)) for one in draft.messages)


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == [] and len(DRAFTS) == EXPECTED["sessions_count"]
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]}
    roots = [one for one in DRAFTS.values() if one.lineage is None]
    assert len(roots) == EXPECTED["root_sessions"]
    assert sum(map(cost, DRAFTS.values())) == pytest.approx(EXPECTED["cost_sum"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert draft.title == expected["title"]
    assert draft.workspace_root == f"{SAMPLE}/home{expected['workspace'].removeprefix('/home')}"
    assert draft.created_at == expected["created_s"] * 1000
    assert draft.updated_at == expected["updated_s"] * 1000
    named = [one.metadata["model"] for one in draft.messages if "model" in one.metadata]
    models = dict.fromkeys(f"{one['provider_id']}/{one['model_id']}" for one in named)
    assert list(models) == expected["models"]
    assert draft.metadata["backscroll"].get("todos") == expected["todos"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_turns(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(draft) == expected["prompts"]
    shells = [one.metadata["backscroll"]["shell"] for one in draft.messages
              if "shell" in one.metadata.get("backscroll", {})]  # fmt: skip
    assert shells == expected["shell_commands"]
    files = [part for one in draft.messages for part in one.parts if part.type == "file"]
    assert files == expected["attachments"]
    said = [one for one in answers(draft) if "compaction" not in one.metadata]
    assert len(said) == expected["assistant_messages"]
    # Every row is there: a message of its own, or a result in its call.
    rows = [json.loads(record) for record in draft.records]
    assert sum(row["table"] == "messages" for row in rows) == expected["message_count"]
    reasons = [one.metadata["backscroll"].get("finish_reason") for one in answers(draft)]
    assert reasons == expected["finish_reasons"]
    assert reasons.count(None) == expected["unfinished_messages"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls_with_their_results_by_id(draft: SessionDraft, expected: dict[str, Any]) -> None:
    found = [
        {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
         "status": part.data["resultProviderMetadata"]["backscroll"].get("status", "no result")}
        for one in draft.messages for part in one.parts if part.tool_call_id
    ]  # fmt: skip
    assert found == expected["tool_calls"]


def test_a_result_is_its_calls_whatever_the_order() -> None:
    view, bash = DRAFTS[PLAIN].messages[2].parts
    assert "apples 3" in view.data["output"] and "apple 2" in bash.data["output"]
    assert bash.data["resultProviderMetadata"]["backscroll"]["duration_ms"] == 12


def test_an_exit_code_is_told_beside_a_call_that_ended_well() -> None:
    bash = DRAFTS[EXPECTED["sessions"][1]["id"]].messages[1].parts[0]
    extra = bash.data["resultProviderMetadata"]["backscroll"]
    assert (bash.tool_state, extra["status"], extra["exit_code"]) == ("output-available", "ok", 2)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_context_is_no_spending_and_cost_is_without_children(
    draft: SessionDraft, expected: dict[str, Any]
) -> None:
    assert expected["tokens"] is None
    assert not any("usage" in one.metadata for one in draft.messages)
    assert draft.metadata["backscroll"]["context_tokens"] == expected["context"]
    assert cost(draft) == pytest.approx(expected["cost_own"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_lineage(draft: SessionDraft, expected: dict[str, Any]) -> None:
    lineage = draft.lineage
    if expected["parent_id"] is None:
        assert lineage is None
        return
    assert lineage is not None and lineage.kind == "subagent"
    assert lineage.parent_source_id == expected["parent_id"]
    assert lineage.tool_call_id == expected["parent_tool_call"]
    parent = DRAFTS[expected["parent_id"]]
    (call,) = (part for one in parent.messages if one.source_id == lineage.parent_message_source_id
               for part in one.parts if part.tool_call_id)  # fmt: skip
    extra = call.data["resultProviderMetadata"]["backscroll"]
    assert extra["child_session_source_id"] == draft.source_id


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_compaction(draft: SessionDraft, expected: dict[str, Any]) -> None:
    marked = [place for place, one in enumerate(draft.messages) if "compaction" in one.metadata]
    names = [draft.messages[place].source_id for place in marked]
    assert (names[0] if names else None) == expected["summary_message"]
    assert sum(marked) == expected["messages_before_summary"]
    for place in marked:
        (part,) = draft.messages[place].parts
        assert part.data["data"]["summary"].startswith("Summary: ")


# --- hand-made rows -------------------------------------------------------------------------


class Rows:
    """A copy of the sample's database, to which rows are added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copyfile(FILE, path)
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.now = AT
        self.session("one")

    def session(self, name: str, **columns: Any) -> None:
        times = {"updated_at": self.now, "created_at": self.now}
        self.insert("sessions", {"id": name, "title": "Talk"} | times | columns)

    def insert(self, table: str, values: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(values))
        self.connection.execute(
            f"INSERT INTO {table}({', '.join(values)}) VALUES ({marks})", tuple(values.values())
        )

    def message(self, name: str, role: str, *parts: tuple[str, Any], **columns: Any) -> None:
        body = [{"type": kind, "data": data} for kind, data in parts]
        self.insert("messages", {
            "id": name, "session_id": "one", "role": role, "parts": json.dumps(body),
            "created_at": self.now, "updated_at": self.now, "model": "m", "provider": "p",
        } | columns)  # fmt: skip

    def read(self) -> SessionDraft:
        drafts, problems = grown.read_all(CrushSource(), self.path)
        assert problems == []
        return drafts["one"]


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    folder = tmp_path / ".crush"
    folder.mkdir()
    made = Rows(folder / "crush.db")
    yield made
    made.connection.close()


def call(name: str, tool: str = "bash", **more: Any) -> tuple[str, dict[str, Any]]:
    return "tool_call", {"id": name, "name": tool, "input": "{}", "finished": True} | more


def result(name: str, text: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "tool_result", {"tool_call_id": name, "name": "bash", "content": text} | more


def test_calls_in_every_state(rows: Rows) -> None:
    rows.message("a", "assistant", call("ok"), call("picture"), call("broken", input='{"pa'),
                 call("cut", input="", finished=False), call("stopped"), call("denied"),
                 call("failed"), call("alone"), ("finish", {"reason": "tool_use"}))  # fmt: skip
    rows.message("t", "tool", result("failed", "no such file", is_error=True),
                 result("picture", "seen", data="aGk=", mime_type="image/png"),
                 result("denied", "User denied permission", is_error=True),
                 result("ok", "fine\nExit code 3"), ("finish", {"reason": "stop", "time": 0}),
                 result("stopped", "Error: user cancelled assistant tool calling",
                        is_error=True))  # fmt: skip
    (answer,) = rows.read().messages
    found = {part.tool_call_id: part for part in answer.parts}
    assert {name: part.tool_state for name, part in found.items()} == {
        "ok": "output-available", "picture": "output-available", "broken": "input-available",
        "cut": "input-streaming", "stopped": "output-error", "denied": "output-denied",
        "failed": "output-error", "alone": "input-available",
    }  # fmt: skip
    own = {name: part.data.get("resultProviderMetadata", {}).get("backscroll", {})
           for name, part in found.items()}  # fmt: skip
    assert [own[name]["status"] for name in ("ok", "stopped", "denied", "failed")] == [
        "ok", "interrupted", "denied", "error"
    ]  # fmt: skip
    assert own["ok"]["exit_code"] == 3
    assert found["broken"].data["rawInput"] == '{"pa'
    text, picture = found["picture"].data["output"]
    assert text["text"] == "seen" and picture["url"] == "data:image/png;base64,aGk="


def test_a_call_id_that_comes_again_is_another_call(rows: Rows) -> None:
    for place in ("1", "2"):
        rows.message(f"a{place}", "assistant", call("call_0"), ("finish", {"reason": "tool_use"}))
        rows.message(f"t{place}", "tool", result("call_0", f"result {place}"))
    found = [one.parts[0].data["output"] for one in rows.read().messages]
    assert found == ["result 1", "result 2"]


def test_a_result_without_its_call_is_kept_and_named(rows: Rows) -> None:
    rows.message("t", "tool", result("nobody", "alone"), ("finish", {"reason": "stop"}))
    drafts, problems = grown.read_all(CrushSource(), rows.path)
    (message,) = drafts["one"].messages
    assert (message.role, message.parts[0].data["output"]) == ("assistant", "alone")
    assert "nobody" in problems[0].reason
    grown.check_records(drafts["one"])


def test_files_shell_lines_and_prompts(rows: Rows) -> None:
    rows.message("u", "user", ("shell_command", {"command": "ls", "output": "a", "exit_code": 0}),
                 ("shell_command", {"command": "false", "output": "", "exit_code": 1}),
                 ("text", {"text": "Look at this"}),
                 ("binary", {"Path": "/x/red.png", "MIMEType": "image/png", "Data": "aGk="}),
                 ("image_url", {"url": "https://x.example/a.png", "detail": ""}),
                 ("finish", {"reason": "stop", "time": 0}))  # fmt: skip
    rows.message("s", "user", ("shell_command", {"command": "pwd", "output": "/x"}),
                 ("finish", {"reason": "stop", "time": 0}))  # fmt: skip
    draft = rows.read()
    assert prompts(draft) == ["Look at this"]
    shells = [one for one in draft.messages if one.metadata["origin"] == "shell"]
    assert [one.metadata["backscroll"].get("shell") for one in shells] == [
        "ls", None, "false", None, "pwd", None
    ]  # fmt: skip
    assert shells[3].metadata["backscroll"] == {"output": True, "exit_code": 1}
    files = [part.data for one in draft.messages for part in one.parts if part.type == "file"]
    assert [(one["mediaType"], one["url"], one.get("filename")) for one in files] == [
        ("image/png", "data:image/png;base64,aGk=", "red.png"),
        ("image/*", "https://x.example/a.png", None),
    ]
    grown.check_records(draft)


@pytest.mark.parametrize(("finish", "state"), [
    (None, "running"), ({"reason": "tool_use"}, "running"), ({"reason": "end_turn"}, None),
    ({"reason": "canceled"}, "interrupted"),
    ({"reason": "error", "message": "Overloaded", "details": "try later"}, "error"),
])  # fmt: skip
def test_what_a_session_does(rows: Rows, finish: dict[str, Any] | None, state: str | None) -> None:
    rows.message("u", "user", ("text", {"text": "go"}), ("finish", {"reason": "stop", "time": 0}))
    parts = [] if finish is None else [("finish", finish)]
    rows.message("a", "assistant", *parts)
    draft = rows.read()
    assert draft.metadata.get("activity", {}).get("state") == state
    if state == "error":
        (part,) = draft.messages[1].parts
        assert part.data["data"] == {"name": "Overloaded", "message": "try later"}


def test_a_prompt_without_an_answer_is_a_guess(rows: Rows) -> None:
    rows.message("u", "user", ("text", {"text": "go"}))
    assert rows.read().metadata["activity"] == {
        "state": "running", "from": "guessed", "since": AT * 1000
    }  # fmt: skip


def test_rows_of_one_second_are_in_the_order_of_writing(rows: Rows) -> None:
    for name in ("z", "b", "y", "a"):
        rows.message(name, "user", ("text", {"text": name}))
    assert [one.source_id for one in rows.read().messages] == ["z", "b", "y", "a"]


def test_what_crush_asks_after_it_summed_up_is_not_typed(rows: Rows) -> None:
    summed = ("text", {"text": "So far"}), ("finish", {"reason": "end_turn"})
    rows.message("sum", "assistant", *summed, is_summary_message=1, finished_at=AT)
    words = "interrupted because it got too long, the initial user request was: `go`"
    rows.message("u", "user", ("text", {"text": f"The previous session was {words}"}))
    draft = rows.read()
    assert draft.messages[0].parts[0].data["data"] == {
        "summary": "So far", "tail_start_id": None, "auto": True
    }  # fmt: skip
    assert draft.messages[1].metadata["origin"] == "meta"


def test_an_older_form_without_late_columns_is_read(rows: Rows) -> None:
    for column in ("provider", "is_summary_message"):
        rows.connection.execute(f"ALTER TABLE messages DROP COLUMN {column}")
    for column in ("summary_message_id", "todos"):
        rows.connection.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
    rows.connection.execute("DROP TABLE read_files")
    assert CrushSource().recognise(rows.path) == rows.path
    drafts, problems = grown.read_all(CrushSource(), rows.path)
    assert problems == [] and drafts.keys() - {"one"} == DRAFTS.keys()
    assert prompts(drafts[PLAIN]) == prompts(DRAFTS[PLAIN])


def test_damage_costs_only_itself(rows: Rows) -> None:
    rows.message("u", "user", ("text", {"text": "go"}))
    rows.message("v", "user", ("text", {"text": "on"}))
    change = rows.connection.execute
    change("UPDATE messages SET parts = ? WHERE id = 'u'", ('[{"type":',))
    odd = '[1, null, {"type": "new", "data": 5}]'
    change("UPDATE messages SET parts = ? WHERE id = 'v'", (odd,))
    change("INSERT INTO messages(id, session_id, role, parts, created_at, updated_at)"
           " VALUES ('w', 'nowhere', 'user', '[]', 'x', -5)")  # fmt: skip
    drafts, problems = grown.read_all(CrushSource(), rows.path)
    assert [one.source_id for one in drafts["one"].messages] == ["u", "v"]
    reasons = " ".join(problem.reason for problem in problems)
    assert "message u" in reasons and "nowhere" in reasons and len(problems) == 2
    assert drafts[PLAIN].messages == DRAFTS[PLAIN].messages


# --- places -----------------------------------------------------------------------------------


def write_list(home: Path, *entries: tuple[str, str]) -> Path:
    file = home / ".local" / "share" / "crush" / "projects.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"projects": [
        {"path": path, "data_dir": data, "last_accessed": f"2026-11-0{place}T00:00:00Z"}
        for place, (path, data) in enumerate(entries, 1)
    ]}))  # fmt: skip
    return file


def test_databases_are_found_through_the_list_of_projects(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for place in ("code/api/.crush", "elsewhere/data"):
        (home / place).mkdir(parents=True)
        shutil.copyfile(FILE, home / place / "crush.db")
    api, gone = str(home / "code" / "api"), str(home / "code" / "gone")
    settings = SourceSettings(enabled=["crush"])
    source = CrushSource()

    def found() -> list[Target]:
        return default_targets(settings, [source], {}, home)

    assert found() == []
    write_list(home, (api, f"{api}/.crush"), (gone, f"{gone}/.crush"))
    assert [target.root for target in found()] == [home / "code/api/.crush/crush.db"]
    # A new project is found without a new start.
    web = str(home / "code" / "web")
    write_list(home, (api, ".crush"), (web, str(home / "elsewhere" / "data")))
    roots = {path_of(target): target.source for target in found()}
    assert list(roots) == [home / "code/api/.crush/crush.db", home / "elsewhere/data/crush.db"]
    folders = []
    for root, one in roots.items():
        drafts, _ = grown.read_all(one, root)
        folders.append({draft.workspace_root for draft in drafts.values()})
    assert folders == [{api}, {web}]


def test_a_database_that_several_projects_share_is_of_the_folder_above(tmp_path: Path) -> None:
    home = tmp_path / "home"
    data = home / "code" / ".crush"
    data.mkdir(parents=True)
    shutil.copyfile(FILE, data / "crush.db")
    top = str(home / "code")
    write_list(home, (top, str(data)), (f"{top}/part", str(data)))
    source = CrushSource()
    assert source.default_roots({}, home)[0] == data / "crush.db"
    drafts, _ = grown.read_all(source, data / "crush.db")
    assert {draft.workspace_root for draft in drafts.values()} == {top}


def test_variables_move_the_list(tmp_path: Path) -> None:
    file = write_list(tmp_path, ("/code/api", "/code/api/.crush"))
    other = tmp_path / "other" / "crush"
    shutil.copytree(file.parent, other)
    wanted = Path("/code/api/.crush/crush.db")
    for name, value in (("CRUSH_GLOBAL_DATA", other), ("XDG_DATA_HOME", other.parent)):
        roots = CrushSource().default_roots({name: str(value)}, tmp_path / "nobody")
        assert roots == [wanted, tmp_path / "nobody" / ".crush" / "crush.db"]
    file.write_text('{"projects": [{"path": 5}, null, {"path": "/x"')
    assert wanted not in CrushSource().default_roots({}, tmp_path)


# --- live, locked, damaged, left alone ----------------------------------------------------------


def grow(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO messages(id, session_id, role, parts, created_at, updated_at) VALUES"
        " ('new', ?, 'user', '[{\"type\":\"text\",\"data\":{\"text\":\"more\"}}]', ?, ?)",
        (PLAIN, AT, AT),
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / ".crush"
    folder.mkdir()
    return row_sources.copied(FILE, folder)


def test_an_answer_that_grows_within_one_second_is_followed(rows: Rows) -> None:
    source = CrushSource()
    rows.message("a", "assistant")
    source.units_at(rows.path, [str(rows.path)])
    for text in ("I", "I l", "I lo", "I go"):
        rows.connection.execute("DROP TRIGGER IF EXISTS update_messages_updated_at")
        body = json.dumps([{"type": "text", "data": {"text": text}}])
        rows.connection.execute("UPDATE messages SET parts = ? WHERE id = 'a'", (body,))
        (unit,) = source.units_at(rows.path, [str(rows.path)]) or []
        (draft,) = source.read(rows.path, unit).sessions
        assert draft.messages[-1].parts[0].data["text"] == text


def test_a_large_database_is_followed_too(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sources.crush.source._LARGE", 1)
    test_an_answer_that_grows_within_one_second_is_followed(rows)


def test_a_live_writer_is_seen_and_left_alone(file: Path) -> None:
    (unit,) = row_sources.check_live(CrushSource(), file, grow)
    assert unit.key == f"crush.db/{PLAIN}"


def test_a_killed_writers_wal_is_read(file: Path) -> None:
    row_sources.check_killed(CrushSource, file, grow)


def test_nothing_of_a_database_is_touched(file: Path, tmp_path: Path) -> None:
    row_sources.check_untouched(CrushSource(), file, tmp_path / "library.db")


def test_a_lock_is_waited_out(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_sources.check_locked(CrushSource, file, tmp_path / "library.db", monkeypatch)


def test_damaged_files_are_named(file: Path) -> None:
    row_sources.check_damaged(CrushSource, file)


def test_a_database_that_goes_away_costs_only_itself(file: Path, tmp_path: Path) -> None:
    row_sources.check_disappears(CrushSource, file, tmp_path / "library.db")


@pytest.fixture
def library(tmp_path: Path) -> Database:
    return open_database(tmp_path / "library.db", create=True)


def test_a_parents_cost_is_its_own_also_where_the_child_comes_late_or_goes(
    library: Database, file: Path
) -> None:
    parent, child = (one["id"] for one in EXPECTED["sessions"]
                     if one["label"] in ("delegating", "delegated"))  # fmt: skip

    def costs() -> dict[str, float]:
        Sync(library, Settings(helpers=0)).run([Target(CrushSource(), file)])
        return dict(library.connection.execute("SELECT id, cost_usd FROM chat_sessions").fetchall())

    key = derived_session_id("crush", parent)
    saved = sqlite3.connect(file, isolation_level=None)
    (row,) = saved.execute("SELECT * FROM sessions WHERE id = ?", (child,)).fetchall()
    saved.execute("DELETE FROM sessions WHERE id = ?", (child,))
    assert costs()[key] == pytest.approx(0.0136)
    saved.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(row))})", row)
    whole = costs()
    assert whole[key] == pytest.approx(0.0079)
    assert sum(whole.values()) == pytest.approx(EXPECTED["cost_sum"])
    saved.execute("DELETE FROM sessions WHERE id = ?", (child,))
    saved.execute("UPDATE sessions SET title = 'Renamed' WHERE id = ?", (parent,))
    assert costs()[key] == pytest.approx(0.0079)
    saved.close()


def test_no_secret_is_opened_or_asked_for(tmp_path: Path) -> None:
    target = FIRST["crush"].copied(tmp_path)
    folder = path_of(target).parent
    for name in ("crush.json", ".env"):
        (folder / name).write_text("secret")
        (folder.parent / name).write_text("secret")
    home = folder.parent.parent.parent
    (home / ".config" / "crush").mkdir(parents=True)
    (home / ".config" / "crush" / "crush.json").write_text("secret")
    found = reading(target)
    CrushSource().default_roots({}, home)
    assert "crush.db" in found.names() and not found.names() & {"crush.json", ".env"}
    asked = " ".join(found.sql).lower()
    assert "from messages" in asked and "from files" not in asked


def test_problems_are_of_the_database(tmp_path: Path) -> None:
    problems: list[Problem] = []
    missing = tmp_path / "crush.db"
    assert list(CrushSource().units(missing, problems)) == []
    assert [os.path.basename(problem.path) for problem in problems] == ["crush.db"]
