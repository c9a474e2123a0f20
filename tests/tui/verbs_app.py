"""The whole app on a small store, for the tests of its verbs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from store.engine.database import Database, open_database
from tests.tui.stores import browser
from tests.tui.workers import inputs_done
from tui.app import BackscrollApp
from tui.dialogs.frame import Dialog
from tui.sessions.pane import SessionsPane
from tui.state.limits import NO_LIMITS, Limits
from tui.transcript.pane import TranscriptPane

MOST_PAUSES = 3_000


@dataclass
class Running:
    app: BackscrollApp
    pilot: Pilot[None]
    told: list[str]

    @property
    def sessions(self) -> SessionsPane:
        return self.app.main.sessions

    @property
    def transcript(self) -> TranscriptPane:
        assert self.app.main.transcript is not None
        return self.app.main.transcript

    @property
    def last(self) -> str:
        return self.told[-1] if self.told else ""

    def dialog(self) -> str:
        """The text of the dialog that is open."""
        screen = self.app.screen
        assert isinstance(screen, Dialog), (screen, self.told, list(self.app.workers))
        return drawn(screen)

    async def quiet(self) -> None:
        """Wait until nothing runs, but for a verb that waits for its dialog."""
        for _ in range(MOST_PAUSES):
            await inputs_done(self.app)
            await self.pilot.pause()
            asking = isinstance(self.app.screen, Dialog)
            busy = [
                worker for worker in self.app.workers
                if not worker.is_finished and not (asking and worker.group == "verb")
            ]
            if not busy:
                await self.pilot.pause()
                return
        raise AssertionError(f"still busy: {busy}")

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.quiet()

    async def open(self, session_id: str, message_id: str | None = None) -> None:
        self.app.open_session(session_id, message_id)
        await self.quiet()


def drawn(screen: Any) -> str:
    """What a screen shows, line by line."""
    width, height = screen.size
    rows = []
    for strips in screen._compositor.render_strips():
        rows.append("".join(segment.text for segment in strips).rstrip())
    assert width and height
    return "\n".join(rows)


@asynccontextmanager
async def running(
    path: Path, size: tuple[int, int] = (160, 40), limits: Limits = NO_LIMITS
) -> AsyncIterator[Running]:
    app = browser(path, limits=limits)
    told: list[str] = []
    notify = app.notify

    def kept(message: str, **more: Any) -> None:
        # Toasts go away with time; what they said is wanted however long a test takes.
        told.append(message)
        notify(message, **more)

    app.notify = kept  # type: ignore[method-assign]
    async with app.run_test(size=size) as pilot:
        run = Running(app, pilot, told)
        for _ in range(MOST_PAUSES):
            await run.quiet()
            if app.main.transcript is not None and app.library.is_ready:
                break
        await run.quiet()
        yield run
        await run.quiet()


@asynccontextmanager
async def written(path: Path) -> AsyncIterator[Database]:
    """The file, open for writing beside the app."""
    database = open_database(path)
    try:
        yield database
    finally:
        database.close()


def query(path: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    database = open_database(path, write=False)
    try:
        return database.connection.execute(sql, values).fetchall()
    finally:
        database.close()
