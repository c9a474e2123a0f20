"""Toasts: how many, how long, where, and how they go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from tests.tui.stores import browser, put, settled, some
from tests.tui.verbs_app import drawn
from tui.app import MOST_TOASTS
from tui.kit.text import cells, fit_middle


def test_a_long_path_keeps_where_it_begins_and_its_name() -> None:
    path = "/home/me/" + "very/" * 20 + "long/name.md"
    cut = fit_middle(path, 40)
    assert cells(cut) <= 40 and cut.startswith("/home/me/") and cut.endswith("/name.md")
    assert fit_middle("/a/b", 40) == "/a/b"


async def test_two_are_shown_at_most_and_escape_closes_them(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("enter")
        for words in ("one", "two", "three", "/very" * 30):
            app.notify(words)
        await pilot.pause()
        shown = [note.message for note in app._notifications]
        assert shown[0] == "three" and len(shown) == 2 and len(shown[1]) <= 48
        await pilot.press("escape")
        assert not len(app._notifications) and app.main.panes.focused == "transcript"
        await pilot.press("escape")
        assert app.main.sessions.view.has_focus


async def test_nothing_is_left_of_those_that_went(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settled(app, pilot)
        for number in range(12):
            if number == 6:
                await pilot.press("T")
                await settled(app, pilot)
            app.notify(str(number))
            await pilot.pause()
        assert len(app.main.query("ToastHolder")) <= MOST_TOASTS
        app.close_toasts()
        for words in ("last", "of all"):
            app.notify(words)
            await settled(app, pilot)
        assert len(app.screen.query("Toast")) == len(app.screen.query("ToastHolder")) == 2


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.parametrize("keys", [["1"], ["2"], ["3"], ["T"]])
@pytest.mark.one_in(3)
async def test_the_status_line_and_the_keys_stay_in_sight(
    keys: list[str], size: tuple[int, int], tmp_path: Path
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=size, notifications=True) as pilot:
        await settled(app, pilot)
        await pilot.press(*keys)
        await settled(app, pilot)
        before = rows_of(app.screen)
        for words in ("one", "two " * 60):
            app.notify(words)
        await settled(app, pilot)
        after = rows_of(app.screen)
        assert before != after and any("two two" in row for row in after)
        assert after[-2:] == before[-2:]


async def test_a_copy_is_reported_on_one_line_of_80_columns(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    words = "sent 1,234 characters to the terminal's clipboard (OSC 52)"
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settled(app, pilot)
        app.notify(words)
        await settled(app, pilot)
        assert any(words in row for row in rows_of(app.screen))


def rows_of(screen: Screen[Any]) -> list[str]:
    rows = drawn(screen).split("\n")
    return [*rows, *[""] * (screen.size.height - len(rows))]


async def test_escape_closes_them_before_a_dialog_or_screen(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        for keys in (["d"], ["T"], ["question_mark"], ["S", "tab"]):
            await pilot.press(*keys)
            await settled(app, pilot)
            above = app.screen
            assert above is not app.main
            app.notify("one")
            await pilot.pause()
            await pilot.press("escape")
            assert app.screen is above and not len(app._notifications), keys
            app.notify("two")
            await pilot.pause()
            await pilot.press("q")
            await pilot.pause()
            assert app.screen is app.main, keys
            app.close_toasts()


async def test_a_line_and_a_filter_are_left_with_the_press_that_closes_them(
    tmp_path: Path,
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        sessions = await settled(app, pilot)
        for keys in (["slash"], ["slash", "1", "enter"]):
            await pilot.press(*keys)
            app.notify("one")
            await pilot.pause()
            await pilot.press("escape")
            assert not sessions.filter_text and not sessions.filter_has_focus, keys
            assert not len(app._notifications)
