"""What Gemini CLI is handed: checked against the recipe, and read back by our own source."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.exports.agent_file import NamedFile
from store.exports.gemini.session_file import gemini_file
from store.exports.reading import read_session
from store.exports.registry import FORMATS, file_name
from store.queries.lineage import family
from store.queries.sessions import resolve
from store.resume.gemini import plan
from store.resume.planning import note_exported, write_file
from store.sources.gemini import GeminiSource
from store.sync.engine import Sync
from store.sync.targets import Target
from store.verbs.rewind import rewind
from tests.exports.exporting import exported, session_id
from tests.exports.gemini_checker import check, check_name
from tests.sources.grown import calls, prompts, read_all, visible, words
from tests.store.talks import Talk

DATA = Path(__file__).parent.parent / "data" / "gemini"
PLAIN = "7ab9a0fa-e0e2-404e-91c5-01857b62a79a"
REWOUND = "65f4571c-1aa5-4378-8169-843bba836e7a"
RESUMED = "bfff4525-0a48-4ea8-bd72-074fcc03a709"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    shutil.copytree(DATA, home / ".gemini")
    project = tmp_path / "project"
    project.mkdir()
    (home / ".gemini/tmp/project/.project_root").write_text(str(project))
    return home


@pytest.fixture
def library(tmp_path: Path, home: Path) -> Database:
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(GeminiSource(), home / ".gemini")])
    return database


def made(db: Database, session: str) -> tuple[NamedFile, list[dict[str, Any]]]:
    file = gemini_file(read_session(db, session, "context"))
    check_name(file.name, file.session_id)
    return file, check("\n".join(file.lines), file.session_id)


def without_ids(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "id"}


def test_its_own_session_goes_back_record_for_record(library: Database) -> None:
    _, records = made(library, session_id(library, PLAIN))
    lines = (DATA / f"tmp/project/chats/session-2026-11-27T22-38-{PLAIN[:8]}.jsonl").read_text()
    original: dict[str, dict[str, Any]] = {}
    for line in map(json.loads, lines.splitlines()):
        for row in line.get("$set", {}).get("messages", [line]):
            if "type" in row and "functionResponse" not in json.dumps(row["content"]):
                original[row["id"]] = row
    assert [without_ids(record) for record in records] == [
        without_ids(row) for row in original.values()
    ]


def test_rewound_turns_stay_out(library: Database) -> None:
    _, records = made(library, session_id(library, REWOUND))
    assert [r["content"] for r in records if r["type"] == "user"] == [
        [{"text": "MOCK:hello first question"}],
        [{"text": "MOCK:uni another second question"}],
    ]
    assert "hello2" not in json.dumps(records)


@pytest.mark.parametrize("source_id", [PLAIN, REWOUND, RESUMED])
def test_read_back_it_says_the_same(library: Database, tmp_path: Path, source_id: str) -> None:
    before, _ = read_all(GeminiSource(), DATA)
    file, _ = made(library, session_id(library, source_id))
    place = tmp_path / "back" / "chats" / file.name
    place.parent.mkdir(parents=True)
    place.write_text("\n".join(file.lines) + "\n")
    after, problems = read_all(GeminiSource(), place)
    assert problems == []
    was, now = visible(before[source_id]), after[file.session_id].messages
    assert [(m.role, words(m)) for m in now] == [(m.role, words(m)) for m in was]
    assert prompts(now) == prompts(was)
    assert [(p.type, p.tool_call_id, p.tool_state, p.data.get("output")) for p in calls(now)] == [
        (p.type, p.tool_call_id, p.tool_state, p.data.get("output")) for p in calls(was)
    ]
    assert [m.metadata.get("usage") for m in now] == [m.metadata.get("usage") for m in was]


def test_another_agents_session(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("From elsewhere", workspace_root="/home/mira/code")
    talk.message(session, "user", "one")
    called = talk.call(session, "Read", input=5, output=2)
    talk.message(session, "assistant", "done", usage={
        "input": 7, "output": 1, "reasoning": 2, "cache_read": 3, "cache_write": 4,
    })  # fmt: skip
    file, records = made(talk.db, session)
    assert [record["type"] for record in records] == ["user", "gemini", "gemini"]
    assert records[1]["id"] == called
    assert records[2]["tokens"] == {"input": 14, "output": 1, "cached": 3, "thoughts": 2,
                                    "tool": 0, "total": 17}  # fmt: skip
    assert json.loads(file.lines[-1]) == {"$set": {"summary": "From elsewhere"}}


def test_a_prompt_without_an_answer_is_handed_over(talk: Talk) -> None:
    session = talk.session("x", workspace_root="/w")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two")
    talk.message(session, "user", "and then?")
    file, records = made(talk.db, session)
    assert file.prompt == "and then?"
    assert [record["type"] for record in records] == ["user", "gemini"]


def test_a_forked_prompt_is_said_first(talk: Talk, home: Path) -> None:
    session = talk.session("x", workspace_root=str(home.parent / "project"))
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two")
    talk.message(session, "user", "and then?")
    found = plan(talk.db, resolve(talk.db, session), {}, home)
    assert found.file is not None
    assert found.command == (
        "gemini", "--resume", found.file.session_id, "--prompt-interactive=and then?"
    )  # fmt: skip


def test_by_the_registry(library: Database) -> None:
    text = exported(library, PLAIN, "gemini", "context")
    check(text, json.loads(text.splitlines()[0])["sessionId"])


def test_an_unchanged_session_is_resumed_as_it_is(library: Database, home: Path) -> None:
    found = plan(library, resolve(library, PLAIN), {}, home)
    assert found.command == ("gemini", "--resume", PLAIN)
    assert found.file is None and found.path.name.endswith("7ab9a0fa.jsonl")


def test_a_rewound_session_goes_on_in_a_new_file(library: Database, home: Path) -> None:
    row = resolve(library, PLAIN)
    first = library.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? AND role = 'assistant' "
        "ORDER BY created_at LIMIT 1", (row.id,)
    ).fetchone()[0]  # fmt: skip
    in_transaction(library, rewind, row.id, first, now=9_999_999_999_999)
    library.connection.execute(
        "UPDATE chat_sessions SET workspace_root = ?", (str(home.parent / "project"),)
    )
    found = plan(library, resolve(library, row.id), {}, home)
    assert found.file is not None
    assert found.path.parent == home / ".gemini/tmp/project/chats"
    assert found.command == ("gemini", "--resume", found.file.session_id)
    write_file(found)
    check(found.path.read_text(), found.file.session_id)
    assert found.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_file(found)
    in_transaction(library, note_exported, row.id, found)
    Sync(library).run([Target(GeminiSource(), home / ".gemini")])
    child = resolve(library, found.file.session_id).id
    assert (child, "continuation", 1) in [(n.id, n.kind, n.depth) for n in family(library, row.id)]
    copies = library.connection.execute(
        "SELECT count(*) FROM chat_messages WHERE session_id = ? AND "
        "json_extract(metadata_json, '$.inherited_from') IS NOT NULL", (child,)
    ).fetchone()[0]  # fmt: skip
    assert copies == 2  # The context keeps the id that every session gives it.


def test_gemini_is_given_the_file_where_it_never_ran(
    talk: Talk, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it makes of the file is linked to the session, though its id is its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    session = talk.session("x", workspace_root=str(tmp_path))
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two", usage={"input": 3, "output": 4})
    found = plan(talk.db, resolve(talk.db, session), {}, tmp_path)
    assert found.command == ("gemini", f"--session-file={found.path}")
    assert found.path.parent == tmp_path / "cache" / "backscroll" / "exports"
    write_file(found)
    note_exported(talk.db, session, found)
    # As `gemini --session-file` does: a notice, a new id, and the records as they are.
    header, *records = map(json.loads, found.path.read_text().splitlines())
    notice = {"id": "import-1", "type": "info", "timestamp": header["startTime"],
              "content": f"Imported session from {found.path}"}  # fmt: skip
    header["sessionId"] = "99999999-2222-4333-8444-555555555555"
    made = home / ".gemini/tmp/project/chats/session-1790000000000-99999999.jsonl"
    records = [one for one in records if "$set" not in one]
    made.write_text("".join(json.dumps(line) + "\n" for line in (header, notice, *records)))
    Sync(talk.db).run([Target(GeminiSource(), home / ".gemini")])
    child = resolve(talk.db, header["sessionId"]).id
    assert (child, "continuation", 1) in [(n.id, n.kind, n.depth) for n in family(talk.db, session)]
    copies = talk.db.connection.execute(
        "SELECT count(*) FROM chat_messages WHERE session_id = ? AND "
        "json_extract(metadata_json, '$.inherited_from') IS NOT NULL", (child,)
    ).fetchone()[0]  # fmt: skip
    assert copies == 2


def test_a_folder_gets_the_name_that_gemini_looks_for(library: Database) -> None:
    reading = read_session(library, session_id(library, PLAIN), "context")
    name = file_name(FORMATS["gemini"], reading.export_id, reading.session)
    check_name(name, reading.export_id)
    assert name.startswith("session-2026-11-27T22-38-")


def test_a_compaction_goes_out_and_comes_back(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("x", workspace_root="/w")
    talk.message(session, "user", "dropped")
    talk.message(session, "assistant", "gone")
    data = {"summary": "All so far.", "tail_start_id": None, "auto": True}
    talk.message(session, "system", parts=[{"type": "data-compaction", "data": data}])
    talk.message(session, "user", "next")
    talk.message(session, "assistant", "said")
    file, records = made(talk.db, session)
    assert [record["type"] for record in records] == ["user", "user", "gemini"]
    place = tmp_path / "back" / "chats" / file.name
    place.parent.mkdir(parents=True)
    place.write_text("\n".join(file.lines))
    draft = read_all(GeminiSource(), place)[0][file.session_id]
    assert draft.messages[0].metadata == {"compaction": True}
    assert "All so far." in draft.messages[0].parts[0].data["data"]["summary"]
    assert prompts(draft.messages) == ["next"]
