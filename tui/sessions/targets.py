"""The sessions of the list that an action is for: the marked ones, else the selected one."""

from __future__ import annotations

from collections.abc import Collection

from textual.widget import Widget

from store.queries import chosen
from store.queries.chosen import Chosen
from store.queries.list_options import SHELVES
from tui.host import host_of
from tui.sessions.contents import ListContents
from tui.sessions.order import LiveOrder
from tui.sessions.selection import Selection
from tui.sessions.view import SessionList
from tui.verbs.doing import ask_store


class ListTargets:
    """Names the sessions, and moves the selection on when they leave the list."""

    def __init__(
        self, pane: Widget, view: SessionList, selection: Selection, contents: ListContents,
        order: LiveOrder,
    ) -> None:
        """Take the parts of the list.

        Args:
            pane: Leads to the host.
            view: Shows the list.
            selection: The selected session and the marks.
            contents: Takes the session to select next.
            order: Reads the list without what has left it.
        """
        self._pane, self._view, self._selection = pane, view, selection
        self._contents, self._order = contents, order

    @property
    def current(self) -> str | None:
        """The id of the selected session."""
        return self._selection.id

    async def chosen(self) -> list[Chosen]:
        """Return the marked sessions, else the selected one."""
        marked, current, host = self._selection.marks, self.current, host_of(self._pane)
        if marked:
            found = await ask_store(host, chosen.by_rowid, list(marked))
        else:
            found = await ask_store(host, chosen.by_id, [current] if current else [])
        return found.value if found else []

    @property
    def unseen(self) -> int:
        """How many of the marked sessions are not in the list, as a filter leaves them out."""
        marks, model = self._selection.marks, self._view.model
        return len(marks) - model.count_shown(marks) if marks else 0

    def leaving(self, gone: Collection[str], *, archiving: bool) -> None:
        """Choose the next session that stays in the list, or the one before where none does.

        A cursor that is on a session that stays is left there.

        Args:
            gone: The ids of those that leave it.
            archiving: Whether they were archived; else they were taken out of the archive.
        """
        view, model = self._view, self._view.model
        shelf = SHELVES[self._contents.query.shelf]
        if shelf.archived in (None, archiving) or view.cursor is None or self.current not in gone:
            return
        around = [*range(view.cursor, len(model)), *range(view.cursor - 1, -1, -1)]
        rows = (view.rows.get(model.rowids[entry]) for entry in around)
        self._contents.select_next(
            next((row.id for row in rows if row is not None and row.id not in gone), None))

    def left(self) -> None:
        """Read the list without what has left it."""
        self._order.read_now()

    def clear_marks(self) -> None:
        """Clear all marks."""
        self._selection.clear_marks()
