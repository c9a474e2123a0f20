"""At whatever pace keys come, each is for what the one before it has led to."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from textual import events
from textual.widget import Widget

from tests.tui.stores import Told, put
from tests.tui.terminals import on_a_terminal
from tests.tui.test_typed_ahead import OTHER, two_talks
from tests.tui.verbs_app import Running, query, running
from tui.dialogs.save import SaveScreen
from tui.sessions.filter_line import FilterInput

NAMED = {"escape", "enter", "down", "home", "backspace"}
PACES = range(14)
"""Turns of the loop from key to key; a key needs some ten to go through all widgets."""


def greek(folder: Path) -> Path:
    return put(folder / "s.db", [
        Told(f"ses_{n:026d}", f"{'alpha' if n % 2 else 'gamma'} {n}", age=n + 1)
        for n in range(30)])


def archived(path: Path) -> list[str]:
    return [row[0] for row in query(
        path, "SELECT id FROM chat_sessions WHERE archived_at IS NOT NULL")]


async def typed(run: Running, pace: int, *keys: str) -> None:
    """Give keys to the app, each some turns of its loop after the one before."""
    for key in keys:
        run.app.post_message(events.Key(key, None if key in NAMED else key))
        for _turn in range(pace):
            await asyncio.sleep(0)
    await run.quiet()


@pytest.mark.long
async def test_text_is_read_in_the_order_it_was_typed_in(tmp_path: Path) -> None:
    async with running(two_talks(tmp_path / "s.db")) as run:
        for pace in PACES:
            await typed(run, pace, "slash", *"other")
            assert (run.sessions.filter_text, run.told) == ("other", [])
            await typed(run, pace, "escape")
            assert run.sessions.filter_text == ""


@pytest.mark.long
async def test_keys_behind_the_filter_move_in_what_it_found(tmp_path: Path) -> None:
    path = greek(tmp_path)
    async with running(path) as run:
        for pace in PACES:
            await typed(run, pace, "slash", *"gamm", "enter", "home", "j", "j")
            assert run.sessions.filter_text == "gamm" and not run.sessions.filter_has_focus
            assert run.sessions.view.model.matched == 15
            assert run.sessions.selected_id == f"ses_{4:026d}"
            await typed(run, pace, "slash", "x", "escape", "home", "j", "j")
            assert (run.sessions.filter_text, run.sessions.view.model.matched) == ("", 30)
            assert run.sessions.selected_id == f"ses_{2:026d}"
            await typed(run, pace, "slash", *"alp", "enter", "slash", "h", "enter", "home", "j",
                        "a")
            assert run.sessions.filter_text == "alph"
            assert archived(path) == [f"ses_{3:026d}"]
            await typed(run, pace, "escape", "U")
            assert not run.sessions.filter_text and not archived(path)


@pytest.mark.long
async def test_keys_behind_the_search_of_the_transcript_go_on_in_it(tmp_path: Path) -> None:
    async with running(two_talks(tmp_path / "s.db")) as run:
        await typed(run, 0, "G", "enter")
        for pace in PACES:
            await typed(run, pace, "home", "slash", *"user", "enter", "n", "n")
            search = run.transcript.shown.search
            assert search is not None
            assert (search.needle, search.number, run.transcript.cursor) == ("user", 3, 4)
            await typed(run, pace, "slash", *"answer", "escape", "slash", *"assis", "enter", "n")
            search = run.transcript.shown.search
            assert search is not None and search.needle == "assis"
            await typed(run, pace, "escape")
            assert run.transcript.shown.search is None
            assert run.app.main.panes.focused == "transcript"
        assert not run.told


@pytest.mark.long
async def test_keys_behind_the_search_of_the_inspector_go_on_in_it(tmp_path: Path) -> None:
    async with running(two_talks(tmp_path / "s.db")) as run:
        await typed(run, 0, "G", "enter")
        inspector = run.app.main.inspector
        assert inspector is not None
        await typed(run, 0, "3")
        for pace in PACES:
            await typed(run, pace, "slash", "a", "enter")
            at, hits = inspector.view.found
            assert (inspector.view.needle, at) == ("a", 1) and hits == 3
            await typed(run, pace, "slash", "a", "enter", "n", "n")
            assert (inspector.view.needle, inspector.view.found) == ("a", (3, 3))
            await typed(run, pace, "slash", "x", "escape", "j")
            assert inspector.view.needle == "" and run.app.main.panes.focused == "inspector"
            assert inspector.query_one("#find-text").value == ""  # type: ignore[attr-defined]
        assert not run.told


@pytest.mark.long
async def test_keys_behind_a_dialog_are_for_what_it_leaves(tmp_path: Path) -> None:
    path = greek(tmp_path)
    async with running(path) as run:
        for pace in PACES:
            await typed(run, pace, "home", "R", *f"x{pace}", "enter", "home", "j", "j")
            assert query(path, "SELECT json_extract(metadata_json, '$.user.title') FROM "
                         "chat_sessions WHERE id = ?", f"ses_{0:026d}"
                         ) == [("gamma 0" + "".join(f"x{n}" for n in range(pace + 1)),)]
            assert run.sessions.selected_id == f"ses_{2:026d}"
            await typed(run, pace, "home", "R", "x", "escape", "home", "j", "j")
            assert run.sessions.selected_id == f"ses_{2:026d}"


@pytest.mark.parametrize("last", [
    "escape", pytest.param("enter", marks=pytest.mark.long)])
async def test_keys_behind_the_place_to_save_to_are_none_of_it(tmp_path: Path, last: str) -> None:
    async with running(greek(tmp_path)) as run:
        for pace in PACES:
            await run.app.push_screen(SaveScreen("words", "v", "", tmp_path))
            await run.quiet()
            await typed(run, pace, *f"{pace}", last, "home", "j", "j")
            assert run.sessions.selected_id == f"ses_{2:026d}"
        saved = {f"v{pace}" for pace in PACES} if last == "enter" else set()
        assert {found.name for found in tmp_path.iterdir()} - {"s.db", "s.db-wal", "s.db-shm"} \
            == saved


async def test_clicks_wait_for_the_keys_before_them(tmp_path: Path) -> None:
    async with running(greek(tmp_path)) as run:
        field = run.sessions.query_one(FilterInput)
        x, y = field.region.offset + (3, 0)
        for key in ("home", "j"):
            run.app.post_message(events.Key(key, None if key in NAMED else key))
        for press in (events.MouseDown, events.MouseUp):
            run.app.post_message(press(None, x, y, 0, 0, 1, False, False, False, x, y, None))
        run.app.post_message(events.Key("g", "g"))
        await run.quiet()
        assert (run.sessions.filter_text, run.sessions.filter_has_focus) == ("g", True)
        assert run.sessions.view.model.matched == 15


async def test_a_key_that_is_lost_does_not_hold_back_the_next(tmp_path: Path) -> None:
    async with running(greek(tmp_path)) as run:
        await run.app.main.mount(gone := Focusable())
        run.app.main.set_focus(gone)
        run.app.post_message(events.Key("x", "x"))
        gone.remove()
        run.app.main.panes.focus("sessions")
        await typed(run, 0, "home", "j", "j")
        assert run.sessions.selected_id == f"ses_{2:026d}"


class Focusable(Widget, can_focus=True):
    """Has the focus, and goes away with it."""


def test_on_a_terminal_a_key_behind_the_filter_is_a_command(tmp_path: Path) -> None:
    path = two_talks(tmp_path / "s.db")
    environment = {"TERM": "xterm-256color", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin",
                   "PYTHONPATH": str(Path(__file__).parents[2]), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "tui", str(path)]
    with on_a_terminal(command, environment, (120, 30)) as terminal:
        terminal.wait_for(b"Sessions")
        terminal.send(b"/other\raq")
        terminal.wait_for_end()
    assert archived(path) == [OTHER]
