"""The transcript at the selected hit, beside the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from store.queries.sessions import get
from store.search.hits import Hit
from tui.kit.hits import Finds
from tui.kit.line_bar import LineBar
from tui.kit.lines import Line, Run, cut, width_of
from tui.kit.text import one_line
from tui.transcript.document import Document
from tui.transcript.reader import SessionReader
from tui.transcript.shown_hit import open_for_hit, part_of_hit
from tui.transcript.view import TranscriptView
from tui.words.messages import clock_time, day

if TYPE_CHECKING:
    from store.store import Store

_ABOVE = 4
"""Lines of what comes before the hit that are shown where they fit."""


class Preview(Vertical):
    """Title, place and transcript of the session of a hit; it takes no keys."""

    DEFAULT_CSS = """
    Preview { width: 48; height: 1fr; background: $background; display: none; }
    Preview > LineBar { height: 1; }
    Preview > #preview-facts { margin-bottom: 1; }
    """

    class Opened(Message):
        """The transcript was clicked."""

    def __init__(self) -> None:
        """Make an empty preview."""
        super().__init__(id="search-preview")
        self.view = TranscriptView()
        self.view.can_focus = False
        self._title = LineBar(id="preview-title", ground="background")
        self._facts = LineBar(id="preview-facts", ground="background")
        self._facts_of: Callable[[int], Line] | None = None

    def compose(self) -> ComposeResult:
        """Compose title, facts and transcript."""
        yield self._title
        yield self._facts
        yield self.view

    def clear(self) -> None:
        """Show nothing."""
        self._title.show(Line())
        self._facts.show(Line())
        self.view.show(Document(self.view.content_setting))

    def place(self, words: str) -> None:
        """Show which hit it is, such as ``hit 3 of 48``."""
        self._words = words
        self._show_facts()

    _words = ""
    _about = ""

    def _show_facts(self) -> None:
        width = max(8, self.size.width - 2)
        right: list[Run] = [(self._words, "faint")]
        left: list[Run] = [(f" {self._about}", "faint")]
        self._facts.show(Line(cut(left, max(0, width - width_of(right) - 2)), right))

    async def show(self, store: Store, hit: Hit, marks: Finds | None) -> None:
        """Show a hit in its session; where that is gone, nothing.

        Args:
            store: The store.
            hit: The hit.
            marks: Finds what is marked.
        """
        row = await store.read(get, hit.session_id)
        if row is None:
            self.clear()
            return
        reader = SessionReader(store, row)
        document = await reader.open(
            self.view.content_setting, hit.message_id, at_end=False)
        part = await part_of_hit(reader, document, hit.message_id, hit.index)
        await reader.have(document, range(max(0, (part or 0) - 30), (part or 0) + 30))
        self._title.show(Line([(one_line(row.title or "") or "untitled", "text bold")]))
        self._about = f"{day(hit.created_at)} {clock_time(hit.created_at)}"
        turns = document.skeleton.turns
        if part is not None and document.complete and turns:
            number = document.skeleton.turn_of(document.skeleton.message[part])
            self._about = f"turn {number:,} of {len(turns):,}"
        self._show_facts()
        self.view.show(document)
        self.view.pattern = marks
        if part is not None:
            line = open_for_hit(document, part, hit, marks)
            self.view.cursor = part
            self.view.scroller.show(part, line, 3, margin=_ABOVE)
        self.view.changed()

    @on(TranscriptView.Wheeled)
    def _wheeled(self, event: TranscriptView.Wheeled) -> None:
        event.stop()
        self.view.scroller.move(event.lines)
        self.view.changed()

    @on(TranscriptView.Clicked)
    def _clicked(self, event: TranscriptView.Clicked) -> None:
        event.stop()
        if self.view.text_selection is None:
            self.post_message(self.Opened())

    @on(TranscriptView.Dragged)
    @on(TranscriptView.Resized)
    def _ignored(self, event: Message) -> None:
        event.stop()
