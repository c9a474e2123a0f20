"""A fork that an agent went on with is one entry: the agent's session, in the fork's place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engine.database import in_transaction, open_database
from store.queries.sessions import SessionFilter, page, resolve
from store.resume.planning import note_exported, write_file
from store.resume.registry import AGENTS, plan
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from store.verbs.fork import fork
from store.verbs.marks import star_all
from tests.exports.kimi_checker import have_used_kimi
from tests.store.counted import counted
from tests.store.talks import Talk

HOMES = {"claude-code": ".claude", "codex": ".codex", "gemini": ".gemini",
         "pi": ".pi/agent/sessions", "qwen": ".qwen", "kimi": ".kimi-code/sessions",
         "continue": ".continue/sessions", "cline": ".cline/data",
         "openhands": ".openhands/conversations"}  # fmt: skip


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    chats = tmp_path / ".gemini/tmp/work/chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(str(tmp_path / "work"))
    have_used_kimi(tmp_path)
    database = open_database(tmp_path / "library.db", create=True)
    yield Talk(database)
    database.close()


def listed(talk: Talk) -> list[str]:
    return [row.id for row in page(talk.db, SessionFilter(), limit=-1)]


@pytest.mark.parametrize("agent", HOMES)
def test_it_takes_the_forks_place(talk: Talk, tmp_path: Path, agent: str) -> None:
    session = talk.session("Fix it", workspace_root=str(tmp_path / "work"))
    talk.message(session, "user", "one")
    answer = talk.message(session, "assistant", "two", usage={"input": 7, "output": 5})
    talk.message(session, "user", "three")
    talk.message(session, "assistant", "four", usage={"input": 9, "output": 6})
    before = counted(talk.db).tokens
    made = in_transaction(talk.db, fork, session, answer, ids=talk.ids, now=talk.now).session_id
    in_transaction(talk.db, star_all, [made], now=talk.now)
    planned = plan(talk.db, resolve(talk.db, made), {}, tmp_path, agent)
    write_file(planned)
    in_transaction(talk.db, note_exported, made, planned)
    # Kimi Code has a session of its own beside, of which the new one has the profile.
    root = planned.path.parents[3] if agent == "kimi" else tmp_path / HOMES[agent]
    target = Target(source(agent), root)
    Sync(talk.db, Settings(helpers=0)).run([target])
    gone_on = resolve(talk.db, planned.session_id)
    assert sorted(listed(talk)) == sorted([session, gone_on.id])
    assert (gone_on.parent_id, gone_on.parent_message_id) == (session, answer)
    metadata = json.loads(gone_on.metadata_json)
    assert metadata["lineage"]["kind"] == "fork" and metadata["user"]["star"] is True
    assert gone_on.title == "Fix it (2)"
    assert counted(talk.db).tokens == before
    # Nothing is lost, and it is the user's to bring back.
    kept = resolve(talk.db, made)
    assert kept.archived_at is not None
    talk.db.connection.execute("UPDATE chat_sessions SET archived_at = NULL WHERE id = ?", (made,))
    planned.path.write_text(planned.path.read_text() + "\n")
    Sync(talk.db, Settings(helpers=0)).run([target])
    assert resolve(talk.db, made).archived_at is None


def test_a_session_that_is_no_fork_is_continued(talk: Talk, tmp_path: Path) -> None:
    session = talk.session("Fix it", workspace_root=str(tmp_path / "work"))
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "two")
    planned = plan(talk.db, resolve(talk.db, session), {}, tmp_path, "pi")
    write_file(planned)
    in_transaction(talk.db, note_exported, session, planned)
    Sync(talk.db, Settings(helpers=0)).run([Target(source("pi"), tmp_path / HOMES["pi"])])
    gone_on = resolve(talk.db, planned.session_id)
    assert sorted(listed(talk)) == sorted([session, gone_on.id])
    assert json.loads(gone_on.metadata_json)["lineage"]["kind"] == "continuation"
    assert set(HOMES) | {"opencode"} == set(AGENTS)
