"""Brings what a sync has read from the library on this machine into the store of a team."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

from store.config import load_config
from store.copying.sharing import Shared, person_of, share
from store.engine.database import open_database
from store.engine.opening import open_target
from store.engine.server_url import server_url
from store.errors import BackscrollError
from store.system.priority import run_behind
from store.system.stopping import Stop
from store.text.figures import count_of
from tui.cli.copy import stopping
from tui.cli.output import Printer, note, print_json
from tui.cli.working import showing

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Between tries where the server does not answer; each pause is twice the last one."""
_RESTS, _LEAST_REST_S, _LONGEST_REST_S = 9, 0.2, 5.0
"""After a run, while a session grows: so many times as long as it took, and seconds.

A machine or server that others use makes a run longer, and gets fewer of them."""
_REPORTED = 5


class Team:
    """The store of a team, and the library whose sessions are brought there.

    Attributes:
        changed: Set when the library has changed; ``keep_sharing`` waits for it.
    """

    def __init__(self, url: str, library: Path, *, mask: bool) -> None:
        """Name both.

        Args:
            url: The store.
            library: The file on this machine.
            mask: False masks nothing.

        Raises:
            Refused: ``[masks]`` has a mistake, so that nothing may leave the machine.
        """
        self.url, self.library = url, library
        self.person = person_of(load_config(), library, mask=mask)
        self.changed = asyncio.Event()
        self._stop = Stop()

    def share(self, on_progress: Callable[[Shared], None] = lambda done: None) -> Shared:
        """Bring what changed in the library.

        Args:
            on_progress: Called after each session.

        Raises:
            StoreError: The server cannot be reached, or the connection is lost; what was brought
                is kept.
        """
        def bring() -> Shared:
            with (
                contextlib.closing(open_database(self.library, write=False)) as source,
                contextlib.closing(open_target(self.url, create=True, write=True)) as target,
            ):
                return share(
                    source, target, self.person, stopped=self._stop.is_set,
                    on_progress=on_progress)

        return run_behind(bring)

    def share_shown(self) -> Shared:
        """Bring what changed, showing on a terminal how far it is; Ctrl+C stops it."""
        with stopping() as self._stop, showing() as shown:
            found = self.share(lambda one: shown("bringing to the server", one.done, one.total))
        self._report(found)
        return found

    async def keep_sharing(self, *, as_json: bool) -> None:
        """Bring what changes until cancelled; waits where the server does not answer.

        Args:
            as_json: Print one object for each run that brought something.
        """
        pause, said = FIRST_PAUSE_S, ""
        try:
            while True:
                await self.changed.wait()
                self.changed.clear()
                began = time.monotonic()
                try:
                    found = await asyncio.to_thread(self.share)
                except BackscrollError as error:
                    if str(error) != said:
                        note(f"{error}; what changed waits in your library, and is tried again")
                    said = str(error)
                    self.changed.set()
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE_S)
                    continue
                if said:
                    note(f"{server_url(self.url) or self.url} answers again")
                pause, said = FIRST_PAUSE_S, ""
                self._tell(found, as_json=as_json)
                rest = _RESTS * (time.monotonic() - began)
                await asyncio.sleep(min(max(rest, _LEAST_REST_S), _LONGEST_REST_S))
        finally:
            self._stop.set()

    def _tell(self, found: Shared, *, as_json: bool) -> None:
        self._report(found)
        if not (found.new or found.updated):
            return
        if as_json:
            print_json({"event": "shared", **found.as_dict()})
        else:
            printer = Printer()
            printer.line(printer.paint(self.sentence(found)))
        sys.stdout.flush()

    def sentence(self, found: Shared) -> str:
        """Return what a run has done.

        Args:
            found: Its result.
        """
        return (f"{count_of(found.new, 'new session')} and {found.updated:,} changed brought to "
                f"{server_url(self.url) or self.url} as {self.person.owner}")

    def _report(self, found: Shared) -> None:
        for what in (found.failed, found.skipped):
            for session_id, reason in list(what.items())[:_REPORTED]:
                note(f"{session_id} was not brought to the server: {reason}")
            if (more := len(what) - _REPORTED) > 0:
                note(f"{more:,} more were not brought to the server; --json names them")
        if found.stopped:
            note("Stopped. What was brought to the server is kept; the next sync goes on.")
