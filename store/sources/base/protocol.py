"""The one protocol that every source fulfils."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from store.engine.server_url import ServerUrl
from store.sources.base.drafts import SessionDraft
from store.sources.base.row_reader import TableReader


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What shows whether a file moved since it was read.

    Attributes:
        size: Bytes.
        mtime_ns: Nanoseconds.
        offset: Bytes that were consumed; less than ``size`` where the last line is torn.
    """

    path: str
    inode: int
    size: int
    mtime_ns: int
    offset: int = 0

    @classmethod
    def now(cls, path: str) -> FileStamp:
        """Return the stamp of a file or folder as it is; all zero where there is none."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return cls(path, 0, 0, 0)
        return cls(path, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is read as one: a session's file with its side files, or a session of a database.

    Attributes:
        key: Identifies the unit within its root.
        stamps: Of each file that the unit is made of; equal stamps mean nothing to read.
        changed_at: Epoch ms; sync reads the newest first.
    """

    key: str
    stamps: tuple[FileStamp, ...]
    changed_at: int

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(stamp.size for stamp in self.stamps)


@dataclass(frozen=True, slots=True)
class Problem:
    """A line, file or folder that could not be read, and why.

    Attributes:
        line: Line number from 1; 0 where the whole file is meant.
    """

    path: str
    line: int
    reason: str


class Fact(NamedTuple):
    """Something that a unit tells and that the reading of another one may need.

    Attributes:
        name: Says what it is, such as ``turn:<id of the first turn>``; others want it by this.
        session: The session that it is about, by its id at the source.
        value: What it says beside that it is there.
    """

    name: str
    session: str
    value: str = ""


class KnownMessage(NamedTuple):
    """A message that the library has, as its source called it; the time is epoch ms."""

    name: str
    created_at: int
    role: str


class KnownPrompt(NamedTuple):
    """Something that a person said, and when (epoch ms)."""

    at: int
    text: str


SESSION_FACT = "session:"
"""Begins the name of the fact that a session is there, which sync adds for each one itself."""


@dataclass(slots=True)
class Reading:
    """The result of reading one unit.

    Attributes:
        looked: Files and folders other than the unit's own that it was read with
            (``FileStamp.now``), those that were looked for in vain too: the unit is read
            again when one of them moves, goes or comes.
        facts: What others may want.
        wants: Names of facts that may change what this unit is read as: it is read again
            when another unit tells one of them.
        withdrawn: Source ids of partial sessions that an earlier reading of the unit may have
            made, and whose messages are all in other sessions now.
    """

    sessions: list[SessionDraft]
    problems: list[Problem]
    stamps: tuple[FileStamp, ...]
    looked: Sequence[FileStamp] = ()
    facts: Sequence[Fact] = ()
    wants: Iterable[str] = ()
    withdrawn: Sequence[str] = ()


class Library(Protocol):
    """What earlier syncs brought in of a source, for what its files no longer hold.

    Attributes:
        keeps_deleted: Whether it keeps what the source no longer has.
    """

    keeps_deleted: bool

    def records(self, session: str) -> Sequence[bytes]:
        """Return the original records of a session (by its id at the source) in order.

        Empty where the session is not there, or its records were not kept.
        """
        ...

    def messages(self, session: str) -> Sequence[KnownMessage]:
        """Return the messages of a session (by its id at the source) in order.

        Those too that the source no longer has; empty where the session is not there.
        """
        ...

    def facts(self, name: str) -> Sequence[Fact]:
        """Return what units told by a name, those too whose files are gone."""
        ...

    def prompts(self, workspace: str | None, since: int, until: int) -> Sequence[KnownPrompt]:
        """Return what persons said in sessions that are more than a log of prompts.

        Args:
            workspace: The sessions' workspace; None for any.
            since: Epoch ms of the first prompt that is of interest.
            until: Epoch ms of the last one.
        """
        ...

    def forgot_since(self, at: int) -> bool:
        """Return whether a person had a session forgotten at a time (epoch ms) or later."""
        ...


