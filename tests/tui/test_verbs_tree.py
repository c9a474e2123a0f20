from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.ids import IdMinter
from store.queries import tree_facts
from store.queries.compare import BranchTurn
from store.queries.lineage import FamilyNode
from store.queries.tree_facts import NodeFacts
from store.system.clock import Clock
from store.verbs.fork import fork
from store.verbs.marks import label
from store.verbs.shelf import archive
from store.verbs.undo import undo
from tests.tui.seeded import SESSION, START, Said, make_store, message_id, text, tool
from tests.tui.stores import NOW
from tests.tui.verbs_app import Running, drawn, query, running
from tui.compare.screen import CompareScreen
from tui.compare.turns import turn_blocks
from tui.tree import screen as tree_module
from tui.tree.screen import FactsReader, TreeScreen
from tui.words import costs

USAGE = {"usage": {"input": 1000, "output": 200, "reasoning": 0, "cache_read": 0, "cache_write": 0}}


def talk() -> list[Said]:
    said: list[Said] = []
    for n in range(4):
        said.append(Said("user", [text(f"Prompt {n}")]))
        said.append(Said("assistant", [
            text(f"Answer {n}"), tool("Read", {"file_path": "a.py"}, "x", call=f"r{n}"),
            tool("Read", {"file_path": "b.py"}, "x", call=f"q{n}"),
        ], dict(USAGE)))
    return said


def clock(at: int) -> Clock:
    return lambda: at


def branch(database: Database, source: str, message: str, now: int) -> str:
    database.connection.execute("BEGIN IMMEDIATE")
    made = fork(database, source, message, ids=IdMinter(clock(now)), now=now).session_id
    database.connection.execute("COMMIT")
    return made


def add_turn(database: Database, session: str, name: str, at: int) -> None:
    for role, number in (("user", 0), ("assistant", 1)):
        own = f"msg_{name}{number}"
        metadata = {} if role == "user" else USAGE
        database.connection.execute(
            "INSERT INTO chat_messages VALUES (?,?,?,?,?,?)",
            (own, session, role, json.dumps(metadata), at + number, at + number))
        parts = [text(f"{role} of {name}")]
        if role == "assistant":
            parts.append(tool("Bash", {"command": "x"}, "no", state="output-error", call=name))
        for index, part in enumerate(parts):
            database.connection.execute(
                "INSERT INTO chat_parts VALUES (?,?,?,?,?,?,?,?,?,?)",
                (f"prt_{name}{number}{index}", own, session, index, part["type"],
                 json.dumps(part), part.get("toolCallId"), part.get("state"), at, at))


@pytest.fixture
def family(tmp_path: Path) -> tuple[Path, str, str]:
    """A session, a fork after its second turn, which goes on, and a fork of the third."""
    path = make_store(tmp_path / "s.db", talk())
    database = open_database(path)
    first = branch(database, SESSION, message_id(3), NOW - 9000)
    add_turn(database, first, "own", START + 20_000)
    second = branch(database, SESSION, message_id(5), NOW - 7000)
    database.connection.execute("BEGIN IMMEDIATE")
    label(database, SESSION, message_id(2), "a good place", now=NOW)
    archive(database, [second], now=NOW)
    database.connection.execute("COMMIT")
    database.close()
    return path, first, second


def rows(run: Running) -> list[str]:
    screen = run.app.screen
    assert isinstance(screen, TreeScreen)
    return [screen.view.line_at(n).whole_text for n in range(screen.view.stack.height(100))]


async def test_it_shows_the_family_and_opens_from_it(family: tuple[Path, str, str]) -> None:
    path, first, second = family
    async with running(path) as run:
        await run.open(SESSION, message_id(7))
        await run.press("T")
        shown = [" ".join(row.split()) for row in rows(run)]
        assert shown[0].startswith("A session ← shown 4 ")
        assert shown[1] == "│ “a good place” turn 2"
        assert shown[2].startswith("├─ ↱ A session (2) turn 2 3 ")
        assert shown[3].startswith("└─ ↱ A session (3) archived turn 3 3 ")
        assert "3 sessions, 2 forks" in drawn(run.app.screen)
        await run.press("j", "enter")
        assert run.app.screen is run.app.main
        assert run.transcript.shown.message_id == message_id(2)
        await run.press("T", "G", "enter")
        assert run.app.main.opener.shown == second
        await run.press("T")
        assert run.app.screen.current_session() == second  # type: ignore[attr-defined]
        await run.press("h")
        assert run.app.screen.current_session() == SESSION  # type: ignore[attr-defined]
        await run.press("q")
        assert run.app.screen is run.app.main
    assert first != second


