"""Other processes that have a file open."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from store.errors import Refused
from store.system.processes import PROC, PS_TIMEOUT_S

_LONGEST = 60


class Holder(NamedTuple):
    """A process that has a file open.

    Attributes:
        command: The start of its command line; empty if unknown.
    """

    pid: int
    command: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"process {self.pid}" + (f" ({self.command})" if self.command else "")


def holders(paths: Iterable[Path]) -> list[Holder]:
    """Return the other processes of this machine that have one of some files open.

    Processes of other users may be missing, as their files cannot be listed.
    """
    known = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        known[status.st_dev, status.st_ino] = path
    if not known:
        return []
    found = _by_proc(set(known)) if PROC.joinpath("self/fd").is_dir() else _by_lsof(known.values())
    return [one for one in found if one.pid != os.getpid()]


def _by_proc(files: set[tuple[int, int]]) -> Iterator[Holder]:
    for name in os.listdir(PROC):
        if name.isdecimal() and _has_one_open(PROC / name / "fd", files):
            yield Holder(int(name), _command(PROC / name / "cmdline"))


def _has_one_open(folder: Path, files: set[tuple[int, int]]) -> bool:
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            status = os.stat(folder / name)
        except OSError:
            continue
        if (status.st_dev, status.st_ino) in files:
            return True
    return False


def _command(path: Path) -> str:
    try:
        words = path.read_bytes()[:4096].split(b"\0")
    except OSError:
        return ""
    text = " ".join(os.fsdecode(word) for word in words if word)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _by_lsof(paths: Iterable[Path]) -> Iterator[Holder]:
    """Yield processes as ``lsof`` lists them, where there is no /proc."""
    from store.system.programs import CommandLine, run  # only where there is no /proc

    command = CommandLine.of("lsof", "-w", "-n", "-P", "-Fpc")
    for path in paths:
        command = command.operand(str(path))
    try:
        output = run(command, given=b"", timeout_s=PS_TIMEOUT_S).output
    except (Refused, TimeoutError):
        return
    pid = 0
    for line in output.decode("utf-8", "replace").splitlines():
        if line[:1] == "p" and line[1:].isdecimal():
            pid = int(line[1:])
        elif line[:1] == "c" and pid:
            yield Holder(pid, line[1:])
