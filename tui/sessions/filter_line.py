"""The line that the list's filter is typed into.

It is loaded after the first screen, on which the header draws its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui.query.line import QueryInput, QueryNotes
from tui.words.sessions import FILTER_WORDS

if TYPE_CHECKING:
    from store.language.completion import KnownValues


class FilterInput(QueryInput):
    """The filter; it is reached by its key or a click, not by Tab."""

    def __init__(
        self, notes: QueryNotes, known: Callable[[], KnownValues],
        history: Callable[[], Sequence[str]],
    ) -> None:
        """Make an empty filter.

        Args:
            notes: Shows how it may go on, and what is wrong with it.
            known: Returns the values that fields have in the store.
            history: Returns what was searched for before.
        """
        super().__init__(
            notes, id="filter", placeholder=FILTER_WORDS, known=known, history=history,
            words={"accept": "keep", "leave": "clear", "next": "next session"})
