"""The session list: what its commands do, on the pane that shows it."""

from __future__ import annotations

from store.queries import activities
from store.queries.list_options import GROUPS, SHELVES, SORTS, next_name
from store.queries.listing import ListRow
from tui.keys.declaration import AnyCommand
from tui.keys.registry import bindings
from tui.sessions.filtering import FilteredPane
from tui.sessions.verbs import ListVerbs
from tui.verbs.doing import open_now


class SessionsPane(ListVerbs, FilteredPane):
    """The session list with its keys: one method a command."""

    SCOPE = "list"
    BINDINGS = bindings("list")

    async def catch_up(self, command: AnyCommand | None = None) -> None:
        """Know which session the cursor is on, however fast it came there.

        The list may still be filtered or put in order for keys that came before, and the row
        be on the way from the store; what is done next must not be done to the session that
        was selected before.
        """
        await self.as_asked()
        rowid = self.view.selected
        if rowid is None or (command is not None and command.group == "Move"):
            return
        row = self.view.rows.get(rowid)
        if row is None:
            found = await self.library.read(activities.rows, [rowid], (), self.library.clock())
            self.view.add_rows(found.values())
            row = found.get(rowid)
        if row is not None and rowid == self.view.selected:
            self._highlight(row.id)

    def _move(self, by: int) -> None:
        self.view.select((self.view.cursor or 0) + by)

    def do_down(self) -> None:
        """Go to the next session."""
        self._move(1)

    def do_up(self) -> None:
        """Go to the previous session."""
        self._move(-1)

    def do_page_down(self) -> None:
        """Go a page down."""
        self._move(self.view.page())

    def do_page_up(self) -> None:
        """Go a page up."""
        self._move(-self.view.page())

    def do_top(self) -> None:
        """Go to the first session."""
        self.view.select(0)

    def do_end(self) -> None:
        """Go to the last session."""
        self.view.select(len(self.view.model) - 1)

    def do_next_group(self) -> None:
        """Go to the first session of the next group."""
        model, cursor = self.view.model, self.view.cursor
        if cursor is not None:
            number = min(model.group_of(cursor) + 1, len(model.groups) - 1)
            self.view.select(model.groups[number].start)

    def do_previous_group(self) -> None:
        """Go to the first session of this group, or of the one before."""
        model, cursor = self.view.model, self.view.cursor
        if cursor is not None:
            number = model.group_of(cursor)
            if model.groups[number].start == cursor:
                number = max(0, number - 1)
            self.view.select(model.groups[number].start)

    def do_open(self) -> None:
        """Open the selected session in the transcript."""
        if self.selected_id:
            open_now(self, self.selected_id)

    async def do_details(self) -> None:
        """Show the details of the selected session."""
        if self.selected_id:
            from tui.details.screen import DetailsScreen

            store = await self.library.ready()
            self.app.push_screen(DetailsScreen(store, self.selected_id))

    async def do_copy(self) -> None:
        """Copy what is selected with the mouse, else the selected session's id."""
        from tui.kit import clipboard

        text = self.screen.get_selected_text() or self.selected_id
        if text:
            await clipboard.copy(self.app, text)

    async def do_copy_as(self) -> None:
        """Choose what of the selected session to copy."""
        if self.selected_id:
            from tui.dialogs.copy_as import CopyAsScreen

            store = await self.library.ready()
            self.app.push_screen(CopyAsScreen(store, self.selected_id))

    async def _fold(self, folded: bool) -> None:
        rowid = self.view.selected
        model = self.view.model
        if rowid is None:
            return
        if rowid not in model.children:
            rowid = model.parents.get(rowid) if folded else None
        row = self.view.rows.get(rowid) if rowid is not None else None
        if rowid is None or row is None:
            return
        self.state.folds[row.id] = folded
        self._folds[rowid] = folded
        if folded:
            self._select_rowid(rowid)
        await self._arrange(self._matched[1] if self._matched else None)

    async def do_fold(self) -> None:
        """Fold what stands under the session, or under its parent."""
        await self._fold(True)

    async def do_unfold(self) -> None:
        """Show what stands under the session."""
        await self._fold(False)

    def do_mark(self) -> None:
        """Mark the session or take its mark away, and go to the next."""
        rowid = self.view.selected
        if rowid is not None:
            self.view.marked ^= {rowid}
            self._move(1)
            self.view.refresh()
            self._show_header()

    def do_unmark(self) -> None:
        """Take all marks away."""
        self.view.marked.clear()
        self.view.refresh()
        self._show_header()

    def do_filter(self) -> None:
        """Type into the filter."""
        self.open_filter()

    def do_clear_filter(self) -> None:
        """Clear the filter."""
        self.clear_filter()

    def do_sort(self) -> None:
        """Take the next order."""
        query = self.list_query
        self.change_query(query._replace(sort=next_name(SORTS, query.sort)))

    def do_group(self) -> None:
        """Take the next grouping."""
        query = self.list_query
        self.change_query(query._replace(group=next_name(GROUPS, query.group)))

    def do_view(self) -> None:
        """Show active sessions, archived ones, or all."""
        query = self.list_query
        self.change_query(query._replace(shelf=next_name(SHELVES, query.shelf)))

    @property
    def selected_workspace(self) -> str | None:
        """The folder of the selected session; None where it has none."""
        row = self.view.rows.get(self.view.selected or -1)
        return None if row is None else row.workspace

    def do_folder(self) -> None:
        """Show the sessions of the selected one's folder alone, or those of all folders again."""
        query = self.list_query
        folder = None if query.workspace is not None else self.selected_workspace
        self.change_query(query._replace(workspace=folder))

    async def _show_whole(self, rowid: int) -> None:
        """Take away what keeps a session out of the list, and go to it."""
        if self.filter_text.strip():
            self.clear_filter()
        query = self.list_query._replace(workspace=None, shelf="active")
        row = (await self.library.read(activities.rows, [rowid], (), self.library.clock())).get(
            rowid)
        if row is not None:
            self._going_to = row.id
            await self._unfold_to(row)
        if query != self.list_query:
            self.change_query(query)
        else:
            self.store_changed()

    async def _unfold_to(self, row: ListRow) -> None:
        """Open the sessions that a session is folded away under."""
        above: str | None = row.parent_id
        while above is not None and self.state.folds.get(above) is not False:
            self.state.folds[above] = False
            found = await self.library.read(activities.rows, (), [above], self.library.clock())
            above = next((each.parent_id for each in found.values()), None)

    async def do_running(self) -> None:
        """Go to the newest session that is running."""
        found = await self.library.read(
            activities.newest_active, self.library.clock(), ("running", "retrying")
        )
        if found is None:
            self.app.notify("No session is running", markup=False)
            return
        if self.view.model.find_shown(found) is None:
            await self._show_whole(found)
        self._select_rowid(found)
