"""The colours that panes paint with, by role, and what an ink looks like in them.

Light, as the first rows are drawn before Textual is imported; ``tui.kit.theme`` makes Textual's
themes of these palettes, and palettes of Textual's themes.
"""

from __future__ import annotations

import os

from store.system.records import NamedTuple


class Palette(NamedTuple):
    """Colours as ``#rrggbb``, named by role; see the drawings' palette.

    Draw ``faint`` on ``background`` and ``panel`` only; on a raised ground (``raised``,
    ``focus``, ``hit``, ``added``, ``removed``) use ``muted`` in its place. Text that is
    selected with the mouse is drawn in ``text`` on ``selected``.
    """

    background: str = "#14161b"
    panel: str = "#181b21"
    raised: str = "#232834"
    focus: str = "#2b3242"
    rule: str = "#2c323e"
    text: str = "#d5d9e0"
    muted: str = "#a3abb9"
    faint: str = "#7b8597"
    user: str = "#7aa2f7"
    assistant: str = "#73daca"
    tool: str = "#e0af68"
    reasoning: str = "#a8a1e6"
    ok: str = "#9ece6a"
    error: str = "#f7768e"
    fork: str = "#bb9af7"
    hit: str = "#3d3718"
    added: str = "#1d3326"
    removed: str = "#3a2229"
    selected: str = "#33467c"
    dark: bool = True


DARK = Palette()
LIGHT = Palette(
    background="#f7f8fa", panel="#eef0f4", raised="#e2e6ee", focus="#d6dcea", rule="#cfd5e0",
    text="#1d222c", muted="#454d5c", faint="#5f6878", user="#1f4fbf", assistant="#04614f",
    tool="#7a4700", reasoning="#5443b5", ok="#2f5f0b", error="#b0123a", fork="#7426b8",
    hit="#fbe9a9", added="#d6f0dc", removed="#fbdcdf", selected="#b9cdf8",
    dark=False,
)
PALETTES = {"backscroll-dark": DARK, "backscroll-light": LIGHT}

RAISED_GROUNDS = ("raised", "focus")
MARKED_GROUNDS = ("hit", "added", "removed")
_BRIGHTER_GROUNDS = frozenset({*RAISED_GROUNDS, *MARKED_GROUNDS})
_FAINTER = {"text": "muted", "muted": "faint"}
_ALIASES = {"blank": "text", "thumb": "rule", "mark": "faint"}


def default_theme(wanted: str, environment: dict[str, str] | None = None) -> str:
    """Return the theme to start with.

    Args:
        wanted: A theme's name, ``dark``, ``light`` or ``auto``.
        environment: Where ``auto`` looks for ``COLORFGBG``, which some terminals set.
    """
    if wanted in ("dark", "light"):
        return f"backscroll-{wanted}"
    if wanted != "auto":
        return wanted
    variables = os.environ if environment is None else environment
    ground = variables.get("COLORFGBG", "").rpartition(";")[2]
    return "backscroll-light" if ground in ("7", "15") else "backscroll-dark"


def placeholder_colour(palette: Palette, ground: str = "panel") -> str:
    """Return the colour of the words in an empty input: Textual's ``auto 60%``.

    Args:
        palette: The colours.
        ground: Role of the background.
    """
    behind: str = getattr(palette, ground)
    end = 255 if palette.dark else 0
    channels = (int(behind[at:at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{int(one + (end - one) * 0.6):02x}" for one in channels)


class Look(NamedTuple):
    """What an ink looks like in a palette.

    Attributes:
        colour: Of the text, ``#rrggbb``.
        ground: Of the cells behind it.
        flags: Any of ``bold``, ``italic``, ``underline`` and ``strike``.
    """

    colour: str
    ground: str
    flags: tuple[str, ...]


def look_of(palette: Palette, ink: str, ground: str, *, dimmed: bool = False) -> Look:
    """Return what an ink looks like.

    Args:
        palette: The colours.
        ink: See ``tui.kit.lines``. Its own ground gives way to that of a cursor or a
            dialog (``focus``, ``raised``); the ground of a hit does not.
        ground: Role of the background.
        dimmed: Whether it is drawn a weight fainter.
    """
    role, *flags = ink.split()
    if dimmed:
        role = _FAINTER.get(role, role)
    for flag in flags:
        if flag.startswith("on:") and (flag == "on:hit" or ground not in RAISED_GROUNDS):
            ground = flag[3:]
    if role in ("faint", "rule") and ground in _BRIGHTER_GROUNDS:
        role = "muted"
    colour: str = getattr(palette, _ALIASES.get(role, role))
    behind: str = getattr(palette, ground)
    if "reverse" in flags:
        colour, behind = behind, colour
    return Look(colour, behind, tuple(flags))
