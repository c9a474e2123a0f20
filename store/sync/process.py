"""Runs a sync in a child process and yields its events, for asyncio programs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from store.engine.server_url import Root, ServerTrouble, ServerUrl
from store.errors import StoreError
from store.sync.progress import Progress, Summary
from store.sync.roots import passwords_for_child
from store.system.children import child_environment
from store.system.priority import NICE
from store.system.programs import CommandLine, start_piped, stop_piped

STOP_PATIENCE_S = 6.0
LINE_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Standby:
    """Another watcher of the store is running; this one waits for it to end."""


@dataclass(frozen=True, slots=True)
class Watching:
    """The first sync is done; the watcher now waits for changes."""


@dataclass(frozen=True, slots=True)
class Synced:
    """A watcher committed changes.

    Attributes:
        synced: Number of sessions that changed.
        session: The id of one of them.
        at: Epoch ms.
    """

    synced: int
    session: str
    at: int


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of a running session changed.

    Attributes:
        state: As in ``store.activity.judgement``; None if the process has ended.
        at: Epoch ms.
    """

    session: str
    state: str | None
    at: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """A watcher could not read or write; it keeps running and tries again."""

    message: str


@dataclass(frozen=True, slots=True)
class Server:
    """A server cannot be read or lets wait, or is read again.

    Attributes:
        server: Its URL, without a password.
        reason: Why; None once it is read again.
        since: Epoch ms.
    """

    server: str
    reason: str | None
    since: int


Event = Progress | Summary | Standby | Watching | Synced | Activity | Trouble | Server
_KINDS: dict[str, type[Event]] = {
    "progress": Progress, "summary": Summary, "standby": Standby, "watching": Watching,
    "synced": Synced, "activity": Activity, "trouble": Trouble,
    "server": Server,
}  # fmt: skip


def event_as_dict(event: Event) -> dict[str, Any]:
    """Return an event as the dict that the child printed."""
    return {"event": type(event).__name__.lower(), **asdict(event)}


class SyncProcess:
    """A running sync; iterate over it for its progress, then read ``summary``.

    Attributes:
        summary: Set when the sync has succeeded; a watcher keeps running after it.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Wrap a child process of ``start_sync``."""
        self._process = process
        self._stopping = False
        self.summary: Summary | None = None

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    async def __aiter__(self) -> AsyncIterator[Progress]:
        """Yield the child's progress until it ends.

        Raises:
            StoreError: It could not sync; the message is the child's.
        """
        async for event in self.events():
            if isinstance(event, Progress):
                yield event

    async def events(self) -> AsyncIterator[Event]:
        """Yield the child's events until it ends.

        Raises:
            StoreError: It could not sync; the message is the child's.
        """
        assert self._process.stdout is not None and self._process.stderr is not None
        errors = asyncio.ensure_future(self._process.stderr.read())
        message = None
        async for line in self._process.stdout:
            values: dict[str, Any] = orjson.loads(line)
            kind = values.pop("event")
            if kind == "error":
                message = values["message"]
                continue
            event = _KINDS[kind](**values)
            if isinstance(event, Summary):
                self.summary = event
            yield event
        said = (await errors).decode("utf-8", "replace").strip()
        code = await self._process.wait()
        if message is not None or (code and not self._stopping):
            last = said.splitlines()[-1] if said else _ended(code)
            raise StoreError(message or last)

    async def wait(self) -> Summary | None:
        """Wait for the end and return the summary; None if it was stopped before it had one.

        Raises:
            StoreError: It could not sync.
        """
        async for _ in self:
            pass
        return self.summary

    def read_first(self, session_id: str) -> None:
        """Ask for a session that is listed and not read yet, before all others."""
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(f"{session_id}\n".encode())

    async def stop(self) -> None:
        """Stop the sync; committed changes are kept."""
        if self._process.returncode is not None:
            return
        self._stopping = True
        await stop_piped(self._process, STOP_PATIENCE_S)


def _ended(code: int) -> str:
    if code > 0:
        return f"sync ended with code {code}"
    with contextlib.suppress(ValueError):
        return f"sync was ended by {signal.Signals(-code).name}"
    return f"sync was ended by signal {-code}"


async def start_sync(
    store_path: Path,
    targets: Sequence[Root] = (),
    *,
    kinds: Sequence[str] = (),
    watch: bool = False,
) -> SyncProcess:
    """Start a sync in a child process and return it.

    Args:
        store_path: The store; created if it is missing.
        targets: Folders, files and servers of sources; none means the default places.
        kinds: Only these sources; none means the enabled ones.
        watch: Whether to keep syncing changes until stopped. While another watcher of the
            same store runs, this one waits and takes over when it ends.

    Raises:
        ServerTrouble: A target is an invalid server URL.
    """
    for root in targets:
        if isinstance(root, ServerUrl) and root.fault is not None:
            raise ServerTrouble(root, root.fault)
    command = CommandLine.python("store.sync", "--json", "--until-stdin-closes")
    command = command.option("--store", str(store_path)).option("--nice", str(NICE))
    if watch:
        command = command.flag("--watch")
    for kind in kinds:
        command = command.option("--kind", kind)
    for target in targets:
        command = command.operand(str(target))
    process = await start_piped(
        command, environment=child_environment() | passwords_for_child(targets), limit=LINE_LIMIT
    )
    return SyncProcess(process)
