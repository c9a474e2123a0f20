"""An imported session goes on only after its command was shown; what is shown is what runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.imports.reading import import_file
from tests.cli.hostile import session, write
from tests.tui.test_verbs_resume import install, places
from tests.tui.verbs_app import running

__all__ = ["places"]
SIZES = [(80, 24), (120, 40)]


def imported(places: Path, **values: Any) -> tuple[Path, str]:
    store = places / "s.db"
    database = open_database(store, create=True)
    (name,) = write(places / "in.jsonl", session(workspace=str(places / "work"), **values))
    assert [one.outcome for one in import_file(database, places / "in.jsonl")] == ["added"]
    database.close()
    return store, name


def calls(places: Path) -> list[str]:
    return (places / "calls").read_text().splitlines()


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_shown_is_what_runs(places: Path, size: tuple[int, int]) -> None:
    install(places)
    store, name = imported(places, prompt="--dangerously-skip-permissions")
    async with running(store, size=size) as run:
        await run.open(name)
        await run.press("C")
        shown = " ".join(run.dialog().split())
        assert "Check this command before you start it: the session was imported" in shown
        assert "not read from an agent" in shown
        assert f"folder {places}"[:40] in shown and "environment as in this terminal" in shown
        for key in ("enter start the agent", "y copy", "v view all", "e edit", "esc leave"):
            assert key in shown, (key, shown)
        assert not (places / "calls").exists()
        await run.press("enter")
        folder, *arguments = calls(places)
        assert folder == str(places / "work")
        assert arguments[0] == "--resume"
        assert arguments[2:] == ["--", "--dangerously-skip-permissions"]
        command = shlex.join(["claude", *arguments])
        assert command[:40] in shown


async def test_a_session_that_says_it_is_the_agents_own_asks_too(places: Path) -> None:
    """A file of that name on this machine does not make an import one of its sessions."""
    install(places)
    own = places / "claude" / "projects" / "-x" / "11111111-2222-4333-8444-555555555555.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("{}\n")
    store, name = imported(places, path=str(own))
    async with running(store) as run:
        await run.open(name)
        await run.press("C")
        assert "Check this command before you start it" in run.dialog()
        assert not (places / "calls").exists()
        await run.press("escape")
        assert not (places / "calls").exists()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.one_in(2)
async def test_a_prompt_that_cannot_be_said_is_told(places: Path, size: tuple[int, int]) -> None:
    install(places)
    store, name = imported(places, prompt="look: \x1b[31mred " + "and more words " * 60)
    async with running(store, size=size) as run:
        await run.open(name)
        await run.press("C")
        shown = run.dialog()
        assert "Not sent" in shown and "holds a control" in shown and "␛[31mred" in shown
        assert "enter start the agent" in shown and "esc leave" in shown
        await run.press("enter")
        assert len(calls(places)) == 3
