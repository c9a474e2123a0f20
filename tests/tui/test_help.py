from __future__ import annotations

from pathlib import Path

import pytest
from textual.containers import Vertical
from textual.widgets import Input

from tests.tui.stores import browser, put, settled, some
from tui.dialogs.help import HelpScreen
from tui.keys.footer import BottomLine
from tui.keys.registry import commands
from tui.kit.line_view import LineView
from tui.kit.text import cells


def words_of(view: LineView) -> str:
    lines = [view.line_at(number).text for number in range(view.stack.height(view.cells))]
    assert all(cells(line) <= view.cells for line in lines)
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("size", [(200, 60), (80, 24), (40, 24)])
async def test_all_help_is_there_to_be_read(size: tuple[int, int], tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        below = app.screen.query_one(BottomLine)
        assert below.region.bottom <= size[1]
        assert "esc close" in below.render_line(0).text
        view = app.screen.query_one(LineView)
        told = words_of(view)
        view.move_by(1_000)
        assert view.cursor == view.stack.height(view.cells) - 1
        if size[0] > 40:
            for command in (*commands("list"), *commands("main"), *commands("app")):
                assert " ".join(command.help.split()) in told, command.id


@pytest.mark.parametrize(("size", "dims"), [((120, 40), True), ((500, 150), False)])
async def test_a_large_screen_is_not_drawn_anew_around_it(
    size: tuple[int, int], dims: bool, tmp_path: Path
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        widths = list[int]()

        class Watched(HelpScreen):
            def on_screen_resume(self) -> None:
                self.call_after_refresh(lambda: widths.append(self.query_one(Vertical).size.width))

        app.push_screen(Watched(("list", "app"), app.commands))
        await pilot.pause()
        assert (app.screen.styles.background.a > 0) is dims
        # It never covers the screen, not before it is laid out either.
        assert set(widths) == {app.screen.query_one(Vertical).size.width}


async def test_the_help_is_grouped_by_what_one_wants_to_do(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 60)) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        view = app.screen.query_one(LineView)
        lines = [view.line_at(number).text for number in range(view.stack.height(view.cells))]
        heads = [line.split()[0] for line in lines if line.rstrip().endswith("──")]
        assert heads == ["Move", "Read", "Find", "Copy", "Change", "Screen"]
        ends = {line.index("  Next session") for line in lines if "  Next session" in line}
        ends |= {line.index("  Toggle star") for line in lines if "  Toggle star" in line}
        assert len(ends) == 1


async def test_the_help_is_filtered_by_words_and_by_keys(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(100, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark", "slash", *"mark")
        await pilot.pause()
        view = app.screen.query_one(LineView)
        assert "Toggle mark" in words_of(view) and "Toggle star" not in words_of(view)
        app.screen.query_one(Input).value = "ctrl+r"
        await pilot.pause()
        assert words_of(view).endswith("ctrl+r Redo what was undone")
        app.screen.query_one(Input).value = "nothing like it"
        await pilot.pause()
        assert words_of(view) == "No key fits “nothing like it”"
        await pilot.press("escape")
        assert "Toggle star" in words_of(view) and app.screen.focused is view
        await pilot.press("q")
        assert not isinstance(app.screen, HelpScreen)


async def test_the_line_below_the_help_closes_it(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        view, line = app.screen.query_one(LineView), app.screen.query_one(BottomLine)
        await pilot.press("j", "j", "k")
        assert view.cursor == 1
        text = line.render_line(0).text
        await pilot.click(line, offset=(text.index("filter"), 0))
        await pilot.pause()
        assert isinstance(app.screen.focused, Input)
        await pilot.press("escape")
        text = line.render_line(0).text
        await pilot.click(line, offset=(text.index("close"), 0))
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


@pytest.mark.parametrize(
    ("width", "wanted"), [(60, 60), (80, 80), (111, 111), (112, 88), (200, 88)])
@pytest.mark.one_in(3)
async def test_no_letters_of_the_screen_below_are_at_its_sides(
    width: int, wanted: int, tmp_path: Path
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(width, 24)) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        assert app.screen.query_one(Vertical).region.width == wanted
