"""Processes that sessions belong to, told apart from others with the same number."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple


class Process(NamedTuple):
    """A process, so that another with the same number is not taken for it.

    Attributes:
        started: Ticks since boot at its start, where the system tells.
        boot: The id of the system's run, where the system tells.
    """

    pid: int
    host: str
    started: int | None = None
    boot: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what ``metadata_json.activity`` holds of it."""
        found = {"pid": self.pid, "host": self.host, "started": self.started, "boot": self.boot}
        return {key: value for key, value in found.items() if value is not None}


@lru_cache(maxsize=1)
def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


@lru_cache(maxsize=1)
def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _start_ticks(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    dead = not fields or fields[0] in "ZX"
    return None if dead else int(fields[19])


def this_process() -> Process:
    """Return the process that asks."""
    pid = os.getpid()
    return Process(pid, _host(), _start_ticks(pid), _boot_id())


def is_alive(stored: Mapping[str, Any]) -> bool | None:
    """Tell whether a stored process runs.

    Returns:
        None where that cannot be told from here: another machine, or no process stored.
    """
    pid = stored.get("pid")
    if not isinstance(pid, int) or pid <= 0 or stored.get("host", _host()) != _host():
        return None
    if stored.get("boot", _boot_id()) != _boot_id():
        return False
    started = stored.get("started")
    if isinstance(started, int):
        return _start_ticks(pid) == started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
