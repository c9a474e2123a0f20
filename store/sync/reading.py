"""Reads one unit of a source into rows, in this process or a helper process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from store.engine.server_url import Root
from store.errors import BackscrollError
from store.sources.base.protocol import Fact, FileStamp, Problem, Reading, Source, Unit
from store.sync import roots
from store.sync.depending import Dependencies
from store.sync.memory import Memory
from store.sync.prepared import PreparedSession, prepare
from store.sync.units import Excludes, Job

if TYPE_CHECKING:
    from store.sync.batch import Outcome
    from store.sync.reading_states import State


@dataclass(slots=True)
class ReadUnit:
    """The result of reading a unit.

    Attributes:
        stamps: State of the files when they were read; None if reading failed, so that the
            unit is tried again.
        excluded: Workspaces whose sessions were left out.
        before: The stored rows of sessions from the last reading, if known.
        written: Ids of the sessions that were written.
        saved: The unit's stored state after writing (``units.UnitState``).
        depends: The reading's dependencies and facts; None if they are unchanged.
        facts: Facts to add if ``depends`` is None.
        is_long: Whether the unit is read in steps.
        goes_on: Whether the reading contains only what was added to the unit.
        more: Whether another reading of the unit follows.
        follows: Whether it follows another reading of the unit in the same sync.
        also: Ids of the unit's sessions that were not read because they did not change.
        state: Where the next reading continues.
        withdrawn: As in ``Reading``.
        superseded: Ids of stored copies that have nothing beyond what was written.
        elsewhere: What another process wrote of the unit since the last reading.
    """

    sessions: list[PreparedSession] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    stamps: tuple[FileStamp, ...] | None = None
    excluded: list[str] = field(default_factory=list)
    before: Mapping[str, PreparedSession] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    saved: str | None = None
    depends: Dependencies | None = field(default_factory=Dependencies)
    facts: Sequence[Fact] = ()
    is_long: bool = False
    goes_on: bool = False
    more: bool = False
    follows: bool = False
    also: list[str] = field(default_factory=list)
    state: State | None = None
    withdrawn: Sequence[str] = ()
    superseded: list[str] = field(default_factory=list)
    elsewhere: Outcome | None = None

    def not_written(self) -> None:
        """Take back what writing it has set, as its transaction was rolled back."""
        self.written.clear()
        self.superseded.clear()
        self.saved = None

    def drop_facts_of(self, sessions: Collection[str]) -> None:
        """Remove the facts about sessions (by source id)."""
        self.facts = [fact for fact in self.facts if fact.session not in sessions]
        if self.depends is not None:
            told = self.depends.facts
            self.depends.facts = [fact for fact in told if fact.session not in sessions]

    def depends_on(self, reading: Reading) -> None:
        """Set the dependencies and facts from a reading."""
        own = {stamp.path for stamp in reading.stamps}
        # What is damaged beside the unit's own files may be whole later.
        damaged = dict.fromkeys(one.path for one in reading.problems if one.path not in own)
        looked = [*reading.looked, *map(FileStamp.now, damaged)]
        self.depends = Dependencies(looked, reading.facts, frozenset(reading.wants))


def read_unit(
    source: Source,
    root: Root,
    unit: Unit,
    *,
    keep_originals: bool,
    compress: bool,
    read: Callable[[Unit], Reading] | None = None,
    memories: dict[str, Memory] | None = None,
) -> ReadUnit:
    """Return a unit's sessions as rows.

    No content of a source's files may end a sync: reading and mapping errors become
    problems of this unit.

    Args:
        source: The unit's source.
        root: The unit's root.
        unit: The unit.
        keep_originals: Whether to keep the original records.
        compress: Whether to compress record blocks now, or only when they are written.
        read: Reads the unit in place of the source.
        memories: Cached rows of its sessions, by source id.
    """
    result = ReadUnit()
    making = partial(prepare, source.kind, keep_originals=keep_originals, compress=compress)
    try:
        reading = read(unit) if read is not None else roots.read(source, root, unit)
    except Exception as error:
        result.problems.append(Problem(path_of(root, unit), 0, reason_of("cannot be read", error)))
        return result
    result.problems.extend(reading.problems)
    for draft in reading.sessions:
        try:
            memory = None if memories is None else memories.setdefault(draft.source_id, Memory())
            result.sessions.append(making(draft, memory=memory))
        except Exception as error:
            result.problems.append(Problem(draft.path, 0, reason_of("cannot be mapped", error)))
    result.stamps, result.withdrawn = reading.stamps, reading.withdrawn
    result.depends_on(reading)
    return result


def read_job(job: Job, keep_originals: bool) -> ReadUnit:
    """Return the whole reading of a job, without caching for later growth."""
    return read_unit(
        job.source,
        job.root,
        job.unit,
        keep_originals=keep_originals,
        compress=job.stored is None,
    )


def leave_out(result: ReadUnit, excludes: Excludes) -> None:
    """Move excluded workspaces' sessions out of a reading and note the workspaces."""
    kept = []
    for session in result.sessions:
        if excludes(session.workspace_root):
            result.excluded.append(session.workspace_root or "")
        else:
            kept.append(session)
    result.sessions = kept


def path_of(root: Root, unit: Unit) -> str:
    """Return the path to show in a problem of a whole unit."""
    return unit.stamps[0].path if unit.stamps else f"{root}/{unit.key}"


def reason_of(what: str, error: Exception) -> str:
    """Return a problem's reason for an error."""
    if isinstance(error, BackscrollError):
        return f"{what}: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"{what}: {error.strerror}"
    if isinstance(error, UnicodeDecodeError):
        return f"{what}: contains text that is not UTF-8"
    return f"{what}: {type(error).__name__}: {error}"
