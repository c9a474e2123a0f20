"""The parts of the session list, each without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from store.errors import StoreError
from store.queries import list_keys, listing
from store.queries.listing import ListQuery, ListRow
from tests.tui.stores import NOW, Told, put
from tui.sessions.filter import ListFilter
from tui.sessions.jobs import Work
from tui.sessions.loader import ListLoader
from tui.sessions.order import AGAIN_EVERY_S, REPORTED_AFTER, STILL_S, LiveOrder
from tui.sessions.selection import Selection
from tui.sessions.turns import TurnCounter
from tui.state.library import Library


class FakeTimer:
    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


class FakeJobs:
    """Keeps work and timers until a test runs them."""

    def __init__(self) -> None:
        self.works: list[tuple[str, Work]] = []
        self.timers: list[tuple[float, Callable[[], object]]] = []
        self.reported: list[Exception] = []

    def start(self, work: Work, group: str) -> Any:
        self.works.append((group, work))

    def set_timer(self, delay: float, callback: Callable[[], object]) -> Any:
        self.timers.append((delay, callback))
        return FakeTimer()

    def report(self, error: Exception) -> None:
        self.reported.append(error)

    async def run(self) -> None:
        while self.works:
            await self.works.pop(0)[1]()


class FakeView:
    """Rows without a widget."""

    def __init__(self, rows: dict[int, ListRow]) -> None:
        self.rows = rows
        self.marked: set[int] = set()
        self.selected: int | None = next(iter(rows), None)
        self.drawn: list[int] = []

    def refresh(self) -> None:
        self.drawn.clear()

    def seen_rowids(self) -> list[int]:
        return list(self.rows)

    def rows_changed(self, rowids: Iterable[int]) -> None:
        self.drawn += rowids


def opened(path: Path, told: list[Told]) -> tuple[Library, dict[int, ListRow]]:
    library = Library.open(put(path, told), "test", clock=lambda: NOW)
    keys = list_keys.all_keys(library.database, ListQuery())
    return library, listing.rows_of(library.database, list(keys.rowids))


THREE = [Told("ses_a", "Retry loop"), Told("ses_b", "Retry again", age=2),
         Told("ses_c", "Dark theme", age=3)]


async def test_the_filter_finds_and_narrows(tmp_path: Path) -> None:
    library, _ = opened(tmp_path / "s.db", THREE)
    filter = ListFilter(ListLoader(library.path, library.clock))
    rowids = list_keys.all_keys(library.database, ListQuery()).rowids
    assert (filter.is_looking, filter.matched) == (False, None)
    filter.text = "retry"
    assert filter.is_looking
    found = [found async for found in filter.look(rowids)]
    assert found[-1] == ({1, 2}, None)
    filter.text = " Retry again"
    assert [found.matching async for found in filter.look(rowids)] == [{2}]
    assert (filter.matched, filter.is_looking) == ({2}, False)
    filter.forget()
    assert filter.is_looking
    await library.close()


async def test_the_selection_follows_and_marks(tmp_path: Path) -> None:
    library, rows = opened(tmp_path / "s.db", THREE)
    view, told = FakeView(rows), list[object]()
    selection = Selection(
        view, "ses_gone", selected=told.append, marked=lambda: told.append("marks"))
    assert (selection.id, selection.title, selection.workspace) == ("ses_a", "Retry loop", "/w/api")
    selection.follow("ses_a")
    selection.follow("ses_b")
    assert told == ["ses_b"]
    selection.toggle_mark()
    selection.mark([1, 2, 3], within={2, 3})
    assert selection.marks == {1, 2, 3}
    selection.toggle_mark()
    assert selection.marks == {2, 3}
    selection.clear_marks()
    assert not selection.marks and told[1:] == ["marks"] * 4
    await library.close()


def test_the_selection_remembers_while_nothing_is_read() -> None:
    selection = Selection(
        FakeView({}), "ses_a", selected=lambda _: None, marked=lambda: None)
    assert (selection.id, selection.row, selection.title) == ("ses_a", None, None)


async def test_turns_are_counted_where_they_are_seen_and_after_writes(tmp_path: Path) -> None:
    library, rows = opened(tmp_path / "s.db", THREE)
    view, jobs = FakeView(rows), FakeJobs()
    turns = TurnCounter(library, view, jobs)
    turns.count_scrolled()
    await jobs.run()
    assert [row.turns for row in rows.values()] == [0, 0, 0]
    turns.count_scrolled()
    assert not jobs.works
    turns.written(rows[1])
    turns.count_soon(rows.values())
    assert turns.is_due and len(jobs.timers) == 1
    view.drawn.clear()
    turns.count_now()
    await jobs.run()
    assert not turns.is_due and view.drawn[-1] == 1
    await library.close()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_the_order_waits_for_the_selection_and_tries_again() -> None:
    jobs, clock, reads = FakeJobs(), Clock(), list[float]()
    failing = False

    async def read() -> None:
        reads.append(clock.now)
        if failing:
            raise StoreError("busy")

    order = LiveOrder(read, lambda: True, jobs, clock)
    order.read_soon()
    await jobs.run()
    assert reads == [100.0] and not order.is_due
    order.selection_moved()
    order.read_soon()
    order.read_soon()
    assert order.is_due and round(jobs.timers[0][0], 3) == STILL_S
    clock.now += 1
    jobs.timers.pop()[1]()
    await jobs.run()
    assert reads == [100.0, 101.0] and not order.is_due
    failing = True
    order.read_now()
    for number in range(REPORTED_AFTER):
        assert not jobs.reported, number
        await jobs.run()
        clock.now += AGAIN_EVERY_S
        jobs.timers.pop()[1]()
    assert len(jobs.reported) == 1
    failing = False
    await jobs.run()
    assert not order.is_due


async def test_what_is_asked_while_the_order_is_read_is_read_once_more() -> None:
    jobs, clock = FakeJobs(), Clock()
    going, reads = asyncio.Event(), list[int]()

    async def read() -> None:
        reads.append(len(reads))
        await going.wait()

    order = LiveOrder(read, lambda: True, jobs, clock)
    order.read_now()
    running = asyncio.create_task(jobs.run())
    while not reads:
        await asyncio.sleep(0)
    order.read_soon()
    order.read_soon()
    going.set()
    await running
    assert reads == [0] and order.is_due
    clock.now += 1
    jobs.timers.pop()[1]()
    await jobs.run()
    assert reads == [0, 1] and not order.is_due
