"""Values that an error's message repeats."""

from __future__ import annotations

import pytest

from store.errors import Ambiguous, Choice, NotFound, no_message, no_session, with_short_values

LONG = ("x" * 100_000, "x y " * 25_000, "it's " * 20_000, 'say "x" ' * 12_000, "\\n" * 50_000)


@pytest.mark.parametrize("value", LONG)
def test_long_values_are_cut(value: str) -> None:
    for error in (no_session(value), no_message(value, value),
                  NotFound(f"{value} is unknown; name another one"),
                  Ambiguous(value, "sessions", [Choice("ses_a", 0, ())], more=False)):
        assert "…" in str(error) and len(str(error)) < 9_000
    assert len(str(no_session(value))) < 200 and "backscroll sessions" in str(no_session(value))


def test_what_fits_stays() -> None:
    path = "/home/" + "folder/" * 40 + "store.db"
    for words in (f"{path} isn't a store, and what's there " + "can't be read " * 10,
                  f"No session with id {'x' * 80!r}. " * 3):
        assert with_short_values(words) == words