async def test_the_verbs_work_there(family: tuple[Path, str, str]) -> None:
    path, first, second = family
    async with running(path) as run:
        await run.open(SESSION)
        await run.press("T", "G", "a")
        assert run.last == "Unarchived “A session (3)” · U undoes"
        assert "archived" not in rows(run)[3]
        await run.press("k", "R", "ctrl+u", *"Better", "enter")
        assert "Better" in rows(run)[2]
        await run.press("asterisk", "number_sign", *"new", "enter")
        assert "★" in rows(run)[2] and "#new" in rows(run)[2]
        await run.press("B", *"tip", "enter")
        assert "“tip”  turn 3" in rows(run)[3]
        labels = query(path, "SELECT metadata_json ->> '$.user.labels' FROM chat_sessions"
                       " WHERE id = ?", first)
        assert json.loads(labels[0][0]) == {"msg_own1": "tip"}
        await run.press("g", "apostrophe", "apostrophe", "B")
        assert "tip" in run.dialog()
        await run.press("escape", "U", "U", "U", "U")
        assert "A session (2)" in rows(run)[2] and "★" not in rows(run)[2]
        await run.press("ctrl+r")
        assert run.last == "Redone: renamed to “Better” · U undoes"
        assert "Better" in rows(run)[2]
    assert second


async def test_it_follows_what_others_do(family: tuple[Path, str, str]) -> None:
    path, _first, second = family
    async with running(path) as run:
        await run.open(SESSION)
        await run.press("T")
        other = open_database(path)
        other.connection.execute("BEGIN IMMEDIATE")
        undo(other, now=NOW)
        other.connection.execute("COMMIT")
        other.close()
        await run.app.main.watcher.show_written()
        await run.quiet()
        assert "archived" not in rows(run)[3]
    assert second


@pytest.mark.long
async def test_ten_thousand_sessions_read_only_what_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_store(tmp_path / "s.db", talk())
    database = open_database(path)
    database.connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
        " INSERT INTO chat_sessions(id, agent, model_json, parent_id, metadata_json, created_at,"
        " updated_at) SELECT printf('ses_%026d', i), 'x', '{}', CASE WHEN i < 100 THEN $1 ELSE"
        " printf('ses_%026d', i / 10) END, '{\"lineage\":{\"kind\":\"fork\"}}', i, i FROM n",
        {"1": SESSION})
    database.close()
    asked: list[str] = []

    def watched(db: Database, nodes: Any) -> Any:
        asked.extend(node.id for node in nodes)
        return tree_facts.node_facts(db, nodes)

    monkeypatch.setattr(tree_module, "node_facts", watched)
    # Else a busy machine counts the family in several steps, with pauses between.
    monkeypatch.setattr(costs, "COUNTED_S", 600.0)
    async with running(path, size=(120, 30)) as run:
        await run.open(SESSION)
        await run.press("T")
        assert "10,000 sessions" in drawn(run.app.screen)
        first = len(set(asked))
        assert 0 < first <= 40
        asked.clear()
        await run.press("G")
        assert 0 < len(set(asked)) <= 60
        asked.clear()
        await run.press("k", "k")
        assert len(asked) <= 2


async def test_siblings_are_stepped_through(family: tuple[Path, str, str]) -> None:
    path, first, second = family
    async with running(path) as run:
        await run.open(SESSION)
        await run.press("left_parenthesis")
        assert run.last == "This is the first branch"
        await run.press("right_parenthesis")
        assert run.app.main.opener.shown == first
        await run.press("alt+right")
        assert run.app.main.opener.shown == second
        await run.press("right_parenthesis")
        assert run.last == "This is the last branch"
        await run.press("alt+left", "left_parenthesis")
        assert run.app.main.opener.shown == SESSION


