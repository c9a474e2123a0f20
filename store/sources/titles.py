"""Titles of sessions that no one has named: the first words of what was said."""

from __future__ import annotations

TITLE_LENGTH = 300
"""Characters of the longest title."""


def shortened(text: str) -> str:
    """Return a text on one line, cut where it is too long for a title."""
    line = " ".join(text[: TITLE_LENGTH * 4].split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
