"""Finds the processes that may be running a session, for agents that do not record them.

A process belongs to a session if it has the session's file open, or if it is the agent's
program and runs in the session's folder. Processes are listed from ``/proc`` on Linux and by
``ps`` and ``lsof`` elsewhere, if installed. Agents are not contacted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from store.errors import Refused
from store.sources.base.protocol import Program
from store.sources.registry import programs
from store.system import processes as system
from store.system.paths import resolved
from store.system.processes import PS_TIMEOUT_S, has_proc
from store.system.programs import CommandLine, run
from store.system.silent import is_silent

QUIET_MS = 2_000
"""A session without a possible process is over after this long without a write."""
QUIET_ELSEWHERE_MS = 15_000
"""The same if its folder is not on this machine: the agent may run in a container."""
_ARGUMENTS = 4
"""Number of words of a command line that are searched for a program's name."""
_OURS = ("backscroll", "store.sync")
_ENDINGS = (".js", ".mjs", ".cjs", ".py", ".exe")


@dataclass(slots=True)
class Seen:
    """A running process.

    Attributes:
        words: The first words of its command line.
    """

    pid: int
    words: Sequence[str]
    _cwd: str | None = None
    _files: frozenset[tuple[int, int]] | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is a process of Backscroll."""
        return self.pid == os.getpid() or any(
            ours in os.path.basename(word) for word in self.words for ours in _OURS
        )

    def is_of(self, program: Program) -> bool:
        """Return whether it is a process of a program."""
        for word in self.words:
            name = os.path.basename(word.rstrip("/"))
            for ending in _ENDINGS:
                name = name.removesuffix(ending)
            if name in program.names or any(part in word for part in program.packages):
                return True
        return False

    @property
    def cwd(self) -> str:
        """The folder that it runs in; "" if unknown."""
        if self._cwd is None:
            try:
                self._cwd = os.path.realpath(system.PROC / str(self.pid) / "cwd", strict=True)
            except OSError:
                self._cwd = ""
        return self._cwd

    def runs_in(self, folder: str) -> bool:
        """Return whether it runs in a folder or below it."""
        return bool(self.cwd) and _is_in(self.cwd, resolved(folder))

    def may_work_in(self, folder: str) -> bool:
        """Return whether it runs in, below or above a folder, or in an unknown one."""
        return not self.cwd or self.runs_in(folder) or _is_in(resolved(folder), self.cwd)

    def has_open(self, files: Iterable[tuple[int, int]]) -> bool:
        """Return whether it has one of some files open, by device and inode."""
        if self._files is None:
            self._files = frozenset(_open_files(self.pid))
        return not self._files.isdisjoint(files)

    def set_lsof(self, cwd: str, paths: Iterable[str]) -> None:
        """Set folder and open files from the output of ``lsof``."""
        self._cwd = resolved(cwd) if cwd else ""
        self._files = frozenset(_identities(paths))


class Candidate(NamedTuple):
    """A process that may run a session.

    Attributes:
        is_sure: False if the only evidence is a file that other sessions share.
    """

    pid: int
    is_sure: bool


@dataclass(slots=True)
class Processes:
    """Snapshot of the processes of this machine.

    Attributes:
        known: False if processes could not be listed.
    """

    seen: list[Seen] = field(default_factory=list)
    known: bool = True

    def of_session(
        self, kind: str, workspace: str | None, paths: Sequence[str],
        others: Collection[int] = (), newer: int = 0,
    ) -> list[Candidate]:
        """Return the processes that may run a session, the most likely first.

        Args:
            kind: The source's kind.
            workspace: The session's folder.
            paths: The session's files.
            others: Processes that are known to run other sessions.
            newer: Number of sessions of the program in that folder that were written later;
                that many of its processes there are assumed to run them.
        """
        files, program = set(_identities(paths)), programs().get(kind)
        if program is None:
            return []
        with_file, in_folder = [], []
        for one in self.seen:
            if one.is_ours or one.pid in others:
                continue
            named = workspace is not None and one.is_of(program) and one.runs_in(workspace)
            if files and one.has_open(files):
                with_file.append(Candidate(one.pid, named or not program.shares_file))
            elif named:
                in_folder.append(Candidate(one.pid, True))
        if not program.shares_file and len(in_folder) <= newer:
            in_folder = []
        return sorted([*with_file, *in_folder], key=lambda one: not one.is_sure)

    def is_over(
        self, kind: str, workspace: str | None, path: str, quiet_for_ms: int,
        others: Collection[int] = (), newer: int = 0,
    ) -> bool:
        """Return whether a session that seems to be running certainly has no process.

        Args:
            kind: The source's kind.
            workspace: The session's folder.
            path: The session's file.
            quiet_for_ms: Time since its last write.
            others: Processes that are known to run other sessions.
            newer: Number of sessions of the program in that folder that were written later.
        """
        here = workspace is not None and os.path.isdir(workspace)
        if quiet_for_ms <= (QUIET_MS if here else QUIET_ELSEWHERE_MS) or is_silent(Path(path)):
            return False
        program = programs().get(kind)
        if not self.known or program is None or not os.path.lexists(path):
            return False
        # A process that serves all sessions of a file may run in any folder.
        anywhere = program.shares_file or not here
        may = [
            one for one in self.seen
            if not one.is_ours and one.pid not in others and one.is_of(program)
            and (anywhere or one.may_work_in(workspace or ""))
        ]  # fmt: skip
        of_newer = not anywhere and len(may) <= newer and all(
            one.runs_in(workspace or "") for one in may
        )  # fmt: skip
        return not may or of_newer

    def any_of(self, kind: str) -> bool:
        """Return whether any process of a kind's program is running."""
        program = programs().get(kind)
        return program is not None and any(one.is_of(program) for one in self.seen)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def running_processes() -> Processes:
    """Return the running processes."""
    return Processes([*_by_proc()]) if has_proc() else _by_ps([*programs().values()])


