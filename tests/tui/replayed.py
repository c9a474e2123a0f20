"""A small session whose parts have times of their own, and the replay of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.engine.database import open_database
from store.replay.player import Player
from tests.tui.seeded import START, Said, make_store, text, tool
from tests.tui.verbs_app import Running, drawn, running
from tui.replay.screen import ReplayScreen
from tui.state.limits import NO_LIMITS, Limits

WORDS = "twenty words of an answer " * 4
USED = {
    "usage": {"input": 1_000, "output": 200},
    "model": {"provider_id": "anthropic", "model_id": "claude-sonnet-4-5"},
}
TALK = [
    Said("user", [text("first prompt")], at=START),
    Said("assistant", [
        text(WORDS), tool("Bash", {"command": "make all"}, "it is built", call="c1"),
        text("That is done."),
    ], {**USED}, at=START + 5_000),
    Said("user", [text("second prompt")], at=START + 600_000),
    Said("assistant", [text("Second answer.")], {**USED}, at=START + 610_000),
]  # fmt: skip
TIMES = {
    (0, 0): (0, 0), (1, 0): (5_000, 15_000), (1, 1): (15_000, 75_000), (1, 2): (80_000, 80_000),
    (2, 0): (600_000, 600_000), (3, 0): (610_000, 612_000),
}
"""Begin and end of each part, ms after START, by message and index."""


def timed_store(
    path: Path, talk: list[Said] = TALK, times: dict[tuple[int, int], tuple[int, int]] = TIMES,
    session: dict[str, Any] | None = None,
) -> Path:
    """Write a session; parts that ``times`` names have those times."""
    make_store(path, talk, session=session)
    database = open_database(path)
    for (number, index), (begins, ends) in times.items():
        database.connection.execute(
            "UPDATE chat_parts SET created_at = ?, updated_at = ?"
            ' WHERE message_id LIKE ? AND "index" = ?',
            (START + begins, START + ends, f"%{number:024d}", index))
    database.close()
    return path


@dataclass
class Replayed:
    """A replay whose clock moves only when it is told to."""

    run: Running
    now: list[int]

    @property
    def screen(self) -> ReplayScreen:
        screen = self.run.app.screen
        assert isinstance(screen, ReplayScreen), (screen, self.run.told)
        return screen

    @property
    def player(self) -> Player:
        assert self.screen.player is not None
        return self.screen.player

    @property
    def at(self) -> int:
        """Ms after START."""
        return self.player.at - START

    @property
    def shown(self) -> str:
        return drawn(self.screen)

    @property
    def bar(self) -> list[str]:
        """The two lines of the position bar."""
        return self.shown.splitlines()[-3:-1]

    async def press(self, *keys: str) -> None:
        await self.run.press(*keys)

    async def pass_by(self, *milliseconds: int) -> None:
        """Let time go by, with a tick after each piece."""
        for each in milliseconds:
            self.now[0] += each
            self.screen.tick()
            await self.run.quiet()

    async def to(self, at: int) -> None:
        """Go to a moment, ms after START."""
        self.player.seek(START + at)
        self.screen.view.at_end = True
        await self.screen.show()
        await self.run.quiet()
        await self.screen.feed.show()
        await self.screen.inspector.settled()


@asynccontextmanager
async def replaying(
    path: Path, *, size: tuple[int, int] = (120, 40), limits: Limits = NO_LIMITS,
    keys: tuple[str, ...] = ("greater_than_sign",), paused: bool = True,
) -> AsyncIterator[Replayed]:
    async with running(path, size=size, limits=limits) as run:
        now = [run.app.library.clock()]
        run.app.library.clock = lambda: now[0]
        await run.press(*keys)
        found = Replayed(run, now)
        if paused and isinstance(run.app.screen, ReplayScreen):
            found.player.playing = False
            await found.screen.show()
        yield found
