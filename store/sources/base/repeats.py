"""Tells records that were written twice: a program, or a copying tool, repeated one line."""

from __future__ import annotations


class Repeats:
    """Compares each record of a file with the one before it."""

    def __init__(self) -> None:
        """Start before the first record."""
        self._before: object = None

    def __call__(self, record: object, named: object) -> bool:
        """Return whether a record repeats the one before it.

        Args:
            record: What it says, with its time and id.
            named: Its time or id; without one it may be the same said twice.
        """
        same = bool(named) and record == self._before
        self._before = record
        return same
