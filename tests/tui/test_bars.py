from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.stores import Told, browser, put, settled, some
from tui.dialogs.palette import PaletteScreen
from tui.kit.text import cells
from tui.live.summary import Summary
from tui.main.bars import TopLine
from tui.main.headline import Headline
from tui.main.screen import MainScreen
from tui.state.layout import BORDER

SIX = [
    Told("ses_a", "Retry loop", "/w/api", age=5),
    Told("ses_b", "fork of it", "/w/api", age=2, parent="ses_a", model="claude-sonnet-4-5"),
    *[Told(f"ses_{n}", f"Old {n}", "/w/notes", age=900, archived=True) for n in range(3)],
    Told("ses_f", None, None, age=8000),
]


async def test_the_counts_say_what_the_list_leaves_out(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", SIX))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        top = app.main.query_one(TopLine).render_line(0).text
        assert "6 sessions  3 archived" in top


async def test_a_store_that_cannot_be_written_says_so_all_the_time(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", SIX)
    app = browser(path)
    app.library.database.file_read_only = "it is older than stone"
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        assert "test  read only  6 sessions" in app.main.query_one(TopLine).render_line(0).text


@pytest.mark.parametrize("width", [120, 60, 44, 16, 4])
@pytest.mark.one_in(2)
async def test_nothing_of_the_top_line_is_cut_in_two(width: int, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", SIX))
    async with app.run_test(size=(width, 20)) as pilot:
        await settled(app, pilot)
        line = app.main.query_one(TopLine)
        line.summary = Summary("s.db", 6, 3, 2, 1, 2, "synced 2 s ago")
        words = line.render_line(0).text
        assert cells(words) == width
        whole = ["6 sessions", "3 archived", "2 sources", "● 1 running", "◐ 2 waiting (24 h)",
                 "◐ 2 waiting", "synced 2 s ago"]
        rest = words
        for piece in whole:
            rest = rest.replace(piece, "")
        assert set(rest.split()) <= {"backscroll", "s.db", "…"} or width < 24


@pytest.mark.parametrize(
    ("freshness", "words"),
    [
        ("changed now", "demo  18 sessions     ● 1 running  ◐ 2 waiting (24 h)  changed now"),
        ("changed 39 s ago", "demo  18 sessions       ● 1 running  ◐ 2 waiting  changed 39 s ago"),
    ],
)
async def test_where_room_is_short_the_first_count_stays_longest(
    freshness: str, words: str, tmp_path: Path
) -> None:
    app = browser(put(tmp_path / "s.db", SIX))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        line = app.main.query_one(TopLine)
        line.summary = Summary("demo", 18, 1, 0, 1, 2, freshness)
        assert line.render_line(0).text == f" backscroll  {words} "


async def test_a_headline_is_shown_whole(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", SIX))
    places = [f"~/.agent-{number}/sessions" for number in range(12)]
    app.library.headline = f"Nothing found in {', '.join(places)}; showing the demo"
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        headline = app.main.query_one(Headline)
        shown = " ".join(headline.render_line(y).text.strip() for y in range(headline.size.height))
        assert shown == f"{app.library.headline} (esc closes this)"
        assert app.main.query_one("#panes").region.y == 1 + headline.size.height


@pytest.mark.parametrize("way", ["escape", "click"])
async def test_a_headline_goes_away(way: str, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", SIX))
    app.library.headline = "Nothing found; showing the demo"
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        await (pilot.click(Headline) if way == "click" else pilot.press("escape"))
        await settled(app, pilot)
        assert not app.main.query(Headline)
        assert app.main.query_one("#panes").region.y == 1


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Holds back the transcript and the inspector of a start until it is set."""
    let_go, real = asyncio.Event(), MainScreen.load_panes

    async def slow(self: MainScreen) -> None:
        await let_go.wait()
        await real(self)

    monkeypatch.setattr(MainScreen, "load_panes", slow)
    return let_go


async def test_panes_that_come_late_leave_the_focus_in_the_filter(
    tmp_path: Path, let_go: asyncio.Event
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.press("slash", "s", "e")
        let_go.set()
        await settled(app, pilot)
        assert app.main.transcript is not None
        await pilot.press("s", "s")
        await settled(app, pilot)
        assert app.main.sessions.filter_has_focus
        assert app.main.sessions.filter_text == "sess"


async def test_what_is_on_its_way_is_named_at_once(
    tmp_path: Path, let_go: asyncio.Event
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        slot = app.main.panes.slot
        assert slot is not None
        drawn = [slot.render_line(y).text[BORDER:].rstrip() for y in range(3)]
        assert drawn == [" Session 0", " opening…", ""]
        let_go.set()
        await settled(app, pilot)
        assert app.main.transcript is not None
        assert app.main.transcript.headings.header.render_line(0).text.rstrip() == drawn[0]


async def test_the_palette_lists_the_focused_pane_first_and_looks_in_the_help(
    tmp_path: Path,
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("ctrl+p")
        await settled(app, pilot)
        palette = app.screen
        assert isinstance(palette, PaletteScreen)
        assert palette.found[0].title.startswith("Sessions: ")
        app.screen.query_one(Input).value = "timeline"
        await settled(app, pilot)
        assert palette.found[0].title == "Sessions: Details"


async def test_a_toast_that_still_stands_is_not_repeated(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        for words in ("No", "No", "Other", "Other"):
            app.notify(words)
        await pilot.pause()
        assert [note.message for note in app._notifications] == ["No", "Other"]


async def test_a_short_row_keeps_the_model(tmp_path: Path) -> None:
    told = [Told("ses_a", "One", "/w/api", age=5, model="claude-opus-4-5", tokens=9000),
            Told("ses_b", "Two", "/w/api", age=6, model="gpt-5.2", source="codex")]
    app = browser(put(tmp_path / "s.db", told))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        assert "claude · opus-4.5 " in pane.view.render_line(3).text
        await pilot.resize_terminal(200, 40)
        await settled(app, pilot)
        assert "claude-code · opus-4.5 " in pane.view.render_line(3).text
