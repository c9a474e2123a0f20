"""What somebody may have meant who mistyped a name."""

from __future__ import annotations

from collections.abc import Collection

_LEAST = 3
"""Characters of a word by which a name may be told."""


def nearest(word: str, names: Collection[str]) -> str | None:
    """Return the name that is most like a word, or None where none is like it.

    Of names that begin with the word, the first is.
    """
    begun = next((name for name in names if len(word) >= _LEAST and name.startswith(word)), None)
    if begun is not None:
        return begun
    from difflib import get_close_matches  # Only for a mistake; no start needs it.

    return next(iter(get_close_matches(word, list(names), n=1)), None)
