"""Our two themes, and the palette that any of Textual's themes gives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import Theme

from tui.kit.contrast import blend, readable
from tui.kit.palette import (
    DARK,
    LIGHT,
    MARKED_GROUNDS,
    PALETTES,
    RAISED_GROUNDS,
    Palette,
)

PLAIN_GROUNDS = ("background", "panel")
ROLES = ("user", "assistant", "tool", "reasoning", "ok", "error", "fork")


def text_pairs() -> Iterator[tuple[str, str]]:
    """Yield every pair of roles (text, ground) that may be drawn."""
    for ground in (*PLAIN_GROUNDS, *RAISED_GROUNDS, *MARKED_GROUNDS):
        yield "text", ground
        yield "muted", ground
    for ground in PLAIN_GROUNDS:
        yield "faint", ground
    for role in ROLES:
        for ground in (*PLAIN_GROUNDS, *RAISED_GROUNDS):
            yield role, ground
    yield "text", "selected"
    for role in ("error", "ok"):
        yield role, "removed" if role == "error" else "added"


def _theme(name: str, palette: Palette) -> Theme:
    return Theme(
        name=name, dark=palette.dark, primary=palette.user, secondary=palette.fork,
        accent=palette.user, warning=palette.tool, error=palette.error, success=palette.ok,
        foreground=palette.text, background=palette.background, surface=palette.panel,
        panel=palette.raised,
        variables={
            "scrollbar": palette.focus, "scrollbar-background": palette.panel,
            "scrollbar-background-hover": palette.panel,
            "scrollbar-background-active": palette.panel,
            "scrollbar-hover": palette.muted, "scrollbar-active": palette.muted,
            "scrollbar-corner-color": palette.panel,
            "footer-background": palette.raised, "border": palette.rule,
        },
    )


OWN_THEMES = tuple(_theme(name, palette) for name, palette in PALETTES.items())


def selection_variables(palette: Palette) -> dict[str, str]:
    """Return the CSS variables of selected text, for what Textual itself draws.

    Its own are transparent: on a ground that is set, the text takes the ground's colour.
    """
    return {
        f"{what}-selection-{name}": colour for what in ("screen", "input")
        for name, colour in (("background", palette.selected), ("foreground", palette.text))
    }


def palette_of(app: App[Any]) -> Palette:
    """Return the palette of the active theme, with contrast that meets WCAG AA."""
    own = PALETTES.get(app.theme)
    if own is not None:
        return own
    return palette_from_theme(app.current_theme)


@lru_cache(maxsize=8)
def _palette_from(dark: bool, colours: tuple[tuple[str, str], ...]) -> Palette:
    given = dict(colours)
    base = DARK if dark else LIGHT
    background = given.get("background", base.background)
    towards = "#ffffff" if dark else "#000000"
    panel = blend(background, towards, 0.03)
    wanted: dict[str, Any] = {
        "background": background, "panel": panel, "dark": dark,
        "raised": blend(background, towards, 0.08), "focus": blend(background, towards, 0.13),
        "rule": blend(background, towards, 0.16),
        "hit": blend(background, given.get("warning", base.tool), 0.22),
        "added": blend(background, given.get("success", base.ok), 0.18),
        "removed": blend(background, given.get("error", base.error), 0.18),
        "selected": blend(background, given.get("primary", base.user), 0.35),
    }
    text = given.get("foreground", base.text)
    wanted |= {
        "text": text, "muted": blend(text, background, 0.25),
        "faint": blend(text, background, 0.48),
        "user": given.get("primary", base.user), "assistant": given.get("secondary", base.ok),
        "tool": given.get("warning", base.tool), "reasoning": given.get("accent", base.reasoning),
        "ok": given.get("success", base.ok), "error": given.get("error", base.error),
        "fork": base.fork,
    }
    for name in {pair[0] for pair in text_pairs()}:
        grounds = [wanted[ground] for text_name, ground in text_pairs() if text_name == name]
        wanted[name] = readable(wanted[name], grounds)
    return Palette(**{name: wanted[name] for name in Palette._fields})


def palette_from_theme(theme: Theme) -> Palette:
    """Derive all roles from any Textual theme and repair their contrast."""
    generated = theme.to_color_system().generate()
    names = ("background", "foreground", "primary", "secondary", "accent", "warning", "error",
             "success")
    colours = []
    for name in names:
        try:
            colour = Color.parse(generated[name])
        except (KeyError, ColorParseError):
            continue
        if colour.ansi is None and colour.a == 1:
            colours.append((name, colour.hex6.lower()))
    return _palette_from(theme.dark, tuple(colours))
