"""The store that the app shows: readable at once, and asynchronous as soon as it can be.

The first page of sessions is read on a plain connection, before asyncio and pydantic are
imported; ``ready`` then opens the ``Store``, and later reads go through its thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module

from store.engine.companions import same_file, signature
from store.engine.database import Database, open_database
from store.system.clock import Clock, system_clock
from store.system.records import record
from tui.state.limits import NO_LIMITS, Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from pathlib import Path
    from typing import Concatenate, ParamSpec, TypeVar

    from store.engine.server.watching import ServerWatch
    from store.engine.server_url import Root
    from store.store import Store
    from tui.start.making import Making

    P = ParamSpec("P")
    T = TypeVar("T")



@record
class Library:
    """An open store with its name.

    Attributes:
        database: The plain connection of the first paint; the poller keeps it.
        name: What the top line calls the store.
        notice: Shown once at the start, or None.
        headline: Shown above the panes until it is closed, or None.
        workspace: Shows the sessions of this folder alone; None shows all.
        making: What still fills the store while it is shown; None once it is complete.
        sync_targets: What the sync process reads; None starts none.
        is_synced: Whether the first sync of this run has ended, or none was to start.
        is_read_elsewhere: Whether another browser's watcher reads instead of one of this run.
        limits: What is off in this run of the browser.
        is_copy: Whether the file is a copy that Backscroll made in its cache folder: the demo, or
            what was read from a source.
        clock: Returns the present as epoch ms.
        is_slow: Whether its server took too long for a first page, as where a table is locked.
    """

    database: Database
    name: str
    notice: str | None = None
    headline: str | None = None
    workspace: str | None = None
    making: Making | None = None
    sync_targets: tuple[Root, ...] | None = None
    is_synced: bool = False
    is_read_elsewhere: bool = False
    limits: Limits = NO_LIMITS
    is_copy: bool = False
    clock: Clock = system_clock
    is_slow: bool = False
    _store: Store | None = None
    _server_watch: ServerWatch | None = None
    _one_opens: asyncio.Lock | None = None

    @classmethod
    def open(cls, path: str | Path, name: str, *, clock: Clock = system_clock) -> Library:
        """Open a store in a file for reading.

        Args:
            path: The file.
            name: What the top line calls it.
            clock: Returns the present as epoch ms.

        Raises:
            StoreError: The file is missing or is no store.
        """
        return cls(open_database(path, write=False), name, clock=clock)

    @classmethod
    def open_server(
        cls, url: str, name: str, *, clock: Clock = system_clock, migrates: bool = False
    ) -> Library:
        """Open a store on a server for reading.

        Args:
            url: Of its database.
            name: As in ``open``, like the clock.
            clock: Returns the present as epoch ms.
            migrates: Whether one of an older version is migrated, where its login may.

        Raises:
            StoreError: It cannot be opened.
        """
        open_target = import_module("store.engine.opening").open_target
        database = open_target(url)
        older, notice = database.form.older, None
        if database.server is not None and database.server.left_out:
            notice = f"{database.server}: {database.server.left_out}"
        if older is not None:
            if migrates:
                database.close()
                database = open_target(url, migrate_older=True)
            notice = database.file_read_only or (
                f"{name or database.name} was migrated from version {older} to"
                f" {database.form.version}; older versions of Backscroll only read it now")
        return cls(database, name, clock=clock, notice=notice)

    @property
    def path(self) -> Path:
        """The store's file."""
        return self.database.path

    @property
    def no_change(self) -> str | None:
        """Why no verb can be done to the store, None where they can."""
        return self.limits.read_only or self.database.file_read_only

    @property
    def rights(self) -> str | None:
        """What a server lets the login do with the store; None for a file."""
        return None if self.database.server is None else self.database.remote.rights

    @contextmanager
    def limited_s(self, seconds: float) -> Iterator[None]:
        """Break off what the plain connection reads from a server, after some time.

        Args:
            seconds: How long it may read.
        """
        if self.database.server is None:
            yield
            return
        threading = import_module("threading")
        ended, interrupt = threading.Event(), self.database.connection.interrupt

        def break_off() -> None:
            while not ended.wait(seconds):
                interrupt()  # Between two statements it does nothing.

        thread = threading.Thread(target=break_off, name="time limit", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @property
    def is_kept(self) -> bool:
        """Whether this run syncs the store and keeps its index.

        A copy of Backscroll's own is filled even where the browser is read only.
        """
        return self.limits.read_only is None or self.is_copy

    @property
    def reads(self) -> str:
        """What the first sync of this run reads; "" where it has ended or there is none."""
        if self.sync_targets is None or self.is_synced:
            return ""
        return self.name if self.is_copy else "your agents' sessions"

    @property
    def is_ready(self) -> bool:
        """Whether the asynchronous store is open."""
        return self._store is not None

    def _opening(self) -> asyncio.Lock:
        """Return the lock of whoever opens or closes connections."""
        import asyncio  # Here and below: the first rows do without it.

        if self._one_opens is None:
            self._one_opens = asyncio.Lock()
        return self._one_opens

    async def ready(self) -> Store:
        """Return the asynchronous store, opened when it was not yet."""
        async with self._opening():
            if self._store is None:
                import asyncio

                module = await asyncio.to_thread(import_module, "store.store")
                self._store = await module.Store.open(
                    self.path, clock=self.clock, read_only=self.limits.read_only)
            return self._store

    async def read(
        self, query: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query function on the store's reading thread and return its result.

        Args:
            query: The function; its first argument is the database.
            args: Its further positional arguments.
            kwargs: Its keyword arguments.
        """
        store = self._store or await self.ready()
        return await store.read(query, *args, **kwargs)

    async def reopen(self) -> None:
        """Open the plain connection again, as another file has taken the store's place.

        Raises:
            StoreError: What is there now is no store.
        """
        import asyncio

        opened = self.database.opened
        if opened is None or not same_file(opened.signature, signature(opened.path, opened.way)):
            fresh = await asyncio.to_thread(open_database, self.path, write=False)
            stale, self.database = self.database, fresh
            await asyncio.to_thread(stale.close)
            return
        # The same file with another -wal: whoever is open holds on to the one that is gone.
        async with self._opening(), self._store.none_open() if self._store else nullcontext():
            self.database.close()
            self.database = await asyncio.to_thread(open_database, self.path, write=False)

    def server_watch(self) -> ServerWatch | None:
        """Return what notices writes to a store on a server; None for a file."""
        if self.database.server is not None and self._server_watch is None:
            self._server_watch = import_module("store.engine.server.watching").watch(self.database)
        return self._server_watch

    async def close(self) -> None:
        """Close every connection and thread; one that is being opened is waited for."""
        if self.making is not None:
            self.making.stop()
        if self._server_watch is None:
            await self._close_store()
            self.database.close()
            return
        import asyncio

        # At once: each waits a while for a server that is silent.
        await asyncio.gather(
            self._close_store(), asyncio.to_thread(self._server_watch.close),
            asyncio.to_thread(self.database.close))

    async def _close_store(self) -> None:
        async with self._opening():
            if self._store is not None:
                await self._store.close()
