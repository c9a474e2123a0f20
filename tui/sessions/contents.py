"""What the list holds: the sessions of a view, in its order, with filter and folds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Literal

from textual.worker import WorkerError

from store.errors import BackscrollError
from store.queries import activities, listing
from store.queries.list_options import GROUPS, SHELVES, SORTS, next_name
from store.queries.listing import ListQuery, ListRow
from store.queries.summary import Totals, totals
from tui.sessions.empty import empty_words, making_words
from tui.sessions.filter import ListFilter
from tui.sessions.first_page import FirstPage
from tui.sessions.jobs import Jobs
from tui.sessions.loader import ListLoader
from tui.sessions.model import ListModel
from tui.sessions.selection import Selection
from tui.sessions.view import SessionList
from tui.state.library import Library
from tui.state.view_state import ViewState

if TYPE_CHECKING:
    from textual.worker import Worker


PAUSE_S = 0.3
"""How long nothing is typed before what is said in the sessions is searched."""
Limit = Literal["shelf", "folder", "filter"]
"""What can keep a session out of the list."""


class ListContents:
    """Reads the list and shows it, with the selection on the session where it was.

    Attributes:
        query: The sort, group, shelf and folder that are asked for.
        keys: The sessions of the last reading, in order.
        folds: By rowid, whether the user folded or unfolded what is below a session.
    """

    def __init__(
        self, page: FirstPage, library: Library, state: ViewState, *, loader: ListLoader,
        filter: ListFilter, view: SessionList, selection: Selection, jobs: Jobs,
        shown: Callable[[int | None], None], lifted: Callable[[ListRow, list[Limit]], None],
        clear_filter: Callable[[], None],
    ) -> None:
        """Take the first page, which is in the view already.

        Args:
            page: The first page.
            library: The store.
            state: What was remembered; kept up to date.
            loader: Reads the list off the event loop.
            filter: The filter of the list.
            view: Shows the list.
            selection: The session to stay on.
            jobs: Runs the reading.
            shown: Called after a change is on the screen, with how many sessions a filter
                that still looks has looked at, else with None.
            lifted: Called with a session that had to be shown, and with the limits that were
                lifted for it; without any where no list shows it.
            clear_filter: Empties the filter.
        """
        self.query, self.keys, self.folds = page.query, page.keys, page.folds
        self._library, self._state, self._loader = library, state, loader
        self._filter, self._view, self._selection = filter, view, selection
        self._jobs, self._shown = jobs, shown
        self._tell_lifted, self._clear_filter = lifted, clear_filter
        self._going_to: str | None = None
        self._opened: str | None = None
        self._lifted: list[Limit] = []
        self._shown_for = self._asked_for()
        self._reading: Worker[None] | None = None
        self._searching: Worker[None] | None = None

    # What is asked for

    def change(self, query: ListQuery) -> None:
        """Show the list in another sort, group, shelf or folder; the selection stays."""
        self.query, state = query, self._state
        state.sort, state.group, state.shelf = query.sort, query.group, query.shelf
        self._shown(None)
        self.reload()

    def next_sort(self) -> None:
        """Sort the list in the next way."""
        self.change(self.query._replace(sort=next_name(SORTS, self.query.sort)))

    def next_group(self) -> None:
        """Group the list in the next way."""
        self.change(self.query._replace(group=next_name(GROUPS, self.query.group)))

    def toggle_folder(self) -> None:
        """Show the sessions of the selected one's folder alone, or those of all folders."""
        folder = None if self.query.workspace is not None else self._selection.workspace
        self.change(self.query._replace(workspace=folder))

    def select_next(self, session_id: str | None) -> None:
        """Select a session with the next reading, where it is in the list then."""
        self._going_to = session_id

    # A session that was opened: the list shows it, whatever its limits are

    def show_session(self, session_id: str) -> None:
        """Start to select a session, and to lift what keeps it out of the list."""
        self._going_to = self._opened = session_id
        self._lifted = []
        self._reading = self._jobs.start(self._go_to_opened, "keys")

    @property
    def is_going(self) -> bool:
        """Whether the list is still to select a session that was opened."""
        reading = self._reading
        return self._opened is not None and reading is not None and not reading.is_finished

    async def _go_to_opened(self) -> None:
        row = await self._opened_row()
        if row is None:
            self._going_to = self._opened = None
            return
        current = self._shown_for == self._asked_for() and not self._filter.is_looking
        if current and self._view.model.find(row.rowid) is not None:
            self._view.select_rowid(row.rowid)
            self._going_to = self._opened = None
            return
        await self._unfold_to(row)
        await self.read()

    async def _opened_row(self) -> ListRow | None:
        return await self._place(self._opened) if self._opened is not None else None

    async def _place(self, session_id: str) -> ListRow | None:
        """Read a session's row without its count of messages: it only has to be found."""
        found = await self._library.read(
            activities.rows, (), (), self._library.clock(), [session_id])
        return next(iter(found.values()), None)

    async def _lift_limits(self) -> None:
        """Lift one limit that keeps the opened session out of the list, or tell that it is there.

        The list is read again after each, as only then the next one is known.
        """
        if self._opened is None:
            return
        row = await self._opened_row()
        if row is None or row.id != self._opened:
            return
        found = self._view.model.find(row.rowid) is not None
        limit = None if found else self._limit_on(row)
        if limit is not None:
            self._lifted.append(limit)
            self._going_to = row.id
            self._lift(limit, row)
            return
        self._opened = None
        if self._lifted or not found:
            self._tell_lifted(row, self._lifted if found else [])

    def _limit_on(self, row: ListRow) -> Limit | None:
        archived = SHELVES[self.query.shelf].archived
        if archived is not None and archived is not (row.archived_at is not None):
            return "shelf"
        if row.rowid in self.keys.rowids:
            return "filter" if self._filter.words else None
        return "folder" if self.query.workspace is not None else None

    def _lift(self, limit: Limit, row: ListRow) -> None:
        if limit == "shelf":
            shelf = "active" if row.archived_at is None else "all"
            self.change(self.query._replace(shelf=shelf))
        elif limit == "folder":
            self.change(self.query._replace(workspace=None))
        else:
            self._clear_filter()
            self.filter_changed()

    async def _unfold_to(self, row: ListRow) -> None:
        folds = self._state.folds
        above: str | None = row.parent_id
        while above is not None and folds.get(above) is not False:
            folds[above] = False
            found = await self._place(above)
            above = found.parent_id if found is not None else None

    async def fold(self, folded: bool) -> None:
        """Fold or unfold what is below the selected session, or fold it under its parent."""
        view, model = self._view, self._view.model
        rowid = view.selected
        if rowid is None:
            return
        if rowid not in model.children:
            rowid = model.parents.get(rowid) if folded else None
        row = view.rows.get(rowid) if rowid is not None else None
        if rowid is None or row is None:
            return
        self._state.folds[row.id] = folded
        self.folds[rowid] = folded
        if folded:
            view.select_rowid(rowid)
        await self.arrange(self._filter.matched)

    @property
    def why_no_fold(self) -> str | None:
        """Why the selected session cannot be folded or unfolded, None where it can."""
        rowid, model = self._view.selected, self._view.model
        if rowid is None or rowid in model.children or rowid in model.parents:
            return None
        return "This session has no forks or subagents to fold"

    async def toggle_fold(self) -> None:
        """Unfold what is below the selected session, or fold it."""
        rowid = self._view.selected
        if rowid is not None:
            folded = rowid in self._view.model.folded
            await self.fold(rowid in self._view.model.children and not folded)

    # Reading and showing

    def reload(self) -> None:
        """Start to read the whole list again."""
        self._reading = self._jobs.start(self.read, "keys")

    def filter_changed(self) -> None:
        """Start to look for what the filter asks for."""
        if self._searching is not None:
            self._searching.cancel()
            self._filter.stop_searching()
        self._reading = self._jobs.start(self._look, "keys")

    async def read(self) -> None:
        """Read the whole list again and show it."""
        keys = await self._loader.keys(self._query_to_read())
        self.folds = await self._loader.folds(self._state.folds)
        self.keys = keys
        self._filter.forget()
        if self._filter.words:
            self.filter_changed()
        else:
            await self.arrange(None)
            await self._lift_limits()

    async def read_and_look(self) -> None:
        """Read the whole list again; returns when it is shown, with what the filter leaves.

        Where the store changes all the time, each reading that did not wait for the look at what
        the one before had read would end it, and the list would stay as it was.
        """
        await self.read()
        if self._filter.is_looking and self._reading is not None:
            with suppress(WorkerError):
                await self._reading.wait()

    def _query_to_read(self) -> ListQuery:
        """Return what the list shows, with archived sessions where the filter asks for them."""
        if SHELVES[self.query.shelf].archived is False and self._filter.asks_for_archived:
            return self.query._replace(shelf="all")
        return self.query

    async def _look(self) -> None:
        if self.keys.query != self._query_to_read():
            await self.read()
            return
        if self._filter.words:
            async for found in self._filter.look(self.keys.rowids):
                await self.arrange(found.matching, found.looked_at)
            if self._filter.asks_for_parts:
                self._searching = self._jobs.start(self._search, "search")
        else:
            self._filter.forget()
            await self.arrange(None)
        await self._lift_limits()

    async def _search(self) -> None:
        """Add the sessions in which there is what the filter asks for, after a pause."""
        await asyncio.sleep(PAUSE_S)
        try:
            async with aclosing(self._filter.search()) as found:
                async for matching in found:
                    await self.arrange(matching)
        except Exception:
            # An empty list says so, too: it is no longer being searched.
            with suppress(BackscrollError):
                await self.arrange(self._filter.matched)
            raise
        self._shown(None)

    async def arrange(self, matching: set[int] | None, looked_at: int | None = None) -> None:
        """Show the keys that were read, with their groups, threads and folds.

        Args:
            matching: The sessions that the filter leaves; None without a filter.
            looked_at: How many sessions a filter that still looks has looked at.
        """
        query = self.keys.query
        model = await self._loader.model(
            self.keys, self.folds, matching, headed=GROUPS[query.group].heading != "none"
        )
        words = await self._empty_words(model)
        # Else another order was chosen meanwhile, which is being read.
        if query == self._query_to_read():
            view = self._view
            before, wanted = view.selected, self._going_to
            selected = await self._wanted_rowid(model, wanted)
            moved = view.selected != before
            view.when_empty = words
            view.show(model, query, view.selected)
            self._shown(looked_at)
            if looked_at is None or matching:
                self._shown_for = self._asked_for()
            # Else a key has moved the selection while the store was read.
            if selected is not None and not moved:
                view.select_rowid(selected)
            # Only now: a reading that takes the place of this one still has to go there.
            if self._going_to == wanted:
                self._going_to = None

    async def _wanted_rowid(self, model: ListModel, wanted: str | None) -> int | None:
        """Return the session to select: the one that was asked for, else the same as before."""
        here = self._view.selected
        row = self._view.rows.get(here) if here is not None else None
        if wanted is None and here is not None and row is None:
            # The cursor has just moved here: the id of the session is not read yet.
            return here
        # The selection follows the cursor by a message, which may still be on its way.
        for session_id in (wanted, row.id if row is not None else self._selection.id):
            if session_id is not None:
                rowid = await self._library.read(listing.rowid_of, session_id)
                if rowid is not None and model.find_shown(rowid) is not None:
                    return rowid
        return None

    async def _empty_words(self, model: ListModel) -> list[str]:
        if len(model):
            return []
        return self.empty_words(model.total, await self._library.read(totals))

    def empty_words(self, matched_of: int, store: Totals) -> list[str]:
        """Return what an empty list says.

        Args:
            matched_of: Sessions that it has without the filter.
            store: Counts of the whole store.
        """
        library = self._library
        if library.making is not None:
            return making_words(library.making.words)
        return empty_words(
            self.query, self._filter.text, matched_of, store,
            reads=library.reads, elsewhere=library.is_read_elsewhere,
            searching=self._filter.will_search, unsearched=self._filter.unsearched,
        )

    def _asked_for(self) -> tuple[ListQuery, str]:
        return self.query, self._filter.words

    async def settled(self) -> None:
        """Wait until the list shows some of what it was last asked for, or fails to."""
        while self._opened is not None or self._shown_for != self._asked_for():
            reading = self._reading
            if reading is None or reading.is_finished:
                return
            with suppress(WorkerError):
                await reading.wait()
