"""Says on stderr what a store on a server waits for, where no screen does."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def lock_notes(named: Iterable[str | None]) -> Iterator[None]:
    """Say which table is locked, and who has locked it, once a statement has waited a while.

    Args:
        named: What may name a store; where none is on a server, nothing is done.
    """
    if not any(each is not None and _is_on_server(each) for each in named):
        yield
        return
    from store.engine.server.lock_waits import LockNotes

    notes = LockNotes(_say)
    try:
        yield
    finally:
        notes.close()


def _is_on_server(named: str) -> bool:
    if "://" not in named and "=" not in named:
        return False
    from store.engine.server_url import server_url  # No store in a file needs it.

    return server_url(named) is not None


def _say(words: str) -> None:
    print(f"backscroll: {words}", file=sys.stderr, flush=True)
