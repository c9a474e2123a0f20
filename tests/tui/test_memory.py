"""What the browser holds does not grow with what it has shown.

Counted are the blocks of memory that Python has given out, after rounds of the same size. Caches
are made small, so that they are full after the first rounds, and those of functions are emptied
before each count. ``python -m pytest -m long`` runs the long form: a thousand sessions opened in
turn, an hour of lines at ten a second, two hundred searches.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.strip import Strip

from store.config import Settings
from tests.store.talks import Talk, make_store
from tests.tui.live import NOW
from tests.tui.workers import workers_done
from tui.app import BackscrollApp
from tui.dialogs.frame import Dialog
from tui.search.screen import SearchScreen
from tui.sessions import turns
from tui.sessions import view as list_view
from tui.state import places, view_state
from tui.state.library import Library
from tui.transcript import document
from tui.transcript import view as transcript_view

ROUNDS = 5
FEW, MANY = 100, 30
"""Blocks that may stay of each of few and of many; a transcript that is held has over 600."""
OF_A_LINE, AT_ALL, ONCE = 1.5, 3_000, 5_000
"""The open session holds the id of each message, and no more than one that was just opened.

What is held besides would be another whole block of each line, or more, and dozens of what was
drawn. A table of prices is read once, at some moment.
"""
LEAST_AT_ONCE, MOST_POLLS = 20, 120
LOG = "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, ?)"
_FROZEN_CACHES: list[object] = []
"""Those of modules: the collector leaves them out, as all that it had frozen."""


@pytest.fixture(scope="module", autouse=True)
def _frozen_caches() -> None:
    gc.unfreeze()
    _FROZEN_CACHES[:] = (
        one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper))
    gc.freeze()


@pytest.fixture(autouse=True)
def _small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, limit in (
        (list_view, "CACHED_ROWS", 30), (list_view, "DRAWN_LINES", 30),
        (transcript_view, "PAINTED_LINES", 30), (document, "ROW_BYTES", 2_000),
        (document, "LAID_LINES", 30), (document, "LEAST", 40),
        (places, "MOST_VISITS", 3), (turns, "BUCKETS", 30), (view_state, "MOST_PLACES", 3),
    ):
        monkeypatch.setattr(module, name, limit)


def store_of(path: Path, sessions: int) -> tuple[Talk, list[str]]:
    """Make a store of sessions that say the same; return their ids."""
    talk, made = Talk(make_store(path, "own")), []
    for number in range(sessions):
        session = talk.session("Talk", workspace_root=f"/w/{number % 7}")
        for turn in range(4):
            talk.message(session, text=f"Question {turn}")
            talk.message(session, "assistant", parts=[
                {"type": "text", "text": f"Answer **{turn}**. " * 9},
                {"type": "tool-Bash", "toolCallId": f"t{number}-{turn}",
                 "state": "output-available", "input": {"command": f"run {turn}"},
                 "output": "a line\n" * 9},
            ])
        made.append(session)
    return talk, made


async def rested(app: BackscrollApp, pilot: Pilot[None]) -> None:
    await pilot.pause()
    await workers_done(app)
    await pilot.pause()


@asynccontextmanager
async def browsing(
    path: Path, *, notifications: bool = False
) -> AsyncIterator[tuple[BackscrollApp, Pilot[None]]]:
    library = Library.open(path, "test", clock=lambda: NOW)
    app = BackscrollApp(library, Settings(), poll_ms=0)
    async with app.run_test(size=(150, 40), notifications=notifications) as pilot:
        await rested(app, pilot)
        yield app, pilot


def blocks() -> int:
    """Return the blocks of memory that are held, those of functions' caches left out."""
    for _ in range(2):  # What is let go of for the first time lets go of more.
        for one in (*_FROZEN_CACHES, *gc.get_objects()):
            if isinstance(one, functools._lru_cache_wrapper):
                one.cache_clear()
        gc.collect()
    return sys.getallocatedblocks()


