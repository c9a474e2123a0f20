from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.theme import BUILTIN_THEMES

from tests.tui.stores import browser, put, some
from tui.kit.contrast import AA, blend, contrast, readable
from tui.kit.palette import Palette
from tui.kit.theme import PALETTES, default_theme, palette_from_theme, palette_of, text_pairs


def palettes() -> Iterator[tuple[str, Palette]]:
    yield from PALETTES.items()
    for name, theme in BUILTIN_THEMES.items():
        yield name, palette_from_theme(theme)


ALL = dict(palettes())


@pytest.mark.parametrize("palette", ALL.values(), ids=ALL.keys())
def test_every_pair_meets_aa(palette: Palette) -> None:
    weak = {
        (text, ground): round(found, 2)
        for text, ground in text_pairs()
        if (found := contrast(getattr(palette, text), getattr(palette, ground))) < AA
    }
    assert weak == {}


def test_contrast_as_wcag_counts_it() -> None:
    assert round(contrast("#000000", "#ffffff"), 2) == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48
    assert contrast("#123456", "#123456") == 1


def test_repair_changes_only_what_is_weak() -> None:
    assert readable("#000000", ["#ffffff"]) == "#000000"
    moved = readable("#777777", ["#ffffff"])
    assert moved < "#777777"
    assert contrast(moved, "#ffffff") >= AA
    assert blend("#000000", "#ffffff", 0.5) == "#808080"


@pytest.mark.parametrize(
    ("wanted", "variables", "theme"),
    [
        ("auto", {}, "backscroll-dark"), ("auto", {"COLORFGBG": "0;15"}, "backscroll-light"),
        ("auto", {"COLORFGBG": "15;0"}, "backscroll-dark"), ("light", {}, "backscroll-light"),
        ("nord", {}, "nord"),
    ],
)
def test_the_theme_to_start_with(wanted: str, variables: dict[str, str], theme: str) -> None:
    assert default_theme(wanted, variables) == theme


@pytest.mark.parametrize("theme", ["nord", "textual-light", "no-such-theme"])
async def test_any_theme_can_be_chosen(theme: str, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)), theme=theme)
    async with app.run_test(size=(120, 40)) as pilot:
        dark = theme != "textual-light"
        assert palette_of(app).dark is dark
        await pilot.press("f9")
        assert palette_of(app) == PALETTES["backscroll-light" if dark else "backscroll-dark"]
