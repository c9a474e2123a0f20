"""Reads units: long ones in steps, and only the new end of long units that grew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from store.engine.database import Database
from store.sources import registry
from store.sources.base.protocol import Known, LongSource, Place, Problem, Step
from store.sync import reading_states, units
from store.sync.prepared import prepare
from store.sync.reading import ReadUnit, path_of, read_job, reason_of
from store.sync.reading_states import Names, State, hashes_of
from store.sync.session_rows import NOTHING_CARRIED, Carried, PreparedSession
from store.sync.units import Job
from store.system.collection import paused_collection

if TYPE_CHECKING:
    from store.sync.batch import Outcome

SHARED_BYTES = 24 << 20
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
    job: Job,
    keep_originals: bool,
    database: Database,
    shared: Callable[[LongUnit], Iterator[ReadUnit]] | None = None,
) -> Iterator[ReadUnit]:
    """Yield a unit's readings; each must be written before the next is requested.

    Args:
        job: The unit; its ``stored`` is updated with each step.
        keep_originals: Whether to keep the original records.
        database: The library, for stored states and message ids.
        shared: Returns the readings of a large new unit of which another process reads some.
    """
    if not is_long(job):
        yield read_job(job, keep_originals)
        return
    unit = LongUnit(job, keep_originals, database)
    # A step's objects are freed before the garbage collector would traverse them.
    with paused_collection():
        if shared is not None and unit.is_new and job.unit.size >= SHARED_BYTES:
            yield from shared(unit)
        else:
            yield from unit.readings()


class LongUnit:
    """A unit that is read in steps.

    Attributes:
        is_new: Whether nothing of it is in the library, and its source is a known one.
        state: Where the next step continues; None for the beginning.
    """

    def __init__(self, job: Job, keep_originals: bool, database: Database) -> None:
        """Continue where the unit was read to.

        Args:
            job: The unit; its ``stored`` is updated with each step.
            keep_originals: Whether to keep the original records.
            database: The library.
        """
        self.job, self.database, self._keep = job, database, keep_originals
        # After another sync wrote the unit, the stored state may not fit: read it whole.
        whole = job.whole or job.attempts > 0
        self.state = None if whole else reading_states.load(database, job, keep_originals)
        self._fresh = job.stored is None and not whole
        self.is_new = self._fresh and registry.has(job.source)
        self._names = self._names_of_state()

    def _names_of_state(self) -> Names:
        return self.state.names if self.state is not None else Names(self.database, None)

    def reload(self) -> None:
        """Continue where another process has written the unit to."""
        self.job.stored = units.stored_unit(self.database, self.job)
        self.state = reading_states.load(self.database, self.job, self._keep)
        self._fresh, self._names = False, self._names_of_state()

    def steps(
        self, place: Place | None, known: Known, *, fresh: bool, whole: bool = True
    ) -> Iterator[Step]:
        """Return the steps of ``LongSource.steps``, whose arguments these are.

        Args:
            place: Where the last reading can be continued; None for the beginning.
            known: Tells of names that were passed.
            fresh: Whether nothing of the unit is in the library yet.
            whole: Whether to read it whole where steps cannot go on.
        """
        source, root = self.job.source, self.job.root
        assert isinstance(source, LongSource) and isinstance(root, Path)
        return iter(source.steps(root, self.job.unit, place, known, fresh=fresh, whole=whole))

    def readings(
        self, *, follows: bool = False, elsewhere: Outcome | None = None
    ) -> Iterator[ReadUnit]:
        """Yield the readings from the state on; each must be written before the next.

        Args:
            follows: Whether other readings of the unit were written in this sync.
            elsewhere: As in ``ReadUnit``, for the first of them.
        """
        place = self.state.place if self.state is not None else None
        steps = self.steps(place, lambda names: self._names.known(names), fresh=self._fresh)
        while True:
            try:
                step = next(steps, None)
            except Exception as error:
                reason = reason_of("cannot be read", error)
                problem = Problem(path_of(self.job.root, self.job.unit), 0, reason)
                yield ReadUnit(problems=[problem], elsewhere=elsewhere)
                return
            if step is None:
                return
            result, more = self.take(step), step.more
            del step
            result.follows, result.elsewhere = follows, elsewhere
            yield result
            if not more or result.saved is None:
                return
            self.job.stored, follows, elsewhere = result.saved, True, None

    def take(self, step: Step, hashes: Set[bytes] | None = None) -> ReadUnit:
        """Return a step's rows, and continue behind it.

        Args:
            step: The step.
            hashes: Of its place's names, where they were made already.
        """
        result = ReadUnit(depends=None)
        reading, before = step.reading, self.state
        result.more, result.goes_on, result.is_long = step.more, step.goes_on, True
        result.problems.extend(reading.problems)
        if not step.goes_on:
            before, self._names = None, Names(self.database, None)
            result.depends_on(reading)
        else:
            result.facts = reading.facts
        carried = before.carried if before is not None else NOTHING_CARRIED
        making = partial(prepare, self.job.source.kind, keep_originals=self._keep)
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
        self.state = None
        if step.place is not None and main is not None and main.carried is not None:
            self._names.add(hashes_of(step.place.names) if hashes is None else hashes)
            self.state = result.state = self._next(step.place, main, main.carried, before, result)
        return result

    def _next(
        self,
        place: Place,
        main: PreparedSession,
        carried: Carried,
        before: State | None,
        result: ReadUnit,
    ) -> State:
        ids = [session.id for session in result.sessions]
        return State(
            main.id, list(dict.fromkeys([*ids, *result.also])), carried, place, self._names,
            self._keep, before.id if before is not None else None,
        )  # fmt: skip
