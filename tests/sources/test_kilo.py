"""Kilo: the genuine sample comes out as the independent reader of ``EXPECTED.json`` has it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.opencode import KiloSource, OpencodeSource
from store.sources.registry import all_sources
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target, classify
from tests.sources import grown
from tests.sources.opencode_rows import Rows, finish, text, tool
from tests.sources.samples import DATA, FIRST
from tests.sources.watched import reading

KILO, OPENCODE = DATA / "kilo", DATA / "opencode"
EXPECTED = json.loads((KILO / "EXPECTED.json").read_text())["kilo"]
BUCKETS = ("input", "output", "reasoning", "cache_read", "cache_write")
DRAFTS, PROBLEMS = grown.read_all(KiloSource(), KILO)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["label"] or one["id"][-6:])
            for one in EXPECTED["sessions"]]  # fmt: skip
OLD_TABLES = ("session", "message", "part", "todo", "project", "permission", "session_share",
              "control_account")  # fmt: skip
"""The tables of 7.0.33."""
OLD_COLUMNS = ("workspace_id", "path", "metadata", "cost", "tokens_input", "tokens_output",
               "tokens_reasoning", "tokens_cache_read", "tokens_cache_write", "agent",
               "model")  # fmt: skip
"""The columns of ``session`` that it lacks."""


def tokens(messages: list[MessageDraft]) -> dict[str, int]:
    used = [one.metadata["usage"] for one in messages if "usage" in one.metadata]
    return {bucket: sum(usage[bucket] for usage in used) for bucket in BUCKETS}


def cost(messages: list[MessageDraft]) -> float:
    return sum(float(one.metadata.get("cost_usd", 0.0)) for one in messages)


def shown(draft: SessionDraft, *, hidden: bool = False) -> list[MessageDraft]:
    return [one for one in draft.messages if ("hidden_at" in one.metadata) == hidden]


def prompts(messages: list[MessageDraft]) -> list[str]:
    return [part.data["text"] for one in messages if one.metadata.get("origin") == "human"
            for part in one.parts if part.type == "text"]  # fmt: skip


def calls(messages: list[MessageDraft]) -> list[dict[str, Any]]:
    found = []
    for part in (part for one in messages for part in one.parts if part.tool_call_id):
        own = part.data["resultProviderMetadata"]["backscroll"]
        call = {"id": part.tool_call_id, "name": part.type.removeprefix("tool-")}
        exit_code = {"exit": own["exit_code"]} if "exit_code" in own else {}
        failed = bool(exit_code.get("exit"))
        # An exit code other than 0 is a failure here; the reader's status says how it ended.
        call["status"] = "ok" if failed and own["status"] == "error" else own["status"]
        found.append(call | exit_code)
    return found


def test_just_the_sessions_expected() -> None:
    assert PROBLEMS == [] and len(DRAFTS) == EXPECTED["sessions_count"]
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]}
    roots = [one for one in DRAFTS.values() if one.lineage is None or one.lineage.kind == "fork"]
    assert len(roots) == EXPECTED["root_sessions"]
    own = [m for one in DRAFTS.values() for m in one.messages if m.inherited_from is None]
    assert tokens(own) == EXPECTED["tokens_sum"]
    assert cost(own) == pytest.approx(EXPECTED["cost_sum"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert (draft.agent, draft.title) == ("kilo", expected["title"])
    assert draft.workspace_root == expected["workspace"]
    assert draft.metadata["version"] == expected["version"]
    assert (draft.created_at, draft.updated_at) == (expected["created"], expected["updated"])
    assert draft.archived_at == expected["archived"]
    assert draft.metadata["backscroll"]["agent"] == expected["agent"]
    assert draft.model is not None and draft.model["model_id"] == expected["model"]
    models = {m.metadata["model"]["model_id"] for m in draft.messages if "model" in m.metadata}
    assert sorted(models) == expected["models"]
    placeholder = draft.title is not None and draft.title.startswith("New session - ")
    assert (draft.title_from == "placeholder") == placeholder


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_turns_and_what_a_revert_hides(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(shown(draft)) == expected["prompts"]
    assert prompts(shown(draft, hidden=True)) == expected["hidden_prompts"]
    answers = [one for one in shown(draft) if one.role == "assistant"]
    behind = [one for one in shown(draft, hidden=True) if one.role == "assistant"]
    assert len(answers) == expected["assistant_messages"]
    assert len(behind) == expected["hidden_assistant_messages"]
    first = next((one.source_id for one in shown(draft, hidden=True)), None)
    assert first == expected["revert"]
    assert sum("compaction" in one.metadata for one in draft.messages) == expected["compactions"]
    errors = [one for one in draft.messages if "error" in one.metadata.get("backscroll", {})]
    assert errors == expected["errors"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert calls(shown(draft)) == expected["tool_calls"]
    assert calls(shown(draft, hidden=True)) == expected["hidden_tool_calls"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tokens_once_and_cost(draft: SessionDraft, expected: dict[str, Any]) -> None:
    copies = [one for one in draft.messages if one.inherited_from is not None]
    own = [one for one in draft.messages if one.inherited_from is None]
    assert len(copies) == expected["copied_messages"]
    assert tokens(own) == expected["tokens"]
    assert tokens(draft.messages) == expected["tokens_with_copies"] == expected["rollup"]
    # A copy keeps its tokens and costs nothing.
    assert cost(copies) == 0
    assert cost(own) == pytest.approx(expected["cost_own"])


def test_lineage() -> None:
    by_label = {one["label"]: DRAFTS[one["id"]] for one in EXPECTED["sessions"]}
    fork, main = by_label["fork"].lineage, by_label["main"]
    assert fork is not None
    assert (fork.kind, fork.parent_source_id) == ("fork", main.source_id)
    assert fork.parent_message_source_id == main.messages[4].source_id
    for one in EXPECTED["sessions"]:
        lineage = DRAFTS[one["id"]].lineage
        if one["parent_id"] is not None:
            assert lineage is not None and lineage.kind == "subagent"
            assert lineage.parent_source_id == one["parent_id"]
            assert lineage.tool_call_id == "call_task_0_0_10_f2eb"
        elif one["label"] != "fork":
            assert lineage is None


def whole(part: PartDraft) -> dict[str, Any]:
    """A part's data without the copy of a diff, which ``kilo export`` leaves out."""
    own = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
    own.get("structured", {}).pop("diff", None)
    return part.data


