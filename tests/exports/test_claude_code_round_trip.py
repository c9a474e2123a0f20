"""An exported session goes on in the agent, and comes back linked to what it was made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import in_transaction, open_database
from store.queries.context import visible_ids
from store.queries.lineage import family
from store.queries.sessions import resolve
from store.resume.claude_code import plan
from store.resume.planning import note_exported, write_file
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.store.talks import Talk


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(open_database(tmp_path / "library.db", create=True))


def test_what_follows_in_the_agent_continues_the_session(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("From elsewhere", workspace_root="/home/mira/code")
    talk.message(session, "user", "one")
    called = talk.call(session, "Read", input=5, output=2)
    answer = talk.message(session, "assistant", "done", usage={"input": 7, "output": 1})
    made = plan(talk.db, resolve(talk.db, session), {}, tmp_path)
    write_file(made)
    in_transaction(talk.db, note_exported, session, made)
    _go_on(made.path, "and then?", "that.")
    Sync(talk.db).run([Target(source("claude-code"), tmp_path / ".claude")])
    imported = resolve(talk.db, made.path.stem).id
    assert [(n.id, n.kind, n.depth) for n in family(talk.db, session)] == [
        (session, "root", 0),
        (imported, "continuation", 1),
    ]
    copied = [talk.metadata(m).get("inherited_from") for m in visible_ids(talk.db, imported)]
    assert {called, answer} < set(copied)
    assert copied[-2:] == [None, None]
    assert talk.session_row(imported)["total_tokens"] == 15 + 4


def _go_on(path: Path, prompt: str, answer: str) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    last = [line for line in lines if "uuid" in line][-1]
    common: dict[str, Any] = {
        key: last[key] for key in ("cwd", "sessionId", "version", "isSidechain", "userType")
    }
    asked = common | {
        "type": "user", "uuid": "u-new", "parentUuid": last["uuid"],
        "timestamp": "2027-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": prompt},
    }  # fmt: skip
    said = common | {
        "type": "assistant", "uuid": "a-new", "parentUuid": "u-new",
        "timestamp": "2027-01-01T00:00:05.000Z",
        "message": {
            "id": "msg_new", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": answer}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    }  # fmt: skip
    with path.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in (asked, said))
