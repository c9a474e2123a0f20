"""What pi is handed: checked against the recipe, and read back by our own source."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.exports.agent_file import NamedFile
from store.exports.pi.session_file import pi_file
from store.exports.reading import read_session
from store.exports.registry import FORMATS, file_name
from store.queries.lineage import family
from store.queries.sessions import resolve
from store.resume.pi import plan
from store.resume.planning import note_exported, write_file
from store.sources.base.drafts import SessionDraft
from store.sources.pi import PiSource
from store.sync.engine import Sync
from store.sync.targets import Target
from store.verbs.rewind import rewind
from tests.exports.exporting import exported, session_id
from tests.exports.pi_checker import check, check_name
from tests.sources.grown import calls, only, read_all, visible, words, write_lines
from tests.sources.test_pi import answer, bash, entry, header, result, user
from tests.store.talks import Talk

DATA = Path(__file__).parent.parent / "data" / "pi"
TOOLS = "01a21f1f-2a04-71ed-bc04-9eae727ff70c"
FORK = "01a21f1f-3f53-736d-9537-3c24509a560f"


def synced(tmp_path: Path, root: Path) -> Database:
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([Target(PiSource(), root)])
    return database


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "home/.pi/agent/sessions"
    shutil.copytree(DATA / "sessions", root)
    return root


@pytest.fixture
def library(tmp_path: Path, root: Path) -> Database:
    return synced(tmp_path, root)


def made(db: Database, session: str) -> tuple[NamedFile, list[dict[str, Any]]]:
    file = pi_file(read_session(db, session, "context"))
    check_name(file.name, file.session_id)
    return file, check("\n".join(file.lines), file.session_id)


def back(file: NamedFile, tmp_path: Path) -> SessionDraft:
    place = tmp_path / "back" / file.name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(file.lines) + "\n")
    return only(PiSource(), place)


@pytest.mark.parametrize("source_id", [TOOLS, FORK])
def test_its_own_session_goes_back_entry_for_entry(library: Database, source_id: str) -> None:
    _, messages = made(library, session_id(library, source_id))
    (path,) = DATA.rglob(f"*{source_id}.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert messages == [row["message"] for row in rows if row["type"] == "message"]


@pytest.mark.parametrize("source_id", [TOOLS, FORK])
def test_read_back_it_says_the_same(library: Database, tmp_path: Path, source_id: str) -> None:
    before, _ = read_all(PiSource(), DATA / "sessions")
    file, _ = made(library, session_id(library, source_id))
    was, now = visible(before[source_id]), back(file, tmp_path).messages
    assert [(m.source_id, m.role, words(m)) for m in now] == [
        (m.source_id, m.role, words(m)) for m in was
    ]
    assert [part.data for part in calls(now)] == [part.data for part in calls(was)]
    assert [m.metadata.get("usage") for m in now] == [m.metadata.get("usage") for m in was]


def test_branches_compactions_and_shell_lines(tmp_path: Path) -> None:
    ran = {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0,
           "cancelled": False, "truncated": False, "timestamp": 1}  # fmt: skip
    write_lines(tmp_path / "sessions/--w--/2026_01a21f1f-0000-7000-8000-000000000001.jsonl", [
        header(), user("00000001", None, 1, "dropped"), answer("00000002", "00000001", 2, "gone"),
        user("00000003", "00000002", 3, "kept"), answer("00000004", "00000003", 4, "said"),
        entry("00000005", "00000004", 5, "compaction", summary="All.",
              firstKeptEntryId="00000003", tokensBefore=9),
        user("0000000f", "00000005", 6, "abandoned"),
        entry("00000006", "00000005", 7, "message", message=ran),
        answer("00000007", "00000006", 8, bash("c")),
    ])  # fmt: skip
    library = synced(tmp_path, tmp_path / "sessions")
    file, _ = made(library, session_id(library, "01a21f1f-0000-7000-8000-000000000001"))
    rows = [json.loads(line) for line in file.lines[1:-1]]
    assert [(row["type"], row.get("message", {}).get("role")) for row in rows] == [
        ("message", "user"), ("message", "assistant"), ("compaction", None),
        ("message", "bashExecution"), ("message", "assistant"), ("message", "toolResult"),
    ]  # fmt: skip
    assert rows[2]["firstKeptEntryId"] == "00000003"
    assert rows[5]["message"]["isError"] is True
    draft = back(file, tmp_path)
    assert [m.source_id for m in draft.messages][:2] == ["00000003", "00000004"]
    assert draft.messages[2].parts[0].data["data"]["tail_start_id"] == "00000003"
    assert all(message.inherited_from for message in draft.messages)


def test_another_agents_session(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("From elsewhere", workspace_root="/home/mira/code")
    talk.message(session, "user", "one")
    called = talk.call(session, "Read", input=5, output=2)
    usage = {"input": 7, "output": 1, "reasoning": 2, "cache_read": 3, "cache_write": 4}
    talk.message(session, "assistant", "done", usage=usage)
    file, messages = made(talk.db, session)
    assert [m["role"] for m in messages] == ["user", "assistant", "toolResult", "assistant"]
    assert messages[3]["usage"]["totalTokens"] == 17
    draft = back(file, tmp_path)
    assert (draft.title, draft.title_from) == ("From elsewhere", "session-name")
    assert draft.messages[1].inherited_from == called


def test_a_prompt_without_an_answer_is_handed_over(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("x", workspace_root="/w")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two")
    talk.message(session, "user", "and then?")
    file, messages = made(talk.db, session)
    assert file.prompt == "and then?"
    assert [message["role"] for message in messages] == ["user", "assistant"]
    found = plan(talk.db, resolve(talk.db, session), {}, tmp_path)
    assert found.command == ("pi", "--session", str(found.path), "and then?")
    assert found.path.parent == tmp_path / ".pi/agent/sessions/--w--"


def test_by_the_registry(library: Database) -> None:
    text = exported(library, TOOLS, "pi", "context")
    check(text, json.loads(text.splitlines()[0])["id"])
    reading = read_session(library, session_id(library, TOOLS), "context")
    check_name(file_name(FORMATS["pi"], reading.export_id, reading.session), reading.export_id)


def test_an_unchanged_session_is_resumed_as_it_is(library: Database, root: Path) -> None:
    found = plan(library, resolve(library, TOOLS), {}, root)
    (path,) = root.rglob(f"*{TOOLS}.jsonl")
    assert (found.command, found.file) == (("pi", "--session", str(path)), None)


def test_a_rewound_session_goes_on_in_a_new_file(library: Database, root: Path) -> None:
    row = resolve(library, TOOLS)
    ids = library.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY created_at, id", (row.id,)
    ).fetchall()
    in_transaction(library, rewind, row.id, ids[4][0], now=9_999_999_999_999)
    environment = {"PI_CODING_AGENT_DIR": str(root.parent)}
    found = plan(library, resolve(library, row.id), environment, Path("/nowhere"))
    assert found.file is not None
    assert found.path.parent == root / "--home-user-project--"
    write_file(found)
    in_transaction(library, note_exported, row.id, found)
    Sync(library).run([Target(PiSource(), root)])
    child = resolve(library, found.file.session_id).id
    assert (child, "continuation", 1) in [(n.id, n.kind, n.depth) for n in family(library, row.id)]
    copied = library.connection.execute(
        "SELECT json_extract(metadata_json, '$.inherited_from') FROM chat_messages "
        "WHERE session_id = ? ORDER BY created_at, id", (child,)
    ).fetchall()  # fmt: skip
    assert copied == ids[:5]


def test_results_in_another_order_stand_behind_their_calls(tmp_path: Path) -> None:
    write_lines(tmp_path / "sessions/--w--/2026_01a21f1f-0000-7000-8000-000000000001.jsonl", [
        header(), user("00000001", None, 1, "go"),
        answer("00000002", "00000001", 2, bash("a"), bash("b")),
        result("00000003", "00000002", 3, "b", "second"),
        result("00000004", "00000003", 4, "a", "first"),
        answer("00000005", "00000004", 5, "done"),
    ])  # fmt: skip
    library = synced(tmp_path, tmp_path / "sessions")
    _, messages = made(library, session_id(library, "01a21f1f-0000-7000-8000-000000000001"))
    assert [m.get("toolCallId") for m in messages] == [None, None, "a", "b", None]
