"""Copy as…: a list of what the focused part, message and session can give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.widget import Widget

from store.errors import BackscrollError
from store.queries.inspection import message_parts
from store.queries.sessions import get
from tui.dialogs.copy_choices import (
    Choice,
    choices,
    masked_choices,
    session_choices,
    session_markdown,
)
from tui.dialogs.frame import Dialog
from tui.host import host_of
from tui.keys.names import key_name
from tui.keys.queue import Work
from tui.kit import clipboard
from tui.kit.blocks import Fixed
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Link, Run, cut

if TYPE_CHECKING:
    from store.sharing.masks import Masks
    from store.store import Store

NAME_CELLS = 20


class CopyAsScreen(Dialog[None]):
    """Copies what is chosen and closes; the letter of a line takes it."""

    AUTO_FOCUS = "LineView"

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
        super().__init__("Copy as…")
        self._store, self._session_id = store, session_id
        self._message_id, self._part_id = message_id, part_id
        self._choices: list[Choice] = []

    def body(self) -> Sequence[Widget]:
        """Compose the list."""
        view = LineView(ground="raised")
        view.styles.margin = (1, 0, 0, 0)
        return [view]

    def offers(self) -> Mapping[str, str]:
        """Return what enter does."""
        return {"take": "copy"}

    async def on_mount(self) -> None:
        """Read the message and list what it gives."""
        self._choices = await self._offered()
        view = self.query_one(LineView)
        view.styles.height = min(18, len(self._choices))
        view.show([Fixed(self._lines)])

    async def _offered(self) -> list[Choice]:
        if self._message_id is None:
            row = await self._store.read(get, self._session_id)
            return [] if row is None else session_choices(row)
        parts = await self._store.read(message_parts, self._message_id)
        return [
            *choices(self._session_id, self._message_id, self._part_id, parts),
            *masked_choices(self._part_id, parts, self._masks()),
        ]

    def _masks(self) -> Masks:
        """Return what is masked in copies for other people."""
        from store.sharing.masks import Masks
        from store.sharing.settings import masking_of

        return Masks(masking_of(host_of(self).settings.masks))

    def _lines(self, width: int) -> list[Line]:
        lines = []
        for number, choice in enumerate(self._choices):
            runs: list[Run] = [
                (choice.key.ljust(2), "user bold"), (choice.name.ljust(NAME_CELLS), "text"),
                (choice.hint, "muted"),
            ]
            lines.append(Line(cut(runs, width), link=Link("choice", str(number))))
        return lines

    def work_for(self, key: str) -> Work | None:
        """Return what a key runs; the letter of a line comes before the keys of dialogs."""
        for number, choice in enumerate(self._choices):
            if choice.key and key_name(choice.key) == key:
                return partial(self._take, number)
        return super().work_for(key)

    async def take(self, verb: str) -> None:
        """Copy what the cursor is on."""
        await self._take(self.query_one(LineView).cursor)

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
                masks = self._masks() if choice.masked else None
                text = await self._store.read(session_markdown, self._session_id, masks)
        except BackscrollError as error:
            self.app.notify(str(error), severity="error", markup=False)
            return
        self.dismiss()
        await clipboard.copy(self.app, text, f"the {choice.name}")
