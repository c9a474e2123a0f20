"""The session list: header, filter and list over a store, and what its keys act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input
from textual.worker import Worker

from store.engine.changes import Moved
from store.queries import activities
from store.queries.listing import ListQuery, ListRow
from store.system.records import NamedTuple
from tui.host import WayBack, host_of
from tui.keys.declaration import AnyCommand
from tui.keys.pane import CommandPane
from tui.kit.later import Later
from tui.kit.masked import shown
from tui.kit.text import fit, one_line
from tui.messages import ProblemOccurred, SessionHighlighted, SessionOpened
from tui.query.values import StoreValues
from tui.sessions.contents import Limit, ListContents
from tui.sessions.costs import AGAIN_AFTER_S, ListCosts
from tui.sessions.filter import ListFilter, SessionsReader
from tui.sessions.first_page import FirstPage, read_first_page
from tui.sessions.header import HeaderPart, ListHeader, ListOrder, ListTitle
from tui.sessions.header_lines import Tally
from tui.sessions.jobs import Work
from tui.sessions.live import LiveRows
from tui.sessions.loader import ListLoader
from tui.sessions.order import LiveOrder
from tui.sessions.selection import Selection
from tui.sessions.targets import ListTargets
from tui.sessions.turns import TurnCounter
from tui.sessions.view import SessionList
from tui.sessions.views import ListViews
from tui.state.library import Library
from tui.state.searches import SearchKeeper, searches_path
from tui.state.view_state import ViewState
from tui.verbs.sessions import SessionActions

if TYPE_CHECKING:
    from tui.keys.prompt import PromptLine
    from tui.query.line import QueryInput

TITLE_CELLS = 40


class Found(NamedTuple):
    """Sessions that another screen has the list show.

    Attributes:
        text: The filter that selects them.
        back: Where escape leads.
        filter_text: The filter before.
        query: Sort, group, shelf and folder before.
    """

    text: str
    back: WayBack
    filter_text: str
    query: ListQuery


class SessionsPane(CommandPane, Vertical):
    """Shows the sessions of a store; posts which one is selected and which is opened.

    Attributes:
        view: Draws the rows and moves the cursor.
        filter: What is typed, and what matches it.
        selection: The selected session and the marked ones.
        contents: The sessions of the list, in their order.
        turns: Counts turns.
        costs: Reads what sessions cost whose rows do not say it.
        order: Reads the order again while the store is written to.
        targets: The sessions that an action is for.
        actions: What can be done to the selected or marked sessions.
        filter_open: Whether keys go into the filter.
    """

    SCOPE = "list"
    BLANK = True  # Covered by header and list.
    DEFAULT_CSS = "SessionsPane { background: $surface; height: 1fr; }"
    view: SessionList
    filter: ListFilter
    selection: Selection
    contents: ListContents
    turns: TurnCounter
    costs: ListCosts
    order: LiveOrder
    targets: ListTargets
    actions: SessionActions

    def __init__(
        self, library: Library, state: ViewState, page: FirstPage | None = None
    ) -> None:
        """Make the pane with its first page read.

        Args:
            library: The store.
            state: What was remembered; kept up to date.
            page: The first page, as it was read before; None reads it.
        """
        super().__init__(id="sessions")
        self.library = library
        self.state = state
        self.filter_open = False
        self._found: Found | None = None
        if page is None or page.version != library.database.data_version():
            # What was written since would not be noticed any more.
            page = read_first_page(library, state)
        self._empty_store = page.totals
        self._loader = loader = ListLoader(
            library.path, library.clock, keeps=library.database.server is not None)
        self.view = SessionList(library.clock)
        self.view.take_first_page(page)
        self.filter = ListFilter(loader)
        self._values = StoreValues(library)
        self._views = ListViews(library.path)
        self.selection = Selection(
            self.view, state.session_id, selected=self._selected, marked=self._show_header)
        self.contents = ListContents(
            page, library, state, loader=loader, filter=self.filter, view=self.view,
            selection=self.selection, jobs=self, shown=self._show_header, lifted=self._lifted,
            clear_filter=self._empty_filter,
        )
        self.turns = TurnCounter(library, self.view, self)
        self.costs = ListCosts(library.path, self.view, self)
        self.order = LiveOrder(self.contents.read_and_look, library.path.exists, self)
        self._live = LiveRows(
            library, self.view, contents=self.contents, filter=self.filter, turns=self.turns,
            order=self.order,
        )
        self.targets = ListTargets(
            self, self.view, self.selection, self.contents, self.order)
        self.actions = SessionActions(self, self.targets)

    def compose(self) -> ComposeResult:
        """Make header and list."""
        yield ListHeader(
            lambda: self._values.known, lambda: self._searches().kept.recent)
        yield self.view

    def on_mount(self) -> None:
        """Show the first page; the rest is read once that is painted."""
        self.watch(self.app, "theme", self._on_theme, init=False)
        self._show_header()
        if self._empty_store is not None:
            self.view.when_empty = self.contents.empty_words(0, self._empty_store)
        self.call_after_refresh(self._start)

    async def on_unmount(self) -> None:
        """Close the connections of the list."""
        await self._loader.close()

    def _on_theme(self) -> None:
        self.refresh()
        for widget in self.query("*"):
            widget.refresh()

    def _start(self) -> None:
        if self.view.selected is not None:
            self.post_message(SessionHighlighted(self.selected_id))
        if self.contents.keys.whole and len(self.contents.keys.rowids):
            self.turns.count_seen()
            self.costs.read_soon()
        else:
            self.contents.reload()

    # What the rest of the screen asks

    @property
    def selected_id(self) -> str | None:
        """The id of the selected session."""
        return self.selection.id

    def selected_title(self) -> str | None:
        """Return the selected session's title; None where none is selected."""
        return self.selection.title

    @property
    def list_query(self) -> ListQuery:
        """The sort, group, shelf and folder of the list."""
        return self.contents.query

    @property
    def filter_text(self) -> str:
        """What is typed into the filter."""
        return self.filter.text

    def show_session(self, session_id: str) -> None:
        """Select a session; lift what keeps it out of the list, with a toast that says so."""
        self.contents.show_session(session_id)

    def go_to(self, session_id: str) -> None:
        """Read the list again and select a session, where the list shows it."""
        self.contents.select_next(session_id)
        self.store_changed()

    def store_changed(self) -> None:
        """Read again what the list shows, as the store has changed."""
        self.view.forget_rows()
        self.turns.forget()
        self.turns.counts.expire()
        self.contents.reload()

    async def look_again(self, moved: Moved) -> None:
        """Read again what the list shows of what has changed; returns when it is shown.

        Raises:
            StoreError: The store is busy or gone.
        """
        await self._live.look_again(moved)
        self.costs.read_soon(AGAIN_AFTER_S)

    def time_went_by(self) -> None:
        """Paint the ages again."""
        self.view.refresh()

    def look_at_open(self) -> None:
        """Read again what runs or waits on the screen, as its process may have ended."""
        self.start(self._live.look_at_open, "time")

    async def catch_up(self, command: AnyCommand | None = None) -> None:
        """Wait until the selection is known, however fast it came to its session.

        The list may still be filtered or sorted for earlier keys, and the row may not be read
        yet; a command must not act on the session that was selected before.
        """
        await self.contents.settled()
        rowid = self.view.selected
        if rowid is None or (command is not None and command.group == "Move"):
            return
        row = self.selection.row
        if row is None:
            found = await self.library.read(activities.rows, [rowid], (), self.library.clock())
            self.view.add_rows(found.values())
            row = found.get(rowid)
        if row is not None and rowid == self.view.selected:
            self.selection.follow(row.id)

    # Work beside the keys

    def start(self, work: Work, group: str) -> Worker[None]:
        """Start work in place of older work of its group; a failure is reported.

        Args:
            work: Makes the coroutine; called only when it is its turn.
            group: Of these one runs at a time.
        """
        async def guarded() -> None:
            try:
                await work()
            except Exception as error:
                self.report(error)

        made: Any = guarded  # A coroutine only when it is its turn; another may take its place.
        worker: Worker[None] = self.run_worker(
            made, group=group, exclusive=True, exit_on_error=False)
        return worker

    def later(self, seconds: float, callback: Callable[[], object]) -> Later:
        """Call something after so many seconds."""
        return Later(self, seconds, callback)

    def report(self, error: Exception) -> None:
        """Show that the list could not be read."""
        self.post_message(ProblemOccurred("The session list could not be read", error))

    # What the parts report

    def _show_header(self, looked_at: int | None = None) -> None:
        model, query = self.view.model, self.contents.query
        title = self.query_one(ListTitle)
        title.tally = Tally(
            model.matched if model.whole else None, model.total, looked_at,
            len(self.selection.marks), self.targets.unseen, bool(self.filter.words),
            self.filter.will_search, bool(self.filter.asks_for_parts and self.filter.unsearched),
        )
        title.saved = self._views.name_of(self.filter.text)
        title.list_query = self.query_one(ListOrder).list_query = query
        self.query_one(ListHeader).limit_to(query.workspace)

    def _selected(self, session_id: str | None) -> None:
        if session_id is not None:
            self.state.session_id = session_id
        self.post_message(SessionHighlighted(session_id))

    @on(SessionList.RowsWanted)
    def _rows_wanted(self, event: SessionList.RowsWanted) -> None:
        event.stop()
        self.run_worker(self._read_rows(event.rowids), exit_on_error=False)

    async def _read_rows(self, rowids: list[int]) -> None:
        try:
            rows = await self.library.read(activities.rows, rowids, (), self.library.clock())
        except Exception as error:
            self.post_message(ProblemOccurred("Sessions could not be read", error))
            return
        self.turns.fill_seen(rows)
        self.costs.fill(rows.values())
        self.view.add_rows(rows.values())
        row = rows.get(self.view.selected or -1)
        if row is not None:
            self.selection.follow(row.id)
        self.turns.count_seen()
        self.costs.read_soon()

    @on(SessionList.Scrolled)
    def _scrolled(self, event: SessionList.Scrolled) -> None:
        event.stop()
        self.turns.count_scrolled()
        self.costs.read_soon()

    @on(SessionList.Moved)
    def _moved(self, event: SessionList.Moved) -> None:
        event.stop()
        self.order.selection_moved()
        row = self.view.rows.get(event.rowid or -1)
        if row is not None:
            self.selection.follow(row.id)
            if row.turns is None:
                self.turns.count_seen()
        elif event.rowid is None:
            self.selection.follow(None)

    @on(SessionList.Chosen)
    def _chosen(self, event: SessionList.Chosen) -> None:
        event.stop()
        if self.selected_id:
            self.post_message(SessionOpened(self.selected_id))

    @on(HeaderPart.Pressed)
    def _pressed(self, event: HeaderPart.Pressed) -> None:
        event.stop()
        self.request_command(event.command)

    # The filter

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.filter.text:
            if not self.filter.text:
                self.start(self._values.read, "values")
            self.filter.text = event.value
            self.contents.filter_changed()

    @on(Input.Submitted, "#filter")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.close_filter()
        if event.value.strip():
            try:
                self._searches().used(event.value)
            except OSError as error:
                self.post_message(ProblemOccurred("The filter could not be remembered", error))

    def _searches(self) -> SearchKeeper:
        """Return what was searched for before, in the search screen too."""
        return SearchKeeper(
            searches_path(self.library.path), writes=self.library.limits.read_only is None)

    def on_query_input_stepped(self, event: QueryInput.Stepped) -> None:
        """Move the cursor, as the line has no use for the key."""
        event.stop()
        self.view.move(event.step)

    def on_prompt_line_left(self, event: PromptLine.Left) -> None:
        """Clear the filter."""
        event.stop()
        self.close_filter(clear=True)

    @property
    def filter_has_focus(self) -> bool:
        """Whether what is typed goes into the filter."""
        line = self.query_one(ListHeader).filter
        return line is not None and line.has_focus

    def load_filter(self) -> None:
        """Put the line of the filter into its place, which the first screen did without."""
        self.query_one(ListHeader).loaded_filter()

    def open_filter(self) -> None:
        """Give the filter the focus, at once, so that no key typed next is lost."""
        self.filter_open = True
        self.screen.set_focus(self.query_one(ListHeader).loaded_filter())
        self.query_one(ListHeader).refresh()

    def close_filter(self, *, clear: bool = False) -> None:
        """Give the list the focus again."""
        self.filter_open = False
        if clear:
            self.clear_filter()
        self.screen.set_focus(self.view)

    def next_view(self) -> None:
        """Show active sessions, archived ones, all, then those of each saved search."""
        shelf, text = self._views.after(self.contents.query.shelf, self.filter.text)
        if shelf != self.contents.query.shelf:
            self.contents.change(self.contents.query._replace(shelf=shelf))
        if text is not None:
            self._set_filter(text)
            self.contents.filter_changed()
        self._show_header()

    def show_found(self, text: str, sessions: SessionsReader, back: WayBack) -> None:
        """Show the sessions of a query, on any shelf and in any folder.

        Args:
            text: The query.
            sessions: Reads them.
            back: Where escape leads; the list is then as it was before.
        """
        before, shelf = self.contents.query, self.state.shelf
        self._found = Found(text, back, self.filter.text, before)
        self._set_filter(text, sessions)
        self.contents.change(before._replace(shelf="all", workspace=None))
        self.state.shelf = shelf  # What is remembered is the user's own choice.
        self._show_header()

    @property
    def way_back(self) -> WayBack | None:
        """Where escape leads from the sessions that another screen has the list show."""
        found = self._found
        return found.back if found is not None and found.text == self.filter.text else None

    def _set_filter(self, text: str, sessions: SessionsReader | None = None) -> None:
        self.filter.choose(text, sessions)
        header = self.query_one(ListHeader)
        if text or header.filter is not None:
            header.loaded_filter().value = text

    def clear_filter(self) -> None:
        """Show all sessions again."""
        if self.filter.text:
            self._empty_filter()
            self.contents.filter_changed()

    def _empty_filter(self) -> None:
        self._set_filter("")

    def _lifted(self, row: ListRow, limits: Sequence[Limit]) -> None:
        words = {
            "shelf": "archived sessions listed" if row.archived_at else "active sessions listed",
            "folder": "all folders listed", "filter": "filter cleared",
        }
        done = ", ".join(words[limit] for limit in limits)
        title = fit(one_line(shown(row.title) or "untitled"), TITLE_CELLS)
        said = f"{done[:1].upper()}{done[1:]} to show “{title}”" if done else (
            f"The list leaves “{title}” out: its agent started it for itself")
        self.notify(said, markup=False)

    def go_back(self) -> bool:
        """Leave the filter, or clear it; return whether there was anything to go back from."""
        if not self.filter_open and (back := self.way_back) is not None:
            assert self._found is not None
            before, self._found = self._found, None
            self._set_filter(before.filter_text)
            self.contents.change(before.query)
            back.go()
            return True
        if self.filter_open or self.filter.text:
            self.close_filter(clear=True)
            return True
        return False

    # Commands of more than one part

    @property
    def why_not_all(self) -> str | None:
        """Why the sessions of the list cannot be marked as a whole now, or None."""
        if not self.view.model.whole:
            return "The list is still being read"
        return "The filter is still looking" if self.filter.is_looking else None

    def toggle_mark(self) -> None:
        """Mark the session or clear its mark, and go to the next."""
        self.selection.toggle_mark()
        self.view.move(1)

    def mark_from(self, entry: int) -> None:
        """Mark the sessions of the list from an entry on."""
        before = len(self.selection.marks)
        self.selection.mark(self.view.model.rowids[entry:], self.filter.matched)
        if len(self.selection.marks) == before:
            self.app.notify("These sessions are marked already", markup=False)

    @property
    def escape_clears(self) -> bool:
        """Whether escape clears the filter."""
        return bool(self.filter_text)

    def go_to_group(self, by: int) -> None:
        """Go to the next group; backwards to the start of this one first."""
        if not self.view.select_group(by):
            words = "This is the last group" if by > 0 else "This is the first group"
            self.app.notify(words, timeout=2, markup=False)

    async def go_to_running(self) -> None:
        """Go to the newest running session; lift what keeps it out of the list."""
        found = await self.library.read(
            activities.newest_active, self.library.clock(), ("running", "retrying")
        )
        if found is None:
            self.notify("No session is running", markup=False)
            return
        self.contents.show_session(found)
        await self.contents.settled()

    def open_selected(self) -> None:
        """Open the selected session in the transcript."""
        if self.selected_id:
            host_of(self).open_session(self.selected_id)

    async def copy(self) -> None:
        """Copy what is selected with the mouse, else the id of the selected session."""
        from tui.kit import clipboard

        selected = self.screen.get_selected_text()
        text = selected or self.selected_id
        if text:
            name = "the selected text" if selected else "the session's id"
            await clipboard.copy(host_of(self), text, name)

    async def copy_as(self) -> None:
        """Choose what of the selected session to copy."""
        if self.selected_id:
            from tui.dialogs.copy_as import CopyAsScreen

            self.app.push_screen(CopyAsScreen(await self.library.ready(), self.selected_id))

    async def show_details(self) -> None:
        """Show the details of the selected session."""
        if self.selected_id:
            from tui.details.screen import DetailsScreen

            self.app.push_screen(DetailsScreen(await self.library.ready(), self.selected_id))

    def show_tree(self) -> None:
        """Show the family of the selected session."""
        if self.selected_id:
            from tui.tree.screen import TreeScreen

            self.app.push_screen(TreeScreen(self.selected_id))
