"""Sessions for Continue: its own items unchanged, those of others as it was seen to resume."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.errors import Refused
from store.exports.agent_file import NamedFile
from store.exports.continue_dev import continue_file
from store.exports.reading import read_session
from store.ids import derived_session_id
from store.queries.sessions import get
from store.resume.continue_dev import Continue
from store.resume.registry import plan
from store.sources.base.drafts import SessionDraft
from store.sources.continue_dev import ContinueSource
from store.system.programs import CommandLine
from tests.exports.continue_checker import check
from tests.sources.grown import calls, only, read_all, synced
from tests.sources.samples import DATA
from tests.store.talks import Talk

SAMPLE = DATA / "continue" / "sessions"
TOOLS, COMPACTED = (
    "2d051e31-d3ab-4857-ab48-047b44a9a8b6", "bb9cb2c5-6973-444b-b3e1-5d4997fc7121")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    store = tmp_path_factory.mktemp("continue") / "library.db"
    database = synced(ContinueSource(), SAMPLE, store)
    yield database
    database.close()


def made(db: Database, session: str) -> tuple[NamedFile, list[dict[str, Any]]]:
    file = continue_file(read_session(db, session, "context"))
    assert file.name == f"{file.session_id}.json"
    return file, check("\n".join(file.lines), file.session_id)


def back(file: NamedFile, folder: Path) -> SessionDraft:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file.name).write_text("\n".join(file.lines) + "\n")
    return only(ContinueSource(), folder)


def test_its_own_session_goes_back_item_for_item(library: Database) -> None:
    _, history = made(library, derived_session_id("continue", TOOLS))
    original = json.loads((SAMPLE / f"{TOOLS}.json").read_text())["history"]
    assert [{key: value for key, value in item.items() if key != "backscroll"}
            for item in history] == original  # fmt: skip


def test_what_a_compaction_left_is_its_summary(library: Database, tmp_path: Path) -> None:
    file, history = made(library, derived_session_id("continue", COMPACTED))
    assert history[0]["conversationSummary"] == "Wrote it."
    assert back(file, tmp_path / "out").messages[0].metadata["compaction"] is True


def test_a_session_of_another_agent(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("Find it", workspace_root="/w")
    asked = talk.message(session, "user", "find it")
    call = {"type": "tool-Grep", "toolCallId": "c", "state": "output-available",
            "input": {"a": 1}, "output": "found"}  # fmt: skip
    again = {**call, "state": "output-error", "errorText": "no"}
    thought = {"type": "reasoning", "text": "hm"}
    words = [{"type": "text", "text": text} for text in ("I look", "There")]
    used = {"input": 10, "output": 4, "reasoning": 2, "cache_read": 30, "cache_write": 5}
    talk.message(session, "assistant", parts=[thought, words[0], call, again, words[1]],
                 usage=used)  # fmt: skip
    talk.message(session, "user", "keep to the style", origin="meta")
    talk.message(session, "assistant", "yes")
    talk.message(session, "user", "and now?")
    file, history = made(talk.db, session)
    assert file.prompt == "and now?" and json.loads("".join(file.lines))["title"] == "Find it"
    assert [item["message"]["role"] for item in history] == [
        "user", "assistant", "assistant", "user", "assistant"]
    assert [state["status"] for state in history[1]["toolCallStates"]] == ["done", "errored"]
    assert history[3]["message"]["content"] == (
        "<not_from_user>\nkeep to the style\n</not_from_user>")
    draft = back(file, tmp_path / "out")
    assert [(part.tool_call_id, part.tool_state) for part in calls(draft.messages)] == [
        ("c", "output-available"), ("c-2", "output-error")]
    first, answer, _, aside, _ = draft.messages
    row = talk.db.connection.execute(
        "SELECT created_at FROM chat_messages WHERE id = ?", (asked,)).fetchone()
    assert (first.inherited_from, first.created_at) == (asked, row[0])
    assert answer.metadata["usage"] == used
    assert (aside.metadata["origin"], aside.parts[0].data["text"]) == ("meta", "keep to the style")
    assert draft.lineage is None and draft.metadata.get("activity") is None


def test_only_the_newest_session_is_resumed_in_its_own_file(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    sessions = home / ".continue" / "sessions"
    sessions.mkdir(parents=True)
    for second, name in enumerate((TOOLS, COMPACTED)):
        data = json.loads((SAMPLE / f"{name}.json").read_text())
        path = sessions / f"{name}.json"
        path.write_text(json.dumps(data | {"workspaceDirectory": str(work)}))
        os.utime(path, (1_790_000_000 + second, 1_790_000_000 + second))
    (sessions / "sessions.json").write_text("[]")
    library = synced(ContinueSource(), sessions, tmp_path / "library.db")

    def shown(name: str, environment: dict[str, str]) -> str:
        row = get(library, derived_session_id("continue", name))
        assert row is not None
        found = plan(library, row, environment, home)
        assert (found.file is None) == (not environment)
        return found.commands[0].shown().replace(found.session_id, "ID")

    assert shown(COMPACTED, {}) == "cn --resume"
    assert shown(TOOLS, {}) == "cn --fork ID"
    assert shown(TOOLS, {"CONTINUE_GLOBAL_DIR": str(tmp_path / "other")}) == "cn --fork ID"
    library.close()


def test_prompts_that_it_would_carry_out_itself() -> None:
    command = CommandLine.of("cn")
    assert Continue().say(command, "ls").shown() == "cn -- 'ls '"
    assert Continue().say(command, "-p").shown() == "cn -- -p"
    for prompt in ("/exit", " !rm -rf x"):
        with pytest.raises(Refused):
            Continue().say(command, prompt)


def test_what_goes_on_is_read_behind_the_copies(talk: Talk, tmp_path: Path) -> None:
    """A copy that the program made keeps the notes, and its own turns have none."""
    session = talk.session(workspace_root="/w")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two", usage={"input": 7, "output": 5})
    file, _ = made(talk.db, session)
    folder = tmp_path / "out"
    back(file, folder)
    copied = json.loads("".join(file.lines))
    copied["sessionId"] = "00000000-0000-4000-8000-000000000000"
    copied["history"] += [
        {"message": {"role": "user", "content": "three"}, "contextItems": []},
        {"message": {"role": "assistant", "content": "four", "usage": {
            "prompt_tokens": 3, "completion_tokens": 2, "model": "m"}}, "contextItems": []},
    ]  # fmt: skip
    copied["usage"] = {"totalCost": 0, "promptTokens": 3, "completionTokens": 2}
    (folder / f"{copied['sessionId']}.json").write_text(json.dumps(copied))
    drafts, problems = read_all(ContinueSource(), folder)
    draft = drafts[copied["sessionId"]]
    assert problems == [] and draft.lineage is not None
    assert draft.lineage.parent_source_id == file.session_id
    assert [one.inherited_from is not None for one in draft.messages] == [True, True, False, False]
