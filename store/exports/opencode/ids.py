"""Makes ids in opencode's form: descending for sessions, ascending for messages and parts.

Source: the opencode format page, section 2.3. opencode still compares ids in some places, so
an exported session's ids have the time of its export, like those of a fork.
"""

from __future__ import annotations

from store.ids import IDS_PER_MILLISECOND, STAMP_MASK, derived_tail


class Ids:
    """Makes the ids of one export; the same name and time give the same ids."""

    def __init__(self, name: str, at: int) -> None:
        """Make the session's id.

        Args:
            name: The export's id.
            at: Its time, epoch ms.
        """
        self._name, self._ticks = name, at * IDS_PER_MILLISECOND
        self.session = self._id("ses", ~self._ticks)

    def next(self, prefix: str) -> str:
        """Return the next id of a message (``msg``) or part (``prt``)."""
        self._ticks += 1
        return self._id(prefix, self._ticks)

    def _id(self, prefix: str, ticks: int) -> str:
        tail = derived_tail(prefix, self._name, str(ticks))
        return f"{prefix}_{ticks & STAMP_MASK:012x}{tail}"
