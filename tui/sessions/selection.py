"""Which session of the list the cursor is on, and which ones are marked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from store.queries.listing import ListRow
from tui.words.sessions import title_of


class Marking(Protocol):
    """The view of the list, as the selection knows it."""

    marked: set[int]

    @property
    def selected(self) -> int | None:
        """The rowid under the cursor."""
        ...

    @property
    def rows(self) -> Mapping[int, ListRow]:
        """What is known of sessions, by rowid."""
        ...

    def refresh(self) -> object:
        """Draw the list again."""
        ...


class Selection:
    """The selected session by its id, and the marked ones.

    Attributes:
        id: The selected session; while its row is read, the one before.
    """

    def __init__(
        self, view: Marking, session_id: str | None, *,
        selected: Callable[[str | None], None], marked: Callable[[], None],
    ) -> None:
        """Take the session under the cursor, else a remembered one.

        Args:
            view: The view of the list.
            session_id: The remembered session.
            selected: Called with the id of each session that is selected from now on.
            marked: Called after the marks have changed.
        """
        self._view, self._selected, self._marked = view, selected, marked
        row = self.row
        self.id = row.id if row is not None else session_id

    @property
    def row(self) -> ListRow | None:
        """The row under the cursor; None while it is not read."""
        rowid = self._view.selected
        return None if rowid is None else self._view.rows.get(rowid)

    @property
    def title(self) -> str | None:
        """The title of the selected session; None where none is selected."""
        return None if self.row is None else title_of(self.row.title)

    @property
    def workspace(self) -> str | None:
        """The folder of the selected session; None where it has none."""
        return None if self.row is None else self.row.workspace

    def follow(self, session_id: str | None) -> None:
        """Take the session that the cursor came to."""
        if session_id != self.id:
            self.id = session_id
            self._selected(session_id)

    # Marks

    @property
    def marks(self) -> Collection[int]:
        """The rowids of the marked sessions."""
        return self._view.marked

    def toggle_mark(self) -> None:
        """Mark the selected session, or clear its mark."""
        if self._view.selected is not None:
            self._view.marked ^= {self._view.selected}
            self._changed()

    def mark(self, rowids: Iterable[int], within: Collection[int] | None = None) -> None:
        """Mark sessions.

        Args:
            rowids: The sessions.
            within: Only those of them that are among these; None for all.
        """
        self._view.marked |= {rowid for rowid in rowids if within is None or rowid in within}
        self._changed()

    def clear_marks(self) -> None:
        """Clear all marks."""
        self._view.marked.clear()
        self._changed()

    def _changed(self) -> None:
        self._view.refresh()
        self._marked()
