"""The inspector: one part of the transcript as call, JSON, original record and metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from store.errors import BackscrollError, NotFound
from store.queries import originals
from store.queries.inspection import PartDetail, part_detail
from tui.inspector.call import call_blocks
from tui.inspector.copy_actions import CopyActions
from tui.inspector.finder import Finder
from tui.inspector.meta import json_blocks, meta_blocks
from tui.inspector.records import Records, raw_blocks, read_records
from tui.inspector.subject import Subject
from tui.keys.find_bar import FindBar
from tui.keys.pane import CommandPane
from tui.keys.queue import Work
from tui.kit.blocks import Block, Fixed
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Run
from tui.kit.masked import is_view_masked, shown, shown_json
from tui.kit.paint import follow_theme
from tui.kit.tabs import Tabs
from tui.kit.theme import palette_of
from tui.kit.tree import Node, set_open
from tui.messages import ProblemOccurred, SessionOpened
from tui.state.prices import price_table

if TYPE_CHECKING:
    from store.engine.database import Database
    from store.store import Store

T = TypeVar("T")

TABS = ("Call", "JSON", "Raw", "Meta")
NOTHING = "There is no part to show"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A part that is to be shown."""

    store: Store
    session_id: str
    part_id: str
    runs: bool


def _detail_of(db: Database, session_id: str, part_id: str) -> PartDetail:
    """Return a part with its surroundings, and what the session cost by the kept statistics."""
    from store.stats.costs import costs_of

    prices = price_table()
    detail = part_detail(db, session_id, part_id, prices)
    if not detail.session.cost and detail.session.total:
        found = costs_of(db.path, [session_id], prices).get(session_id)
        if found is not None and found.usd is not None:
            detail.session.cost = found.told_usd or None
            detail.session.estimated = found.estimated_usd or None
    return detail