class NoLibrary:
    """Fulfils ``Library`` where nothing was ever brought in."""

    keeps_deleted = True

    def records(self, session: str) -> Sequence[bytes]:
        """Return nothing."""
        return ()

    def messages(self, session: str) -> Sequence[KnownMessage]:
        """Return nothing."""
        return ()

    def facts(self, name: str) -> Sequence[Fact]:
        """Return nothing."""
        return ()

    def prompts(self, workspace: str | None, since: int, until: int) -> Sequence[KnownPrompt]:
        """Return nothing.

        Args:
            workspace: Of no interest.
            since: Of no interest.
            until: Of no interest.
        """
        return ()

    def forgot_since(self, at: int) -> bool:
        """Return that there was none."""
        return False


@runtime_checkable
class LibraryUser(Protocol):
    """A source that reads what other threads need from the library where no file has it."""

    def use_library(self, library: Library) -> None:
        """Take the library to look into from now on."""
        ...


@dataclass(slots=True)
class Place:
    """Where reading a long file can continue later, without what is before.

    Attributes:
        message: The place among the draft's messages of the first one that is read again.
        record: The number of the record that it begins with.
        state: What the source needs to continue there, as JSON holds it.
        context: Earlier records that later ones are read with, in the source's own form.
        names: The ids that records define which were passed since the last place: a later
            record that refers to one of them changes what is before.
    """

    message: int
    record: int
    state: dict[str, Any]
    context: bytes
    names: Collection[str]


@dataclass(slots=True)
class Step:
    """A stretch of a long unit.

    Attributes:
        reading: ``sessions[0]`` is the session of the unit's long file. Where ``goes_on``, it
            holds the messages from the last place on (``SessionDraft.first_record``), and
            sessions that did not change are left out.
        goes_on: Whether the reading begins at the place that the last one named.
        place: Where the next step continues; None where only reading all again will do.
        more: Whether another step follows at once.
        made_of: What the reading was made of. Freeing it takes a tenth as long as reading, and
            waits until the place has been given to the process that reads the next step.
    """

    reading: Reading
    goes_on: bool = False
    place: Place | None = None
    more: bool = False
    made_of: object = None


Known = Callable[[Collection[str]], bool]
"""Says whether any of some names was passed before the place where reading continues."""


@runtime_checkable
class FolderedSource(Protocol):
    """A source whose sessions are in folders of the root that have fixed names."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Their names; each may be missing."""
        ...


@runtime_checkable
class LongSource(Protocol):
    """A source whose long files are read in steps, and continued where they grew."""

    def steps(
        self,
        root: Path,
        unit: Unit,
        start: Place | None,
        known: Known,
        *,
        fresh: bool,
        whole: bool = True,
    ) -> Iterator[Step]:
        """Read a unit in steps; each is written before the next is asked for.

        What would change the messages before a place is read whole: the last step then does
        not continue.

        Args:
            root: The root.
            unit: The unit as it is now.
            start: Where the last reading can be continued; None reads from the beginning.
            known: Tells of names that were passed, those of steps that were yielded too.
            fresh: Whether nothing of the unit is in the library yet, so that reading from the
                beginning may bring it in piece by piece.
            whole: Whether to read it whole where steps cannot go on; otherwise they end there.
        """
        ...


@runtime_checkable
class OutlinedSource(Protocol):
    """A source that tells the sessions of a unit much quicker than it reads them."""

    def outline(self, root: Path, unit: Unit) -> list[SessionDraft]:
        """Return the unit's sessions as far as a first look tells them.

        Title, times, folder and model may be incomplete, and the messages are of no use.
        ``source_id`` is what reading the unit gives.
        """
        ...


class Program(NamedTuple):
    """How to recognize the processes of an agent.

    Attributes:
        names: Names of its command.
        packages: Package folders in its path, for programs run by an interpreter.
        shares_file: Whether all its sessions are in one file, so that a process that has it
            open may run any of them.
    """

    names: frozenset[str]
    packages: tuple[str, ...] = ()
    shares_file: bool = False


TELLS = ("thoughts", "tokens", "cost", "files", "rewinds", "compactions")
LINEAGES = ("forks", "continuations", "subagents")
"""What sources may hold, and how their sessions may be related, for the documentation."""


