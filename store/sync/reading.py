"""Reads one unit of a source into rows; in this process or in a helper process."""

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
    from store.sync.reading_states import State


@dataclass(slots=True)
class ReadUnit:
    """The result of reading a unit.

    Attributes:
        stamps: As the files were when they were read; None where reading failed, so that
            the unit is tried again.
        excluded: Workspaces whose sessions were left out.
        before: What the store has of sessions from the last reading, where that is known.
        written: The ids of the sessions that were written whole or as they differ.
        saved: What is remembered of the unit once it is written (``units.UnitState``).
        depends: What else the reading depends on, and what it tells others; None where that
            is as it was.
        facts: What it tells others more than before, where ``depends`` is None.
        is_long: Whether the unit is read in steps.
        goes_on: Whether the reading holds only what was added to the unit.
        more: Whether another reading of the unit follows.
        follows: Whether it follows another reading of the same sync.
        also: The ids of the unit's sessions that were not read, as they did not change.
        state: Where the next reading continues.
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

    def tell_nothing_of(self, sessions: Collection[str]) -> None:
        """Take out the facts of sessions (by their ids at the source)."""
        self.facts = [fact for fact in self.facts if fact.session not in sessions]
        if self.depends is not None:
            told = self.depends.facts
            self.depends.facts = [fact for fact in told if fact.session not in sessions]

    def depends_on(self, reading: Reading) -> None:
        """Take what a reading depends on."""
        self.depends = Dependencies(reading.looked, reading.facts, frozenset(reading.wants))


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
    """Read a unit and make its rows.

    Nothing that a source's files hold may end a sync: what cannot be read or mapped
    becomes a problem of this unit alone.

    Args:
        source: Whose unit it is.
        root: The root that it was listed below.
        unit: The unit.
        keep_originals: Whether the original records are kept.
        compress: Whether record blocks are compressed now, or only when they are written.
        read: Reads it in place of the source.
        memories: What was made of its sessions before, by their source ids.
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
    result.stamps = reading.stamps
    result.depends_on(reading)
    return result


def read_job(job: Job, keep_originals: bool) -> ReadUnit:
    """Read a unit of a sync that is not followed afterwards."""
    return read_unit(
        job.source,
        job.root,
        job.unit,
        keep_originals=keep_originals,
        compress=job.stored is None,
    )


def leave_out(result: ReadUnit, excludes: Excludes) -> None:
    """Take the sessions of excluded workspaces out of a reading, and name the workspaces."""
    kept = []
    for session in result.sessions:
        if excludes(session.workspace_root):
            result.excluded.append(session.workspace_root or "")
        else:
            kept.append(session)
    result.sessions = kept


def path_of(root: Root, unit: Unit) -> str:
    """Return the file to name when a whole unit is meant."""
    return unit.stamps[0].path if unit.stamps else f"{root}/{unit.key}"


def reason_of(what: str, error: Exception) -> str:
    """Return the reason of a problem, from the error that came up."""
    if isinstance(error, BackscrollError):
        return f"{what}: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"{what}: {error.strerror}"
    if isinstance(error, UnicodeDecodeError):
        return f"{what}: it holds text that is no UTF-8"
    return f"{what}: {type(error).__name__}: {error}"
