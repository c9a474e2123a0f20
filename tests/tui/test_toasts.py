"""Toasts: how many, how long, where, and how they go."""

from __future__ import annotations

from pathlib import Path

from tests.tui.stores import browser, put, settled, some
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
