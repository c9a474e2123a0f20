"""Sessions for Kimi Code: as it was seen to resume, read back the same, and where they go."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.errors import Refused
from store.exports.agent_file import NamedFile
from store.exports.files import prepare
from store.exports.kimi import kimi_file
from store.exports.reading import read_session
from store.exports.registry import FORMATS
from store.ids import derived_session_id
from store.queries.sessions import get
from store.resume.kimi import workspace_id
from store.resume.planning import write_file
from store.resume.registry import plan
from store.sources.base.drafts import SessionDraft
from store.sources.kimi import KimiSource
from tests.exports.kimi_checker import check, check_state, have_used_kimi
from tests.sources import grown
from tests.sources.grown import calls, only, synced, visible
from tests.sources.samples import DATA
from tests.store.talks import Talk

SAMPLE = DATA / "kimi" / "kimi-code" / "sessions"
PLAIN, FAILED, TERMINAL = (
    "session_7fe4d9bf-be15-4265-b542-de4474b32f72", "session_fc0f3c27-d871-4b91-bf63-4431c7899287",
    "session_d99c32f5-05ee-44b4-b444-fd97916372c5")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = synced(KimiSource(), SAMPLE, tmp_path_factory.mktemp("kimi") / "library.db")
    yield database
    database.close()


def made(db: Database, session: str) -> tuple[NamedFile, list[dict[str, Any]]]:
    reading = read_session(db, session, "context")
    file = kimi_file(reading, cwd="/home/mira/code/api")
    assert file.name == f"session_{reading.export_id}/agents/main/wire.jsonl"
    (state,) = file.beside.items()
    assert state[0] == f"{file.session_id}/state.json"
    assert check_state(state[1], file.session_id)["cwd"] == "/home/mira/code/api"
    return file, check("\n".join(file.lines), reading.export_id)


def back(file: NamedFile, folder: Path) -> SessionDraft:
    for name, text in {file.name: "\n".join(file.lines) + "\n", **file.beside}.items():
        (folder / "wd_api" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "wd_api" / name).write_text(text)
    return only(KimiSource(), folder)


@pytest.mark.parametrize("source_id", [PLAIN, FAILED, TERMINAL])
def test_read_back_it_says_the_same(library: Database, tmp_path: Path, source_id: str) -> None:
    before, _ = grown.read_all(KimiSource(), SAMPLE)
    file, _ = made(library, derived_session_id("kimi", source_id))
    found = back(file, tmp_path)
    was, now = (
        [(one.role, one.metadata.get("origin"), grown.words(one), one.metadata.get("compaction"))
         for one in visible(draft) if one.parts]
        for draft in (before[source_id], found)
    )
    if source_id == TERMINAL:
        # The model has the summary, and what came after it.
        assert now[0][3] is True and now[1:] == was[-len(now) + 1 :]
        assert (found.title, found.title_from) == ("Stock questions", "user")
    else:
        assert now == was
        assert [(each.tool_call_id, each.type, each.tool_state, each.data["input"])
                for each in calls(found.messages)] == [
            (each.tool_call_id, each.type, each.tool_state, each.data["input"])
            for each in calls(before[source_id].messages)]
    assert grown.tokens(found.messages) == dict.fromkeys(grown.BUCKETS, 0)
    assert "activity" not in found.metadata


def test_a_session_of_another_agent(talk: Talk, tmp_path: Path) -> None:
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", "find it")
    call = {"type": "tool-My Grep", "toolCallId": "c", "state": "output-available",
            "input": {"a": 1}, "output": "found"}  # fmt: skip
    again = {**call, "state": "output-error", "errorText": "no"}
    thought = {"type": "reasoning", "text": "hm"}
    words = [{"type": "text", "text": text} for text in ("I look", "There")]
    talk.message(session, "assistant", parts=[thought, words[0], call, again, words[1]])
    talk.message(session, "user", "and now?")
    file, records = made(talk.db, session)
    assert file.prompt is None
    kinds = [one["event"]["type"] for one in records if "event" in one]
    assert kinds == ["step.begin", "content.part", "content.part", "tool.call", "tool.call",
                     "tool.result", "tool.result", "step.end", "step.begin", "content.part",
                     "step.end"]  # fmt: skip
    draft = back(file, tmp_path)
    assert [(part.type, part.tool_call_id, part.tool_state) for part in calls(draft.messages)] == [
        ("tool-My_Grep", "c", "output-available"), ("tool-My_Grep", "c-2", "output-error")]
    assert [grown.words(one) for one in draft.messages] == [
        "find it", "I look", "There", "and now?"]


def test_a_folder_gets_the_whole_session(library: Database, tmp_path: Path) -> None:
    (tmp_path / "wd_api").mkdir()
    export = prepare(library, derived_session_id("kimi", PLAIN), FORMATS["kimi"])
    path = export.path_in(tmp_path / "wd_api")
    export.write(path)
    library.file.rollback()
    assert export.reading.remarks == []
    draft = only(KimiSource(), tmp_path)
    assert (draft.source_id, Path(draft.path)) == (export.reading.agent_id, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    original = [json.loads(line) for line in Path(
        SAMPLE, "wd_api_4693c81f301f", PLAIN, "agents/main/wire.jsonl").read_text().splitlines()]
    (profile,) = (row for row in original if row["type"] == "profile.bind")
    assert lines[1] == {**profile, "time": lines[1]["time"]}


def test_a_file_alone_says_what_it_needs(talk: Talk, tmp_path: Path) -> None:
    session = talk.session()
    talk.message(session, "user", "hello")
    talk.message(session, "assistant", "hi")
    talk.db.file.commit()
    export = prepare(talk.db, session, FORMATS["kimi"])
    export.write(tmp_path / "wire.jsonl")
    assert [path.name for path in tmp_path.glob("*wire*")] == ["wire.jsonl"]
    remarks = "\n".join(export.reading.remarks)
    assert "profile.bind" in remarks and "state.json" in remarks


@pytest.mark.parametrize(("folder", "name"), [
    ("/home/mira/code/api", "wd_api_4693c81f301f"), ("/home/mira/code/web", "wd_web_3c88d07c71f3"),
    ("/home/mira/My Code!/", "wd_my-code_"), ("/", "wd_workspace_"),
    ("/\u65e5\u672c", "wd_workspace_"),
])  # fmt: skip
def test_what_the_folder_of_a_workspace_is_called(folder: str, name: str) -> None:
    found = workspace_id(folder)
    assert found.startswith(name) and len(found.rpartition("_")[2]) == 12


def resumed(db: Database, session_id: str, home: Path, agent: str | None = None) -> Any:
    row = get(db, session_id)
    assert row is not None
    return plan(db, row, {}, home, agent)


def test_its_own_session_is_resumed_where_it_looks(tmp_path: Path) -> None:
    sessions = tmp_path / ".kimi-code" / "sessions"
    shutil.copytree(SAMPLE, sessions)
    library = synced(KimiSource(), sessions, tmp_path / "library.db")
    found = resumed(library, derived_session_id("kimi", PLAIN), tmp_path)
    assert found.file is None and found.commands[0].shown() == f"kimi --session {PLAIN}"
    library.close()
    shutil.move(sessions, tmp_path / "elsewhere")
    library = synced(KimiSource(), tmp_path / "elsewhere", tmp_path / "moved.db")
    found = resumed(library, derived_session_id("kimi", PLAIN), tmp_path)
    assert found.file is not None and '"profile.bind"' in found.file.lines[1]
    library.close()


def test_where_kimi_was_never_used_it_says_so(talk: Talk, tmp_path: Path) -> None:
    session = talk.session(workspace_root=str(tmp_path))
    talk.message(session, "user", "hello")
    with pytest.raises(Refused, match="Start it once"):
        resumed(talk.db, session, tmp_path, "kimi")


def test_any_session_is_written_with_the_newest_profile_and_resumed(
    talk: Talk, tmp_path: Path
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    have_used_kimi(home)
    session = talk.session(workspace_root=str(work))
    talk.message(session, "user", "hello")
    talk.message(session, "assistant", "hi")
    talk.message(session, "user", "go on")
    found = resumed(talk.db, session, home, "kimi")
    assert found.file is not None
    write_file(found)
    assert found.path == (home / ".kimi-code" / "sessions" / workspace_id(str(work))
                          / found.file.session_id / "agents" / "main" / "wire.jsonl")  # fmt: skip
    assert found.commands[0].shown() == f"kimi --session {found.file.session_id}"
    assert found.prompt is None and found.command == found.base
    records = [json.loads(line) for line in found.path.read_text().splitlines()]
    assert (records[1]["type"], records[1]["modelAlias"]) == ("profile.bind", "mock/one")
    check(found.path.read_text(), found.file.session_id.removeprefix("session_"))
    drafts, problems = grown.read_all(KimiSource(), home / ".kimi-code" / "sessions")
    draft = drafts[found.file.session_id]
    assert (draft.workspace_root, problems) == (str(work), [])
    assert [grown.words(one) for one in draft.messages] == ["hello", "hi", "go on"]
