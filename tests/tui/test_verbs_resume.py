from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.ids import derived_session_id
from store.queries.sessions import get
from store.resume.claude_code import plan
from store.resume.planning import draft_prompt, with_prompt
from tests.tui.seeded import SESSION, Said, make_store, message_id, text
from tests.tui.verbs_app import query, running
from tui.app import BackscrollApp

TALK = [
    Said("user", [text("First prompt")]), Said("assistant", [text("First answer")]),
    Said("user", [text("Second prompt")]), Said("assistant", [text("Second answer")]),
]
CLAUDE = """#!/bin/sh
printf '%s\\n' "$PWD" "$@" > "$CALLS"
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work folder, a folder for Claude Code's files, and no agent on PATH."""
    for name in ("bin", "work", "claude"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("TMUX", raising=False)

    @contextmanager
    def suspend(self: BackscrollApp) -> Iterator[None]:
        yield

    monkeypatch.setattr(BackscrollApp, "suspend", suspend)
    return tmp_path


def store(places: Path) -> Path:
    return make_store(places / "s.db", TALK,
                      session={"workspace_root": str(places / "work")})


def install(places: Path) -> None:
    program = places / "bin" / "claude"
    program.write_text(CLAUDE)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def files(places: Path) -> list[Path]:
    return sorted((places / "claude").rglob("*.jsonl"))


async def test_a_fork_before_goes_on_with_its_text(places: Path) -> None:
    install(places)
    path = store(places)
    async with running(path) as run:
        await run.open(SESSION, message_id(2))
        await run.press("F", "enter")
        await run.press("C")
        shown = run.dialog()
        assert "Continue in Claude Code" in shown
        assert "Second prompt" in shown
        await run.press("enter")
        (file,) = files(places)
        calls = (places / "calls").read_text().splitlines()
        assert calls == [str(places / "work"), "--resume", file.stem, "--", "Second prompt"]
        said = [json.loads(line) for line in file.read_text().splitlines()]
        assert "First answer" in json.dumps(said)
        assert "Second answer" not in json.dumps(said)
        continued = derived_session_id("claude-code", file.stem)
        assert run.app.main.opener.shown == continued
        rows = query(path, "SELECT count(*) FROM chat_messages WHERE session_id = ?", continued)
        assert rows == [(2,)]


async def test_without_the_agent_it_offers_file_and_command(places: Path) -> None:
    path = store(places)
    async with running(path) as run:
        await run.open(SESSION)
        await run.press("C")
        assert "claude is not on PATH" in run.dialog()
        await run.press("escape")
        assert files(places) == []
        await run.press("C", "enter")
        (file,) = files(places)
        assert not (places / "calls").exists()
        copied = run.app.clipboard
        assert f"claude --resume {file.stem}" in copied
        assert copied.startswith("cd ")


async def test_what_it_says_can_be_edited(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(places)
    path = store(places)
    monkeypatch.setattr("tui.kit.editing.edit_text", lambda app, given: "And now this")
    async with running(path) as run:
        await run.open(SESSION)
        await run.press("C", "ctrl+e")
        assert "And now this" in run.dialog()
        await run.press("enter")
        assert (places / "calls").read_text().splitlines()[-1] == "And now this"


async def test_an_empty_session_is_refused(places: Path) -> None:
    path = make_store(places / "s.db", [], session={"workspace_root": str(places / "work")})
    async with running(path) as run:
        await run.press("C")
        assert run.last == "This session has no message that an agent could resume from"


async def test_a_draft_counts_until_something_follows(places: Path) -> None:
    path = store(places)
    async with running(path) as run:
        await run.open(SESSION, message_id(2))
        await run.press("F", "enter")
    database = open_database(path)
    (made,) = database.connection.execute(
        "SELECT id FROM chat_sessions WHERE parent_id IS NOT NULL").fetchone()
    row = get(database, made)
    assert row is not None
    assert draft_prompt(database, row) == "Second prompt"
    planned = plan(database, row, {"PATH": ""}, places)
    assert planned.command[-1] == "Second prompt"
    assert with_prompt(planned, "").command == planned.command[:-2]
    database.connection.execute(
        "INSERT INTO chat_messages VALUES ('msg_later', ?, 'user', '{}', 9e12, 9e12)", (made,))
    assert draft_prompt(database, row) is None
    database.close()
