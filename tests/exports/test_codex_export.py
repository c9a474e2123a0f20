"""Sessions of any agent as rollouts that Codex resumes, and what comes back from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.errors import Refused
from store.exports.calls import CallIds
from store.exports.codex.items import call_items, content_item, reasoning_item
from store.exports.codex.rollout import CodexFile, codex_file
from store.exports.reading import read_session
from store.ids import IdMinter
from store.queries.context import context_ids, visible_ids
from store.queries.lineage import family
from store.queries.sessions import get, resolve
from store.resume.codex import plan
from store.resume.planning import note_exported, write_file
from store.resume.registry import agent_of
from store.resume.registry import plan as plan_any
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.targets import Target
from store.verbs.fork import fork
from store.verbs.rewind import rewind
from tests.exports.codex_checker import check

DATA = Path(__file__).parent.parent / "data"
HOME = DATA / "codex" / "home"
TOOLS, NAMED, FORK, REVERTED = "01a21f24-52a4", "01a21f24-5a3a", "01a21f24-5b3f", "01a21f24-5c14"
COMPACTED, KILLED = "01a21fa9-0fbf", "01a21fa8-981a"
PICTURE = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,A"}
LATER = 1_900_000_000_000


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.db"
    database = open_database(path, create=True)
    roots = [("codex", HOME), ("codex", DATA / "codex" / "0.171.0"),
             ("codex", DATA / "codex" / "0.98.0"),
             ("claude-code", DATA / "claude-code" / "home" / ".claude")]  # fmt: skip
    Sync(database).run([Target(source(kind), root) for kind, root in roots])
    database.close()
    return path


@pytest.fixture
def library(synced: Path, tmp_path: Path) -> Iterator[Database]:
    copy = tmp_path / "library.db"
    shutil.copyfile(synced, copy)
    database = open_database(copy)
    yield database
    database.close()


def exported(db: Database, session_id: str) -> CodexFile:
    return codex_file(read_session(db, session_id, "context"))


def genuine(name: str) -> list[dict[str, Any]]:
    (path,) = HOME.glob(f"sessions/*/*/*/rollout-*-{name}*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line["payload"] for line in lines if line["type"] == "response_item"]


Told = list[tuple[str, str, str]]


def told(db: Database, session_id: str) -> Told:
    """Return role, kind and words of what a session's context tells, in order."""
    found: Told = []
    for item in read_session(db, session_id, "context").messages:
        role = item.message["role"]
        if role == "system" or (item.message["metadata"] or {}).get("origin") == "meta":
            continue
        for part in item.parts:
            data = part["data"]
            if part["type"] == "text" and data["text"].strip():
                found.append((role, "text", data["text"]))
            elif part["tool_call_id"]:
                said = data.get("output", data.get("errorText"))
                reason = (data.get("approval") or {}).get("reason")
                found.append((role, part["type"], str(said or reason or "")[:40]))
    return found


def come_back(db: Database, session_id: str, tmp_path: Path) -> str:
    """Export a session, sync the file, and return the id of what came of it."""
    made = plan(db, get_row(db, session_id), {}, tmp_path)
    write_file(made)
    in_transaction(db, note_exported, session_id, made)
    Sync(db).run([Target(source("codex"), tmp_path / ".codex")])
    assert made.file is not None
    return resolve(db, made.file.session_id).id


def get_row(db: Database, session_id: str) -> Any:
    row = get(db, session_id)
    assert row is not None
    return row


@pytest.mark.long
def test_every_session_forked_at_every_message_keeps_the_recipe(library: Database) -> None:
    sessions = [row[0] for row in library.connection.execute("SELECT id FROM chat_sessions")]
    checked = 0
    for session in sessions:
        for message in visible_ids(library, session)[::2]:
            ids = IdMinter(lambda: LATER)
            made = in_transaction(library, fork, session, message, ids=ids, now=LATER)
            file = exported(library, made.session_id)
            if file.lines:
                check(file.lines, file.session_id)
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("name", [TOOLS, NAMED])
def test_what_codex_wrote_goes_back_as_it_was(library: Database, name: str) -> None:
    made = exported(library, resolve(library, name).id)
    assert check(made.lines, made.session_id) == genuine(name)
    assert json.loads(made.lines[0])["payload"]["model_provider"] == "mock"


