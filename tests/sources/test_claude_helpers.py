"""Runs that Claude Code starts for itself are no sessions in the list."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path

import pytest

from store.config import quick_config
from store.engine.database import Database
from store.language.query import parse
from store.queries import details, lineage, list_keys, sessions, summary, touches
from store.queries.known_values import known_values
from store.queries.listing import ListQuery
from store.sources.claude_code import ClaudeCodeSource
from store.sources.claude_code.agents import helper_of
from store.stats import families
from store.stats.rollups import open_rollups
from store.stats.statistics import ALWAYS, figures
from store.verbs.shelf import archive, unarchive
from tests.sources.claude_rows import SESSION, File, tool
from tests.sources.grown import synced

AGENTS = ["aprompt_suggestion-1a2b3c", "acompact-0f9e8d", "a43febf26cf591a78"]


@pytest.mark.parametrize(
    ("agent", "helper"),
    [
        ("aprompt_suggestion-1a2b", "prompt_suggestion"),
        ("aprompt_suggestion1a2b", "prompt_suggestion"),
        ("acompact_0f9e", "compact"),
        ("acompact", "compact"),
        ("acompact-x7y", "compact"),
        ("aprompt_suggestion-first-1", "prompt_suggestion"),
        ("acompact-reviewer", None),
        ("a43febf26cf591a78", None),
        ("acompactor-12", None),
        ("areviewer-12", None),
    ],
)
def test_helpers_are_told_by_their_id(agent: str, helper: str | None) -> None:
    assert helper_of(agent) == helper


@pytest.fixture
def db(tmp_path: Path) -> Database:
    main = File()
    main.user("go")
    main.assistant(tool("t1", "Task", prompt="look"), id="msg_1")
    main.result("t1", "done")
    folder = tmp_path / "projects" / "-w"
    main.write(folder)
    for number, agent in enumerate(AGENTS):
        file = File()
        file.user("look", isSidechain=True, agentId=agent)
        file.assistant(f"answer {number}", id=f"msg_a{number}", isSidechain=True, agentId=agent)
        file.write(folder / SESSION / "subagents", f"agent-{agent}")
    meta = folder / SESSION / "subagents" / f"agent-{AGENTS[2]}.meta.json"
    meta.write_text(json.dumps({"toolUseId": "t1", "agentType": "Explore"}))
    return synced(ClaudeCodeSource(), tmp_path, tmp_path / "store.db")


@pytest.mark.parametrize("helpers", [False, True])
@pytest.mark.parametrize("group", ["workspace", "none"])
def test_lists_leave_them_out(helpers: bool, group: str, db: Database) -> None:
    count = 4 if helpers else 2
    query = ListQuery(group=group, helpers=helpers)
    assert len(list_keys.all_keys(db, query).rowids) == count
    first = list_keys.first_keys(db, query, 10)
    assert first is not None and len(first.rowids) == count
    page = sessions.page(db, sessions.SessionFilter(helpers=helpers, skip_empty=True))
    assert len(page) == count
    assert summary.totals(db).sessions == 2


def test_counts_leave_them_out(db: Database) -> None:
    """What is counted of sessions is the same number everywhere; what helpers spent counts."""
    (root,) = lineage.families(db)
    assert details.overview(db, root).children == {"subagent": 1}
    places = touches.places(db, root)
    assert places.subagents == 1
    agents = known_values(db)["agent"]
    assert [known.note for known in agents] == ["2 sessions"]
    with open_rollups(db) as stats:
        query = parse("", now=0)
        found = figures(db, stats, by="source", span=ALWAYS, query=query, zone=UTC)
        assert (found.whole.sessions, found.whole.answers) == (2, 4)
        assert [group.figures.sessions for group in found.groups] == [2]
        assert len(stats.select(db, ALWAYS, query, None).sessions()) == 2
    members = families.family(db, root)
    assert members is not None and members.children == 1
    assert [member.kind for member in members.members].count("helper") == 2
    told = archive(db, [root], now=1)
    assert len(told) == 2 and summary.totals(db).archived == 2
    (words,) = db.connection.execute("SELECT summary FROM verb_log").fetchone()
    assert words == "archived 1 session with 1 subagent"
    hidden = "SELECT count(*) FROM chat_sessions WHERE archived_at IS NOT NULL"
    assert db.connection.execute(hidden).fetchone() == (4,)
    assert set(unarchive(db, [root], now=2)) == set(told)
    assert db.connection.execute(hidden).fetchone() == (0,)


@pytest.mark.parametrize("limit", [None, 1, 5])
def test_statistics_by_session_have_their_spending_with_the_others(
    limit: int | None, db: Database
) -> None:
    with open_rollups(db) as stats:
        found = figures(db, stats, by="session", span=ALWAYS, query=parse("", now=0), zone=UTC,
                        limit=limit)  # fmt: skip
    assert [group.figures.answers for group in found.groups] == [1] * (limit if limit == 1 else 2)
    assert found.others is not None
    listed = sum(group.figures.answers for group in found.groups)
    assert (found.others.answers, found.whole.answers) == (4 - listed, 4)
    helpers = {row[0] for row in db.connection.execute(
        "SELECT session_id FROM session_links WHERE kind = 'helper'")}
    assert helpers.isdisjoint(group.key for group in found.groups)


def test_trees_leave_them_out(db: Database) -> None:
    (root,) = lineage.families(db)
    agents = [node.id for node in lineage.family(db, root)]
    assert len(agents) == 2
    everyone = [node.id for node in lineage.family(db, root, helpers=True)]
    assert len(everyone) == 4
    helper = next(each for each in everyone if each not in agents)
    shown = [node.id for node in lineage.family(db, helper)]
    assert sorted(shown) == sorted([*agents, helper])


def test_a_session_with_helpers_alone_is_no_family(tmp_path: Path) -> None:
    main, helper = File(), File()
    main.user("go")
    main.assistant("done", id="msg_1")
    folder = tmp_path / "projects" / "-w"
    main.write(folder)
    helper.user("look", isSidechain=True, agentId=AGENTS[0])
    helper.assistant("a", id="msg_a", isSidechain=True, agentId=AGENTS[0])
    helper.write(folder / SESSION / "subagents", f"agent-{AGENTS[0]}")
    db = synced(ClaudeCodeSource(), tmp_path, tmp_path / "store.db")
    assert lineage.families(db) == []
    assert len(lineage.families(db, helpers=True)) == 1


def test_they_are_kept_with_what_they_said(db: Database) -> None:
    found = db.connection.execute(
        "SELECT count(*) FROM chat_parts WHERE json_extract(data_json, '$.text') LIKE 'answer%'"
    ).fetchone()
    assert found == (3,)


def test_a_setting_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert not quick_config().ui.helpers
    (tmp_path / "backscroll").mkdir()
    (tmp_path / "backscroll" / "config.toml").write_text("[ui]\nhelpers = true\n")
    assert quick_config().ui.helpers
