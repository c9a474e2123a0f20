"""The parts of the session list, each without a screen."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from store.engine.changes import Moved
from store.errors import StoreError
from store.language.query import Query, parse
from store.queries import list_keys, listing
from store.queries.counting import beginnings, counts
from store.queries.listing import ListQuery, ListRow
from store.stats.costs import SessionCost
from tests.slow_opening import SlowOpening, is_closed
from tests.store.talks import Talk, make_store
from tests.tui.stores import NOW, Told, put
from tui.sessions import costs, live
from tui.sessions import turns as turns_module
from tui.sessions.contents import ListContents
from tui.sessions.filter import ListFilter
from tui.sessions.first_page import read_first_page
from tui.sessions.jobs import Work
from tui.sessions.loader import ListLoader
from tui.sessions.model import ListModel
from tui.sessions.order import AGAIN_EVERY_S, ORDER_SHARE, REPORTED_AFTER, STILL_S, LiveOrder
from tui.sessions.selection import Selection
from tui.sessions.turns import TurnCounter
from tui.state.library import Library
from tui.state.view_state import ViewState


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

    def later(self, seconds: float, callback: Callable[[], object]) -> Any:
        self.timers.append((seconds, callback))
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


class Matches:
    """Finds the first session at once, and the others with the second step."""

    clock = staticmethod(lambda: NOW)

    async def matches(
        self, rowids: Sequence[int], query: Query
    ) -> AsyncIterator[tuple[int, set[int]]]:
        yield 1, set(rowids[:1])
        yield len(rowids), set(rowids[:2])


async def test_a_narrower_filter_does_not_show_how_far_it_is() -> None:
    filter = ListFilter(Matches())  # type: ignore[arg-type]
    rowids = array("q", (1, 2, 3))
    filter.text = "retry"
    assert [found async for found in filter.look(rowids)] == [({1}, 1), ({1, 2}, None)]
    filter.text = "retry again"
    assert [found async for found in filter.look(rowids)] == [({1}, None), ({1, 2}, None)]


class ArrangedView(FakeView):
    """Shows a list without a widget."""

    def __init__(self, rows: dict[int, ListRow], model: ListModel) -> None:
        super().__init__(rows)
        self.model, self.when_empty = model, list[str]()

    def show(self, model: ListModel, query: ListQuery, rowid: int | None) -> None:
        self.model = model

    def select_rowid(self, rowid: int) -> None:
        self.selected = rowid


class ReadLibrary:
    """A library whose reads are interrupted by ``meanwhile``."""

    making = sync_targets = None

    def __init__(self, library: Library) -> None:
        self.database = library.database
        self.meanwhile: Callable[[], object] = lambda: None

    async def read(self, query: Callable[..., Any], *arguments: Any) -> Any:
        found = query(self.database, *arguments)
        self.meanwhile()
        return found


@asynccontextmanager
async def contents_of(
    path: Path,
) -> AsyncIterator[tuple[ListContents, ArrangedView, ReadLibrary]]:
    library, rows = opened(path, THREE)
    page = read_first_page(library, ViewState())
    view, read = ArrangedView(rows, page.model), ReadLibrary(library)
    loader = ListLoader(library.path, library.clock)
    selection = Selection(view, None, selected=lambda _: None, marked=lambda: None)
    yield ListContents(
        page, read, ViewState(), loader=loader, filter=ListFilter(loader),  # type: ignore[arg-type]
        view=view, selection=selection, jobs=FakeJobs(),  # type: ignore[arg-type]
        shown=lambda _: None, lifted=lambda *_: None, clear_filter=lambda: None), view, read
    await library.close()


async def test_a_selection_that_moves_while_the_list_is_read_stays(tmp_path: Path) -> None:
    async with contents_of(tmp_path / "s.db") as (contents, view, read):
        assert view.selected == 1
        read.meanwhile = lambda: setattr(view, "selected", 2)
        await contents.arrange(None)
        assert view.selected == 2


async def test_a_selection_that_was_not_told_of_yet_stays(tmp_path: Path) -> None:
    async with contents_of(tmp_path / "s.db") as (contents, view, _read):
        view.selected = 2
        await contents.arrange(None)
        assert view.selected == 2


async def test_the_last_session_that_is_asked_for_is_selected(tmp_path: Path) -> None:
    async with contents_of(tmp_path / "s.db") as (contents, view, read):
        contents.select_next("ses_b")
        read.meanwhile = lambda: contents.select_next("ses_c")
        await contents.arrange(None)
        assert view.selected == 2
        read.meanwhile = lambda: None
        await contents.arrange(None)
        assert view.selected == 3
        view.selected = 1
        await contents.arrange(None)
        assert view.selected == 1


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


async def test_costs_are_read_in_a_moment_and_again_until_they_are_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, rows = opened(tmp_path / "s.db", THREE)
    for row in rows.values():
        row.tokens = 5
    told, *others = rows.values()
    told.cost = 0.25
    view, jobs, asked = FakeView(rows), FakeJobs(), []
    counted_at = {row.id: row.updated_at for row in others}

    def read(path: Path, session_ids: list[str]) -> dict[str, SessionCost]:
        asked.append(session_ids)
        return {name: SessionCost(0.0, 0.5, 1, 1, 1, counted_at[name]) for name in session_ids}

    monkeypatch.setattr(costs, "_costs", read)
    reader = costs.ListCosts(library.path, view, jobs)
    reader.read_soon()
    reader.read_soon()
    assert reader.is_due and len(jobs.timers) == 1 and not jobs.works
    counted_at[others[0].id] -= 1
    jobs.timers.pop()[1]()
    await jobs.run()
    assert [row.own_cost for row in rows.values()] == [None, (0.5, True), (0.5, True)]
    assert view.drawn == [row.rowid for row in others]
    # One was counted before it was written to: it is looked at again.
    counted_at[others[0].id] += 1
    jobs.timers.pop()[1]()
    await jobs.run()
    reader.read_soon()
    assert not reader.is_due and not jobs.timers
    assert asked == [[row.id for row in others], [others[0].id]]
    others[1].updated_at += 1
    others[1].own_cost = None
    reader.fill(rows.values())
    assert others[1].own_cost == (0.5, True)
    reader.read_soon()
    assert reader.is_due
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


async def test_after_a_slow_read_the_order_is_left_alone_for_longer() -> None:
    jobs, clock = FakeJobs(), Clock()

    async def read() -> None:
        clock.now += 2

    order = LiveOrder(read, lambda: True, jobs, clock)
    order.read_now()
    await jobs.run()
    order.read_soon()
    assert round(jobs.timers[0][0], 3) == 2 * ORDER_SHARE


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


async def test_only_messages_that_changes_name_are_read_again(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "s.db", "own"))
    session = talk.session("Long")
    ids = [talk.message(session, "user" if number % 3 else "assistant") for number in range(40)]
    library = Library.open(tmp_path / "s.db", "test", clock=lambda: NOW)
    (row,) = listing.rows_of(library.database, [1]).values()
    view, jobs, chance = FakeView({1: row}), FakeJobs(), random.Random(7)
    turns = TurnCounter(library, view, jobs)
    turns.written(row)
    turns.count_now()
    await jobs.run()
    for _ in range(60):
        changed = {chance.choice(ids), talk.message(session)}
        ids += changed
        one, other = chance.sample(ids, 2)
        talk.db.connection.execute("DELETE FROM chat_messages WHERE id = ?", (one,))
        talk.db.connection.execute(
            "UPDATE chat_messages SET metadata_json = '{\"hidden_at\": 5}',"
            " created_at = created_at + ? WHERE id = ?",
            (chance.choice((0, 5_000)), other))
        changed |= {one, other}
        assert turns.tallied(Moved(sessions={session: changed})) == {session: changed}
        turns.renew(session, changed, beginnings(talk.db, {session: changed})[session])
        row = view.rows[1] = listing.rows_of(talk.db, [1], counted=False)[1]
        turns.written(row)
        assert not turns.is_due
        (fresh,) = listing.rows_of(talk.db, [1]).values()
        assert (row.messages, row.turns) == (
            fresh.messages, counts(talk.db, [session])[session].turns)
    # Where no message is named, nothing is known any more, and all are counted again.
    assert not turns.tallied(Moved(sessions={session: None}))
    turns.written(row)
    assert turns.is_due
    await library.close()
    talk.db.close()


async def test_a_write_before_messages_are_counted_costs_the_same_in_any_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "COUNTED_IN_A_READ", 5)
    steps: dict[int, list[int]] = {10: [], 300: []}
    for size, done in steps.items():
        talk = Talk(make_store(tmp_path / f"{size}.db", "own"))
        session = talk.session("Long")
        for number in range(size):
            talk.message(session, "assistant" if number % 2 else "user")
        library = Library.open(tmp_path / f"{size}.db", "test", clock=lambda: NOW)
        view, jobs = FakeView(listing.rows_of(library.database, [1])), FakeJobs()
        turns = TurnCounter(library, view, jobs)
        changed = Moved(sessions={session: {talk.message(session)}})
        turns.written(view.rows[1])
        assert not turns.tallied(changed)
        assert turns.counted_later([session]) == {session: size}
        library.database.file.set_progress_handler(partial(done.append, 1), 1)
        live._rows(library.database, [], {}, [session], NOW)
        library.database.file.set_progress_handler(None, 1)
        turns.count_now()
        await jobs.run()
        assert not turns.counted_later([session]) and turns.tallied(changed)
        assert view.rows[1].messages == size + 1 and view.rows[1].turns == size // 2 + 1
        await library.close()
        talk.db.close()
    assert len(steps[10]) == len(steps[300]) > 0


async def test_what_is_written_while_messages_are_counted_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "COUNTED_IN_A_READ", 5)
    talk = Talk(make_store(tmp_path / "s.db", "own"))
    session = talk.session("Long")
    first = [talk.message(session) for _ in range(12)][0]
    library = Library.open(tmp_path / "s.db", "test", clock=lambda: NOW)
    view, jobs = FakeView(listing.rows_of(library.database, [1])), FakeJobs()
    turns, reads = TurnCounter(library, view, jobs), 0
    read = library.read

    async def writing(_: Library, query: Any, *args: Any) -> Any:
        nonlocal reads
        found, reads = await read(query, *args), reads + 1
        if reads == 2:
            # The first page has the one that is hidden now, the last one has the new one.
            talk.db.connection.execute(
                "UPDATE chat_messages SET metadata_json = '{\"hidden_at\": 5}' WHERE id = ?",
                (first,))
            turns.tallied(Moved(sessions={session: {first, talk.message(session)}}))
        return found

    monkeypatch.setattr(Library, "read", writing)
    turns.written(view.rows[1])
    turns.count_now()
    await jobs.run()
    assert view.rows[1].turns == counts(talk.db, [session])[session].turns == 12
    assert reads == 4 and not turns.is_due
    await library.close()
    talk.db.close()


async def test_a_connection_that_nobody_waits_for_any_more_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a filter that changes while a server takes its time to answer."""
    path = tmp_path / "store.db"
    make_store(path, "own").close()
    slow = SlowOpening()
    opened = slow.opened
    monkeypatch.setattr("tui.sessions.loader.open_database", slow)
    loader = ListLoader(path, lambda: NOW)

    async def look() -> None:
        async for _ in loader.matches([1], parse("retry", now=NOW)):
            pass

    for work in (lambda: loader.keys(ListQuery()), look):
        task = asyncio.ensure_future(work())
        await asyncio.to_thread(slow.waits.wait)
        slow.waits.clear()
        task.cancel()
        await asyncio.wait([task])
        slow.go_on.set()
        async with asyncio.timeout(30):
            while not opened or not is_closed(opened[-1]):
                await asyncio.sleep(0.001)
        opened.clear()
        slow.go_on.clear()
