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
from store.exports.claude_code.blocks import call_block, file_block, result_block
from store.exports.claude_code.chain import ClaudeFile, claude_file
from store.exports.reading import read_session
from store.ids import IdMinter
from store.queries.context import context_ids, visible_ids
from store.queries.sessions import get, resolve
from store.resume.claude_code import plan, project_folder
from store.resume.planning import write_file
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.targets import Target
from store.verbs.fork import fork
from store.verbs.rewind import rewind
from tests.exports.claude_checker import blocks, check

SAMPLE = Path(__file__).parent.parent / "data" / "claude-code" / "home" / ".claude"
FIX, REWOUND, COMPACTED, ASSETS = "8ab87d4f", "1015307c", "7cf74ca4", "32bb6361"
LATER = 1_900_000_000_000


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.db"
    database = open_database(path, create=True)
    Sync(database).run([Target(source("claude-code"), SAMPLE)])
    database.close()
    return path


@pytest.fixture
def library(synced: Path, tmp_path: Path) -> Iterator[Database]:
    copy = tmp_path / "library.db"
    reading = open_database(synced, write=False)
    reading.connection.execute("VACUUM INTO ?", (str(copy),))
    reading.close()
    database = open_database(copy)
    yield database
    database.close()


def exported(db: Database, session_id: str) -> ClaudeFile:
    return claude_file(read_session(db, session_id, "context"))


def forked(db: Database, session_id: str, message_id: str) -> str:
    made = in_transaction(db, fork, session_id, message_id, ids=IdMinter(lambda: LATER), now=LATER)
    return made.session_id


