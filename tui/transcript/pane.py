"""The transcript pane: shows one session, and is made of parts that each do one thing.

A line gets to the screen so: ``SessionReader`` reads rows into a ``Document``, the document
lays a part out when its height or its lines are asked for, and ``TranscriptView`` paints the
lines. A key gets to a move so: its command calls a part, such as ``navigator.page(1)``, and
``Placement`` takes the step once all earlier ones are done and its rows are loaded. A change in
the store gets to the screen so: ``Follower`` reads what changed, replaces that in the
document, and restores the position.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from store.queries.transcript import index_of
from store.rows import SessionRow
from tui.host import host_of
from tui.keys.declaration import AnyCommand
from tui.keys.pane import CommandPane
from tui.keys.queue import enqueue
from tui.transcript.context import ContextView
from tui.transcript.copy_actions import CopyActions
from tui.transcript.document import Document, Key
from tui.transcript.finder import Finder
from tui.transcript.folds import Folds
from tui.transcript.follower import Follower
from tui.transcript.headings import FactLines, Headings
from tui.transcript.navigator import Navigator
from tui.transcript.new_below import NewBelow
from tui.transcript.opener import Opener
from tui.transcript.place import Place, place_of
from tui.transcript.placement import Placement
from tui.transcript.prompt import Prompt
from tui.transcript.running import RunningCalls
from tui.transcript.selected import SelectedPart
from tui.transcript.shown import OwnServices, ShownSession
from tui.transcript.shown_hit import ShownHit
from tui.transcript.verbs import SessionVerbs
from tui.transcript.view import TranscriptView
from tui.verbs.doing import opened, still_opening
from tui.verbs.searching import search_everywhere
from tui.words.searching import wanted_of_part

if TYPE_CHECKING:
    from store.store import Store


class TranscriptPane(OwnServices, CommandPane, Vertical):
    """Shows one session; its commands are in ``tui.transcript.commands``."""

    SCOPE = "transcript"
    DEFAULT_CSS = """
    TranscriptPane { width: 1fr; height: 1fr; background: $background; }
    TranscriptPane > #transcript-header { margin-bottom: 0; }
    """

    navigator: Navigator
    folds: Folds
    finder: Finder
    context: ContextView
    copying: CopyActions
    verbs: SessionVerbs
    marks_in: Callable[[str], dict[Key, str]] | None = None
    """Returns the marks in a session by key of their part."""

    def __init__(self, *, id: str | None = None) -> None:
        """Make a pane that shows nothing yet."""
        super().__init__(id=id)
        self.view = TranscriptView(id="transcript-view")
        self.prompt = Prompt()
        self.shown = shown = ShownSession(self.view)
        self.selected = SelectedPart(shown, self)
        self.placement = Placement(shown, self, self.selected)
        self.navigator = Navigator(shown, self, self.placement)
        self.folds = Folds(shown, self, self.placement)
        self.finder = Finder(shown, self, self.placement, self.prompt)
        self.running = RunningCalls(shown, self, self.selected)
        self.new_below = NewBelow(shown)
        self.headings = Headings(shown, self.new_below)
        self.follower = Follower(
            shown, self, placement=self.placement, finder=self.finder, selected=self.selected,
            running=self.running, new_below=self.new_below, gone=self.show_nothing,
        )
        self.opener = Opener(
            shown, self, placement=self.placement, selected=self.selected,
            follower=self.follower, headings=self.headings,
        )
        self.context = ContextView(
            shown, self, placement=self.placement, finder=self.finder, follower=self.follower)
        self.copying = CopyActions(shown, self)
        self.verbs = SessionVerbs(
            shown, self, navigator=self.navigator, selected=self.selected)

    def compose(self) -> ComposeResult:
        """Compose header, transcript, prompt and status."""
        yield self.headings.header
        yield self.context.lines
        yield self.view
        yield self.headings.waiting
        yield self.prompt
        yield self.headings.status

    # What is shown

    @property
    def document(self) -> Document:
        """What is known of the session."""
        return self.view.document

    @property
    def session(self) -> SessionRow | None:
        """The session that is shown."""
        return self.shown.session

    @property
    def is_opening(self) -> bool:
        """Whether a session is being opened."""
        return still_opening(self) is not None

    @property
    def cursor(self) -> int:
        """The selected part."""
        return self.view.cursor

    async def open_session(
        self, store: Store, row: SessionRow, *, message_id: str | None = None,
        part_id: str | None = None, place: object = None, back: str = "",
    ) -> None:
        """Show a session.

        Args:
            store: The store that holds it.
            row: The session.
            message_id: The message to select; None for the place.
            part_id: The part of that message to unfold and select.
            place: What ``place`` returned for this session, or None for its end.
            back: The title of what escape leads back to; "" for the list.
        """
        self.shown.back, self.shown.hit = back, None
        await self.opener.open(store, row, message_id=message_id, place=place)
        if message_id is not None:
            found = await store.read(index_of, part_id) if part_id is not None else None
            await self.folds.reveal(message_id, found)

    def shows(self, session_id: str) -> bool:
        """Return whether a session is the one that is shown."""
        return self.session is not None and self.session.id == session_id

    async def show_hit(self, hit: ShownHit) -> None:
        """Go to a hit of a search in the session that is shown."""
        await self.finder.show_hit(hit)

    async def search_everywhere(self) -> None:
        """Search all sessions for the selected text, or what the selected part has."""
        shown = self.shown
        item = shown.document.item(shown.cursor) if shown.has_parts else None
        await search_everywhere(self, wanted_of_part(item.data) if item is not None else [])

    def show_nothing(self, text: str) -> None:
        """Show why there is no session."""
        self.opener.show_nothing(text)

    def place(self) -> Place | None:
        """Return the present place, for the state file; None without a session."""
        return place_of(self.shown)

    def go_back(self) -> bool:
        """Go back one step: the prompt, the search, what the session was opened from.

        Returns:
            False where there is none of these.
        """
        if self.prompt.is_open:
            self._leave_prompt()
            self.background(self.finder.cancel, group="find")
            return True
        if self.finder.end():
            return True
        way = host_of(self).way_back
        if way is not None:
            way.go()
        return way is not None

    # What the parts ask for: see ``PaneServices``

    def masks_changed(self) -> None:
        """Lay everything out again, with what is masked now."""
        self.shown.document.relayout()
        self.view.repaint()
        self.update_headings()

    def update_headings(self) -> None:
        """Bring the lines around the transcript up to date."""
        self.shown.take_labels()
        self.shown.take_marks(self.marks_in)
        self.new_below.note()
        self.headings.update(self.size.width)
        self.running.start()
        self.context.update(self.size.width)

    # Keys and the mouse

    async def catch_up(self, command: AnyCommand | None = None) -> None:
        """Wait for the session that is being opened: keys are meant for it."""
        await opened(self)

    def in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do what the mouse asks for after the keys before it, and before those after it."""
        enqueue(self, partial(self._in_turn, work))

    async def _in_turn(self, work: Callable[[], Awaitable[None]]) -> None:
        await self.catch_up()
        if self.is_attached:
            await work()

    @on(TranscriptView.Clicked)
    def _clicked(self, event: TranscriptView.Clicked) -> None:
        event.stop()
        self.in_turn(partial(self.folds.click, event, lambda _part: self.verbs.open_child()))

    @on(TranscriptView.Wheeled)
    def _wheeled(self, event: TranscriptView.Wheeled) -> None:
        event.stop()
        self.in_turn(partial(self.navigator.lines, event.lines))

    @on(TranscriptView.Dragged)
    def _dragged(self, event: TranscriptView.Dragged) -> None:
        event.stop()
        self.in_turn(partial(self.navigator.share_of_lines, event.share))

    @on(FactLines.Pressed)
    def _pressed(self, event: FactLines.Pressed) -> None:
        event.stop()
        if event.share is not None:
            self.in_turn(partial(self.navigator.share_of_parts, event.share))

    @on(TranscriptView.Resized)
    def _resized(self) -> None:
        self.update_headings()
        if self.document.lacking:
            self.background(self.placement.stay, group="resized")

    @on(Prompt.Typed)
    def _prompt_typed(self, event: Prompt.Typed) -> None:
        event.stop()
        self.finder.typed(event)

    @on(Prompt.Closed)
    async def _prompt_closed(self, event: Prompt.Closed) -> None:
        event.stop()
        self._leave_prompt()
        await self.finder.cancel()

    @on(Prompt.Accepted)
    async def _prompt_accepted(self, event: Prompt.Accepted) -> None:
        event.stop()
        self._leave_prompt()
        await self.finder.accept(event)

    def _leave_prompt(self) -> None:
        self.prompt.close()
        self.screen.set_focus(self.view)
