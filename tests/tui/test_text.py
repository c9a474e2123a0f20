from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.text.neutral import without_colour
from tui.kit.text import (
    break_cells,
    cells,
    clean,
    column_offset,
    fit,
    fit_path,
    one_line,
    wrap,
)

LETTERS = st.text(alphabet=st.sampled_from(list("ab c  dé漢字かな👍🎉é -\u0301|")), max_size=200)


@pytest.mark.parametrize(
    "evil",
    ["\x1b]52;c;AAAA\x07", "\x9b31m", "\u202eabc", "a\rb\x08c", "[/nope] [bold", "\u2066x\u2069",
     "\x1bP1$r\x1b\\", "\ud83d", "\u2028", "\u200e"],
)
def test_nothing_that_steers_a_terminal_is_left(evil: str) -> None:
    shown = clean(evil)
    assert not any(ord(c) < 32 and c != "\n" or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert not any(0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in shown)
    assert not any(0xD800 <= ord(c) < 0xE000 for c in shown)


def test_what_terminals_measure_differently_is_made_plain() -> None:
    assert clean("❤️ ✔︎") == "❤ ✔"
    assert clean("👍🏽!") == "👍!"
    assert clean("👨‍👩‍👧 family") == "👨 family"
    assert clean("क्‍ष") == "क्ष"
    england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert clean(f"1\ufe0f\u20e3 {england}") == "1 🏴"


def test_what_nobody_sees_is_shown() -> None:
    assert clean("a\u200bb\u00adc\u2060") == "a\ufffdb\ufffdc\ufffd"
    assert clean("x\U000e0041\ufe01\u3164") == "x\ufffd\ufffd\ufffd"
    assert clean("x\ty") == "x   y"


def test_markup_and_plain_text_stay_as_they_are() -> None:
    assert clean("[red]not red[/red] \\[x") == "[red]not red[/red] \\[x"
    assert one_line("  a\n\n b\tc ") == "a b c"
    assert without_colour("\x1b[31mred\x1b[0m \x1b[2Kx") == "red x"


def test_fit_says_where_something_is_cut() -> None:
    assert fit("hello", 5) == "hello"
    assert fit("hello world", 8) == "hello w…"
    assert fit("漢字漢字", 5) == "漢字…"
    assert fit("abc", 0) == ""
    assert fit_path("src/sync/deep/worker.py", 14) == "…/worker.py"
    assert cells(fit_path("src/sync/deep/worker.py", 14)) <= 14


def test_column_offset_counts_cells() -> None:
    assert column_offset("漢字ab", 2) == 1
    assert column_offset("漢字ab", 5) == 3
    assert column_offset("abc", 2) == 2


def test_words_are_kept_whole_where_they_fit() -> None:
    text = "the quick brown fox"
    assert [text[a:b] for a, b in wrap(text, 10)] == ["the quick", "brown fox"]
    assert [b - a for a, b in wrap("x" * 25, 10)] == [10, 10, 5]
    wide = "漢字仮名交じり文"
    assert [wide[a:b] for a, b in wrap(wide, 6)] == ["漢字仮", "名交じ", "り文"]


def test_code_breaks_at_the_edge_and_keeps_its_columns() -> None:
    text = "NAME            READY   STATUS"
    rows = [text[a:b] for a, b in break_cells(text, 12)]
    assert rows == ["NAME        ", "    READY   ", "STATUS"]
    wide = "漢字 仮名x"
    assert [wide[a:b] for a, b in break_cells(wide, 5)] == ["漢字 ", "仮名x"]
    assert [wide[a:b] for a, b in break_cells(wide, 4)] == ["漢字", " 仮", "名x"]
    assert break_cells("", 5) == [(0, 0)]


@settings(max_examples=300, deadline=None)
@given(LETTERS, st.integers(2, 40))
def test_broken_rows_are_the_whole_text_and_fit(text: str, width: int) -> None:
    text = clean(text)
    rows = [text[a:b] for a, b in break_cells(text, width)]
    assert "".join(rows) == text
    assert all(cells(row) <= width for row in rows)


@settings(max_examples=300, deadline=None)
@given(LETTERS, st.integers(2, 40))
def test_wrapping_loses_nothing_and_keeps_the_width(text: str, width: int) -> None:
    text = clean(text)
    spans = wrap(text, width)
    at = 0
    for start, end in spans:
        assert text[at:start].strip(" ") == ""
        assert at <= start <= end
        assert cells(text[start:end]) <= width
        at = end
    assert text[at:].strip(" ") == ""


@pytest.mark.parametrize("line", ["x" * 1_000_000, "漢" * 200_000, "word " * 200_000])
def test_a_very_long_line_is_cut_into_full_rows(line: str) -> None:
    spans = wrap(line, 80)
    assert spans[-1][1] >= len(line.rstrip())
    assert all(end - start <= 80 for start, end in spans)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="tells what was given")
@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ({"LANG": "C"}, True), ({"LANG": "POSIX"}, True), ({}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False), ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, True),
    ],
)  # fmt: skip
def test_the_locale_that_was_given_chooses_the_glyphs(
    said: dict[str, str], plain: bool
) -> None:
    told = subprocess.run(
        [sys.executable, "-c",
         "from tui.kit.glyphs import ASCII, glyphs; print(glyphs() is ASCII)"],
        capture_output=True, check=True, text=True,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **said},
    ).stdout.strip()
    assert told == str(plain)
