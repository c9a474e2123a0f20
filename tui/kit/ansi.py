"""Lines as a terminal takes them, without Textual: what the first frame is drawn with.

The same lines as ``tui.kit.paint`` draws, cell by cell: the looks of inks come from
``tui.kit.palette``, the texts go through the guard of ``tui.kit.text``, and the writer of
``store.system.streams`` makes what reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from store.system.streams import ERASED_FROM, Painted, erased, paint
from tui.kit.lines import Line, arrange
from tui.kit.palette import Look, Palette, look_of, placeholder_colour
from tui.kit.text import drawable, guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Depth = Literal["TRUECOLOR", "EIGHT_BIT", "STANDARD"]
    """Colours of a terminal, as Rich names them."""

_CODES = {"bold": "1", "italic": "3", "underline": "4", "strike": "9"}
_SEEN_ON_BLANKS = frozenset(("underline", "strike"))


def depth_of(environment: Mapping[str, str]) -> Depth:
    """Return the colours of a terminal, by the rule of Rich."""
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "TRUECOLOR"
    colours = environment.get("TERM", "").strip().lower().rpartition("-")[2]
    return "EIGHT_BIT" if colours in ("256color", "kitty") else "STANDARD"


class AnsiPaint:
    """Paints lines with a palette for a terminal; what each ink takes is worked out once."""

    def __init__(self, palette: Palette, depth: Depth, *, erases: bool = False) -> None:
        """Start with no ink.

        Args:
            palette: The colours.
            depth: How many the terminal has.
            erases: Whether many blanks are erased; see ``erases_in_colour``.
        """
        self._palette, self._depth, self._erases = palette, depth, erases
        self._codes: dict[tuple[str, str], tuple[str, str, bool]] = {}

    def line(self, line: Line, width: int, ground: str = "panel") -> list[Painted]:
        """Return a line as painted pieces of together ``width`` cells.

        Args:
            line: The line; a ground of its own wins.
            width: Cells.
            ground: Role of the ground beneath it.
        """
        behind = line.ground or ground
        pieces: list[tuple[str, str]] = []
        joins = False
        for text, ink in arrange(line, width):
            if not text:
                continue
            codes, of_ground, is_plain = self._codes_of(ink, behind)
            if text.isspace() and is_plain:
                # Of a blank nothing is seen but its ground: a few are drawn with what is beside.
                codes = pieces[-1][1] if joins and len(text) < ERASED_FROM else of_ground
            elif joins and is_plain and pieces[-1][1] == of_ground and (
                len(pieces[-1][0]) < ERASED_FROM
            ):
                pieces[-1] = pieces[-1][0], codes
            if pieces and pieces[-1][1] == codes:
                text = pieces.pop()[0] + text
            pieces.append((text, codes))
            joins = is_plain
        return [self._piece(text, codes) for text, codes in pieces]

    def _piece(self, text: str, codes: str) -> Painted:
        if self._erases and len(text) >= ERASED_FROM and text.isspace():
            return erased(len(text), codes)
        return paint(guarded(drawable(text)), codes)

    def placeholder(self, text: str) -> Painted:
        """Return the words of an empty input."""
        look = Look(placeholder_colour(self._palette), self._palette.panel, ())
        return paint(guarded(drawable(text)), self._sgr(look))

    def _codes_of(self, ink: str, ground: str) -> tuple[str, str, bool]:
        """Return what the SGR sequence of an ink takes.

        Returns:
            Its parameters, those of its ground alone, and whether a blank shows only that.
        """
        codes = self._codes.get((ink, ground))
        if codes is None:
            look = look_of(self._palette, ink, ground)
            of_ground = ";".join(_colour(look.ground, self._depth, "48"))
            is_plain = not _SEEN_ON_BLANKS.intersection(look.flags)
            codes = self._codes[ink, ground] = self._sgr(look), of_ground, is_plain
        return codes

    def _sgr(self, look: Look) -> str:
        codes = [code for flag, code in _CODES.items() if flag in look.flags]
        codes += _colour(look.colour, self._depth, "38")
        return ";".join([*codes, *_colour(look.ground, self._depth, "48")])


def _colour(colour: str, depth: Depth, layer: Literal["38", "48"]) -> Sequence[str]:
    if depth == "TRUECOLOR":
        return [layer, "2", *(str(int(colour[at:at + 2], 16)) for at in (1, 3, 5))]
    # Only here: a terminal with all colours does not wait for it.
    from rich.color import Color, ColorSystem

    nearest = Color.parse(colour).downgrade(ColorSystem[depth])
    return nearest.get_ansi_codes(layer == "38")
