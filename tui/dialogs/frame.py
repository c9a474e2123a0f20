"""What all dialogs have: a raised ground, a title, a line of keys that can be clicked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

from tui.keys.declaration import AnyCommand
from tui.keys.footer import BottomLine
from tui.keys.pane import CommandPane
from tui.kit.blocks import Block
from tui.kit.closing import ClosingScreen
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import Line
from tui.kit.paint import MARGIN
from tui.kit.text import one_line
from tui.kit.theme import palette_of

T = TypeVar("T")

WIDTH, WIDTH_SHARE, HEIGHT_SHARE = 84, 0.92, 0.9
DIMMED_CELLS = 15_000
"""A larger screen stays as it is around a dialog: each of its words would be sent anew, twice."""
FRAME_ROWS = 6
"""Padding, title, keys, and the blank lines around the content."""


def room_for_notes(screen: Size, blocks: Sequence[Block]) -> int:
    """Return how many more rows a dialog has, beside some blocks that are in it."""
    width = int(min(WIDTH, screen.width * WIDTH_SHARE)) - 2 - 2 * MARGIN
    taken = sum(block.height(max(1, width)) for block in blocks)
    return int(screen.height * HEIGHT_SHARE) - FRAME_ROWS - taken


class Dialog(CommandPane, ClosingScreen[T | None], ModalScreen[T | None], Generic[T]):
    """Gives what was chosen, or None where it was left.

    A dialog that changes a session names it: in its notes, or at the right of its title.
    """

    SCOPE = "dialog"
    DEFAULT_CSS = f"""
    Dialog {{ align: center middle; background: $background 60%; }}
    Dialog.-undimmed {{ background: $background 0%; }}
    Dialog > Vertical {{
        width: {WIDTH}; max-width: {WIDTH_SHARE:.0%}; height: auto;
        max-height: {HEIGHT_SHARE:.0%}; padding: 1;
    }}
    Dialog LineView {{ height: auto; max-height: 16; }}
    Dialog Input {{ height: 1; border: none; padding: 0 1; margin: 1 0; }}
    Dialog Input:focus {{ border: none; }}
    Dialog BottomLine {{ margin-top: 1; }}
    """

    def __init__(self, title: str, about: str = "") -> None:
        """Take the title, and the text at its right."""
        super().__init__()
        self._title, self._about = title, about

    def compose(self) -> ComposeResult:
        """Compose title, body and keys."""
        with Vertical():
            yield LineBar(id="dialog-title", ground="raised")
            yield from self.body()
            yield BottomLine()

    def body(self) -> Sequence[Widget]:
        """Return the widgets between title and keys."""
        return ()

    def offers(self) -> Mapping[str, str]:
        """Return what the dialog can do, by verb, in the words of the footer."""
        return {}

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return what a key does in this dialog."""
        label = super().footer_label(command)
        return None if label is None else self.offers().get(command.id.partition(".")[2], label)

    @on(events.Mount)
    def _show_title(self) -> None:
        palette = palette_of(self.app)
        self.query_one(Vertical).styles.background = palette.raised
        about = ((one_line(self._about), "muted"),) if self._about else ()
        self.query_one("#dialog-title", LineBar).show(
            Line(((one_line(self._title), "text bold"),), about)
        )

    @on(events.Mount)
    @on(events.Resize)
    def _dim_around(self) -> None:
        size = self.app.size
        self.set_class(size.width * size.height > DIMMED_CELLS, "-undimmed")

    # What its commands do

    async def take(self, verb: str) -> None:
        """Do one of the things that the dialog offers."""

    def leave(self) -> None:
        """Close and give nothing."""
        self.dismiss(None)

    @property
    def lines(self) -> LineView | None:
        """The lines that the keys move through; None where there are none."""
        return next(iter(self.query(LineView)), None)

    def move_by(self, lines: int) -> None:
        """Move the cursor by some lines."""
        if self.lines is not None:
            self.lines.move_by(lines)

    def move_pages(self, pages: int) -> None:
        """Move the cursor by some pages."""
        if self.lines is not None:
            self.lines.move_by(pages * self.lines.page)

    def on_click(self, event: events.Click) -> None:
        """Leave when the ground around the dialog is clicked."""
        if event.widget is self:
            self.dismiss(None)
