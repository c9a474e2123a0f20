"""Keeps growing sessions in memory, so that only their appended bytes are read."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from store.sources.base.protocol import Follower
from store.sync.long_units import is_long, read_in_steps
from store.sync.memory import Memory
from store.sync.reading import ReadUnit, read_job, read_unit
from store.sync.roots import follower_of
from store.sync.session_rows import PreparedSession
from store.sync.settings import BULK_UNITS
from store.sync.units import Job, has_moved_files

if TYPE_CHECKING:
    from store.engine.database import Database
    from store.sync.settings import Settings

FEW = 16
FEW_BYTES = 96 << 20
"""Most source bytes of up to ``FEW`` kept sessions; the newest is kept whatever its size."""
MANY = 128
MANY_BYTES = 16 << 20
"""Most source bytes of up to ``MANY`` kept sessions; they take some six times as much memory."""
IDLE_S = 300.0
"""A session that has not grown for this long is released, and read whole at next growth."""
MOST_WHOLES = 2
"""A long session that was read whole this many times in a row is kept in memory."""
Key = tuple[str, str, str]


@dataclass(slots=True)
class _Kept:
    """A growing session.

    Attributes:
        last: Its last reading.
    """

    follower: Follower
    size: int = 0
    used: float = 0.0
    memories: dict[str, Memory] = field(default_factory=dict)
    last: ReadUnit | None = None

    def in_store(self, stored: str | None) -> dict[str, PreparedSession]:
        """Return the stored sessions; empty unless this process wrote the unit last."""
        last = self.last
        if last is None or stored is None or last.saved != stored:
            return {}
        found = {one.id: one for one in last.sessions if one.id in last.written}
        for session in found.values():
            for block in session.blocks:
                block.raw = block.body = None
        return found


class Followers:
    """Incremental readers of the sessions that grew most recently."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Start without sessions.

        Args:
            monotonic: Returns seconds, to measure how long a session has not grown.
        """
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._grew: dict[Key, float] = {}
        """When sessions that are not kept grew last, at the same time as many others."""
        self._wholes: dict[Key, int] = {}
        self._monotonic = monotonic

    def __len__(self) -> int:
        """Return the number of kept sessions."""
        return len(self._kept)

    def reading(
        self, jobs: list[Job], settings: Settings, database: Database
    ) -> Iterator[tuple[Job, ReadUnit]]:
        """Yield the jobs' readings.

        Of many jobs at once, as after a pause, only those that grew before count as growing
        sessions. Long sessions continue from their state in the library, and are kept in memory
        only if that is impossible.

        Args:
            jobs: The units.
            settings: How to sync.
            database: The library.
        """
        many = len(jobs) > BULK_UNITS
        for job in jobs:
            key = _key(job)
            is_growing = not many or key in self._kept or self._grows_again(key, job)
            if not is_growing or (is_long(job) and self._wholes.get(key, 0) < MOST_WHOLES):
                self._kept.pop(key, None)
                for result in read_in_steps(job, settings.keep_originals, database):
                    yield job, result
                    self._count_wholes(key, result)
            else:
                yield job, self._read(job, settings)

    def _grows_again(self, key: Key, job: Job) -> bool:
        """Return whether a session grows that did so before, and remember it where it grows."""
        if job.stored is None or not has_moved_files(job):
            return False
        grew = self._grew.pop(key, None) is not None
        if not grew:
            self._grew[key] = self._monotonic()
        return grew

    def _count_wholes(self, key: Key, result: ReadUnit) -> None:
        """Count how many times in a row a long unit had to be read whole."""
        if not result.is_long or result.goes_on:
            self._wholes.pop(key, None)
        elif not result.more:
            again = self._wholes.get(key, 0) + 1
            self._wholes[key] = again if result.state is not None else MOST_WHOLES

    def drop_idle(self) -> None:
        """Release sessions that have not grown for a while."""
        now = self._monotonic()
        for key in [key for key, kept in self._kept.items() if now - kept.used > IDLE_S]:
            del self._kept[key]
            self._wholes.pop(key, None)
        self._grew = {key: at for key, at in self._grew.items() if now - at <= IDLE_S}

    def _read(self, job: Job, settings: Settings) -> ReadUnit:
        source, key = job.source, _key(job)
        kept = self._kept.pop(key, None)
        if kept is None:
            follower = follower_of(source, job.root, job.unit)
            if follower is None:
                return read_job(job, settings.keep_originals)
            kept = _Kept(follower)
        result = read_unit(
            source, job.root, job.unit,
            keep_originals=settings.keep_originals, compress=False,
            read=kept.follower.read, memories=kept.memories,
        )  # fmt: skip
        if result.stamps is not None:
            result.before = kept.in_store(job.stored)
            kept.last, kept.size, kept.used = result, job.unit.size, self._monotonic()
            self._kept[key] = kept
            self._make_room()
        return result

    def _make_room(self) -> None:
        size = sum(kept.size for kept in self._kept.values())
        while len(self._kept) > 1 and not _fits(len(self._kept), size):
            size -= self._kept.popitem(last=False)[1].size


def _fits(count: int, size: int) -> bool:
    """Return whether so many sessions may be kept, of so many source bytes."""
    return size <= FEW_BYTES if count <= FEW else count <= MANY and size <= MANY_BYTES


def _key(job: Job) -> Key:
    return job.source.kind, str(job.root), job.unit.key
