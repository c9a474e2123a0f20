"""The views of the list: active, archived and all sessions, and the saved searches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from store.queries.list_options import DEFAULT_SHELF, SHELVES, next_name
from tui.state.searches import SearchKeeper, searches_path


class ListViews:
    """Goes from view to view; a saved search is a view by the filter that it sets."""

    def __init__(self, store: Path) -> None:
        """Take the store; its saved searches are read when the view is changed."""
        self._path = searches_path(store)
        self._saved: Mapping[str, str] = {}

    def name_of(self, filter_text: str) -> str | None:
        """Return the name of the saved search that the filter is; None where it is none."""
        text = filter_text.strip()
        found = (name for name, query in self._saved.items() if text and query == text)
        return next(found, None)

    def after(self, shelf: str, filter_text: str) -> tuple[str, str | None]:
        """Return the next view.

        Args:
            shelf: The shelf that is shown.
            filter_text: The filter.

        Returns:
            Its shelf, and the filter to set; None where the filter stays as it is.
        """
        self._saved = SearchKeeper(self._path).kept.saved
        names = list(self._saved)
        now = self.name_of(filter_text)
        if now is None and shelf != list(SHELVES)[-1]:
            return next_name(SHELVES, shelf), None
        following = names[names.index(now) + 1:] if now is not None else names
        if following:
            return DEFAULT_SHELF, self._saved[following[0]]
        return DEFAULT_SHELF, "" if now is not None else None