async def growth(rounds: Callable[[int], Awaitable[None]], each: int) -> float:
    """Return the blocks that stay of each thing, in all rounds but one and the ones with most.

    What leaks stays in each round; what a round holds besides depends on how fast it was.
    """
    counts = []
    for number in range(ROUNDS):
        await rounds(number)
        counts.append(blocks())
    return sorted(later - before for before, later in pairwise(counts))[1] / each


@pytest.mark.parametrize(
    ("opened", "most"), [(8, FEW), pytest.param(250, MANY, marks=pytest.mark.long)])
async def test_sessions_that_are_opened_in_turn(tmp_path: Path, opened: int, most: int) -> None:
    talk, sessions = store_of(tmp_path / "s.db", ROUNDS * opened)
    talk.db.close()
    async with browsing(tmp_path / "s.db") as (app, pilot):

        async def open_some(number: int) -> None:
            for session in sessions[number * opened:(number + 1) * opened]:
                app.main.open_session(session)
                await rested(app, pilot)

        assert await growth(open_some, opened) < most


@pytest.mark.parametrize(("lines", "logged"), [
    (240, True), (240, False), pytest.param(36_000, True, marks=pytest.mark.long)])
async def test_lines_that_are_followed(tmp_path: Path, lines: int, logged: bool) -> None:
    talk, (session, other) = store_of(tmp_path / "s.db", 2)
    at_once = max(LEAST_AT_ONCE, lines // MOST_POLLS)
    async with browsing(tmp_path / "s.db") as (app, pilot):
        app.main.open_session(session)
        await rested(app, pilot)

        async def follow(number: int) -> None:
            for line in range(number):
                came = talk.message(session, "assistant", text=f"Line {line % 10} of what came in")
                if logged:  # As our own writers do; hosts do not.
                    talk.db.connection.execute(LOG, (session, came, talk.now))
                if line % at_once == at_once - 1:
                    app.main.watcher.poller.poll(file=True)
                    await app.main.watcher.follow()
                    await workers_done(app)
            await rested(app, pilot)

        await follow(lines // 4)
        before = blocks()
        await follow(lines)
        followed = blocks()
        assert followed - before < OF_A_LINE * lines + ONCE
        # As much as a session of that length holds that was just opened.
        for opened in (other, session):
            app.main.open_session(opened)
            await rested(app, pilot)
        assert followed - blocks() < AT_ALL
    talk.db.close()


@pytest.mark.parametrize(
    ("searches", "most"), [(4, FEW), pytest.param(50, MANY, marks=pytest.mark.long)])
async def test_searches_one_after_the_other(tmp_path: Path, searches: int, most: int) -> None:
    talk, _sessions = store_of(tmp_path / "s.db", 5)
    talk.db.close()
    async with browsing(tmp_path / "s.db") as (app, pilot):
        async def search_some(number: int) -> None:
            app.open_search("Answer")
            await rested(app, pilot)
            for turn in range(searches):
                assert isinstance(app.screen, SearchScreen)
                app.screen.ask(("Answer", "Question", "run")[turn % 3])
                await rested(app, pilot)
            # What the closed screen has drawn goes with it.
            await pilot.press("escape", "escape")
            await rested(app, pilot)
            assert app.screen is app.main

        assert await growth(search_some, searches) < most


async def test_dialogs_and_toasts_leave_nothing_that_was_drawn(tmp_path: Path) -> None:
    talk, (session,) = store_of(tmp_path / "s.db", 1)
    talk.db.close()

    def drawn() -> int:
        """Return how many lines there are, whoever holds them."""
        gc.collect()
        return sum(isinstance(one, Strip) for one in gc.get_objects())

    async with browsing(tmp_path / "s.db", notifications=True) as (app, pilot):
        app.main.open_session(session)
        await rested(app, pilot)
        counts = []
        for number in range(8):
            await pilot.press("2", "G", "f")
            await pilot.pause()
            assert isinstance(app.screen, Dialog)
            await pilot.press("escape")
            app.notify(f"Toast {number}")
            await rested(app, pilot)
            app.close_toasts()
            app.notify("The last")
            await rested(app, pilot)
            app.close_toasts()
            await rested(app, pilot)
            counts.append(drawn())
    # In four rounds; a dialog draws the 40 lines of the screen, and a toast three.
    assert counts[-1] - counts[3] < 20
