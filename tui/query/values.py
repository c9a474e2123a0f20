"""The values of the shown store, for the completion of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.state.library import Library

if TYPE_CHECKING:
    from store.language.completion import KnownValues


class StoreValues:
    """Reads the values that fields have in a store.

    Attributes:
        known: As last read; empty before.
    """

    def __init__(self, library: Library) -> None:
        """Take the store that is shown."""
        self.known: KnownValues = {}
        self._library = library

    async def read(self) -> None:
        """Read the values again, on the store's thread.

        Raises:
            StoreError: The store cannot be read.
        """
        # Not needed before a query is typed.
        from store.queries.known_values import known_values

        self.known = await self._library.read(known_values)
