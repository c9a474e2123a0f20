"""Runs the upkeep of a store in a child process and yields its events, for asyncio programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from store.engine.server_url import ServerUrl
from store.errors import StoreError
from store.system.children import child_environment
from store.system.programs import CommandLine, start_piped, stop_piped

NICE = 10
STOP_PATIENCE_S = 6.0
SERVER_PATIENCE_S = 1.0
"""A silent server would keep it from ending; what it has done stands on the server."""
_LINE_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class Indexed:
    """How far the index is.

    Attributes:
        messages: Messages and titles in the index.
        total: Messages in the store.
        whole: Whether everything is in the index.
    """

    messages: int
    total: int
    whole: bool


@dataclass(frozen=True, slots=True)
class UpkeepStandby:
    """Another process keeps a file; this one waits for it to end."""


@dataclass(frozen=True, slots=True)
class UpkeepTrouble:
    """The upkeep has to wait, for example for room on the disk."""

    message: str


UpkeepEvent = Indexed | UpkeepStandby | UpkeepTrouble
_KINDS: dict[str, type[UpkeepEvent]] = {
    "progress": Indexed, "standby": UpkeepStandby, "trouble": UpkeepTrouble,
}  # fmt: skip


class UpkeepProcess:
    """A running upkeep."""

    def __init__(self, process: asyncio.subprocess.Process, patience_s: float) -> None:
        """Wrap a child process of ``start_upkeep``.

        Args:
            process: The process.
            patience_s: It is killed if it has not ended so many seconds after it was told to.
        """
        self._process, self._patience_s = process, patience_s
        self._stopping = False

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    async def events(self) -> AsyncIterator[UpkeepEvent]:
        """Yield the child's events until it ends.

        Raises:
            StoreError: It failed; the message is the last line of its stderr.
        """
        assert self._process.stdout is not None and self._process.stderr is not None
        errors = asyncio.ensure_future(self._process.stderr.read())
        async for line in self._process.stdout:
            values = orjson.loads(line)
            yield _KINDS[values.pop("event")](**values)
        said = (await errors).decode("utf-8", "replace").strip()
        code = await self._process.wait()
        reason = said.splitlines()[-1] if said else f"it ended with code {code}"
        # Ctrl+C reaches a child too, maybe before it handles it.
        if code and not self._stopping and reason != "KeyboardInterrupt":
            raise StoreError(f"the search index and the statistics could not be kept: {reason}")

    async def stop(self) -> None:
        """Stop the upkeep; what it has done is kept."""
        if self._process.returncode is not None:
            return
        self._stopping = True
        await stop_piped(self._process, self._patience_s)


async def start_upkeep(store: Path | ServerUrl, *, once: bool = False) -> UpkeepProcess:
    """Start the upkeep of a store in a child process and return it.

    A URL goes through the process's standard input, as it may have a password, and everybody
    on the machine can read the arguments of a process.

    Args:
        store: The store's file, or its URL on a server.
        once: Whether to end when the files are up to date, instead of following changes.
    """
    command = CommandLine.python(
        "store.upkeep", "--json", "--until-stdin-closes"
    ).option("--nice", str(NICE))  # fmt: skip
    if once:
        command = command.flag("--once")
    on_server = isinstance(store, ServerUrl)
    process = await start_piped(
        command.flag("--url-from-stdin") if on_server else command.operand(str(store)),
        environment=child_environment(), limit=_LINE_LIMIT)
    if isinstance(store, ServerUrl):
        assert process.stdin is not None
        process.stdin.write(orjson.dumps(store.dsn) + b"\n")
    return UpkeepProcess(process, SERVER_PATIENCE_S if on_server else STOP_PATIENCE_S)
