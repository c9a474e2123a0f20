"""Messages between a sync and its helper processes: pickles on pipes.

Both ends are processes of this program, one started by the other; nothing else writes to
these pipes.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from store.engine.server_url import Root
from store.sources.base.protocol import Place, Unit
from store.sync.batch import Outcome
from store.sync.units import Excludes

LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Start:
    """First frame to a helper: the store and the settings."""

    store: Path
    keep_originals: bool
    excludes: Excludes
    keep_deleted: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """A unit to sync; ``number`` identifies it in replies, the rest is as in ``Job``."""

    number: int
    kind: str
    root: Root
    unit: Unit
    stored: str | None
    attempts: int
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ReadsNow:
    """From a helper: it starts to read this task; None before it does anything else."""

    number: int | None


@dataclass(frozen=True, slots=True)
class Wrote:
    """From a helper: a transaction is committed.

    Attributes:
        numbers: The tasks that were in it.
        outcome: The result; its ``overtaken`` is empty here.
        again: Tasks that another sync wrote meanwhile, with the stored ``stamp_json``.
    """

    numbers: list[int]
    outcome: Outcome
    again: list[tuple[int, str | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failed:
    """From a helper: it cannot write to the store and ends."""

    message: str


@dataclass(frozen=True, slots=True)
class StepRead:
    """Between two processes that read a unit by turns: a step was read up to this place.

    Attributes:
        place: The place, without its names.
        hashes: The hashes of its names, one after the other.
    """

    place: Place
    hashes: bytes


@dataclass(frozen=True, slots=True)
class StepWritten:
    """Between two processes that read a unit by turns: the step is committed.

    Attributes:
        saved: The unit's ``stamp_json``.
        outcome: The result; that of the parent's steps is of no use and empty.
    """

    saved: str
    outcome: Outcome


Frame = Start | Task | ReadsNow | Wrote | Failed | StepRead | StepWritten


def send(pipe: IO[bytes], *frames: Frame) -> None:
    """Write frames and flush.

    Raises:
        BrokenPipeError: The other end is gone.
    """
    for frame in frames:
        body = pickle.dumps(frame, protocol=pickle.HIGHEST_PROTOCOL)
        pipe.write(len(body).to_bytes(LENGTH_BYTES, "little") + body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Frame | None:
    """Return the next frame; None when the other end is gone, even in the middle of one."""
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
