"""Processes that a server has started, and their end."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path


def is_there(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


async def gone(pid: int, seconds: float = 60) -> None:
    """Wait until a process has ended."""
    async with asyncio.timeout(seconds):
        while is_there(pid):
            await asyncio.sleep(0.01)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # A thread may end meanwhile.
            found += map(int, (task / "children").read_text().split())
    return found