async def test_without_branches_it_says_so(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk())
    async with running(path) as run:
        await run.open(SESSION)
        for key in ("left_parenthesis", "D"):
            await run.press(key)
            assert run.last == "This session has no other branch; f forks it"
        await run.press("T")
        assert "Nothing was branched off this session yet." in drawn(run.app.screen)
        assert "f in the transcript forks it at a message." in drawn(run.app.screen)


@pytest.mark.parametrize("width", [140, 80])
@pytest.mark.one_in(2)
async def test_branches_are_compared_from_where_they_part(
    family: tuple[Path, str, str], width: int
) -> None:
    path, first, second = family
    async with running(path, size=(width, 50)) as run:
        await run.open(SESSION)
        await run.press("D")
        assert "A session (2)" in run.dialog() and "A session (3)" in run.dialog()
        await run.press("enter")
        screen = run.app.screen
        assert isinstance(screen, CompareScreen), run.told
        shown = drawn(screen)
        assert "Both begin with the same 4 messages (2 turns)." in shown
        assert "Prompt 0" not in shown
        line = next(row for row in shown.split("\n") if "Prompt 2" in row)
        assert ("user of own" in line) is (width == 140)
        assert shown.count("2 calls · 1.2k tokens") == 2
        if width == 140:
            failed = next(row for row in shown.split("\n") if "1 failed" in row)
            assert "1 call · 1.2k tokens" in failed
            assert "✗ Bash" in shown
            assert shown.count("Read a.py") == 2
        await run.press("enter")
        assert run.app.main.opener.shown == first
        assert run.transcript.shown.message_id == "msg_own0"
        await run.press("T", "g", "D")
        assert "Compare" in drawn(run.app.screen)
        await run.press("tab", "right_square_bracket", "tab", "enter")
        assert len(run.app.screen_stack) == 1
        assert run.app.main.opener.shown == SESSION
        assert run.transcript.shown.message_id == message_id(6)
    assert second


def test_compared_calls_name_files_from_the_workspace_and_say_what_failed() -> None:
    call: dict[str, object] = {
        "type": "tool-Edit", "state": "output-available", "input": {"file_path": "/w/a/b.py"}}
    failed: dict[str, object] = {
        "type": "tool-bash", "state": "output-available", "input": {"command": "make"},
        "resultProviderMetadata": {"backscroll": {"status": "error", "exit_code": 2}}}
    turn = BranchTurn("msg_1", "go", calls=["Edit", "bash"], failed=1, parts=[call, failed])
    (block,) = turn_blocks(turn, whole=True, root="/w")
    told = [block.line(n, 60).text.rstrip() for n in range(block.height(60))]
    assert told == ["▎ go", "▎ Edit a/b.py", "▎ ✗ bash make", "  2 calls  ✗ 1 failed"]


async def test_facts_are_read_for_what_was_drawn_once_and_again_when_wanted() -> None:
    asked: list[list[str]] = []

    async def read(nodes: list[FamilyNode]) -> dict[str, NodeFacts] | None:
        asked.append([node.id for node in nodes])
        if len(asked) == 1:
            reader.want(node_named("ses_c"))
        return {node.id: NodeFacts(len(asked), None, False, ()) for node in nodes}

    reader = FactsReader(read, lambda: None)
    assert not reader.is_due
    reader.want(node_named("ses_a"), node_named("ses_b"), node_named("ses_a"))
    assert reader.is_due
    await reader.run()
    assert asked == [["ses_a", "ses_b"], ["ses_c"]] and not reader.is_due
    reader.want(node_named("ses_a"))
    await reader.run()
    assert (reader.facts["ses_a"].turns, reader.facts["ses_b"].turns) == (3, 1)


def node_named(session_id: str) -> FamilyNode:
    return FamilyNode(session_id, None, "pi", "fork", 1, True, None, None, 0, 0, 0, None, 0)