def test_a_forks_inherited_lines_are_its_parents(library: Database) -> None:
    made = exported(library, resolve(library, FORK).id)
    inherited = [item for item in genuine(NAMED) if item in check(made.lines, made.session_id)]
    assert [item.get("role", item["type"]) for item in inherited] == [
        "developer", "user", "user", "reasoning", "assistant",
    ]  # fmt: skip


def test_reverted_turns_stay_out(library: Database) -> None:
    made = exported(library, resolve(library, REVERTED).id)
    text = "\n".join(made.lines)
    assert "hello2 second question" not in text and "uni another second question" in text


def test_a_compaction_goes_back_with_what_it_replaced(library: Database) -> None:
    made = exported(library, resolve(library, COMPACTED).id)
    check(made.lines, made.session_id)
    (compaction,) = [line for line in made.lines if '"compacted"' in line]
    compacted = json.loads(compaction)
    assert len(compacted["payload"]["replacement_history"]) == 5
    before = [json.loads(line) for line in made.lines[1 : made.lines.index(compaction)]]
    kept = [each["payload"] for each in before if each["type"] == "response_item"]
    assert [each["role"] for each in kept] == ["user", "user"]
    assert all(each in compacted["payload"]["replacement_history"] for each in kept)


def test_a_call_that_a_kill_left_open_is_answered(library: Database) -> None:
    items = [json.loads(line)["payload"] for line in exported(
        library, resolve(library, KILLED).id).lines]  # fmt: skip
    assert items[-1] == {"type": "function_call_output", "call_id": "call_m25_0",
                         "output": "aborted"}  # fmt: skip


ROUND = [TOOLS, FORK, REVERTED, COMPACTED, "8ab87d4f", "32bb6361", "1015307c", "7cf74ca4"]


@pytest.mark.parametrize("name", ROUND)
def test_a_round_trip_tells_the_same(library: Database, tmp_path: Path, name: str) -> None:
    session = resolve(library, name).id
    imported = come_back(library, session, tmp_path)
    before, after = told(library, session), told(library, imported)
    if before[-1][:2] == ("user", "text"):
        before.pop()  # It is handed over as the prompt.
    assert [entry[:2] for entry in after] == [entry[:2] for entry in before]
    assert after == before


def test_what_follows_in_codex_continues_the_session(library: Database, tmp_path: Path) -> None:
    session = resolve(library, "8ab87d4f").id
    imported = come_back(library, session, tmp_path)
    found = [(n.id, n.kind) for n in family(library, session) if n.id in (session, imported)]
    assert found == [(session, "root"), (imported, "continuation")]
    row = library.connection.execute(
        "SELECT total_tokens FROM chat_sessions WHERE id = ?", (imported,)
    ).fetchone()
    assert row == (0,)


def test_a_summary_of_another_agent_becomes_a_compaction(
    library: Database, tmp_path: Path
) -> None:
    session = resolve(library, "7cf74ca4").id
    imported = come_back(library, session, tmp_path)
    (text,) = library.connection.execute(
        "SELECT data_json FROM chat_parts WHERE session_id = ? AND type = 'data-compaction'",
        (imported,),
    ).fetchone()
    (original,) = library.connection.execute(
        "SELECT data_json FROM chat_parts WHERE session_id = ? AND type = 'data-compaction'"
        " AND message_id = ?", (session, context_ids(library, session)[0]),
    ).fetchone()  # fmt: skip
    assert json.loads(text)["data"]["summary"] == json.loads(original)["data"]["summary"]


def home_with_sessions(tmp_path: Path) -> tuple[Database, dict[str, str]]:
    home = tmp_path / "codex"
    shutil.copytree(HOME, home)
    database = open_database(tmp_path / "own.db", create=True)
    Sync(database).run([Target(source("codex"), home)])
    return database, {"CODEX_HOME": str(home), "PATH": ""}


