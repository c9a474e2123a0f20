"""Searches that are kept between two runs: the last ones, and those saved by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from store.system.paths import read_regular
from store.system.records import NamedTuple
from tui.state.view_state import state_path, write_whole

MOST_RECENT = 200
"""Searches that are kept in the history."""
LONGEST = 4_000
"""Characters of a search beyond which it is not kept."""


class KeptSearches(NamedTuple):
    """What is kept.

    Attributes:
        recent: What was searched for, the newest first.
        saved: Queries by the name that the user gave them, in the order they were saved in.
    """

    recent: tuple[str, ...] = ()
    saved: Mapping[str, str] = {}


NOTHING = KeptSearches()


def searches_path(store: Path) -> Path:
    """Return the file that keeps the searches of a store."""
    view = state_path(store)
    return view.with_name(view.name.replace("view-", "searches-", 1))


class SearchKeeper:
    """Reads and writes the kept searches of a store.

    The file is read again before each change, so that what another window kept stays.

    Attributes:
        kept: As last read or written.
    """

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        """Read a file; whatever is missing or damaged in it is left out.

        Args:
            path: The file.
            writes: Whether changes are written there; else they are kept until the end.
        """
        self._path, self._writes = path, writes
        self.kept = _read(path)

    def used(self, text: str) -> None:
        """Put a search at the top of the history."""
        text = text.strip()
        if text and len(text) <= LONGEST and self.kept.recent[:1] != (text,):
            self._change(lambda kept: kept._replace(
                recent=(text, *(each for each in kept.recent if each != text))[:MOST_RECENT]))

    def save(self, name: str, query: str) -> None:
        """Keep a query under a name, in place of the one that had the name before."""
        self._change(lambda kept: kept._replace(saved={**kept.saved, name: query}))

    def forget(self, name: str) -> None:
        """Remove a saved search."""
        self._change(lambda kept: kept._replace(
            saved={each: query for each, query in kept.saved.items() if each != name}))

    def _change(self, change: Callable[[KeptSearches], KeptSearches]) -> None:
        """Change what is kept.

        Raises:
            OSError: The file cannot be written; what is kept changes all the same.
        """
        if not self._writes:
            self.kept = change(self.kept)
            return
        self.kept = change(_read(self._path, self.kept))
        write_whole(self._path, {"recent": self.kept.recent, "saved": self.kept.saved})


def _read(path: Path, otherwise: KeptSearches = NOTHING) -> KeptSearches:
    """Return what a file has.

    Args:
        path: The file.
        otherwise: Returned where it cannot be read.
    """
    try:
        text = read_regular(path)
    except (OSError, ValueError):
        return otherwise
    import orjson  # The first screen does without, where nothing was kept.

    try:
        found: Any = orjson.loads(text)
    except ValueError:
        return otherwise
    if not isinstance(found, dict):
        return otherwise
    recent, saved = found.get("recent"), found.get("saved")
    texts = recent if isinstance(recent, list) else []
    names = saved if isinstance(saved, dict) else {}
    return KeptSearches(
        tuple(text for text in texts if isinstance(text, str))[:MOST_RECENT],
        {name: query for name, query in names.items() if isinstance(query, str)},
    )
