from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.geometry import Region
from textual.selection import Selection
from textual.theme import BUILTIN_THEMES
from textual.widget import Widget

from tests.tui.seeded import Said, make_store, text
from tests.tui.stores import browser, put, settled, some
from tui.kit.contrast import AA, blend, contrast, readable
from tui.kit.palette import PALETTES, Palette, default_theme
from tui.kit.theme import palette_from_theme, palette_of, text_pairs


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


@pytest.mark.parametrize("palette", ALL.values(), ids=ALL.keys())
def test_selected_text_is_told_from_its_surroundings(palette: Palette) -> None:
    for ground in ("background", "panel"):
        assert contrast(palette.selected, getattr(palette, ground)) > 1.2, ground


def pairs_of(widget: Widget) -> Iterator[tuple[str, str, str]]:
    """Yield what Textual draws selected text of a widget with: component, text, ground."""
    for name in ("screen--selection", "input--selection"):
        if any(name in vars(kind).get("COMPONENT_CLASSES", ()) for kind in type(widget).__mro__):
            style = widget.get_component_rich_style(name)
            assert style.color is not None and style.bgcolor is not None
            yield name, style.color.name, style.bgcolor.name


@pytest.mark.long
async def test_selected_text_is_readable_in_every_theme(tmp_path: Path) -> None:
    said = [Said("user", [text("one two three")]), Said("assistant", [text("four five six")])]
    app = browser(make_store(tmp_path / "s.db", said))
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        transcript = app.main.transcript
        assert transcript is not None
        await pilot.press("2", "slash")
        for theme, palette in ALL.items():
            app.theme = theme
            await pilot.pause()
            checked = [pair for widget in app.main.query("*") for pair in pairs_of(widget)]
            checked += pairs_of(app.main)
            assert {name for name, _, _ in checked} == {"screen--selection", "input--selection"}
            for name, colour, ground in checked:
                assert contrast(colour, ground) >= AA, (theme, name, colour, ground)
            app.main.selections = {transcript.view: Selection(None, None)}
            await pilot.pause()
            painted = [segment for strip in transcript.view.render_lines(Region(0, 0, 40, 10))
                       for segment in strip if segment.style and segment.text.strip()]
            inks = {(style.color.name, style.bgcolor.name) for segment in painted
                    if (style := segment.style) and style.color and style.bgcolor}
            assert [ink for ink in inks if ink[1] == palette.selected] == [
                (palette.text, palette.selected)]


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
@pytest.mark.one_in(3)
async def test_any_theme_can_be_chosen(theme: str, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)), theme=theme)
    async with app.run_test(size=(120, 40)) as pilot:
        dark = theme != "textual-light"
        assert palette_of(app).dark is dark
        await pilot.press("f9")
        assert palette_of(app) == PALETTES["backscroll-light" if dark else "backscroll-dark"]
