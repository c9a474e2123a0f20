"""The kit of lines, blocks and views, without a room."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

import tui.kit
from tui.kit.blocks import Block, Fixed, Laid, Stack, Text
from tui.kit.hits import hits_in
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Value, fact, heading, pair
from tui.kit.selection import offset_y, place_of, places_in
from tui.kit.text import break_cells, cells, clean
from tui.kit.tree import Node, Tree
from tui.kit.wrap import wrap_runs

KIT = Path(tui.kit.__file__).parent


def test_the_kit_imports_no_room() -> None:
    imported = {
        name
        for path in KIT.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
        if name.startswith("tui.") and not name.startswith("tui.kit")
    }
    assert imported <= {"tui.host"}


def rows(view: LineView) -> list[str]:
    return [view.render_line(y).text.strip() for y in range(view.size.height)]


async def test_the_example_of_the_guide_runs() -> None:
    assert tui.kit.__doc__ is not None
    code = dedent(tui.kit.__doc__.split("Example::\n")[1])
    names: dict[str, Any] = {
        "App": App, "ComposeResult": ComposeResult, "Fixed": Fixed, "Line": Line,
        "LineView": LineView, "Text": Text, "Value": Value, "heading": heading, "pair": pair,
    }
    exec(compile(code, "guide", "exec"), names)
    app: App[None] = names["Example"]()
    async with app.run_test(size=(30, 6)):
        view = app.query_one(LineView)
        assert [re.sub(r"\W*─+$", "", row) for row in rows(view)[:4]] == [
            "Output  2 lines", "state     ✔ done", "make: done", "3 warnings"]
        view.move_to(2)
        assert view.line.value is not None and view.line.value.read() == "make: done\n3 warnings"


class Viewer(App[None]):
    """Shows blocks."""

    def __init__(self, *blocks: Block) -> None:
        super().__init__()
        self.blocks = blocks

    def compose(self) -> ComposeResult:
        yield LineView()

    def on_mount(self) -> None:
        self.query_one(LineView).show(list(self.blocks))


async def test_a_selection_stays_on_its_text_while_a_tree_above_it_unfolds() -> None:
    root = Node(None, {"a": {"b": 1, "c": 2}}, None)
    words = "one two three four five six seven eight nine ten eleven twelve"
    app = Viewer(Tree(root), Text(words, words=True))
    async with app.run_test(size=(30, 12)):
        view = app.query_one(LineView)
        end = view.stack.height(view.cells) - 1
        selection = Selection(Offset(0, view.offset_at(1)), Offset(99, view.offset_at(end)))
        app.screen.selections = {view: selection}
        assert view.get_selection(selection) == (words, "\n")
        view.unfold()
        assert rows(view)[3].startswith("one two")
        assert view.get_selection(selection) == (words, "\n")


async def test_a_selection_with_open_ends_holds_all() -> None:
    app = Viewer(Text("first\n" + "x" * 40), Text("  last"))
    async with app.run_test(size=(30, 12)):
        view = app.query_one(LineView)
        whole = "first\n" + "x" * 40 + "\n  last"
        assert view.get_selection(Selection(None, None)) == (whole, "\n")


def test_offsets_grow_with_the_place() -> None:
    places = [(0, 0), (0, 1_500_000), (1, 0), (100_000, 3)]
    offsets = [offset_y(*place) for place in places]
    assert offsets == sorted(offsets)
    assert [place_of(offset) for offset in offsets] == places
    assert places_in(Selection(None, Offset(0, offset_y(9, 0))), (4, 7)) == ((0, 0), (4, 7))


def test_lines_that_were_laid_out_are_a_block() -> None:
    block = Laid(wrap_runs([("alpha beta gamma", "text")], 11), 11)
    assert [block.line(n, 11).text for n in range(block.height(11))] == ["alpha beta", "gamma"]
    assert block.find("gamma", 11) == [1] and block.locate(1, 11) == 1
    assert block.hits(re.compile("beta gamma")).pieces == [{0: (6, 10), 1: (0, 5)}]


def test_a_fact_keeps_its_blanks_and_is_one_harmless_row() -> None:
    line = fact("state", "  a\n\x1b[31mb ", 40)
    assert line.text == "state         a ␛[31mb"
    assert line.value is not None and line.value.read() == "a\n\x1b[31mb"


def test_a_block_needs_no_more_than_height_and_line() -> None:
    class Squares(Block):
        def height(self, width: int) -> int:
            return 4

        def line(self, number: int, width: int) -> Line:
            return Line(((f"{number}", "text"),), ((f"{number ** 2}", "faint"),))

    stack = Stack([Fixed(lambda _: [Line((("9", "text"),))]), Squares()])
    spots = stack.find("9", 20)
    assert [stack.locate(spot, 20) for spot in spots] == [0, 4]


def test_hits_leave_decoration_out() -> None:
    lines = wrap_runs([("a needle in hay", "text")], 12, [("  - ", "faint")], [("    ", "faint")])
    assert [line.text for line in lines] == ["  - a needle", "    in hay"]
    assert hits_in(lines, re.compile("needle in")).spans == {0: [(6, 12)], 1: [(4, 6)]}


@pytest.mark.parametrize("width", [2, 3, 7, 40])
@pytest.mark.parametrize(
    "text", ["漢字仮名" * 9, "e\u0301" * 30, "\u0301a漢" * 12, "ab😀" * 20, ""])
def test_rows_broken_at_the_edge_are_the_whole_text(text: str, width: int) -> None:
    text = clean(text)
    spans = break_cells(text, width)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(cells(text[start:end]) <= width for start, end in spans)
    assert not any(text[start:start + 1] == "\u0301" for start, _end in spans[1:])
