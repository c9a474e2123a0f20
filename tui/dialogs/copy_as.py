"""Copy as…: a list of what the focused part, message and session can give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from store.errors import BackscrollError
from store.queries.inspection import message_parts
from store.queries.sessions import get
from tui.dialogs.copy_choices import Choice, choices, session_choices, session_markdown
from tui.kit import clipboard
from tui.kit.blocks import Block, Fixed
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Link, Run, cut
from tui.kit.theme import palette_of

if TYPE_CHECKING:
    from store.store import Store

NAME_CELLS = 20


class CopyAsScreen(ModalScreen[None]):
    """Copies what is chosen and closes."""

    AUTO_FOCUS = "LineView"
    DEFAULT_CSS = """
    CopyAsScreen { align: center middle; }
    CopyAsScreen > Vertical {
        width: 84; max-width: 92%; height: auto; max-height: 80%; padding: 1;
    }
    CopyAsScreen LineView { height: auto; }
    """

    def __init__(
        self, store: Store, session_id: str, message_id: str | None = None,
        part_id: str | None = None,
    ) -> None:
        """Make the list.

        Args:
            store: The open store.
            session_id: The session that is shown.
            message_id: The message that has the focus; None for the whole session.
            part_id: The part that has the focus; None for the whole message.
        """
        super().__init__()
        self._store, self._session_id = store, session_id
        self._message_id, self._part_id = message_id, part_id
        self._choices: list[Choice] = []

    def compose(self) -> ComposeResult:
        """Compose title, list and keys."""
        with Vertical():
            yield LineBar(id="copy-title", ground="raised")
            yield LineView(ground="raised")
            yield LineBar(id="copy-keys", ground="raised")

    async def on_mount(self) -> None:
        """Read the message and list what it gives."""
        self.query_one(Vertical).styles.background = palette_of(self.app).raised
        self.query_one("#copy-title", LineBar).show(Line((("Copy as…", "text bold"),)))
        keys = Line((
            ("enter", "text bold"), (" copy   ", "muted"), ("esc", "text bold"),
            (" close", "muted"),
        ))
        self.query_one("#copy-keys", LineBar).show(keys)
        self._choices = await self._offered()
        blocks: list[Block] = [Fixed(self._lines)]
        view = self.query_one(LineView)
        view.styles.height = len(self._choices)
        view.show(blocks)

    async def _offered(self) -> list[Choice]:
        if self._message_id is None:
            row = await self._store.read(get, self._session_id)
            return [] if row is None else session_choices(row)
        parts = await self._store.read(message_parts, self._message_id)
        return choices(self._session_id, self._message_id, self._part_id, parts)

    def _lines(self, width: int) -> list[Line]:
        lines = []
        for number, choice in enumerate(self._choices):
            runs: list[Run] = [
                (choice.key.ljust(2), "user bold"), (choice.name.ljust(NAME_CELLS), "text"),
                (choice.hint, "muted"),
            ]
            lines.append(Line(cut(runs, width), link=Link("choice", str(number))))
        return lines

    async def on_key(self, event: events.Key) -> None:
        """Move, take, close; each letter takes its line."""
        view = self.query_one(LineView)
        moves = {"down": 1, "up": -1, "ctrl+n": 1, "ctrl+p": -1}
        if event.key in moves:
            view.move_by(moves[event.key])
        elif event.key == "escape":
            self.dismiss()
        elif event.key == "enter":
            await self._take(view.cursor)
        else:
            at = [at for at, choice in enumerate(self._choices) if choice.key == event.character]
            if not at or not event.character:
                return
            await self._take(at[0])
        event.stop()

    async def on_line_view_activated(self, message: LineView.Activated) -> None:
        """Take the line that was clicked."""
        message.stop()
        await self._take(self.query_one(LineView).cursor)

    async def _take(self, number: int) -> None:
        if not 0 <= number < len(self._choices):
            return
        choice = self._choices[number]
        try:
            if choice.read is not None:
                text = choice.read()
            else:
                text = await self._store.read(session_markdown, self._session_id)
        except BackscrollError as error:
            self.app.notify(str(error), severity="error", markup=False)
            return
        self.dismiss()
        await clipboard.copy(self.app, text, f"the {choice.name}")
