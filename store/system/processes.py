"""Identifies processes, also when their number is reused, and checks locks.

On Linux the facts come from ``/proc``. Without it (macOS, the BSDs), ``ps`` gives the start
time of a process, so that a reused number is not mistaken for a process that has ended.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from store.errors import Refused
from store.system.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROC = Path("/proc")
PS_HOLDS_S = 1.0
"""Seconds for which an answer of ``ps`` is cached; each call starts a process."""
PS_TIMEOUT_S = 5.0
_STILL_ACTIVE = 259


class Process(NamedTuple):
    """A process, identified by more than its number, which can be reused.

    Attributes:
        started: When it started: ticks since boot (Linux), or the output of ``ps -o lstart=``
            in UTC; None if unknown.
        boot: The system's boot id, if known.
    """

    pid: int
    host: str
    started: int | str | None = None
    boot: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the keys that ``metadata_json.activity`` has for a process."""
        found = {"pid": self.pid, "host": self.host, "started": self.started, "boot": self.boot}
        return {key: value for key, value in found.items() if value is not None}


def boot_id() -> str | None:
    """Return the system's boot id; None if unknown."""
    return _boot_id(PROC)


@lru_cache(maxsize=4)
def _boot_id(proc: Path) -> str | None:
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


@lru_cache(maxsize=1)
def host_name() -> str:
    """Return this machine's name."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def has_proc() -> bool:
    """Return whether ``/proc`` lists processes, as on Linux."""
    return (PROC / "self/stat").exists()


def this_process() -> Process:
    """Return the current process."""
    return process_of(os.getpid())


def process_of(pid: int) -> Process:
    """Return a process of this machine by its number."""
    started = _start_ticks(pid) if has_proc() else _started_by_ps(pid)
    return Process(pid, host_name(), started, boot_id())


def is_alive(stored: Mapping[str, Any]) -> bool | None:
    """Return whether a stored process is running.

    Returns:
        None if unknown: it is on another machine, or no process is stored.
    """
    pid = stored.get("pid")
    if not isinstance(pid, int) or pid <= 0 or stored.get("host", host_name()) != host_name():
        return None
    if stored.get("boot", boot_id()) != boot_id():
        return False
    started = stored.get("started")
    if isinstance(started, int) and has_proc():
        return _start_ticks(pid) == started
    if not _exists(pid):
        return False
    if isinstance(started, str):
        told = _told_by_ps(pid)
        return True if told is None else started in told
    return _start_ticks(pid) is not None if has_proc() else True


def is_stopped(child: int) -> bool:
    """Return whether a child of this process was stopped, as by SIGSTOP, and not continued.

    Args:
        child: Its process id.
    """
    if sys.platform in ("win32", "darwin"):  # no signals there, no ``waitid`` in this Python
        return False
    try:
        return os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has ended
        return False


def _start_ticks(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None if it has ended."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    dead = len(fields) < 20 or fields[0] in "ZX"
    return None if dead else int(fields[19])


def _exists(pid: int) -> bool:
    if os.name == "nt":
        return _exists_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _exists_on_windows(pid: int) -> bool:
    """Check on Windows, where signal 0 is Ctrl+C and would end the process."""
    import ctypes

    kernel: Any = getattr(ctypes, "windll").kernel32  # noqa: B009 - only on Windows
    handle = kernel.OpenProcess(0x1000, False, pid)
    if not handle:
        return bool(kernel.GetLastError() == 5)  # access denied, so it exists
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == _STILL_ACTIVE


# Systems without /proc

_told: dict[int, tuple[float, frozenset[str] | None]] = {}


def _started_by_ps(pid: int) -> str | None:
    words = _ps(pid, utc=True)
    return words or None


def _told_by_ps(pid: int) -> frozenset[str] | None:
    """Return a process's start time as texts in UTC and local time.

    Returns:
        None if ``ps`` cannot be run; empty if the process has ended.
    """
    known = _told.get(pid)
    now = time.monotonic()
    if known is not None and now - known[0] < PS_HOLDS_S:
        return known[1]
    both = [_ps(pid, utc=utc) for utc in (True, False)]
    told = None if None in both else frozenset(words for words in both if words)
    if len(_told) > 256:
        _told.clear()
    _told[pid] = (now, told)
    return told


def _ps(pid: int, *, utc: bool) -> str | None:
    """Return a process's start time from ``ps``; "" if it has ended.

    Returns:
        None if ``ps`` cannot be run.
    """
    from store.system.programs import CommandLine, run  # only where there is no /proc

    environment = {**os.environ, "LC_ALL": "C"} | ({"TZ": "UTC0"} if utc else {})
    command = CommandLine.of("ps", "-o", "stat=", "-o", "lstart=", "-p").bare_operand(str(pid))
    try:
        done = run(command, environment=environment, given=b"", timeout_s=PS_TIMEOUT_S)
    except (Refused, TimeoutError):
        return None
    state, *words = done.output.decode("utf-8", "replace").split() or [""]
    return "" if state.startswith("Z") else " ".join(words)


# Locks


def lock_is_held(path: str) -> bool | None:
    """Return whether a process holds an exclusive ``flock`` on a file, without taking it.

    Trying the lock could make another process fail that wants it at the same moment.

    Returns:
        None if unknown: there is no such file, or the system has no such information.
    """
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None
    if sys.platform.startswith("linux"):
        return _held_by_proc(path, stat)
    return _held_by_getlk(path)


def _held_by_proc(path: str, stat: os.stat_result) -> bool | None:
    try:
        lines = (PROC / "locks").read_text().splitlines()
    except OSError:
        return None
    device = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}"
    for line in lines:
        fields = line.split()
        if "FLOCK" not in fields or "WRITE" not in fields or "->" in fields:
            continue
        place = fields[fields.index("WRITE") + 2]
        holder = fields[fields.index("WRITE") + 1]
        named, _, inode = place.rpartition(":")
        # On layered file systems the device listed here differs from the file's.
        if inode == str(stat.st_ino) and (named == device or _has_open(holder, stat)):
            return True
    return False


def _has_open(pid: str, stat: os.stat_result) -> bool:
    folder = PROC / pid / "fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            other = os.stat(folder / name)
        except OSError:
            continue
        if (other.st_dev, other.st_ino) == (stat.st_dev, stat.st_ino):
            return True
    return False


def _held_by_getlk(path: str) -> bool | None:
    """Return the answer of ``F_GETLK``, which covers ``flock`` on macOS and the BSDs."""
    try:
        import fcntl
        import struct
    except ImportError:
        return None
    # struct flock: start, len, pid, type, whence (Linux puts type and whence first).
    is_linux = sys.platform.startswith("linux")
    layout = "hhqqi4x" if is_linux else "qqihhi4x"
    asked = (fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0) if is_linux else (
        0, 0, 0, fcntl.F_RDLCK, os.SEEK_SET, 0)  # fmt: skip
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(layout, *asked))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    kind = struct.unpack(layout, answer)[0 if is_linux else 3]
    return bool(kind != fcntl.F_UNLCK)
