"""Reads units: long ones in steps, and only the new end of long units that grew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from store.engine.database import Database
from store.sources import registry
from store.sources.base.collection import paused_collection
from store.sources.base.protocol import LongSource, Place, Problem, Step
from store.sync import reading_states
from store.sync.prepared import prepare
from store.sync.reading import ReadUnit, path_of, read_job, reason_of
from store.sync.reading_states import Names, State
from store.sync.session_rows import NOTHING_CARRIED, Carried, PreparedSession
from store.sync.units import Job

AHEAD_BYTES = 24 << 20
"""Below this many bytes another process takes as long to start as it saves."""
LONG_BYTES = 1 << 20
"""Units shorter than this are read at once, which takes under a tenth of a second."""


def is_long(job: Job) -> bool:
    """Return whether a unit is read in steps."""
    return (
        job.unit.size >= LONG_BYTES
        and isinstance(job.root, Path)
        and isinstance(job.source, LongSource)
    )


def read_in_steps(
    job: Job, keep_originals: bool, database: Database, *, ahead: bool = False
) -> Iterator[ReadUnit]:
    """Yield a unit's readings; each must be written before the next is requested.

    Args:
        job: The unit; its ``stored`` is updated with each step.
        keep_originals: Whether to keep the original records.
        database: The library, for stored states and message ids.
        ahead: Whether another process may read a unit that is new (``reading_ahead``).
    """
    if not is_long(job):
        yield read_job(job, keep_originals)
        return
    # A step's objects are freed before the garbage collector would traverse them.
    with paused_collection():
        yield from _LongUnit(job, keep_originals, database, ahead=ahead).readings()


class _LongUnit:
    """A unit that is read in steps."""

    def __init__(self, job: Job, keep_originals: bool, database: Database, *, ahead: bool) -> None:
        self._job, self._keep, self._database = job, keep_originals, database
        # After another sync wrote the unit, the stored state may not fit: read it whole.
        whole = job.whole or job.attempts > 0
        self._state = None if whole else reading_states.load(database, job, keep_originals)
        self._fresh = job.stored is None and not whole
        long = job.unit.size >= AHEAD_BYTES
        self._ahead = ahead and self._fresh and long and registry.has(job.source)

    def readings(self) -> Iterator[ReadUnit]:
        steps, follows = self._steps(), False
        while True:
            result = ReadUnit(depends=None)
            try:
                step = next(steps, None)
            except Exception as error:
                reason = reason_of("cannot be read", error)
                problem = Problem(path_of(self._job.root, self._job.unit), 0, reason)
                yield ReadUnit(problems=[problem])
                return
            if step is None:
                return
            result.follows = follows
            self._take(step, result)
            yield result
            if not step.more or result.saved is None:
                return
            self._job.stored, follows = result.saved, True

    def _steps(self) -> Iterator[Step]:
        job = self._job
        assert isinstance(job.source, LongSource) and isinstance(job.root, Path)
        state = self._state
        self._names = state.names if state is not None else Names(self._database, None)
        if self._ahead:
            # Imported here: most syncs have no such unit.
            from store.sync.reading_ahead import steps_ahead

            return steps_ahead(job, self._database, lambda names: self._names.known(names))
        return iter(
            job.source.steps(
                job.root, job.unit, state.place if state is not None else None,
                lambda names: self._names.known(names), fresh=self._fresh,
            )
        )  # fmt: skip

    def _take(self, step: Step, result: ReadUnit) -> None:
        """Prepare the rows of a step and add them to the result."""
        reading, before = step.reading, self._state
        result.more, result.goes_on, result.is_long = step.more, step.goes_on, True
        result.problems.extend(reading.problems)
        if not step.goes_on:
            before, self._names = None, Names(self._database, None)
            result.depends_on(reading)
        else:
            result.facts = reading.facts
        carried = before.carried if before is not None else NOTHING_CARRIED
        making = partial(prepare, self._job.source.kind, keep_originals=self._keep)
        main: PreparedSession | None = None
        for position, draft in enumerate(reading.sessions):
            try:
                if position == 0:
                    until = step.place.message if step.place is not None else None
                    main = making(draft, carried=carried, until=until, compress=False)
                    result.sessions.append(main)
                else:
                    result.sessions.append(making(draft, compress=False))
            except Exception as error:
                reason = reason_of("cannot be mapped", error)
                result.problems.append(Problem(draft.path, 0, reason))
        result.stamps = reading.stamps
        result.also = before.sessions if before is not None else []
        self._state = None
        if step.place is not None and main is not None and main.carried is not None:
            self._state = result.state = self._next(step.place, main, main.carried, before, result)

    def _next(
        self,
        place: Place,
        main: PreparedSession,
        carried: Carried,
        before: State | None,
        result: ReadUnit,
    ) -> State:
        self._names.add(place.names)
        ids = [session.id for session in result.sessions]
        return State(
            main.id, list(dict.fromkeys([*ids, *result.also])), carried, place, self._names,
            self._keep, before.id if before is not None else None,
        )  # fmt: skip
