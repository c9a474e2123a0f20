"""The parts of the transcript pane, without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from textual.message import Message
from textual.timer import Timer

from store.queries.sessions import get
from store.store import Store
from tests.tui.seeded import SESSION, Said, long_talk, make_store, text, tool
from tui.messages import PartSelected
from tui.transcript.finder import Finder
from tui.transcript.folds import Folds
from tui.transcript.navigator import Navigator
from tui.transcript.new_below import NewBelow
from tui.transcript.place import place_of
from tui.transcript.placement import NeedsFullLoad, Placement
from tui.transcript.prompt import Prompt
from tui.transcript.reader import SessionReader
from tui.transcript.selected import SelectedPart
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.snapshot import ViewportSnapshot
from tui.transcript.view import TranscriptView

NOW = 1_796_000_000_000
HEIGHT = 12


class IdleTimer:
    """A timer that never fires by itself."""

    def stop(self) -> None: ...


class Services:
    """A pane without a screen: keeps what its parts ask for."""

    def __init__(self) -> None:
        self.works: list[asyncio.Task[None]] = []
        self.posted: list[Message] = []
        self.toasts: list[str] = []
        self.headings = 0

    def background(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        self.works.append(asyncio.get_running_loop().create_task(work()))

    def cancel(self, group: str) -> None: ...

    def in_thread(self, work: Callable[[], None]) -> None: ...

    def update_headings(self) -> None:
        self.headings += 1

    def toast(
        self, text: str, severity: Literal["information", "warning", "error"] = "information",
        timeout: float | None = None,
    ) -> None:
        self.toasts.append(text)

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Timer:
        return IdleTimer()  # type: ignore[return-value]

    def set_interval(self, interval: float, callback: Callable[[], Any]) -> Timer:
        return IdleTimer()  # type: ignore[return-value]

    def call_after_refresh(self, callback: Callable[..., Any]) -> bool:
        return True

    def post_message(self, message: Message) -> bool:
        self.posted.append(message)
        return True

    async def done(self) -> None:
        while self.works:
            await self.works.pop()


@dataclass
class Parts:
    shown: ShownSession
    services: Services = field(default_factory=Services)

    def __post_init__(self) -> None:
        pane: PaneServices = self.services
        self.selected = SelectedPart(self.shown, pane)
        self.placement = Placement(self.shown, pane, self.selected)
        self.navigator = Navigator(self.shown, pane, self.placement)
        self.folds = Folds(self.shown, pane, self.placement)
        self.finder = Finder(self.shown, pane, self.placement, Prompt())
        self.new_below = NewBelow(self.shown)

    @property
    def top(self) -> tuple[int, int]:
        return self.shown.view.scroller.part, self.shown.view.scroller.line


@asynccontextmanager
async def opened(tmp_path: Path, said: list[Said]) -> AsyncIterator[Parts]:
    """The parts on a session that is shown at its end."""
    store = await Store.open(make_store(tmp_path / "s.db", said), clock=lambda: NOW)
    try:
        row = await store.read(get, SESSION)
        assert row is not None
        parts = Parts(ShownSession(TranscriptView()))
        reader = parts.shown.reader = SessionReader(store, row)
        view = parts.shown.view
        view.show(await reader.open(parts.shown.setting(), None, at_end=True))
        view.scroller.height = HEIGHT
        await parts.placement.settle(view.step_to_end, sure=False)
        yield parts
    finally:
        await store.close()


async def test_pages_there_and_back_show_the_same_line(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(12)) as parts:
        assert parts.shown.document.complete and parts.shown.view.at_end
        end = parts.top
        for _ in range(5):
            await parts.navigator.page(-1)
        assert parts.top < end and not parts.shown.view.at_end
        for _ in range(5):
            await parts.navigator.page(1)
        assert parts.top == end


async def test_a_step_is_taken_again_once_its_rows_are_loaded(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(12)) as parts:
        wanted = []
        for drop in (False, True):
            await parts.navigator.end()
            if drop:
                parts.shown.document.keep_rows(())
            await parts.navigator.turn(-1)
            await parts.navigator.turn(-1)
            wanted.append((parts.top, parts.shown.cursor))
        assert wanted[0] == wanted[1]
        assert parts.shown.document.skeleton.roles[
            parts.shown.document.skeleton.message[parts.shown.cursor]] == "user"


async def test_a_step_outside_the_window_waits_for_the_whole_session(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(12)) as parts:
        parts.shown.document.complete = False
        seen = []

        def step() -> str:
            seen.append(parts.shown.document.complete)
            if not parts.shown.document.complete:
                raise NeedsFullLoad
            return "there"

        async def whole() -> None:
            parts.shown.document.complete = True

        parts.placement.until_whole = whole  # type: ignore[method-assign]
        assert await parts.placement.move(step) == "there"
        assert seen == [False, True]


async def test_a_step_is_not_taken_in_another_session(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(2)) as parts:
        async with parts.placement.moving:
            move = asyncio.ensure_future(parts.placement.move(lambda: "moved"))
            await asyncio.sleep(0)
            reader = parts.shown.reader
            assert reader is not None
            parts.shown.reader = SessionReader(reader.store, reader.row)
        assert await move is None


async def test_ends_of_a_kind_are_reported(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(2)) as parts:
        await parts.navigator.error(-1)
        await parts.navigator.turn(1)
        await parts.navigator.start()
        await parts.navigator.message(-1)
        assert parts.services.toasts == [
            "No error before this", "This is the last turn", "This is the first message"]


async def test_folds_go_through_levels_that_look_different(tmp_path: Path) -> None:
    output = "\n".join(f"row {n}" for n in range(30))
    said = [Said("user", [text("go")]), Said("assistant", [tool("Bash", {"command": "a"}, output)])]
    async with opened(tmp_path, said) as parts:
        key = parts.shown.document.skeleton.key(1)
        heights = []
        for level in ("whole", "off", "short"):
            await parts.folds.fold(1)
            assert parts.shown.document.folds[key] == level
            heights.append(parts.shown.document.height(1))
        assert heights[0] > heights[2] > heights[1]
        await parts.folds.cycle_tools()
        assert key not in parts.shown.document.folds
        assert parts.services.toasts == ["Tool outputs: whole"]


async def test_a_part_that_is_opened_from_its_middle_shows_its_head(tmp_path: Path) -> None:
    output = "\n".join(f"row {n}" for n in range(60))
    said = [Said("user", [text("go")]), Said("assistant", [tool("Bash", {"command": "a"}, output)]),
            *long_talk(4)]
    async with opened(tmp_path, said) as parts:
        view, document = parts.shown.view, parts.shown.document
        view.scroller.to(1, document.height(1) - 1)
        await parts.folds.fold(1)
        block = document.block(1)
        assert block is not None and parts.top == (1, block.top)


async def test_reasoning_is_opened_without_the_folds_of_tool_calls(tmp_path: Path) -> None:
    output = "\n".join(f"row {n}" for n in range(30))
    said = [Said("user", [text("go")]), Said("assistant", [
        {"type": "reasoning", "text": "first\n\nsecond\n\nthird"},
        tool("Bash", {"command": "a"}, output)])]
    async with opened(tmp_path, said) as parts:
        document = parts.shown.document
        await parts.folds.fold(1)
        await parts.folds.fold(2)
        reasoning, call = document.skeleton.key(1), document.skeleton.key(2)
        assert (document.folds[reasoning], document.folds[call]) == ("whole", "whole")
        await parts.folds.toggle_reasoning()
        assert document.folds == {call: "whole"} and parts.shown.reasoning == "whole"


async def test_a_position_whose_row_is_missing_is_found_once_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TranscriptView, "text_selection", None)  # A screen has it.
    said = [Said("user", [text("\n".join(f"line {n}" for n in range(40)))]), *long_talk(6)]
    async with opened(tmp_path, said) as parts:
        await parts.navigator.start()
        await parts.navigator.page(1)
        view, top = parts.shown.view, parts.top
        snapshot = ViewportSnapshot.of(view)
        parts.shown.document.keep_rows(())
        snapshot.restore(view)
        assert view.scroller.pending is not None and parts.top != top
        await parts.placement.stay()
        assert view.scroller.pending is None and parts.top == top


TWICE = [Said("user", [text("go")]),
         Said("assistant", [tool("Bash", {"command": "a"}, "a row\n" * 20 + "needle\n" * 2)]),
         Said("user", [text("needle again")])]


async def test_the_hit_before_is_the_last_one_of_its_part(tmp_path: Path) -> None:
    async with opened(tmp_path, TWICE) as parts:
        parts.finder.start("needle")
        await parts.services.done()
        assert parts.shown.view.hit == (2, 0)
        hits = []
        for _ in range(3):
            await parts.finder.step(-1)
            hits.append(parts.shown.view.hit)
        assert hits == [(1, 1), (1, 0), (2, 0)]


async def test_a_part_that_was_folded_since_its_hit_stays_as_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path, TWICE) as parts:
        await parts.navigator.start()
        parts.finder.start("needle")
        await parts.services.done()
        document = parts.shown.document
        key = document.skeleton.key(1)
        assert parts.shown.view.hit == (1, 0) and document.folds[key] == "whole"
        await parts.folds.fold(1)
        chosen = document.folds[key]
        assert chosen != "whole" and parts.finder.end()
        assert document.folds[key] == chosen


async def test_hits_open_what_hides_them_and_close_it_again(tmp_path: Path) -> None:
    output = "\n".join(f"row {n}" for n in range(30))
    said = [Said("user", [text("go")]), Said("assistant", [tool("Bash", {"command": "a"}, output)]),
            Said("user", [text("and row 29 again")])]
    async with opened(tmp_path, said) as parts:
        await parts.navigator.start()
        folded = parts.shown.document.height(1)
        parts.finder.start("row 29")
        await parts.services.done()
        search = parts.shown.search
        assert search is not None and (search.number, search.total) == (1, 2)
        assert parts.shown.cursor == 1 and parts.shown.document.height(1) > folded
        await parts.finder.step(1)
        assert parts.shown.cursor == 2 and parts.shown.document.height(1) == folded
        assert parts.finder.end() and not parts.finder.end()
        assert parts.finder.has_needle


async def test_those_who_wait_for_a_hit_go_on_when_the_search_ends(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(2)) as parts:
        parts.finder.start("Prompt")
        wait = asyncio.ensure_future(parts.shown.first_hit())
        await asyncio.sleep(0)
        parts.shown.forget_search()
        await wait
        await parts.services.done()


async def test_new_parts_below_are_counted_once_the_end_was_left(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(4)) as parts:
        parts.new_below.note()
        assert parts.new_below.count() == 0
        await parts.navigator.start()
        parts.new_below.note()
        assert parts.new_below.count() == 0
        document = parts.shown.document
        document.regrow(len(document.skeleton.message_ids), await more_outlines(parts))
        parts.new_below.note()
        assert parts.new_below.count() == 5
        parts.shown.view.step_to_end()
        parts.new_below.note()
        assert parts.new_below.count() == 0


async def more_outlines(parts: Parts) -> list[Any]:
    """Outlines of one turn, under ids of their own."""
    from store.queries.transcript import outline_page

    reader = parts.shown.reader
    assert reader is not None
    found = await reader.store.read(outline_page, SESSION, None, 2)
    return [outline._replace(message_id=f"{outline.message_id}b") for outline in found]


async def test_the_selected_part_is_announced_once(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(2)) as parts:
        for _ in range(2):
            parts.selected.select(0)
        assert [type(message) for message in parts.services.posted] == [PartSelected]
        before = parts.shown.document.row(0)
        assert before is not None
        parts.selected.changed(before)
        assert len(parts.services.posted) == 1
        other = replace(before, data_json="{}")
        for _ in range(3):
            parts.selected.changed(other)
        assert len(parts.services.posted) == 2
        parts.selected.announce_now()
        assert len(parts.services.posted) == 3
        parts.selected.announce_now()
        parts.selected.announce_now()
        assert len(parts.services.posted) == 3


async def test_a_place_holds_what_is_seen(tmp_path: Path) -> None:
    async with opened(tmp_path, long_talk(12)) as parts:
        await parts.navigator.turn(-1)
        await parts.navigator.line(1)
        place = place_of(parts.shown)
        assert place is not None
        skeleton = parts.shown.document.skeleton
        assert skeleton.key(parts.top[0]) == (place["message"], place["index"])
        assert place["line"] == parts.top[1] and not place["at_end"]
        assert tuple(place["selected"]) == skeleton.key(parts.shown.cursor)