def genuine(name: str) -> list[dict[str, Any]]:
    (path,) = SAMPLE.glob(f"projects/*/{name}*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def content_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the API content of genuine rows, answers first and then their results."""
    answers: dict[str, list[dict[str, Any]]] = {}
    found: list[list[dict[str, Any]]] = []
    results: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.get("type") == "assistant":
            key = row["message"]["id"]
            if key not in answers:
                answers[key] = []
                found.append(answers[key])
            answers[key].extend(blocks(row))
        elif row.get("type") == "user":
            said = [block for block in blocks(row) if block["type"] != "tool_result"]
            results |= {b["tool_use_id"]: b for b in blocks(row) if b["type"] == "tool_result"}
            if said:
                found.append(said)
    out: list[dict[str, Any]] = []
    for said in found:
        out.extend(said)
        out.extend(results[b["id"]] for b in said if b["type"] == "tool_use")
    return out


def test_every_session_forked_at_every_message_keeps_the_recipe(library: Database) -> None:
    sessions = [row[0] for row in library.connection.execute("SELECT id FROM chat_sessions")]
    checked = 0
    for session in sessions:
        for message in visible_ids(library, session):
            made = exported(library, forked(library, session, message))
            check("\n".join(made.lines), made.session_id)
            checked += 1
    assert checked > 80


def test_the_prefix_is_exact_and_thinking_keeps_its_signature(library: Database) -> None:
    session = resolve(library, FIX).id
    made = exported(library, session)
    chain = check("\n".join(made.lines), made.session_id)
    said = [block for line in chain for block in blocks(line)]
    assert said == content_of(genuine(FIX))
    assert any(block["type"] == "thinking" and block["signature"] for block in said)
    assert json.loads(made.lines[-1])["customTitle"] == "Divide by zero fix"


def test_answers_with_parallel_calls_are_followed_by_all_results(library: Database) -> None:
    session = resolve(library, FIX).id
    answer = visible_ids(library, session)[1]
    made = exported(library, forked(library, session, answer))
    chain = check("\n".join(made.lines), made.session_id)
    calls = [b["id"] for b in blocks(chain[-2]) if b["type"] == "tool_use"]
    assert len(calls) == 2
    assert [b["tool_use_id"] for b in blocks(chain[-1])] == calls
    assert made.prompt is None


def test_a_fork_at_a_prompt_hands_it_over(library: Database) -> None:
    session = resolve(library, FIX).id
    at = next(
        m for m in visible_ids(library, session)
        if "Add a test" in json.dumps(library.connection.execute(
            "SELECT data_json FROM chat_parts WHERE message_id = ?", [m]).fetchall())
    )  # fmt: skip
    made = exported(library, forked(library, session, at))
    chain = check("\n".join(made.lines), made.session_id)
    assert made.prompt == "Add a test for it."
    assert chain[-1]["type"] == "assistant"


def test_after_a_compaction_it_begins_with_the_summary(library: Database) -> None:
    session = resolve(library, COMPACTED).id
    last = context_ids(library, session)[-1]
    made = exported(library, forked(library, session, last))
    chain = check("\n".join(made.lines), made.session_id)
    (summary,) = [row for row in genuine(COMPACTED) if row.get("isCompactSummary")]
    assert chain[0]["isCompactSummary"] is True
    assert blocks(chain[0]) == blocks(summary)


def test_rewound_turns_are_left_out(library: Database) -> None:
    session = resolve(library, REWOUND).id
    first = visible_ids(library, session)[1]
    in_transaction(library, rewind, session, first, now=LATER)
    made = exported(library, session)
    chain = check("\n".join(made.lines), made.session_id)
    assert [line["type"] for line in chain] == ["user", "assistant"]


def test_copies_say_where_they_come_from(library: Database) -> None:
    session = resolve(library, FIX)
    last = visible_ids(library, session.id)[-1]
    chain = [
        json.loads(line) for line in exported(library, forked(library, session.id, last)).lines
    ]
    origin = genuine(FIX)[0]["sessionId"]
    assert {line["forkedFrom"]["sessionId"] for line in chain if "forkedFrom" in line} == {origin}


def test_sessions_of_other_agents_become_valid_calls(demo: Database) -> None:
    sessions = [row[0] for row in demo.connection.execute("SELECT id FROM chat_sessions")]
    calls = 0
    for session in sessions:
        made = exported(demo, session)
        chain = check("\n".join(made.lines), made.session_id)
        calls += sum(b["type"] == "tool_use" for line in chain for b in blocks(line))
    assert calls > 400


def test_an_unchanged_session_is_resumed_as_it_is(library: Database, tmp_path: Path) -> None:
    row = resolve(library, ASSETS)
    made = plan(library, row, {"PATH": str(tmp_path)}, tmp_path)
    assert made.file is None and made.program is None
    assert made.command[:2] == ("claude", "--resume") and made.command[2].startswith(ASSETS)
    assert made.cwd == "/home/user/project"


def test_a_rewound_session_goes_to_a_new_file(library: Database, tmp_path: Path) -> None:
    row = resolve(library, FIX)
    in_transaction(library, rewind, row.id, visible_ids(library, row.id)[3], now=LATER)
    made = plan(library, row, {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}, tmp_path)
    assert made.file is not None
    write_file(made)
    assert made.path.parent == tmp_path / "claude" / "projects" / "-home-user-project"
    assert made.path.stat().st_mode & 0o777 == 0o600
    check(made.path.read_text(), made.path.stem)
    with pytest.raises(FileExistsError):
        write_file(made)


def test_a_session_whose_file_went_away_is_exported(library: Database, tmp_path: Path) -> None:
    tree = tmp_path / "gone"
    shutil.copytree(SAMPLE, tree)
    fresh = open_database(tmp_path / "fresh.db", create=True)
    Sync(fresh).run([Target(source("claude-code"), tree)])
    shutil.rmtree(tree)
    made = plan(fresh, resolve(fresh, ASSETS), {}, tmp_path)
    fresh.close()
    assert made.file is not None and made.file.lines


def test_an_empty_session_is_refused(library: Database, tmp_path: Path) -> None:
    empty = resolve(library, FIX)
    library.connection.execute("DELETE FROM chat_messages WHERE session_id = ?", [empty.id])
    library.connection.execute(
        "UPDATE chat_sessions SET metadata_json = '{}' WHERE id = ?", [empty.id]
    )
    row = get(library, empty.id)
    assert row is not None
    with pytest.raises(Refused, match="no message"):
        plan(library, row, {}, tmp_path)


def test_long_folders_are_found_or_refused(tmp_path: Path) -> None:
    cwd = "/" + "x" * 250
    with pytest.raises(Refused, match="no folder"):
        project_folder(tmp_path, cwd)
    made = tmp_path / "projects" / ("-" + "x" * 199 + "-vt8vei")
    made.mkdir(parents=True)
    assert project_folder(tmp_path, cwd) == made


def test_call_ids_are_made_valid_and_kept_apart() -> None:
    ids = CallIds()
    assert [ids.take("a:b/c"), ids.take("a:b/c"), ids.take(None), ids.take("toolu_1")] == [
        "a_b_c", "a_b_c-2", "call", "toolu_1",
    ]  # fmt: skip


def test_parts_of_other_agents() -> None:
    dynamic = {"type": "dynamic-tool", "toolName": "db.query", "input": "select 1"}
    assert call_block(dynamic, "c1") == {
        "type": "tool_use", "id": "c1", "name": "db_query", "input": {"input": "select 1"},
    }  # fmt: skip
    pending = {"type": "tool-Bash", "state": "input-available", "input": {}}
    assert result_block(pending, "c1") == {
        "type": "tool_result", "tool_use_id": "c1", "is_error": True,
        "content": "This call has no recorded result.",
    }  # fmt: skip
    done = {"type": "tool-Bash", "state": "output-available", "output": {"rows": 3}}
    assert result_block(done, "c1")["content"] == '{"rows": 3}'
    assert file_block({"mediaType": "image/png", "url": "data:image/png;base64,AAAA"}) == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    }
    assert file_block({"mediaType": "audio/mp3", "url": "https://x/y.mp3", "filename": "y"}) == {
        "type": "text", "text": "[audio/mp3: y]",
    }  # fmt: skip