class Source(Protocol):
    """A kind of store that some agent writes. Nothing here ever writes to it.

    The tables of the documentation are made of ``label``, ``kind``, ``tells``, ``live``,
    ``variables``, ``places`` and ``default_roots``.
    """

    kind: str
    """As in ``metadata_json.source.kind``."""
    label: str
    """The program's name, for people."""
    version: int = 1
    """Raised when the mapping changes: the next sync then reads everything again."""
    knows_copies: bool = False
    """Whether a copy of a file names the session of its original, by whatever name it has."""
    program: Program | None = None
    """The program whose processes run the sessions; None where it has no name to tell it by."""
    variables: tuple[str, ...] = ()
    """Variables of the environment that name another place, for the documentation."""
    places: str = ""
    """Where it looks, in words, where the paths of ``default_roots`` do not say it."""

    tells: tuple[str, ...] = ()
    """What its sessions hold beside turns and calls: names of ``TELLS`` and ``LINEAGES``."""
    live: bool = True
    """Whether its files change while the program works, rather than come as a whole."""

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return where this agent's sessions are usually found, whether or not they exist."""
        ...

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read when this file or folder is of this kind, by its content."""
        ...

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List what there is to read below a root; damage goes to ``problems``."""
        ...

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one unit whole. Damage costs just itself and is reported."""
        ...

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folders to watch for changes."""
        ...


class Follower(Protocol):
    """One unit kept in memory while it grows."""

    def read(self, unit: Unit) -> Reading:
        """Return what ``Source.read`` would, reading only what was added since the last call."""
        ...


@runtime_checkable
class FollowedSource(Protocol):
    """A source whose units can be followed without reading them whole each time."""

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the units that changed files and folders below a root belong to.

        Returns:
            None where the whole root must be listed.
        """
        ...

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        ...


@dataclass(frozen=True, slots=True)
class RunningSession:
    """What a source says of a session that a process has open.

    Attributes:
        source_id: The session's id at the source.
        state: As in ``store.activity.judgement``.
        since: Epoch ms.
        pid: The process; whoever reads this finds out by it whether it still holds.
        started: When the process started, as in ``store.system.processes.Process``, where the
            source has it.
    """

    source_id: str
    state: str
    since: int
    pid: int
    started: int | str | None = None


@runtime_checkable
class ActivitySource(Protocol):
    """A source that says what its sessions do now."""

    def running(self, root: Path) -> list[RunningSession]:
        """Return what processes say of a root's sessions; some may have ended since."""
        ...


@runtime_checkable
class ServerSource(Protocol):
    """A source whose sessions may also be in a database on a server."""

    label: str

    def default_servers(self, environment: Mapping[str, str]) -> list[ServerUrl]:
        """Return the databases that this agent's own settings name."""
        ...

    def knows(self, reader: TableReader) -> bool:
        """Tell by its tables whether a database is this program's."""
        ...

    def units_on(self, url: ServerUrl, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions of a database; one that cannot be read goes to ``problems``."""
        ...

    def read_on(self, url: ServerUrl, unit: Unit) -> Reading:
        """Read one session whole.

        Raises:
            ServerTrouble: The server cannot be read now.
        """
        ...

    def follow_on(self, url: ServerUrl, unit: Unit) -> object:
        """Let ``read_on`` fetch only what was added, as long as the returned object is kept.

        Args:
            url: The database.
            unit: The session.
        """
        ...

    def identity_on(self, url: ServerUrl) -> str:
        """Return a text that is the same for all URLs of a database, and of no other database.

        Raises:
            ServerTrouble: The server cannot be read now.
        """
        ...

    def waits_for(self, url: ServerUrl) -> str | None:
        """Return what an answer of the server is waiting for; None where nothing is known."""
        ...

    def moved_on(self, url: ServerUrl) -> list[Unit] | None:
        """Return the sessions that moved since they were listed last; cheap where none did.

        Returns:
            None where only a listing can tell, as sessions went away.

        Raises:
            ServerTrouble: The server cannot be read now.
        """
        ...
