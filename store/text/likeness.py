"""What somebody may have meant who mistyped a name."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like a word, or None where none is like it."""
    from difflib import get_close_matches  # Only for a mistake; no start needs it.

    return next(iter(get_close_matches(word, list(names), n=1)), None)