def test_an_unchanged_session_is_resumed_as_it_is(tmp_path: Path) -> None:
    db, environment = home_with_sessions(tmp_path)
    row = resolve(db, TOOLS)
    made = plan(db, row, environment, tmp_path)
    assert made.command[:2] == ("codex", "resume") and made.file is None
    assert made.command[2].startswith(TOOLS) and made.cwd == "/home/user/project"


@pytest.mark.parametrize("name", ["01a21f24-6466", "01a21f24-5d69"])
def test_subagents_and_archived_threads_go_on_in_a_new_file(tmp_path: Path, name: str) -> None:
    db, environment = home_with_sessions(tmp_path)
    made = plan(db, resolve(db, name), environment, tmp_path)
    assert made.file is not None and made.path.name.endswith(f"{made.file.session_id}.jsonl")
    assert made.path.parent.parent.parent.parent == tmp_path / "codex" / "sessions"


def test_a_rewound_session_goes_on_in_a_new_file(tmp_path: Path) -> None:
    db, environment = home_with_sessions(tmp_path)
    session = resolve(db, TOOLS).id
    in_transaction(db, rewind, session, visible_ids(db, session)[4], now=LATER)
    made = plan(db, resolve(db, TOOLS), environment, tmp_path)
    assert made.file is not None
    items = check(made.file.lines, made.file.session_id)
    assert len([item for item in items if item["type"] == "function_call"]) == 2


def test_an_unanswered_prompt_is_handed_over(library: Database, tmp_path: Path) -> None:
    session = resolve(library, TOOLS).id
    prompt = visible_ids(library, session)[2]
    made = in_transaction(library, fork, session, prompt, ids=IdMinter(lambda: LATER), now=LATER)
    planned = plan(library, get_row(library, made.session_id), {}, tmp_path)
    assert planned.prompt == "MOCK:tools please change a.txt" == planned.command[-1]


def test_files_are_private_and_never_written_over(library: Database, tmp_path: Path) -> None:
    made = plan(library, resolve(library, TOOLS), {}, tmp_path)
    write_file(made)
    assert made.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_file(made)


def test_the_agent_is_the_sessions_own_unless_named(library: Database, tmp_path: Path) -> None:
    codex, claude = resolve(library, TOOLS), resolve(library, "8ab87d4f")
    assert (agent_of(codex), agent_of(claude)) == ("codex", "claude-code")
    assert plan_any(library, codex, {}, tmp_path).kind == "codex"
    assert plan_any(library, claude, {}, tmp_path, "codex").kind == "codex"
    with pytest.raises(Refused, match="no agent named"):
        plan_any(library, codex, {}, tmp_path, "nobody")


def test_reasoning_of_others_and_unknown_things_stay_out() -> None:
    assert reasoning_item({"type": "reasoning", "text": "x"}) is None
    assert reasoning_item({
        "type": "reasoning", "text": "x",
        "providerMetadata": {"anthropic": {"signature": "s"}},
    }) is None  # fmt: skip
    assert content_item({"type": "data-plan", "data": {}}, "assistant") is None


@pytest.mark.parametrize(
    ("part", "output"),
    [
        ({"state": "output-available", "output": "x"}, "x"),
        ({"state": "output-available", "output": {"a": 1}}, '{"a": 1}'),
        ({"state": "output-error", "errorText": "no"}, "no"),
        ({"state": "output-denied", "approval": {"reason": "not that"}}, "not that"),
        ({"state": "output-denied"}, "rejected by user"),
        ({"state": "input-available"}, "aborted"),
        ({"state": "output-available", "output": [PICTURE]},
         [{"type": "input_image", "image_url": "data:image/png;base64,A"}]),
    ],
)  # fmt: skip
def test_outputs_of_all_states(part: dict[str, Any], output: Any) -> None:
    call, answer = call_items({"type": "tool-Read it!", "input": [1], **part}, "c")
    assert call["name"] == "Read_it_" and json.loads(call["arguments"]) == {"input": [1]}
    assert answer == {"type": "function_call_output", "call_id": "c", "output": output}


def test_call_ids_are_each_given_once() -> None:
    ids = CallIds()
    assert [ids.take("a b"), ids.take("a b"), ids.take(None)] == ["a_b", "a_b-2", "call"]
