"""Lines as a terminal takes them, without Textual: what the first frame is drawn with.

The same lines as ``tui.kit.paint`` draws, cell by cell: the looks of inks come from
``tui.kit.palette``, the texts go through the guard of ``tui.kit.text``, and the writer of
``store.system.streams`` makes what reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from store.system.streams import Painted, paint
from tui.kit.lines import Line, arrange
from tui.kit.palette import Look, Palette, look_of, placeholder_colour
from tui.kit.text import drawable, guarded

Depth = Literal["TRUECOLOR", "EIGHT_BIT", "STANDARD"]
"""Colours of a terminal, as Rich names them."""
_CODES = {"bold": "1", "italic": "3", "underline": "4", "strike": "9"}


def depth_of(environment: Mapping[str, str]) -> Depth:
    """Return the colours of a terminal, by the rule of Rich."""
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "TRUECOLOR"
    colours = environment.get("TERM", "").strip().lower().rpartition("-")[2]
    return "EIGHT_BIT" if colours in ("256color", "kitty") else "STANDARD"


def painted(
    line: Line, width: int, palette: Palette, depth: Depth, *, ground: str = "panel"
) -> list[Painted]:
    """Return a line as painted pieces of together ``width`` cells.

    Args:
        line: The line; a ground of its own wins.
        width: Cells.
        palette: The colours.
        depth: How many the terminal has.
        ground: Role of the ground beneath it.
    """
    behind = line.ground or ground
    return [
        paint(guarded(drawable(text)), _codes(look_of(palette, ink, behind), depth))
        for text, ink in arrange(line, width) if text
    ]


def placeholder(text: str, palette: Palette, depth: Depth) -> Painted:
    """Return the words of an empty input.

    Args:
        text: The words.
        palette: The colours.
        depth: How many the terminal has.
    """
    look = Look(placeholder_colour(palette), palette.panel, ())
    return paint(guarded(drawable(text)), _codes(look, depth))


@lru_cache(maxsize=256)
def _codes(look: Look, depth: Depth) -> str:
    """Return the parameters of the SGR sequence of a look."""
    codes = [code for flag, code in _CODES.items() if flag in look.flags]
    return ";".join([*codes, *_colour(look.colour, depth), *_colour(look.ground, depth, "48")])


def _colour(colour: str, depth: Depth, layer: Literal["38", "48"] = "38") -> Sequence[str]:
    if depth == "TRUECOLOR":
        channels = (str(int(colour[at:at + 2], 16)) for at in (1, 3, 5))
        return [layer, "2", *channels]
    # Only here: a terminal with all colours does not wait for it.
    from rich.color import Color, ColorSystem

    nearest = Color.parse(colour).downgrade(ColorSystem[depth])
    return nearest.get_ansi_codes(layer == "38")
