"""What the session list pane is made of: header, filter and list over a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.worker import Worker, WorkerError

from store.queries import activities, listing
from store.queries.list_options import GROUPS
from store.queries.listing import ListQuery
from store.queries.summary import totals
from tui.keys.pane import CommandPane
from tui.keys.registry import BY_ID
from tui.kit.text import one_line
from tui.messages import ProblemOccurred, SessionHighlighted, SessionOpened
from tui.sessions.empty import empty_words, making_words
from tui.sessions.first_page import read_first_page
from tui.sessions.header import ListHeader, ListOrder, ListTitle, Tally, _Facts
from tui.sessions.loader import ListLoader
from tui.sessions.model import ListModel
from tui.sessions.turn_counts import TurnCounts
from tui.sessions.view import SessionList
from tui.start.library import Library
from tui.start.state import ViewState

COUNTED_AT_ONCE = 12


class SessionListPane(CommandPane, Vertical):
    """Shows the sessions of a store; posts which one is selected and which is opened."""

    DEFAULT_CSS = "SessionListPane { background: $surface; height: 1fr; }"

    def __init__(self, library: Library, state: ViewState) -> None:
        """Make the pane with its first page read.

        Args:
            library: The store.
            state: What was remembered; kept up to date.
        """
        super().__init__(id="sessions")
        self.library = library
        self.state = state
        self.filter_text = ""
        self.filter_open = False
        self.selected_id: str | None = state.session_id
        self.view = SessionList(library.clock)
        self._loader = ListLoader(library.path, library.clock)
        self._going_to: str | None = None
        self._matched: tuple[str, set[int]] | None = None
        self._counted = TurnCounts()
        self._take_first_page()
        self._shown_for = self._asked_for()
        self._arranging: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        """Make header and list."""
        yield ListHeader()
        yield self.view

    def on_mount(self) -> None:
        """Show the first page; the rest is read once that is painted."""
        self.watch(self.app, "theme", self._on_theme, init=False)
        self._show_header()
        self.view.when_empty = self._empty_words(self.view.model)
        self.call_after_refresh(self._start)

    def _on_theme(self) -> None:
        self.refresh()
        for widget in self.query("*"):
            widget.refresh()

    def _take_first_page(self) -> None:
        page = read_first_page(self.library, self.state)
        self.list_query, self.keys, self._folds = page.query, page.keys, page.folds
        view = self.view
        view.model, view.list_query, view.cursor = page.model, page.query, page.cursor
        view.rows.update(page.rows)
        row = view.rows.get(view.selected or -1)
        self.selected_id = row.id if row else self.selected_id

    def selected_title(self) -> str | None:
        """Return the selected session's title; None where none is selected."""
        row = self.view.rows.get(self.view.selected or -1)
        return None if row is None else one_line(row.title or "") or "untitled"

    def _start(self) -> None:
        if self.view.selected is not None:
            self.post_message(SessionHighlighted(self.selected_id))
        if self.keys.whole and len(self.keys.rowids):
            self._count_turns()
            return
        self.reload()

    def reload(self) -> None:
        """Read the whole list again; the selection stays on its session."""
        self._work(self._reload, "keys")

    def store_changed(self) -> None:
        """Read again what the list shows, as the store has moved."""
        self.view.forget_rows()
        self._counted.forget()
        self.reload()

    def _work(self, work: Callable[[], Awaitable[None]], group: str) -> None:
        async def guarded() -> None:
            try:
                await work()
            except Exception as error:
                self.post_message(ProblemOccurred("The session list could not be read", error))

        made: Any = guarded  # A coroutine only when it is its turn; another may take its place.
        worker: Worker[None] = self.run_worker(
            made, group=group, exclusive=True, exit_on_error=False)
        if group == "keys":
            self._arranging = worker

    def _asked_for(self) -> tuple[ListQuery, str]:
        return self.list_query, self.filter_text.strip().casefold()

    async def as_asked(self) -> None:
        """Wait until the list shows some of what it was last asked for, or fails to."""
        while self._shown_for != self._asked_for():
            work = self._arranging
            if work is None or work.is_finished:
                return
            with suppress(WorkerError):
                await work.wait()

    def _apply_filter(self) -> None:
        """Look for the sessions that match what is typed; ``FilteredPane`` does it."""

    def go_to(self, session_id: str) -> None:
        """Read the list again and select a session, where the list shows it."""
        self._going_to = session_id
        self.store_changed()

    async def _reload(self) -> None:
        query = self.list_query
        keys = await self._loader.keys(query)
        self._folds = await self._loader.folds(self.state.folds)
        self.keys, self._matched = keys, None
        if self.filter_text.strip():
            self._apply_filter()
        else:
            await self._arrange(None)

    async def _arrange(self, matching: set[int] | None, looked_at: int | None = None) -> None:
        query = self.keys.query
        model = await self._loader.model(
            self.keys, self._folds, matching, headed=GROUPS[query.group].heading != "none"
        )
        # Else another order was chosen meanwhile, which is being read.
        if query == self.list_query:
            before, wanted = self.view.selected, self._going_to
            selected = await self._wanted_rowid(model, wanted)
            moved = self.view.selected != before
            self._show(model, query, looked_at)
            if looked_at is None or matching:
                self._shown_for = self._asked_for()
            # A key that came while the store was asked has chosen anew.
            if selected is not None and not moved:
                self._select_rowid(selected)
            # Only now: what breaks this off and reads the list again still has to go there.
            if self._going_to == wanted:
                self._going_to = None

    async def _wanted_rowid(self, model: ListModel, wanted: str | None) -> int | None:
        """Return the session to select: the one that was asked for, else the same as before."""
        here = self.view.selected
        if wanted is None and here is not None and here not in self.view.rows:
            # The cursor has just come here: the id of the session is not read yet.
            return here
        for session_id in (wanted, self.selected_id):
            if session_id is not None:
                rowid = await self.library.read(listing.rowid_of, session_id)
                if rowid is not None and model.find_shown(rowid) is not None:
                    return rowid
        return None

    def _select_rowid(self, rowid: int) -> None:
        entry = self.view.model.find_shown(rowid)
        if entry is not None and entry != self.view.cursor:
            self.view.select(entry, centred=True)

    def _show(self, model: ListModel, query: ListQuery, looked_at: int | None) -> None:
        self.view.when_empty = self._empty_words(model)
        self.view.show(model, query, self.view.selected)
        self._show_header(looked_at)

    def _empty_words(self, model: ListModel) -> list[str]:
        if len(model):
            return []
        if self.library.making is not None:
            return making_words(self.library.making.words)
        return empty_words(
            self.list_query, self.filter_text, model.total, totals(self.library.database),
            syncs=self.library.sync_targets is not None,
        )

    def _show_header(self, looked_at: int | None = None) -> None:
        model = self.view.model
        title = self.query_one(ListTitle)
        title.tally = Tally(
            model.matched if model.whole else None, model.total, looked_at,
            len(self.view.marked), bool(self.filter_text.strip()),
        )
        title.list_query = self.query_one(ListOrder).list_query = self.list_query
        self.query_one(ListHeader).limit_to(self.list_query.workspace)

    # What the list reports

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
        self._counted.give(rows[r] for r in self.view.seen_rowids() if r in rows)
        self.view.add_rows(rows.values())
        row = rows.get(self.view.selected or -1)
        if row is not None and row.id != self.selected_id:
            self._highlight(row.id)
        self._count_turns()

    def _count_turns(self) -> None:
        self._work(self._counting, "turns")

    async def _counting(self) -> None:
        from store.queries.counting import counts

        rows = [self.view.rows[r] for r in self.view.seen_rowids() if r in self.view.rows]
        waiting = self._counted.give(rows)
        self.view.rows_changed(row.rowid for row in rows)
        for start in range(0, len(waiting), COUNTED_AT_ONCE):
            some = waiting[start:start + COUNTED_AT_ONCE]
            found = await self.library.read(counts, [row.id for row in some])
            for row in some:
                self._counted.take(row, found[row.id].turns)
            self.view.rows_changed(row.rowid for row in some)

    @on(SessionList.Scrolled)
    def _scrolled(self, event: SessionList.Scrolled) -> None:
        event.stop()
        if self._counted.waiting(map(self.view.rows.get, self.view.seen_rowids())):
            self._count_turns()

    @on(SessionList.Moved)
    def _moved(self, event: SessionList.Moved) -> None:
        event.stop()
        row = self.view.rows.get(event.rowid or -1)
        if row is not None:
            self._highlight(row.id)
            if row.turns is None:
                self._count_turns()
        elif event.rowid is None:
            self._highlight(None)

    def _highlight(self, session_id: str | None) -> None:
        if session_id != self.selected_id:
            self.selected_id = session_id
            if session_id is not None:
                self.state.session_id = session_id
            self.post_message(SessionHighlighted(session_id))

    @on(SessionList.Chosen)
    def _chosen(self, event: SessionList.Chosen) -> None:
        event.stop()
        if self.selected_id:
            self.post_message(SessionOpened(self.selected_id))

    @on(_Facts.Pressed)
    async def _pressed(self, event: _Facts.Pressed) -> None:
        event.stop()
        await self.run_command(BY_ID[event.command])

    def change_query(self, query: ListQuery) -> None:
        """Show the list in another order, grouping or shelf; the selection stays."""
        self.list_query = query
        self.state.sort, self.state.group, self.state.shelf = query.sort, query.group, query.shelf
        self._show_header()
        self.reload()
