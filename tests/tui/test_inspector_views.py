from __future__ import annotations

import random

import pytest
from rich.cells import cell_len

from store.text.figures import duration, money, size, tokens
from tui.inspector.call import media_of, output_text, shrink_rulers
from tui.kit.blocks import Columns, Fixed, Stack, Text
from tui.kit.glyphs import ASCII
from tui.kit.lines import Line, Value, arrange, cut, middle_cut, set_width, width_of
from tui.kit.paint import HIT, Paint, marked, spans_of, strip_of
from tui.kit.palette import Palette
from tui.kit.selection import selected_strip
from tui.kit.tree import Node, Tree, matches, open_at_first, path_text, set_open, visible
from tui.kit.usage import bar
from tui.kit.wrap import WrappedText

ALPHABETS = ("abc def\tghi", "漢字 仮名", "é̀ ñ 👩🏽 x", "a\u202eb\x1b[31mc")


def value(text: str) -> Value:
    return Value("output", lambda: text)


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_rows_are_as_wide_as_allowed_and_lose_nothing(words: bool, seed: int) -> None:
    chance = random.Random(seed)
    alphabet = chance.choice(ALPHABETS)
    source = "\n".join(
        "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 90))) for _ in range(20)
    )
    wrapped = WrappedText(source, words=words)
    width = chance.randint(4, 40)
    rows = [wrapped.row(number, width) for number in range(wrapped.height(width))]
    assert all(cell_len(row.text) <= width for row in rows)
    for number, line in enumerate(wrapped.lines):
        joined = "".join(row.text for row in rows if row.source == number)
        assert joined.replace(" ", "") == line.replace(" ", "")


def test_found_places_lie_on_the_rows_that_show_them() -> None:
    wrapped = WrappedText("x" * 25 + "needle\nshort needle\n漢字needle")
    spots = wrapped.find("needle")
    assert spots == [(0, 25), (1, 6), (2, 2)]
    shown = [wrapped.row(wrapped.row_of(*spot, 10), 10)[0] for spot in spots]
    assert shown == ["xxxxxneedl", "short need", "漢字needle"]


def test_a_limit_keeps_one_more_row_rather_than_a_line_that_tells_of_it() -> None:
    text = Text("a\nb\nc\nd", value=value(""), limit=3)
    assert [text.line(n, 20).text for n in range(text.height(20))] == ["a", "b", "c", "d"]
    text = Text("a\nb\nc\nd\ne", value=value(""), limit=3)
    lines = [text.line(n, 60).text for n in range(text.height(60))]
    assert lines[:3] == ["a", "b", "c"] and lines[3].startswith("… 2 more lines")


def test_a_short_look_at_a_long_text_wraps_its_start_alone_and_finds_all() -> None:
    text = Text("row\n" * 300_000 + "needle", value=value(""), limit=10)
    assert text.height(20) == 11
    assert text.line(10, 60).text.startswith("… 299,991 more lines")
    (spot,) = text.find("needle", 20)
    assert text.locate(spot, 20) == 300_000
    assert text.height(20) == 300_001


def test_going_to_a_hit_beyond_the_limit_lifts_it() -> None:
    text = Text("\n".join("abcdefgh"), value=value(""), limit=3)
    (spot,) = text.find("g", 20)
    assert text.locate(spot, 20) == 6
    assert text.height(20) == 8


def test_stack_and_columns_address_lines_of_their_blocks() -> None:
    left = Fixed(lambda _: [Line((("l1", "text"),)), Line((("l2", "text"),))])
    right = Text("r1\nr2\nr3", value=value("r"))
    columns = Columns([left], [right], 0.5)
    stack = Stack([Fixed(lambda _: [Line((("top", "text"),))]), columns])
    texts = [" ".join(stack.line(n, 43).text.split()) for n in range(stack.height(43))]
    assert texts == ["top", "l1 r1", "l2 r2", "r3"]
    (spot,) = stack.find("r3", 43)
    assert stack.locate(spot, 43) == 3


def test_a_ground_stays_in_its_column() -> None:
    left = Fixed(lambda _: [Line((("l", "text"),))])
    right = Fixed(lambda _: [Line((("r", "text"),), ground="added")])
    line = Columns([left], [right], 0.5).line(0, 13)
    assert line.ground == ""
    assert line.runs[0] == ("l", "text") and line.runs[-2] == ("r", "text on:added")


TREE = {"a": {"b": [1, 2, {"c": "deep"}]}, "s": "x" * 300, "n": None, "t": True, "e": {}}


def test_tree_lines_fold_and_unfold() -> None:
    tree = Tree.of(TREE)
    lines = [tree.line(n, 44).whole_text for n in range(tree.height(44))]
    assert lines[0].rstrip() == "▾ a:"
    assert lines[1].rstrip() == "  ▾ b:"
    assert lines[2] == "      0: 1"
    assert '        c: "deep"' in lines
    assert "  n: null" in lines and "  t: true" in lines and "  e: {}" in lines
    folded = next(line for line in lines if line.startswith("▸ s"))
    assert folded.endswith("300 characters")
    node = tree.root.find(("s",))
    assert node is not None
    node.open = True
    tree.changed()
    assert tree.height(44) == len(lines) + 8


