"""What the session list does to sessions, and how it marks many of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from store.queries import chosen
from store.queries.chosen import Chosen
from store.queries.list_options import SHELVES
from tui.host import host_of
from tui.verbs.doing import ask_store
from tui.verbs.sessions import SessionVerbs

if TYPE_CHECKING:
    from tui.sessions.session_pane import SessionsPane


class ListVerbs(SessionVerbs):
    """Mixin of the session list."""

    def current_session(self) -> str | None:
        """Return the selected session."""
        return cast("SessionsPane", self).selected_id

    async def chosen_sessions(self) -> list[Chosen]:
        """Return the marked sessions in the list's order, else the selected one."""
        pane = cast("SessionsPane", self)
        marked = pane.view.marked
        if not marked:
            return await super().chosen_sessions()
        found = await ask_store(
            host_of(cast("SessionsPane", self)), chosen.by_rowid, list(marked))
        return found.value if found else []

    def leave(self, *, archiving: bool) -> None:
        """Choose the next session that stays, or the one before where none does."""
        pane = cast("SessionsPane", self)
        view, model = pane.view, pane.view.model
        if SHELVES[pane.list_query.shelf].archived in (None, archiving) or view.cursor is None:
            return
        gone = view.marked or {model.rowids[view.cursor]}
        around = [*range(view.cursor, len(model)), *range(view.cursor - 1, -1, -1)]
        rowid = next((r for entry in around if (r := model.rowids[entry]) not in gone), None)
        row = view.rows.get(rowid) if rowid is not None else None
        pane._going_to = row.id if row is not None else None

    def left(self, *, done: bool) -> None:
        """Arrange the list without what has left it."""
        pane = cast("SessionsPane", self)
        if done:
            pane.order_now()
        else:
            pane._going_to = None

    def unmark(self) -> None:
        """Take all marks away."""
        cast("SessionsPane", self).do_unmark()

    @property
    def why_not_all(self) -> str | None:
        """Why what is shown cannot be marked as a whole now, or None."""
        pane = cast("SessionsPane", self)
        if not pane.view.model.whole:
            return "The list is still being read"
        if pane.filter_text.strip() and pane._matched is None:
            return "The filter is still looking"
        return None

    def _mark(self, rowids: Iterable[int]) -> None:
        pane = cast("SessionsPane", self)
        matched = pane._matched[1] if pane._matched is not None else None
        pane.view.marked |= {r for r in rowids if matched is None or r in matched}
        pane.view.refresh()
        pane._show_header()

    def do_mark_below(self) -> None:
        """Mark the selected session and all below it."""
        view = cast("SessionsPane", self).view
        self._mark(view.model.rowids[view.cursor or 0:])

    def do_mark_all(self) -> None:
        """Mark all that is shown; with a filter, what matches it."""
        self._mark(cast("SessionsPane", self).view.model.rowids)

    def do_tree(self) -> None:
        """Show the family of the selected session."""
        from tui.tree.screen import TreeScreen

        session_id = self.current_session()
        if session_id is not None:
            cast("SessionsPane", self).app.push_screen(TreeScreen(session_id))
