"""What all dialogs have: a raised ground, a title, a line of keys that can be clicked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

from tui.keys.footer import BottomLine, Hint
from tui.kit.blocks import Block
from tui.kit.line_bar import LineBar
from tui.kit.lines import Line
from tui.kit.paint import MARGIN
from tui.kit.text import one_line
from tui.kit.theme import palette_of

T = TypeVar("T")

WIDTH, WIDTH_SHARE, HEIGHT_SHARE = 84, 0.92, 0.9
FRAME_ROWS = 6
"""Padding, title, keys, and the blank lines around the content."""


def room_for_notes(screen: Size, blocks: Sequence[Block]) -> int:
    """Return how many more rows a dialog has, beside some blocks that are in it."""
    width = int(min(WIDTH, screen.width * WIDTH_SHARE)) - 2 - 2 * MARGIN
    taken = sum(block.height(max(1, width)) for block in blocks)
    return int(screen.height * HEIGHT_SHARE) - FRAME_ROWS - taken



class Dialog(ModalScreen[T | None], Generic[T]):
    """Gives what was chosen, or None where it was left."""

    DEFAULT_CSS = f"""
    Dialog {{ align: center middle; background: $background 60%; }}
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

    def keys(self) -> Sequence[tuple[str, str]]:
        """Return the keys and what they do; ``enter`` and ``escape`` are among them."""
        return ()

    def on_mount(self) -> None:
        """Show title and keys."""
        palette = palette_of(self.app)
        self.query_one(Vertical).styles.background = palette.raised
        about = ((one_line(self._about), "muted"),) if self._about else ()
        self.query_one("#dialog-title", LineBar).show(
            Line(((one_line(self._title), "text bold"),), about)
        )
        self.show_keys()

    def show_keys(self) -> None:
        """Bring the line of keys up to date."""
        self.query_one(BottomLine).hints = tuple(
            Hint(key, key, label) for key, label in self.keys()
        )

    @on(BottomLine.Pressed)
    async def _key_clicked(self, event: BottomLine.Pressed) -> None:
        event.stop()
        await self.take_key(event.command)

    async def take_key(self, key: str) -> None:
        """Run a key of the last line."""
        if key == "escape":
            self.dismiss(None)

    async def on_key(self, event: events.Key) -> None:
        """Take the keys of the last line."""
        if event.key in {key for key, _ in self.keys()}:
            event.stop()
            event.prevent_default()
            await self.take_key(event.key)

    def on_click(self, event: events.Click) -> None:
        """Leave when the ground around the dialog is clicked."""
        if event.widget is self:
            self.dismiss(None)
