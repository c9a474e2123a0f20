"""Sessions for Cline's CLI: as it was seen to resume, read back the same, and where they go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.exports.agent_file import NamedFile
from store.exports.cline import Model, cline_file
from store.exports.files import prepare
from store.exports.reading import read_session
from store.exports.registry import FORMATS
from store.queries.sessions import get
from store.resume.planning import write_file
from store.resume.registry import plan
from store.sources.base.drafts import SessionDraft
from store.sources.cline import ClineSource
from tests.exports.cline_checker import check, check_manifest
from tests.sources import grown
from tests.sources.grown import calls, only
from tests.sources.samples import DATA
from tests.store.talks import Talk

SAMPLE = DATA / "cline" / "sdk"


def made(db: Database, session: str, **more: Any) -> tuple[NamedFile, list[dict[str, Any]]]:
    reading = read_session(db, session, "context")
    file = cline_file(reading, **more)
    assert file.name == f"{file.session_id}/{file.session_id}.messages.json"
    ((name, manifest),) = file.beside.items()
    assert name == f"{file.session_id}/{file.session_id}.json"
    check_manifest(manifest, file.session_id)
    (line,) = file.lines
    return file, check(line, reading.export_id)


def back(file: NamedFile, folder: Path) -> SessionDraft:
    for name, text in {file.name: file.lines[0], **file.beside}.items():
        (folder / "sessions" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sessions" / name).write_text(text)
    return only(ClineSource(), folder)


CALL = {"type": "tool-My Grep", "toolCallId": "c", "state": "output-available",
        "input": {"a": 1}, "output": "found"}  # fmt: skip


def test_a_session_of_another_agent(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("Find it", workspace_root="/w")
    talk.message(session, "user", "find <b>it</b>")
    again = {**CALL, "state": "output-error", "errorText": "no"}
    words = [{"type": "text", "text": text} for text in ("I look", "There")]
    talk.message(session, "assistant", parts=[words[0], CALL, again, words[1]])
    talk.message(session, "user", "told by a hook", origin="meta")
    talk.message(session, "user", "and now?")
    file, messages = made(talk.db, session)
    assert messages[0]["content"] == [
        {"type": "text", "text": '<user_input mode="act">find <b>it</b></user_input>'}]
    assert [one["role"] for one in messages] == [
        "user", "assistant", "user", "user", "assistant", "user", "user"]
    assert [one["content"][0].get("is_error") for one in messages[2:4]] == [None, True]
    draft = back(file, tmp_path)
    assert (draft.title, draft.workspace_root) == ("Find it", "/w")
    assert [(part.type, part.tool_call_id, part.tool_state) for part in calls(draft.messages)] == [
        ("tool-My_Grep", "c", "output-available"), ("tool-My_Grep", "c-2", "output-error")]
    assert [(one.role, one.metadata.get("origin"), grown.words(one)) for one in draft.messages] == [
        ("user", "human", "find <b>it</b>"), ("assistant", None, "I look"),
        ("assistant", None, "There"), ("user", "meta", "told by a hook"),
        ("user", "human", "and now?")]  # fmt: skip
    assert file.prompt is None and "activity" not in draft.metadata


@pytest.mark.parametrize("output", [
    '{"text": "inner", "success": false}', '[{"query": "a", "result": "b", "success": false}]',
    "This tool call was rejected by the user and more", "", "plain",
])  # fmt: skip
@pytest.mark.parametrize("failed", [False, True])
def test_no_result_is_misread(talk: Talk, tmp_path: Path, output: str, failed: bool) -> None:
    session = talk.session()
    ended = {"state": "output-error", "errorText": output} if failed else {"output": output}
    talk.message(session, "assistant", parts=[{**CALL, **ended}])
    file, _ = made(talk.db, session)
    (part,) = calls(back(file, tmp_path).messages)
    assert part.tool_state == ("output-error" if failed else "output-available")
    assert part.data["errorText" if failed else "output"] == output


def test_only_signed_thoughts_are_sent(talk: Talk) -> None:
    session = talk.session()
    signed = {"type": "reasoning", "text": "mine",
              "providerMetadata": {"cline": {"signature": "S"}}}  # fmt: skip
    talk.message(session, "user", "hello")
    talk.message(session, "assistant", parts=[{"type": "reasoning", "text": "other"}, signed,
                                              {"type": "text", "text": "hi"}])  # fmt: skip
    talk.message(session, "assistant", parts=[{"type": "reasoning", "text": "alone"}])
    _, messages = made(talk.db, session)
    assert [one["content"] for one in messages[1:]] == [
        [{"type": "thinking", "thinking": "mine", "signature": "S"},
         {"type": "text", "text": "hi"}]]


def test_a_folder_gets_the_whole_session(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("Hello", workspace_root="/w")
    talk.message(session, "user", "hello")
    talk.message(session, "assistant", "hi")
    talk.db.file.commit()
    folder = tmp_path / "sessions"
    folder.mkdir()
    export = prepare(talk.db, session, FORMATS["cline"])
    path = export.path_in(folder)
    export.write(path)
    assert export.reading.remarks == []
    draft = only(ClineSource(), tmp_path)
    assert (draft.source_id, Path(draft.path), draft.title) == (
        export.reading.agent_id, path, "Hello")


def test_it_goes_on_with_the_model_that_cline_was_used_with(talk: Talk, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    shutil.copytree(SAMPLE, home / ".cline" / "data")
    session = talk.session(workspace_root=str(work))
    talk.message(session, "user", "hello")
    talk.message(session, "assistant", "hi")
    row = get(talk.db, session)
    assert row is not None
    found = plan(talk.db, row, {}, home, "cline")
    assert found.file is not None
    write_file(found)
    name = found.file.session_id
    sessions = home / ".cline" / "data" / "sessions"
    assert found.path == sessions / name / f"{name}.messages.json"
    assert found.commands[0].shown() == f"cline -i --id {name}"
    manifest = json.loads((sessions / name / f"{name}.json").read_text())
    newest = max(each.name for each in (SAMPLE / "sessions").iterdir())
    last = json.loads((SAMPLE / "sessions" / newest / f"{newest}.json").read_text())
    assert (manifest["provider"], manifest["model"]) == (last["provider"], last["model"])
    assert manifest["messages_path"] == str(found.path) and manifest["cwd"] == str(work)
    drafts, problems = grown.read_all(ClineSource(), home / ".cline" / "data")
    draft = drafts[name]
    assert problems == [] and [grown.words(one) for one in draft.messages] == ["hello", "hi"]
    moved = plan(talk.db, row, {"CLINE_SESSION_DATA_DIR": str(tmp_path / "x")}, home, "cline")
    assert moved.path.parent.parent == tmp_path / "x"


def test_a_model_may_be_named(talk: Talk) -> None:
    session = talk.session()
    talk.message(session, "user", "hello")
    file, _ = made(talk.db, session, model=Model("anthropic", "claude-x"), sessions="/s")
    (text,) = file.beside.values()
    manifest = json.loads(text)
    assert (manifest["provider"], manifest["model"]) == ("anthropic", "claude-x")
    assert manifest["messages_path"] == f"/s/{file.name}"
