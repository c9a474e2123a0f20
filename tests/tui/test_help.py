from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.stores import browser, put, settled, some
from tui.keys.footer import BottomLine
from tui.keys.help import KeyTable
from tui.keys.registry import commands
from tui.kit.text import cells


@pytest.mark.parametrize("size", [(200, 60), (80, 24), (40, 24)])
async def test_all_help_is_there_to_be_read(size: tuple[int, int], tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        below = app.screen.query_one(BottomLine)
        assert below.region.bottom <= size[1] and "esc close" in below.render_line(0).text
        table = app.screen.query_one(KeyTable)
        seen = []
        for top in range(table.virtual_size.height):
            table.scroll_to(y=top, animate=False, immediate=True)
            line = table.render_line(0 if table.scroll_offset.y == top
                                     else top - table.scroll_offset.y).text
            assert cells(line) == table.size.width
            seen.append(line[table._columns + 4:].strip())
        told = " ".join(" ".join(seen).split())
        for command in commands("list"):
            assert " ".join(command.help.split()) in told, command.id


async def test_the_line_below_the_help_scrolls_and_closes_it(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        table, line = app.screen.query_one(KeyTable), app.screen.query_one(BottomLine)
        text = line.render_line(0).text
        await pilot.click(line, offset=(text.index("scroll down"), 0))
        await pilot.pause()
        assert table.scroll_offset.y == 1
        await pilot.press("k")
        await pilot.pause()
        assert table.scroll_offset.y == 0
        await pilot.click(line, offset=(text.index("close"), 0))
        await pilot.pause()
        assert not app.screen.query(KeyTable)


@pytest.mark.parametrize(
    ("width", "wanted"), [(60, 60), (80, 80), (111, 111), (112, 88), (200, 88)])
async def test_no_letters_of_the_screen_below_are_at_its_sides(
    width: int, wanted: int, tmp_path: Path
) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(width, 24)) as pilot:
        await settled(app, pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        assert app.screen.query_one(KeyTable).region.width == wanted
