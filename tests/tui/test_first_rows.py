"""The first rows, which stand on the screen while the main screen is loaded."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.geometry import Region
from textual.screen import Screen

from store.config import Settings
from tests.tui.stores import NOW, put, settled, some
from tests.tui.terminals import on_a_terminal
from tui.app import BackscrollApp
from tui.main.first_screen import ABOVE, BELOW, FirstScreen
from tui.main.screen import MainScreen
from tui.state.layout import LayoutState
from tui.state.library import Library
from tui.state.view_state import ViewState, load_state, save_state, state_path

TURNS = re.compile(r"\d+ turns")
"""They are counted later, now and then before the main screen is painted."""


def text_of(screen: Screen[Any]) -> list[str]:
    return [strip.text for strip in screen._compositor.render_strips()]


class Starting(BackscrollApp):
    """Keeps what it drew first, and is typed into before it can answer."""

    def __init__(self, path: Path, *keys: str) -> None:
        library = Library.open(path, "test", clock=lambda: NOW)
        super().__init__(library, Settings(), poll_ms=0, rows_first=True)
        self.keys = keys
        self.first: list[str] = []
        self.then: list[str] = []
        self.list_region = Region()

    def _make_main(self) -> MainScreen:
        if self.screen_stack:
            self.first = text_of(self.screen)
        for key in self.keys:
            self.post_message(events.Key(key, " " if key == "space" else key))
        return super()._make_main()

    def _after_first_paint(self) -> None:
        self.then = text_of(self.main)
        self.list_region = self.main.sessions.view.region
        super()._after_first_paint()




LAYOUTS = {
    "plain": ViewState(),
    "by day, far down": ViewState(group="day", session_id=f"ses_{31:026d}"),
    "ungrouped, wide list": ViewState(
        group="none", sort="tokens", layout=LayoutState(sessions_width=75)),
    "archived, zoomed": ViewState(shelf="all", layout=LayoutState(zoomed=True)),
    "list put away": ViewState(layout=LayoutState(hidden=frozenset({"sessions"}))),
}


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24), (60, 12)])
@pytest.mark.parametrize("name", LAYOUTS)
async def test_the_main_screen_has_the_same_rows(
    tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    path = put(tmp_path / "s.db", some(40))
    save_state(state_path(path), LAYOUTS[name])
    app = Starting(path)
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
    x, y, width, height = app.list_region
    assert (x, y, height) == (0, ABOVE, size[1] - ABOVE - BELOW)
    # The last column may have the scrollbar by then.
    seen = slice(0, width - 1)
    first, then = ([line[seen] for line in lines[y:y + height]]
                   for lines in (app.first, app.then))
    assert "Session " in "".join(first)
    assert first == [TURNS.sub(lambda found: " " * len(found[0]), line) for line in then]
    assert app.first[0].rstrip() == " backscroll  test"
    assert app.then[0].startswith(" backscroll  test")
    for line in (1, 2):
        words = app.first[line][:width].split("  ")
        assert all(word.strip() in app.then[line][:width] for word in words)


async def test_what_is_typed_before_it_can_be_answered_is_done_in_order(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(10))
    app = Starting(path, "g", "j", "j", "k", "j", "space")
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        view = app.main.sessions.view
        marked = {view.rows[rowid].title for rowid in view.marked}
        assert "Session 0" in "".join(app.first)
        entry = view.cursor
        assert entry is not None
        titles = [view.rows[rowid].title for rowid in view.model.rowids]
        assert (marked, entry) == ({titles[2]}, 3)
        assert app.screen is app.main
        await pilot.press("k")
        assert view.cursor == 2


@pytest.mark.parametrize("reason", ["no session", "headline", "folder"])
async def test_without_rows_to_show_the_main_screen_comes_at_once(
    tmp_path: Path, reason: str
) -> None:
    app = Starting(put(tmp_path / "s.db", some(0 if reason == "no session" else 3)))
    if reason == "headline":
        app.library.headline = "Look here"
    if reason == "folder":
        app.library.workspace = "/w/p0"
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        assert not any(isinstance(screen, FirstScreen) for screen in app.screen_stack)
        assert isinstance(app.screen, MainScreen)


def test_keys_on_a_terminal_are_answered_once_the_screen_is_there(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(10))
    command = [sys.executable, "-m", "tui", "--store", str(path)]
    with on_a_terminal(command, os.environ, (120, 40)) as terminal:
        terminal.wait_for(b"Session 0")
        terminal.send(b"jjd")
        terminal.wait_for(b" tabs")
        terminal.send(b"\x11")
        terminal.wait_for_end()
    assert load_state(state_path(path)).session_id == f"ses_{6:026d}"
