"""Conversations for OpenHands: its own events unchanged, others' as it was seen to resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from store.conversation.event_ids import event_id_of, fits_in_event_id, message_of_event
from store.engine.database import Database
from store.exports.agent_file import NamedFile
from store.exports.files import prepare
from store.exports.openhands import openhands_file
from store.exports.reading import read_session
from store.exports.registry import FORMATS
from store.ids import derived_session_id
from store.queries.sessions import get
from store.resume.planning import ResumePlan, write_file
from store.resume.registry import plan
from store.sources.base.drafts import SessionDraft
from store.sources.openhands import OpenHandsSource
from tests.exports.openhands_checker import check, check_names
from tests.sources import grown
from tests.sources.grown import calls, only, synced
from tests.sources.samples import DATA
from tests.store.talks import Talk

SAMPLE = DATA / "openhands" / "conversations"
DENIED, TASK = "5a18b44234404ceb9c6607443727a314", "08fb19f625f34c2ab625d2117f3e864c"
NEW = ("id", "timestamp", "action_id")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    store = tmp_path_factory.mktemp("openhands") / "library.db"
    database = synced(OpenHandsSource(), SAMPLE, store)
    yield database
    database.close()


def made(db: Database, session: str) -> tuple[NamedFile, list[dict[str, Any]]]:
    file = openhands_file(read_session(db, session, "context"))
    assert file.name == f"{file.session_id}/base_state.json"
    events = check_names(file.beside)
    check("\n".join([*file.lines, *map(json.dumps, events)]), str(UUID(file.session_id)))
    return file, events


def back(file: NamedFile, folder: Path) -> SessionDraft:
    for name, text in {file.name: "\n".join(file.lines), **file.beside}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return only(OpenHandsSource(), folder)


@pytest.mark.parametrize("source_id", [DENIED, TASK])
def test_its_own_events_go_back_as_they_are(library: Database, source_id: str) -> None:
    _, events = made(library, derived_session_id("openhands", source_id))
    originals = [json.loads(path.read_text())
                 for path in sorted((SAMPLE / source_id / "events").glob("*.json"))]  # fmt: skip
    said = [one for one in originals if one["kind"] in (
        "MessageEvent", "ActionEvent", "ObservationEvent", "UserRejectObservation",
        "AgentErrorEvent")]  # fmt: skip

    def kept(event: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in event.items() if key not in NEW}

    rest = events[1:]
    assert [kept(one) for one in said if kept(one) in map(kept, rest)] == [
        kept(one) for one in said][: len(rest)]  # fmt: skip


def test_a_session_of_another_agent(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("Find it", workspace_root="/w")
    asked = talk.message(session, "user", "find it")
    call = {"type": "tool-Grep", "toolCallId": "c", "state": "output-available",
            "input": {"a": 1}, "output": "found"}  # fmt: skip
    again = {**call, "state": "output-error", "errorText": ""}
    thought = {"type": "reasoning", "text": "hm"}
    words = [{"type": "text", "text": text} for text in ("I look", "There")]
    used = {"input": 10, "output": 4, "reasoning": 2, "cache_read": 30, "cache_write": 5}
    said = talk.message(session, "assistant", parts=[thought, words[0], call, again, words[1]],
                        usage=used)  # fmt: skip
    talk.message(session, "user", "keep to the style", origin="meta")
    talk.message(session, "assistant", "yes")
    talk.message(session, "user", "and now?")
    file, events = made(talk.db, session)
    assert file.prompt == "and now?"
    assert [one["kind"] for one in events] == [
        "SystemPromptEvent", "MessageEvent", "ActionEvent", "ActionEvent", "ObservationEvent",
        "ObservationEvent", "MessageEvent", "MessageEvent", "MessageEvent"]
    first, second = events[2:4]
    assert first["reasoning_content"] == "hm" and first["thought"][0]["text"] == "I look"
    assert second["thought"] == [] and "reasoning_content" not in second
    assert first["llm_response_id"] == second["llm_response_id"]
    assert events[7]["source"] == "environment"
    draft = back(file, tmp_path / "out")
    assert [(part.tool_call_id, part.tool_state, part.data["input"])
            for part in calls(draft.messages)] == [
        ("c", "output-available", {"a": 1}), ("c-2", "output-error", {"a": 1})]
    assert [one.inherited_from for one in draft.messages[:3]] == [asked, said, said]
    assert draft.messages[1].metadata["usage"] == used
    aside = draft.messages[3]
    assert (aside.metadata["origin"], grown.words(aside)) == ("meta", "keep to the style")
    assert draft.lineage is None and draft.metadata.get("activity") is None


def test_what_goes_on_is_counted_by_its_own_model(talk: Talk, tmp_path: Path) -> None:
    """The program calls by its first model all that it uses: copies are counted apart."""
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two", usage={"input": 7, "output": 5})
    file, _ = made(talk.db, session)
    assert json.loads(file.lines[0])["stats"]["usage_to_metrics"].keys() == {"backscroll"}


def test_the_last_summary_comes_before_what_follows(talk: Talk, tmp_path: Path) -> None:
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two")
    talk.message(session, "system", parts=[{
        "type": "data-compaction", "data": {"summary": "They said two.", "auto": False}}],
        compaction=True)  # fmt: skip
    talk.message(session, "user", "three")
    talk.message(session, "assistant", "four")
    file, events = made(talk.db, session)
    assert [one["kind"] for one in events] == [
        "SystemPromptEvent", "Condensation", "MessageEvent", "MessageEvent"]
    draft = back(file, tmp_path / "out")
    assert draft.messages[0].metadata["compaction"] is True
    assert draft.messages[0].parts[0].data["data"]["summary"] == "They said two."


def test_ids_of_events_name_a_message() -> None:
    for name in ("msg_0123456789ab0123456789ABCD", "ü/\n", "\udcff"):
        found = event_id_of(name, 17)
        assert set(found) <= set("0123456789abcdef-")
        assert message_of_event(found) == name.encode("utf-8", "surrogatepass").decode(
            "utf-8", "replace")
    assert not fits_in_event_id("x" * 81) and not fits_in_event_id("")
    assert message_of_event("e3e95f39-a44e-448d-ba66-0b32cf81fc3e") is None


def resumed(db: Database, name: str, home: Path, **environment: str) -> ResumePlan:
    row = get(db, name)
    assert row is not None
    return plan(db, row, environment, home, "openhands")


def test_it_is_resumed_where_it_looks_and_else_written(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    conversations = home / ".openhands" / "conversations"
    shutil.copytree(SAMPLE, conversations)
    library = synced(OpenHandsSource(), conversations, tmp_path / "library.db")
    with library.file:
        library.connection.execute("UPDATE chat_sessions SET workspace_root = ?", (str(work),))
    name = derived_session_id("openhands", DENIED)
    found = resumed(library, name, home)
    assert found.file is None
    assert found.commands[0].shown() == f"openhands --resume {UUID(DENIED)}"
    moved = {"OPENHANDS_PERSISTENCE_DIR": str(tmp_path / "moved")}
    found = resumed(library, name, home, **moved)
    assert isinstance(found.file, NamedFile)
    assert found.path == tmp_path / "moved/conversations" / found.file.name
    write_file(found)
    assert len(list((found.path.parent / "events").iterdir())) == len(found.file.beside)
    other = {"OPENHANDS_CONVERSATIONS_DIR": str(tmp_path / "other"), **moved}
    assert resumed(library, name, home, **other).path.parent.parent == tmp_path / "other"
    library.close()


def test_its_own_system_prompt_is_taken_where_it_has_one(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    session = talk.session(workspace_root=str(tmp_path / "work"))
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two")
    talk.message(session, "user", "three")
    home = tmp_path / "home"

    def prompt() -> str:
        found = resumed(talk.db, session, home)
        assert isinstance(found.file, NamedFile)
        assert found.commands[0].shown() == (
            f"openhands --resume {UUID(found.file.session_id)} --task=three")
        return str(check_names(found.file.beside)[0]["system_prompt"]["text"])

    assert prompt().startswith("You are OpenHands agent")
    folder = home / ".openhands/conversations" / DENIED
    shutil.copytree(SAMPLE / DENIED, folder)
    (home / ".openhands/agent_settings.json").write_text("{")
    assert prompt() == "(system prompt removed)"
    for path in (folder / "events").glob("event-00000-*"):
        path.write_text("{")
    assert prompt().startswith("You are OpenHands agent")


def test_given_a_folder_all_files_are_written(library: Database, tmp_path: Path) -> None:
    export = prepare(library, derived_session_id("openhands", TASK), FORMATS["openhands"])
    export.write(export.path_in(tmp_path))
    assert only(OpenHandsSource(), tmp_path).messages
    library.file.rollback()
    export = prepare(library, derived_session_id("openhands", TASK), FORMATS["openhands"])
    export.write(tmp_path / "alone.json")
    (remark,) = export.reading.remarks
    library.file.rollback()
    assert "and 4 other files" in remark
