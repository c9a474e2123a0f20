"""Opens sessions: a window at once, the rest behind it; and keeps places to come back to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from store.conversation.outline_marks import is_outline
from store.conversation.readable import decode
from store.errors import StoreError
from store.queries import transcript as queries
from store.queries.lineage import has_children
from store.rows import SessionRow
from store.text.code import warm as warm_highlighting
from store.text.markdown import parser as parser_of_markdown
from store.text.stored_json import as_dict
from store.usage import context_size
from tui.host import host_of
from tui.messages import ProblemOccurred
from tui.transcript.document import Document
from tui.transcript.follower import Follower
from tui.transcript.headings import Headings
from tui.transcript.place import Place, read_place
from tui.transcript.placement import Placement
from tui.transcript.reader import SessionReader
from tui.transcript.selected import SelectedPart
from tui.transcript.shown import PaneServices, ShownSession

if TYPE_CHECKING:
    from store.store import Store

class Opener:
    """Opens sessions in the view."""

    def __init__(
        self, shown: ShownSession, pane: PaneServices, *, placement: Placement,
        selected: SelectedPart, follower: Follower, headings: Headings,
    ) -> None:
        """Start without a session.

        Args:
            shown: Takes the session that is opened.
            pane: Runs what is read behind the first window.
            placement: Reads the rest of the session.
            selected: Announces the selected part once all is known.
            follower: Follows the session from then on.
            headings: Shows that a session is opened, or why there is none.
        """
        self._shown, self._pane, self._placement = shown, pane, placement
        self._selected, self._follower, self._headings = selected, follower, headings
        self._warmed = False
        self._unread: SessionReader | None = None
        """The session that could not be read whole."""

    async def open(
        self, store: Store, row: SessionRow, *, message_id: str | None = None, place: object = None
    ) -> None:
        """Show a session: first a window, and once that is painted all the rest.

        Args:
            store: The store that holds it.
            row: The session.
            message_id: The message to select; None for the place.
            place: What ``place_of`` returned for this session, or None for its end.
        """
        shown = self._shown
        self._pane.cancel("fill")
        if is_outline(as_dict(decode(row.metadata_json))):
            host_of(shown.view).read_first(row.id)
        if shown.reader is None:
            self._headings.show_opening(row.title)
        known = read_place(place) if message_id is None else None
        at_end = message_id is None and (known is None or bool(known.get("at_end")))
        around = None if at_end else message_id or (known or {}).get("message")
        reader = SessionReader(store, row)
        document = await reader.open(shown.setting(), around, at_end=at_end)
        if not self._warmed:
            # In a thread: the first import takes as long as several screens.
            await asyncio.to_thread(parser_of_markdown)
        if shown.reader is not None:
            shown.reader.left = True
        shown.forget_search()
        self._selected.reset()
        shown.reader, shown.activity, shown.context_size = reader, reader.activity, 0
        shown.family = ""
        shown.view.show(document)
        shown.view.at_end = at_end
        if known is not None:
            document.folds = {(fold[0], fold[1]): fold[2] for fold in known.get("folds", [])}
        self._restore(known, message_id)
        self._pane.update_headings()
        self._pane.call_after_refresh(self._fill_soon)
        self._follower.begin(reader)

    def _restore(self, known: Place | None, message_id: str | None) -> None:
        """Show a message, a place or the end in what is loaded."""
        view, document = self._shown.view, self._shown.document
        if not len(document):
            return
        if message_id is not None:
            part = document.skeleton.locate(message_id)
            if part is not None:
                view.cursor = part
                view.scroller.show(part)
                view.keep_cursor(1)
                return
        if known is None or known.get("at_end"):
            view.scroller.to_end()
            view.cursor = document.last_shown()
        else:
            part = document.skeleton.locate(known["message"], known.get("index", 0))
            if part is not None:
                view.scroller.to(part, known.get("line", 0))
        chosen = (known or {}).get("selected")
        if chosen:
            part = document.skeleton.locate(chosen[0], chosen[1])
            view.cursor = part if part is not None else view.cursor
        view.keep_cursor(1)
        view.changed()

    def _fill_soon(self) -> None:
        self._pane.background(self._fill, group="fill")

    def fill_again(self) -> None:
        """Read the rest of the session, where the store could not be read then."""
        if self._unread is not None and self._unread is self._shown.reader:
            self._unread = None
            self._fill_soon()

    async def _fill(self) -> None:
        """Read what the first paint did without."""
        shown, reader = self._shown, self._shown.reader
        if reader is None:
            return
        self._unread = None
        try:
            if not self._warmed:
                self._warmed = True
                self._pane.in_thread(warm_highlighting)
            await self._placement.until_whole()
            text = await reader.store.read(queries.last_usage, reader.row.id)
            if reader is shown.reader:
                shown.context_size = context_size(as_dict(decode(text))) if text else 0
                self._selected.again()
                await self._placement.prefetch()
        except Exception as error:
            problem = ProblemOccurred("The session could not be read whole", error)
            self._pane.post_message(problem)
            if isinstance(error, StoreError):
                self._unread = reader
                return
        await self._follower.refresh_screen()
        try:
            await self._show_family(reader)
        except Exception as error:
            self._pane.post_message(
                ProblemOccurred("What is below the session could not be counted", error))

    async def _show_family(self, reader: SessionReader) -> None:
        """Show what the session comes to with all below it, where anything is."""
        shown = self._shown
        if not await reader.store.read(has_children, reader.row.id):
            return
        # Prices and counts are not read before a session has children.
        from tui.words.costs import family_words, read_family

        async for found in read_family(host_of(shown.view), reader.store, reader.row.id):
            if reader is not shown.reader:
                return
            shown.family = family_words(found)
            self._pane.update_headings()

    def show_nothing(self, text: str) -> None:
        """Show why there is no session."""
        shown = self._shown
        shown.reader = None
        shown.forget_search()
        shown.view.show(Document(shown.view.content_setting))
        self._headings.show_nothing(text)