def test_an_exported_file_is_kilos_and_reads_as_the_session() -> None:
    file = KILO / "export-main.json"
    target = classify(file, all_sources())
    assert isinstance(target, Target) and target.source.kind == "kilo"
    (draft,) = grown.read_all(KiloSource(), file)[0].values()
    same = DRAFTS[draft.source_id]
    assert (draft.agent, draft.title) == ("kilo", same.title)
    assert [[whole(p) for p in m.parts] for m in draft.messages] == [
        [whole(p) for p in m.parts] for m in same.messages
    ]
    assert OpencodeSource().recognise(file) is None
    assert KiloSource().recognise(OPENCODE / "exports" / "export-main.json") is None


def test_usual_places_follow_the_programs_variables(tmp_path: Path) -> None:
    roots = KiloSource().default_roots
    usual = tmp_path / ".local" / "share" / "kilo"
    assert roots({}, tmp_path) == [usual]
    assert roots({"XDG_DATA_HOME": "/data"}, tmp_path) == [Path("/data/kilo")]
    assert roots({"KILO_DB": "/else/my.db", "OPENCODE_DB": "/x.db"}, tmp_path) == [
        usual, Path("/else/my.db")
    ]  # fmt: skip
    assert roots({"KILO_DB": "kilo-next.db"}, tmp_path) == [usual]


def test_databases_are_told_apart_by_their_tables(tmp_path: Path) -> None:
    kilo, opencode = tmp_path / "one.sqlite", tmp_path / "other.sqlite"
    shutil.copyfile(KILO / "kilo.db", kilo)
    shutil.copyfile(OPENCODE / "opencode.db", opencode)
    for path, source in ((kilo, "kilo"), (opencode, "opencode")):
        target = classify(path, all_sources())
        assert isinstance(target, Target)
        assert (target.source.kind, target.root) == (source, path)


