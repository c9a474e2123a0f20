"""Opening a session: a window at once, the rest behind it; and places to come back to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from store.queries import transcript as queries
from store.rows import SessionRow
from store.usage import context_size
from tui.kit.glyphs import glyphs
from tui.kit.highlight import warm as warm_highlighting
from tui.kit.lines import Line
from tui.kit.markdown import parser as parser_of_markdown
from tui.kit.text import one_line
from tui.messages import ProblemOccurred
from tui.transcript.document import Document
from tui.transcript.moving import MovingPane
from tui.transcript.place import MOST_FOLDS, Place, read_place
from tui.transcript.plain import as_dict, decode
from tui.transcript.reader import SessionReader

if TYPE_CHECKING:
    from store.store import Store


class OpeningPane(MovingPane):
    """The transcript with its ways to open, to remember and to look again."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start without a session."""
        super().__init__(id=id)

    async def open_session(
        self, store: Store, row: SessionRow, *, message_id: str | None = None, place: Any = None
    ) -> None:
        """Show a session: first a window, and once that is painted all the rest.

        Args:
            store: The store that holds it.
            row: The session.
            message_id: The message to select; None for the place.
            place: What ``place`` returned for this session, or None for its end.
        """
        self._keep_parent(row)
        self.workers.cancel_group(self, "fill")
        if self.reader is None:
            name = one_line(row.title or "") or "untitled"
            opening = Line([(f"opening{glyphs().more}", "faint")])
            self.header.show([Line([(name, "text bold")]), opening])
        known = read_place(place) if message_id is None else None
        at_end = message_id is None and (known is None or bool(known.get("at_end")))
        around = None if at_end else message_id or (known or {}).get("message")
        reader = SessionReader(store, row)
        setting = self.view.content_setting
        setting.tools, setting.reasoning = self.tools, self.reasoning
        document = await reader.open(setting, around, at_end=at_end)
        if not self._warmed:
            # Beside the keys: the first import takes as long as several screens.
            await asyncio.to_thread(parser_of_markdown)
        if self.reader is not None:
            self.reader.left = True
        self.reader, self.search, self._context_size, self._told = reader, None, 0, None
        self.activity = reader.activity
        self.view.show(document)
        self.view.at_end = at_end
        if known is not None:
            document.folds = {(fold[0], fold[1]): fold[2] for fold in known.get("folds", [])}
        self._stand(known, message_id)
        self.show_around()
        self.call_after_refresh(self._complete)

    def _keep_parent(self, row: SessionRow) -> None:
        """Remember where a child was opened from; any other session forgets the way."""
        if self._returns is not None and row.parent_id == self._returns.id:
            self.parents.append((self._returns, self.place()))
        elif not (self.parents and row.id == self.parents[-1][0].id):
            self.parents.clear()
        else:
            self.parents.pop()
        self._returns = None

    def _stand(self, known: Place | None, message_id: str | None) -> None:
        """Put the anchor and the cursor where they belong in what is here."""
        document, scroller = self.document, self.view.scroller
        if not len(document):
            return
        if message_id is not None:
            part = document.skeleton.locate(message_id)
            if part is not None:
                self.view.cursor = part
                scroller.show(part)
                self.keep_cursor(1)
                return
        if known is None or known.get("at_end"):
            scroller.to_end()
            self.view.cursor = self._last_part()
        else:
            part = document.skeleton.locate(known["message"], known.get("index", 0))
            if part is not None:
                scroller.to(part, known.get("line", 0))
        chosen = (known or {}).get("selected")
        if chosen:
            part = document.skeleton.locate(chosen[0], chosen[1])
            self.view.cursor = part if part is not None else self.view.cursor
        self.keep_cursor(1)
        self.view.changed()

    def _complete(self) -> None:
        self.background(self._fill, group="fill")

    async def _fill(self) -> None:
        """Read what the first paint did without."""
        reader = self.reader
        if reader is None:
            return
        try:
            if not self._warmed:
                self._warmed = True
                self.run_worker(warm_highlighting, thread=True, exit_on_error=False)
            await self.until_whole()
            text = await reader.store.read(queries.last_usage, reader.row.id)
            if reader is self.reader:
                self._context_size = context_size(as_dict(decode(text))) if text else 0
                self.select(self.cursor, force=True)
                await self.prefetch()
        except Exception as error:
            self.post_message(ProblemOccurred("The session could not be read whole", error))

    def show_session_none(self, text: str) -> None:
        """Show why there is no session."""
        self.reader = self.search = None
        self.parents.clear()
        self.view.show(Document(self.view.content_setting))
        self.header.show([Line([(one_line(text), "muted")])])
        self.status.show([])

    def place(self) -> Place | None:
        """Return where the reader stands, for the state file."""
        document, scroller = self.document, self.view.scroller
        if self.reader is None or not len(document):
            return None
        message_id, index = document.skeleton.key(min(scroller.part, len(document) - 1))
        chosen = document.skeleton.key(self.cursor)
        folds = list(document.folds.items())[-MOST_FOLDS:]
        return Place(
            message=message_id, index=index, line=scroller.line, selected=list(chosen),
            folds=[[key[0], key[1], level] for key, level in folds], at_end=self.view.at_end,
        )