def _by_proc() -> Iterable[Seen]:
    for name in os.listdir(system.PROC):
        if not name.isdecimal():
            continue
        folder = system.PROC / name
        try:
            words = folder.joinpath("cmdline").read_bytes()[:4096].split(b"\0")
            title = folder.joinpath("comm").read_bytes().strip()
        except OSError:
            continue
        if not words[0]:
            continue  # a kernel thread, or a process that has ended
        yield Seen(int(name), [os.fsdecode(word) for word in [title, *words[:_ARGUMENTS]]])


def _open_files(pid: int) -> Iterable[tuple[int, int]]:
    folder = system.PROC / str(pid) / "fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from _identities(str(folder / name) for name in names)


def _identities(paths: Iterable[str]) -> Iterable[tuple[int, int]]:
    for path in paths:
        try:
            stat = os.stat(path)
        except (OSError, ValueError):
            continue
        yield stat.st_dev, stat.st_ino


def _by_ps(programs: Sequence[Program]) -> Processes:
    """Return processes listed by ``ps``; those of the programs with ``lsof`` details."""
    listed = _output(CommandLine.of("ps", "-a", "-x", "-o", "pid=", "-o", "command="))
    if listed is None:
        return Processes(known=False)
    found = Processes()
    for line in listed.splitlines():
        number, _, command = line.strip().partition(" ")
        if number.isdecimal():
            found.seen.append(Seen(int(number), command.split()[:_ARGUMENTS], "", frozenset()))
    named = {
        one.pid: one for one in found.seen if any(one.is_of(program) for program in programs)
    }
    if named:
        numbers = ",".join(map(str, named))
        lsof = CommandLine.of("lsof", "-w", "-n", "-P", "-Fpfn", "-p").bare_operand(numbers)
        _take_lsof(named, _output(lsof) or "")
    return found


def _take_lsof(seen: dict[int, Seen], output: str) -> None:
    """Set folders and open files from ``lsof -F``: one field per line, its letter first."""
    pid, descriptor, cwd = 0, "", ""
    paths: list[str] = []
    for line in [*output.splitlines(), "p0"]:
        letter, value = line[:1], line[1:]
        if letter == "p":
            if pid in seen:
                seen[pid].set_lsof(cwd, paths)
            pid, cwd, paths = int(value) if value.isdecimal() else 0, "", []
        elif letter == "f":
            descriptor = value
        elif letter == "n" and descriptor == "cwd":
            cwd = value
        elif letter == "n" and Path(value).is_absolute():
            paths.append(value)


def _output(command: CommandLine) -> str | None:
    try:
        done = run(command, given=b"", timeout_s=PS_TIMEOUT_S)
    except (Refused, TimeoutError):
        return None
    return done.output.decode("utf-8", "surrogateescape")