class Latest(Generic[T]):
    """Handles the newest of many requests: those that came in between are skipped.

    One request is handled at a time, so that reads never pile up behind each other.
    """

    def __init__(self, handle: Callable[[T], Awaitable[None]]) -> None:
        """Take what handles a request; it looks at ``stale`` before it shows anything."""
        self._handle = handle
        self._wanted: list[T] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def stale(self) -> bool:
        """Whether a newer request waits already."""
        return bool(self._wanted)

    def request(self, wanted: T) -> None:
        """Ask for something; what was asked for before and waits is forgotten."""
        self._wanted = [wanted]
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def settled(self) -> None:
        """Wait until the newest request is handled."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def drop(self) -> None:
        """Forget a request that waits."""
        self._wanted = []

    async def _run(self) -> None:
        while self._wanted:
            wanted = self._wanted.pop()
            await self._handle(wanted)


class InspectorPane(CommandPane, Vertical):
    """Shows one part, chosen by ``show_part``.

    Attributes:
        view: Shows the current tab.
        finder: Searches the view.
        copying: Copies, opens and saves values.
        store: Where the part is from; None before the first.
        subject: The part; None where none is shown.
        records: Its original records, once they were wanted.
        tab: The name of the current tab.
        as_shown: Returns a part as it is to be shown, such as at an earlier moment.
        known: Returns a part that the store has no longer, None where it is not known either.
        left_out: Keys that are for the screen around it.
    """

    SCOPE = "inspector"
    DEFAULT_CSS = """
    InspectorPane { padding: 0; }
    InspectorPane > LineView { height: 1fr; }
    """

    def __init__(self, *, id: str | None = "inspector") -> None:
        """Make a pane that shows nothing yet."""
        super().__init__(id=id)
        self.store: Store | None = None
        self.subject: Subject | None = None
        self.records: Records | None = None
        self.tab = TABS[0]
        self.tabs = Tabs(TABS)
        self.view: LineView = LineView(id="inspector-view")
        self.status = LineBar(id="inspector-status")
        self._bar = FindBar()
        self.finder: Finder = Finder(self.view, self._bar, lambda: self.tab)
        self.copying: CopyActions = CopyActions(self)
        self._latest: Latest[Wanted] = Latest(self._load)
        self._asked: Wanted | None = None
        self.as_shown: Callable[[PartDetail], PartDetail] = lambda detail: detail
        self.known: Callable[[str], PartDetail | None] = lambda part_id: None
        self.left_out: frozenset[str] = frozenset()
        self._shape = (0, 0)

    def work_for(self, key: str) -> Work | None:
        """Return what a key runs here; None for keys of the screen around it."""
        return None if key in self.left_out else super().work_for(key)

    def compose(self) -> ComposeResult:
        """Compose head, view, find bar and status line."""
        yield self.tabs
        yield self.view
        yield self._bar
        yield self.status

    def on_mount(self) -> None:
        """Take the theme's colours; say what to do."""
        self._paint()
        follow_theme(self, InspectorPane._paint)
        if self.subject is None:
            self.show_nothing()

    def _paint(self) -> None:
        self.styles.background = palette_of(self.app).panel

    def focus(self, scroll_visible: bool = True) -> InspectorPane:
        """Give the focus to the view."""
        self.view.focus(scroll_visible)
        return self

    # What is shown

    async def show_part(
        self, store: Store, session_id: str, part_id: str, *, runs: bool = False
    ) -> None:
        """Show a part; what was shown stays until it is read.

        Returns at once; ``settled`` waits. Requests that are overtaken by a newer one are
        skipped. The same part again is shown in its newer state, with cursor, place and
        folds kept.

        Args:
            store: The store that holds it.
            session_id: The session that it is shown in.
            part_id: The part.
            runs: Whether it is a call that runs.
        """
        self._asked = Wanted(store, session_id, part_id, runs)
        self._latest.request(self._asked)

    def masks_changed(self) -> None:
        """Show the part again, with what is masked now."""
        if self.subject is not None and self._asked is not None:
            self.records = None
            self.subject.loaded.clear()
            self._latest.request(self._asked)

    async def settled(self) -> None:
        """Wait until what was asked for is shown."""
        await self._latest.settled()

    async def search_everywhere(self) -> None:
        """Search all sessions for the selected text, or what the part or its line has."""
        await self.settled()
        await self.copying.search_everywhere(self)

    def show_nothing(self, text: str = NOTHING) -> None:
        """Show a line in place of a part."""
        self._latest.drop()
        self.subject = self.records = None
        self.tabs.show(("Inspector", "muted bold"), "", ())
        self.view.show([Fixed(lambda _: [Line(((text, "faint"),))])])
        self.status.show(Line())

    async def _load(self, wanted: Wanted) -> None:
        try:
            detail = _as_shown(self.as_shown(await self._read_detail(wanted)))
            if self._latest.stale or not self.is_attached:
                return
            old = self.subject
            same = old is not None and old.detail.part.id == detail.part.id
            runs = wanted.runs
            subject = (
                old.renewed(detail, runs=runs) if old is not None and same
                else Subject.of(detail, runs=runs)
            )
            self.store = wanted.store
            records = await self._records(wanted.store, subject) if self.tab == "Raw" else None
        except BackscrollError as error:
            self.show_nothing(str(error))
            return
        except Exception as error:
            self.post_message(ProblemOccurred("The part could not be read", error))
            return
        self.subject, self.records = subject, records
        self._show_head(subject)
        self.show_tab(stay=same)

    async def _read_detail(self, wanted: Wanted) -> PartDetail:
        try:
            return await wanted.store.read(_detail_of, wanted.session_id, wanted.part_id)
        except NotFound:
            known = self.known(wanted.part_id)
            if known is None:
                raise
            return known

    async def _records(self, store: Store, subject: Subject) -> Records:
        part = subject.detail.part
        records = await store.read(read_records, part.id, part.message_id)
        return replace(records, texts=list(map(shown_json, records.texts)))

    def _show_head(self, subject: Subject) -> None:
        summary = ((subject.summary, "text"),)
        head = (subject.name, f"{subject.role_ink} bold")
        self.tabs.show(head, subject.kind, summary if subject.is_tool else ())

    def show_tab(self, *, stay: bool = False) -> None:
        """Build the current tab again.

        Args:
            stay: Keep cursor and place.
        """
        if self.subject is None:
            return
        self._shape = (self.view.cells, self.view.size.height)
        self.view.show(self._blocks(self.subject), stay=stay)

    def _blocks(self, subject: Subject) -> list[Block]:
        if self.tab == "JSON":
            return json_blocks(subject)
        if self.tab == "Meta":
            return meta_blocks(subject)
        if self.tab == "Raw":
            if self.records is None:
                return [Fixed(lambda _: [Line((("reading the record…", "faint"),))])]
            return raw_blocks(self.records, self._why_no_record(), subject)
        return call_blocks(subject, self.view.cells, self.view.size.height)

    def _why_no_record(self) -> str:
        own = self.store is not None and self.store.form.name == "own"
        if own:
            return "It was recorded here, or synced before originals were kept."
        return "A host's store holds its own rows alone; see the tab JSON."

    async def choose_tab(self, tab: str) -> None:
        """Show another tab of the part."""
        if tab == self.tab:
            return
        self.tab = tab
        self.tabs.choose(tab)
        self.show_tab()
        if tab == "Raw" and self.records is None and self.subject and self.store:
            subject = self.subject
            records = await self._records(self.store, subject)
            if self.subject is subject and self.tab == "Raw":
                self.records = records
                self.show_tab()

    async def load_attachment(self, name: str) -> None:
        """Load a side file of the part and show it whole as the output."""
        if self.subject is None or self.store is None:
            return
        subject, session_id = self.subject, self.subject.detail.part.session_id
        body = await self.store.read(originals.attachment, session_id, name)
        if is_view_masked():
            body = shown(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        subject.loaded[name] = body
        subject.opened.add("output")
        if self.subject is subject:
            await self.choose_tab("Call")
            self.show_tab(stay=True)

    # What comes up from below

    def on_resize(self, event: events.Resize) -> None:
        """Lay the call out for the new shape."""
        self.call_after_refresh(self._after_resize)

    def _after_resize(self) -> None:
        if self.tab == "Call" and self._shape != (self.view.cells, self.view.size.height):
            self.show_tab(stay=True)

    async def on_tabs_chosen(self, message: Tabs.Chosen) -> None:
        """Show the tab that was clicked."""
        message.stop()
        self.focus()
        await self.choose_tab(message.tab)

    async def on_line_view_activated(self, message: LineView.Activated) -> None:
        """Follow a link."""
        message.stop()
        await self.follow(message.line)

    async def follow(self, line: Line) -> None:
        """Go where a line leads."""
        link = line.link
        if link is None:
            return
        if link.kind == "files":
            from tui.files.screen import FileScreen
            from tui.host import host_of

            store = await host_of(self).library.ready()
            self.app.push_screen(FileScreen(store, link.target, message_id=link.message_id))
            return
        if link.kind != "attachment":
            self.post_message(SessionOpened(link.target, link.message_id))
            return
        try:
            await self.load_attachment(link.target)
        except BackscrollError as error:
            self.app.notify(str(error), severity="warning", markup=False)

    def on_line_view_fold_wanted(self, message: LineView.FoldWanted) -> None:
        """Show a section whole, or short again."""
        message.stop()
        if self.subject is not None:
            self.subject.opened ^= {str(message.key)}
            self.show_tab(stay=True)

    def on_line_view_cursor_moved(self, message: LineView.CursorMoved) -> None:
        """Say where the cursor is."""
        message.stop()
        if self.subject is None:
            return
        value = self.view.line.value
        height = self.view.virtual_size.height
        place = f"{min(self.view.cursor + 1, height):,} of {height:,}"
        path: Run = (value.path if value else "", "faint")
        words = self.finder.words if self.finder.needle else path
        self.status.show(Line((words,), ((place, "faint"),)))
        self.finder.show_count()

    def on_find_bar_changed(self, message: FindBar.Changed) -> None:
        """Find as it is typed."""
        message.stop()
        self.finder.find(message.text)

    def on_find_bar_accepted(self, message: FindBar.Accepted) -> None:
        """Go on in the view; the matches stay marked."""
        message.stop()
        self.finder.accept()

    def on_find_bar_closed(self, message: FindBar.Closed) -> None:
        """End the search."""
        message.stop()
        self.finder.close()

    # Commands

    async def step_tab(self, by: int) -> None:
        """Show the next tab (1) or the previous one (-1)."""
        await self.choose_tab(TABS[(TABS.index(self.tab) + by) % len(TABS)])

    async def follow_or_fold(self) -> None:
        """Follow the link on the line, or fold."""
        line = self.view.line
        if line.link is not None:
            await self.follow(line)
        elif not self.view.toggle_fold():
            self.app.notify("Nothing to follow on this line", markup=False)

    def toggle_fold(self) -> None:
        """Fold or unfold what the line is in."""
        self.view.toggle_fold()

    def toggle_all(self) -> None:
        """Unfold the whole tree, or fold it."""
        if self.subject is None:
            return
        node = self.view.line.fold
        roots = [_top(node)] if isinstance(node, Node) else list(self.subject.roots.values())
        closed = any(_has_closed(root) for root in roots)
        before = self.view.virtual_size.height
        for root in roots:
            set_open(root, closed)
            root.open = True
        self.view.stack.changed()
        self.view.lay_out()
        self.view.move_to(self.view.cursor)
        if self.view.virtual_size.height == before:
            self.app.notify("There is nothing to fold here", severity="warning", markup=False)

    def go_back(self) -> bool:
        """End the search; False where there is none."""
        if not self.finder.is_open:
            return False
        self.finder.close()
        return True


def _as_shown(detail: PartDetail) -> PartDetail:
    """Return a part with what is masked in the view masked."""
    if not is_view_masked():
        return detail
    part, message = detail.part, detail.message
    return replace(
        detail, part=replace(part, data_json=shown_json(part.data_json)),
        message=replace(message, metadata_json=shown_json(message.metadata_json)))


def _top(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _has_closed(root: Node) -> bool:
    waiting = [root]
    for number, node in enumerate(waiting):
        if number == 2_000:
            break
        if node.is_container:
            if not node.open:
                return True
            waiting.extend(node.children)
    return False