def test_a_channels_file_of_the_former_name_is_read_until_there_is_one_of_its_own(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "kilo"
    folder.mkdir()
    shutil.copyfile(KILO / "kilo.db", folder / "opencode-next.db")
    assert len(grown.read_all(KiloSource(), folder)[0]) == 7
    assert KiloSource().recognise(folder) == folder
    assert OpencodeSource().recognise(folder) is None
    rows = Rows(folder / "kilo-next.db")
    rows.session("ses_one")
    assert grown.read_all(KiloSource(), folder)[0].keys() == {"ses_one"}


def test_a_store_of_the_first_versions_is_read_without_its_missing_columns(tmp_path: Path) -> None:
    file = tmp_path / "kilo.db"
    shutil.copyfile(KILO / "kilo.db", file)
    connection = sqlite3.connect(file, isolation_level=None)
    tables = [row[0] for row in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'")]  # fmt: skip
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
    ).fetchall():
        connection.execute(f'DROP INDEX "{name}"')
    for name in set(tables) - set(OLD_TABLES):
        connection.execute(f"DROP TABLE {name}")
    for column in OLD_COLUMNS:
        connection.execute(f"ALTER TABLE session DROP COLUMN {column}")
    connection.close()
    assert KiloSource().recognise(file) == file and OpencodeSource().recognise(file) is None
    drafts, problems = grown.read_all(KiloSource(), file)
    assert problems == [] and drafts.keys() == DRAFTS.keys()
    for name, draft in drafts.items():
        same = DRAFTS[name]
        assert [m.metadata.get("usage") for m in draft.messages] == [
            m.metadata.get("usage") for m in same.messages
        ]
        assert (draft.title, draft.lineage) == (same.title, same.lineage)
        assert draft.model is not None and draft.model["model_id"] == "mock-1"


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    folder = tmp_path / "kilo"
    folder.mkdir()
    made = Rows(folder / "kilo.db")
    made.session("ses_one")
    made.message("ses_one", "user", text("go"))
    return made


def test_what_only_kilo_writes(rows: Rows) -> None:
    rows.message(
        "ses_one", "assistant",
        {"type": "step-start", "time": {"start": rows.now}},
        text("half an answ"), text("The answer was cut by the limit.", ignored=True),
        tool("call_x", name="frobnicate", status="error", input={"value": '{"pa'},
             error="no such tool", metadata={"approval": {"source": "global"}}),
        finish(input=5, output=2),
        time={"created": rows.now, "completed": rows.now}, finish="length",
    )  # fmt: skip
    (draft,) = grown.read_all(KiloSource(), rows.path.parent)[0].values()
    answer = draft.messages[1]
    ignored = [part for part in answer.parts if part.type == "text"][1]
    assert ignored.data["providerMetadata"]["backscroll"]["ignored"] is True
    (call,) = (part for part in answer.parts if part.tool_call_id)
    assert (call.data["state"], call.data["input"]) == ("output-error", {"value": '{"pa'})
    assert answer.metadata["usage"]["input"] == 5


def test_a_kill_leaves_the_call_running_in_the_wal(rows: Rows, tmp_path: Path) -> None:
    rows.connection.execute("PRAGMA journal_mode = WAL")
    rows.message("ses_one", "assistant", tool("call_x", status="running", input={"command": "x"}))
    folder = tmp_path / "killed" / "kilo"
    folder.mkdir(parents=True)
    for ending in ("", "-wal"):
        shutil.copyfile(f"{rows.path}{ending}", folder / f"kilo.db{ending}")
    before = grown.snapshot(folder)
    (draft,) = grown.read_all(KiloSource(), folder)[0].values()
    (call,) = draft.messages[1].parts
    assert call.tool_state == "input-available"
    assert draft.metadata["activity"]["state"] == "running"
    assert grown.snapshot(folder) == before


def test_a_text_that_is_filled_and_a_call_that_goes_on_are_followed(rows: Rows) -> None:
    source, root = KiloSource(), rows.path.parent
    rows.connection.execute("PRAGMA journal_mode = WAL")
    message = rows.message("ses_one", "assistant", text(""), tool("call_x", status="pending"))
    assert source.units_at(root, [str(rows.path)])
    (unit,) = source.units(root, [])
    follower = source.follower(root, unit)
    follower.read(unit)
    for status, data in (("running", {"input": {"command": "x"}}),
                         ("completed", {"input": {"command": "x"}, "output": "done"})):  # fmt: skip
        at = rows.tick()
        rows.connection.execute(
            "UPDATE part SET data = ?, time_updated = ? WHERE message_id = ?"
            " AND json_extract(data, '$.type') = 'tool'",
            (json.dumps(tool("call_x", status=status, **data)), at, message),
        )
        rows.tell("ses_one")
        (moved,) = source.units_at(root, [f"{rows.path}-wal"]) or []
        (draft,) = follower.read(moved).sessions
        whole = source.read(root, moved).sessions[0]
        assert draft.messages == whole.messages
    assert draft.messages[1].parts[-1].data["output"] == "done"


def test_both_programs_sessions_are_side_by_side(tmp_path: Path) -> None:
    library = open_database(tmp_path / "library.db", create=True)
    for source, root in ((KiloSource(), KILO), (OpencodeSource(), OPENCODE)):
        Sync(library, Settings(helpers=0)).run([Target(source, root)])
    found = library.connection.execute(
        "SELECT agent, count(*) FROM chat_sessions GROUP BY agent ORDER BY agent"
    ).fetchall()
    assert found == [("kilo", 7), ("opencode", 6)]


def test_no_secret_is_opened_or_asked_for(tmp_path: Path) -> None:
    target = FIRST["kilo"].copied(tmp_path)
    secrets = ("auth.json", "auth-v2.json", "account.json", "mcp-auth.json", "telemetry-id")
    for name in secrets:
        (tmp_path / "kilo" / name).write_text("secret")
    found = reading(target)
    assert "kilo.db" in found.names() and not found.names() & set(secrets)
    asked = " ".join(found.sql).lower()
    assert "from session" in asked
    assert not any(name in asked for name in ("account", "credential", "session_share", "secret"))
