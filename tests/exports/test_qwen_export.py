"""Sessions for Qwen Code: its own records unchanged, those of others as it was seen to resume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.exports.agent_file import NamedFile
from store.exports.qwen.session_file import qwen_file
from store.exports.reading import read_session
from store.ids import derived_session_id
from store.queries.sessions import get
from store.resume.registry import plan
from store.sources.base.drafts import SessionDraft
from store.sources.qwen import QwenSource
from tests.exports.qwen_checker import check
from tests.sources import grown
from tests.sources.grown import calls, only, read_all, synced, visible
from tests.sources.samples import DATA
from tests.store.talks import Talk

SAMPLE = DATA / "qwen" / "qwen"
PLAIN, FORK, TERMINAL, CALLER = (
    "2fbaa13c-efdf-458a-ad45-24aa7db80153", "73ed7a10-74de-46f3-ab99-730034d95613",
    "288b23f6-5a06-46d1-8218-96a0e39cd6cf", "ee0d83c4-f37e-4436-adac-2f70c8cb737e")
AGENT = f"{CALLER}/general-purpose-call_agent_0_0_9_f001"
SAID = ("user", "assistant", "tool_result")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = synced(QwenSource(), SAMPLE, tmp_path_factory.mktemp("qwen") / "library.db")
    yield database
    database.close()


def made(db: Database, session: str) -> tuple[NamedFile, list[dict[str, Any]]]:
    file = qwen_file(read_session(db, session, "context"))
    assert file.name == f"{file.session_id}.jsonl"
    return file, check("\n".join(file.lines), file.session_id)


def back(file: NamedFile, folder: Path) -> SessionDraft:
    place = folder / "projects/-w/chats" / file.name
    place.parent.mkdir(parents=True)
    place.write_text("\n".join(file.lines) + "\n")
    return only(QwenSource(), folder)


def originals(source_id: str) -> list[dict[str, Any]]:
    (path,) = SAMPLE.glob(f"projects/*/chats/{source_id}.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("source_id", [PLAIN, FORK])
def test_its_own_session_goes_back_record_for_record(library: Database, source_id: str) -> None:
    _, records = made(library, derived_session_id("qwen", source_id))
    rows = [row for row in originals(source_id) if row["type"] in SAID]
    for key in ("uuid", "timestamp", "type", "message", "usageMetadata", "toolCallResult"):
        assert [one.get(key) for one in records] == [row.get(key) for row in rows]
    assert not any("forkedFrom" in one for one in records)


@pytest.mark.parametrize("source_id", [PLAIN, CALLER, AGENT])
def test_read_back_it_says_the_same(library: Database, tmp_path: Path, source_id: str) -> None:
    before, _ = read_all(QwenSource(), SAMPLE)
    file, _ = made(library, derived_session_id("qwen", source_id))
    was, now = (
        [(one.role, one.metadata.get("origin"), grown.words(one))
         for one in visible(draft) if one.parts]
        for draft in (before[source_id], back(file, tmp_path))
    )
    assert now == was


def test_what_a_rewind_hid_and_a_compaction_replaced_is_not_sent(
    library: Database, tmp_path: Path
) -> None:
    file, records = made(library, derived_session_id("qwen", TERMINAL))
    texts = [part.get("text", "") for one in records for part in one["message"]["parts"]]
    assert not any("second question" in text for text in texts)
    assert "<state_snapshot>" in texts[0] and texts[1] == "MOCK:hello2 after compress"
    draft = back(file, tmp_path)
    assert draft.messages[0].metadata["compaction"] is True
    assert (draft.title, draft.title_from) == ("Stock questions", "user")
    assert draft.metadata.get("activity") is None


def test_a_session_of_another_agent(talk: Talk, tmp_path: Path) -> None:
    session = talk.session(workspace_root="/w")
    asked = talk.message(session, "user", "find it")
    call = {"type": "tool-Grep", "toolCallId": "c", "state": "output-available",
            "input": {"a": 1}, "output": "found"}  # fmt: skip
    again = {**call, "state": "output-error", "errorText": "no"}
    thought = {"type": "reasoning", "text": "hm"}
    words = [{"type": "text", "text": text} for text in ("I look", "There")]
    talk.message(session, "assistant", parts=[thought, words[0], call, again, words[1]])
    talk.message(session, "user", "and now?")
    file, records = made(talk.db, session)
    assert file.prompt == "and now?"
    assert [one["type"] for one in records] == [
        "user", "assistant", "tool_result", "tool_result", "assistant"]
    assert records[1]["message"]["parts"][:2] == [
        {"text": "hm", "thought": True}, {"text": "I look"}]
    assert [one["toolCallResult"]["status"] for one in records[2:4]] == ["success", "error"]
    draft = back(file, tmp_path)
    assert [(part.tool_call_id, part.tool_state) for part in calls(draft.messages)] == [
        ("c", "output-available"), ("c-2", "output-error")]
    assert draft.messages[0].inherited_from == asked
    assert draft.lineage is None and draft.metadata.get("activity") is None


def resumed(db: Database, source_id: str, home: Path, environment: dict[str, str]) -> Any:
    row = get(db, derived_session_id("qwen", source_id))
    assert row is not None
    return plan(db, row, environment, home)


def test_its_own_session_is_resumed_where_it_looks_and_else_written(tmp_path: Path) -> None:
    work, home = tmp_path / "work.v2", tmp_path / "home"
    work.mkdir()
    slug = "".join(one if one.isascii() and one.isalnum() else "-" for one in str(work))
    chats = home / ".qwen/projects" / slug / "chats"
    chats.mkdir(parents=True)
    rows = [row | {"cwd": str(work)} for row in originals(PLAIN)]
    (chats / f"{PLAIN}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    library = synced(QwenSource(), home / ".qwen", tmp_path / "library.db")
    found = resumed(library, PLAIN, home, {})
    assert (found.file, found.path) == (None, chats / f"{PLAIN}.jsonl")
    assert found.commands[0].shown() == f"qwen --resume {PLAIN}"
    elsewhere = {"QWEN_HOME": str(tmp_path / "a"), "QWEN_RUNTIME_DIR": str(tmp_path / "b")}
    found = resumed(library, PLAIN, home, elsewhere)
    assert found.file is not None
    assert found.path == tmp_path / "b/projects" / slug / "chats" / found.file.name
    assert found.commands[0].shown() == f"qwen --resume {found.file.session_id}"
    assert all(json.loads(line)["cwd"] == str(work) for line in found.file.lines)
    library.close()
