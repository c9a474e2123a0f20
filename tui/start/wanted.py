"""How a command of the command line goes on in the browser."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """What the browser opens first.

    Attributes:
        message_id: None for the session's usual place.
        part_id: The part to unfold and select.
    """

    session_id: str
    message_id: str | None = None
    part_id: str | None = None


class BrowserWanted(Exception):
    """Ends a command, for the browser to open.

    Attributes:
        store: The store that ``--store`` names; None for the library.
        place: What it opens first.
    """

    def __init__(self, store: str | None, place: Place) -> None:
        """Name the store and the place."""
        super().__init__(place.session_id)
        self.store, self.place = store, place