def test_tree_finds_folded_values_and_reveals_them() -> None:
    root = Node(None, TREE, None)
    tree = Tree(root)
    assert tree.height(44) == 5
    (path,) = tree.find("deep", 44)
    assert path == ("a", "b", 2, "c")
    assert tree.line(tree.locate(path, 44), 44).text.strip() == 'c: "deep"'


def test_paths_read_as_jq_takes_them() -> None:
    assert path_text(("input", "a b", 0, "ok")) == '$.input["a b"][0].ok'


def test_matches_come_in_document_order_for_keys_and_scalars() -> None:
    assert list(matches({"x": ["X", {"y": 1}], "z": "x1"}, "x")) == [("x",), ("x", 0), ("z",)]


def test_a_big_tree_opens_within_its_budget() -> None:
    root = Node(None, {str(n): {"k": n} for n in range(5_000)}, None)
    open_at_first(root)
    assert sum(1 for _ in visible(root, with_root=False)) == 5_000
    set_open(root, True)
    assert sum(1 for _ in visible(root, with_root=False)) == 10_000


def test_lines_are_cut_padded_and_arranged_to_the_width() -> None:
    runs = (("漢字漢字", "text"), ("abc", "muted"))
    for width in range(1, 14):
        assert width_of(set_width(runs, width)) == width
    assert cut((("abcdef", "text"),), 4) == (("abc…", "text"),)
    line = Line((("a long left side", "text"),), (("right", "faint"),))
    assert "".join(text for text, _ in arrange(line, 16)) == "a long le… right"
    assert middle_cut("prt_0f1a52c0abcdefQx8", 15) == "prt_0f1a52…fQx8"


def test_hits_are_marked_across_runs() -> None:
    runs = marked((("ab", "user"), ("cd", "ok")), spans_of("abcd", "bc"), HIT)
    assert runs == (
        ("a", "user"), ("b", "text bold on:hit"), ("c", "text bold on:hit"), ("d", "ok"),
    )


def test_faint_becomes_muted_on_raised_grounds() -> None:
    palette = Palette()
    faint = Paint(palette).style("faint", "panel").color
    raised = Paint(palette).style("faint", "focus").color
    assert faint is not None and faint.name == palette.faint
    assert raised is not None and raised.name == palette.muted


def test_controls_never_reach_a_strip() -> None:
    strip = strip_of(Line((("a\x1b]52;c;x\x07\u202eb", "text"),)), 30, Paint(Palette()))
    assert strip.cell_length == 30
    assert not {"\x1b", "\x07", "\u202e"} & set(strip.text)


def test_ascii_terminals_get_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.kit.text.glyphs", lambda: ASCII)
    line = Line((("▸ ✗ exit 1 … ██▌ ─", "text"),))
    assert strip_of(line, 20, Paint(Palette())).text == "> x exit 1 ~ ### -  "


def test_a_selection_lies_over_the_line_s_own_ground() -> None:
    strip = strip_of(Line((("漢字abc", "text"),)), 10, Paint(Palette()))
    chosen = selected_strip(strip, 1, 3, Paint(Palette()))
    grounds = {
        segment.text: segment.style.bgcolor.name
        for segment in chosen if segment.style and segment.style.bgcolor
    }
    assert grounds["字a"] == Palette().selected and grounds["漢"] == Palette().panel
    assert chosen.text == strip.text and chosen.cell_length == 10


def test_rulers_shrink_to_the_width_and_text_stays() -> None:
    line = "=" * 30 + " FAILURES " + "=" * 30
    assert shrink_rulers(line, 40) == "=" * 15 + " FAILURES " + "=" * 15
    assert shrink_rulers("x" * 50, 40) == "x" * 50


def test_outputs_as_text() -> None:
    assert output_text("plain") == "plain"
    assert output_text([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) == "a\nb"
    assert output_text({"text": "only"}) == "only"
    assert output_text({"a": 1}) is None
    image = {"type": "image", "source": {"media_type": "image/png", "data": "A" * 400}}
    assert media_of([image]) == [("image/png", 300)]


def test_figures() -> None:
    assert [tokens(n) for n in (7, 999, 1_840, 84_000, 1_200_000)] == [
        "7", "999", "1.8k", "84k", "1.2M",
    ]
    assert [size(n) for n in (12, 1_400, 3_000_000)] == ["12 B", "1.4 kB", "3.0 MB"]
    assert [duration(n) for n in (200, 3_200, 48_000, 184_000, 7_500_000)] == [
        "0.2 s", "3.2 s", "48 s", "3m 04s", "2h 05m",
    ]
    assert money(0.0412) == "$0.041" and money(12.5) == "$12.50"
    assert bar(0.5, 10) == "█████" and bar(0.0001, 10) == "▏" and bar(0, 10) == ""
