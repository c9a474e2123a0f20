"""What a sync and its helpers say to each other: pickles on pipes.

Both ends are processes of the same program, started by one another; nothing else writes
to these pipes.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from store.engine.server_url import Root
from store.sources.base.protocol import Unit
from store.sync.batch import Outcome
from store.sync.units import Excludes

LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Start:
    """The first thing a helper is told: the store, and how to sync into it."""

    store: Path
    keep_originals: bool
    excludes: Excludes
    keep_deleted: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """A unit to bring in; ``number`` names it in the answers, the rest is a ``Job``'s."""

    number: int
    kind: str
    root: Root
    unit: Unit
    stored: str | None
    attempts: int
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ReadsNow:
    """A helper says which task it is at, before it reads it; None when it has read."""

    number: int | None


@dataclass(frozen=True, slots=True)
class Wrote:
    """A helper says that a transaction is committed.

    Attributes:
        numbers: The tasks that were in it.
        outcome: What came of them; its ``again`` is empty here.
        again: Tasks that another sync wrote meanwhile, with the ``stamp_json`` found.
    """

    numbers: list[int]
    outcome: Outcome
    again: list[tuple[int, str | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failed:
    """A helper cannot write to the store, and ends."""

    message: str


Frame = Start | Task | ReadsNow | Wrote | Failed


def send(pipe: IO[bytes], frame: Frame) -> None:
    """Write a frame and flush.

    Raises:
        BrokenPipeError: The other end is gone.
    """
    body = pickle.dumps(frame, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(len(body).to_bytes(LENGTH_BYTES, "little") + body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Frame | None:
    """Return the next frame; None when the other end is gone, in the middle of one as well."""
    try:
        head = pipe.read(LENGTH_BYTES)
        if len(head) < LENGTH_BYTES:
            return None
        size = int.from_bytes(head, "little")
        body = pipe.read(size)
    except (OSError, ValueError):
        return None
    if len(body) < size:
        return None
    frame: Frame = pickle.loads(body)
    return frame
