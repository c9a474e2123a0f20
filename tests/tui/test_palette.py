"""The palette: what it finds, in which order, and what it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen
from textual.widgets import Input

from tests.tui.seeded import SESSION, long_talk, make_store
from tests.tui.stores import browser, put, settled, some
from tests.tui.verbs_app import query, running
from tui.app import BackscrollApp
from tui.dialogs.lines import LinesDialog
from tui.dialogs.palette import PaletteScreen
from tui.dialogs.save import ExportScreen
from tui.keys.finding import rank
from tui.keys.footer import BottomLine
from tui.keys.prompt import PromptLine
from tui.kit.line_view import LineView
from tui.stats.screen import StatsScreen


@pytest.mark.parametrize(("typed", "better", "worse"), [
    ("sort", "sort", "resort"),
    ("fork", "fork here", "show forks"),
    ("here", "fork here", "where"),
    ("arch", "archive", "search"),
    ("fh", "fork here", "shift"),
])
def test_word_starts_come_before_the_middle_and_letters_in_order_last(
    typed: str, better: str, worse: str
) -> None:
    assert rank(typed, better) > rank(typed, worse)


def test_a_name_comes_before_a_synonym_and_that_before_the_help() -> None:
    ranks = [rank("resume", "resume"), rank("resume", "continue", also="resume go on"),
             rank("resume", "fork", help="Fork, and resume it"), rank("resume", "quit")]
    assert ranks == sorted(ranks, reverse=True) and ranks[-1] == 0
    assert rank("ctrl+r", "redo", keys=("ctrl+r",)) == 9
    assert rank("xyz", "copy") == 0
    assert rank("", "copy") == 1


async def opened(app: BackscrollApp, pilot: object) -> PaletteScreen:
    await settled(app, pilot)  # type: ignore[arg-type]
    await pilot.press("ctrl+p")  # type: ignore[attr-defined]
    await settled(app, pilot)  # type: ignore[arg-type]
    assert isinstance(app.screen, PaletteScreen)
    return app.screen


CALLED = [
    ("resume", "Continue"), ("continue", "Continue"), ("export", "Save"), ("save", "Save"),
    ("share", "Save"), ("delete", "Forget"), ("forget", "Forget"), ("title", "Rename"),
    ("rename", "Rename"), ("revert", "Undo"), ("undo", "Undo"), ("hide", "Hide"),
    ("statistics", "Statistics"), ("sources", "Sources"), ("sync", "Sync now"),
    ("import", "Import"),
    ("star", "Star"), ("tag", "Tags"), ("redo", "Redo"), ("restore", "Restore"),
    ("grep", "Search"), ("shortcuts", "Keys"),
]


async def test_commands_are_found_by_what_one_calls_them(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        palette = await opened(app, pilot)
        for typed, name in CALLED:
            palette.look(typed)
            assert name in [entry.name for entry in palette.found[:3]], typed


@pytest.mark.parametrize("size", [(120, 40), (12, 5)])
async def test_page_keys_work_in_any_window(size: tuple[int, int], tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=size) as pilot:
        palette = await opened(app, pilot)
        view = palette.query_one(LineView)
        await pilot.press("pagedown", "pagedown", "pageup", "down")
        assert 0 < view.cursor < len(palette.found)
        await pilot.press("escape")
        assert app.screen is app.main


async def test_a_command_that_cannot_run_says_why(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        palette = await opened(app, pilot)
        palette.query_one(Input).value = "unmark"
        await pilot.pause()
        assert palette.found[0].refused == "No session is marked"
        await pilot.press("enter")
        assert app.screen is palette


@pytest.mark.parametrize(("typed", "kind", "shown"), [
    ("sources", LinesDialog, "Claude Code"), ("stats", StatsScreen, "Nothing was counted"),
])
async def test_sources_and_figures_are_screens(
    typed: str, kind: type[Screen[Any]], shown: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "home" / ".claude" / "projects").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(app, pilot)
        await pilot.press(*typed, "enter")
        await settled(app, pilot)
        assert isinstance(app.screen, kind)
        view = app.screen.query_one(LineView)
        assert shown in "".join(view.line_at(n).text for n in range(20))
        back = "esc close" if typed == "sources" else "esc back"
        assert back in app.screen.query_one(BottomLine).render_line(0).text
        await pilot.press("q")
        assert len(app.screen_stack) == 1


async def test_a_session_is_saved_and_no_file_is_replaced_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(put(tmp_path / "s.db", some(3)), (120, 40)) as run:
        app = run.app
        await run.press("w", "enter")
        assert isinstance(app.screen, ExportScreen)
        there = tmp_path / "there.md"
        there.write_text("mine")
        app.screen.query_one(Input).value = str(there)
        await run.quiet()
        await run.press("enter")
        assert there.read_text() == "mine" and isinstance(app.screen, ExportScreen)
        app.screen.query_one(Input).value = str(tmp_path)
        await run.quiet()
        await run.press("enter")
        assert len(app.screen_stack) == 1
        (made,) = [path for path in tmp_path.glob("*.md") if path != there]
        assert "Session 0" in made.read_text()


async def test_forget_names_its_session_and_asks(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(2))
    async with running(path) as run:
        for answer, left in (("escape", 2), ("enter", 1)):
            run.app.main.request_command("app.forget")
            await run.quiet()
            assert "Remove permanently?" in run.dialog() and "Session 0" in run.dialog()
            await run.press(answer)
            assert query(path, "SELECT count(*) FROM chat_sessions") == [(left,)]


async def test_a_wrong_place_keeps_its_text(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(2))
    async with running(path) as run:
        await run.open(SESSION)
        await run.press("colon", *"zzz", "enter")
        assert run.transcript.prompt.is_open and run.told
        assert run.transcript.prompt.query_one(PromptLine).value == "zzz"
