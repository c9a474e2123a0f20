"""Search in the open session: its line, its hits, and parts that are opened to show them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from store.search.hits import Hit
from tui.messages import JumpedFrom, ProblemOccurred
from tui.transcript.anchors import Anchor
from tui.transcript.document import Document, Key
from tui.transcript.item import Level
from tui.transcript.place import Place, place_of
from tui.transcript.placement import Placement
from tui.transcript.prompt import Prompt, place_named
from tui.transcript.reader import SessionReader
from tui.transcript.search import Search, compiled
from tui.transcript.shown import PaneServices, ShownSession
from tui.transcript.shown_hit import ShownHit, open_for_hit
from tui.transcript.snapshot import ViewportSnapshot

SHOWN_EVERY_S = 0.1
"""Pace at which the progress of a search is shown."""
MOST_PAGES = 16
"""How many pages of a long part are opened to reach a hit."""


@dataclass(slots=True)
class Opened:
    """What was opened to show a hit, to be closed again."""

    key: Key | None = None
    level: Level | None = None
    pages: int = 1
    runs: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Origin:
    """Where one was when a search began to be typed.

    Attributes:
        reader: The session.
        part: The selected part: the search goes on from there.
        shown: What was on the screen.
        at_end: Whether the end was followed.
        search: The search that was on.
        place: The same for the list of places.
    """

    reader: SessionReader
    part: Anchor
    shown: ViewportSnapshot
    at_end: bool
    search: Search | None
    place: Place | None


class Finder:
    """Searches the session, and goes to hits and to places that are typed.

    While a search is typed its first hit from the reading place on is shown; escape leads back
    to where one was.
    """

    def __init__(
        self, shown: ShownSession, pane: PaneServices, placement: Placement, prompt: Prompt
    ) -> None:
        """Start without a search.

        Args:
            shown: The session.
            pane: Runs the search beside the keys.
            placement: Takes the steps to hits.
            prompt: The line in which a search or a place is typed.
        """
        self._shown, self._pane, self._placement = shown, pane, placement
        self.prompt = prompt
        self._opened = Opened()
        self._origin: Origin | None = None
        self._typed = False
        self._last_needle = ""

    @property
    def has_needle(self) -> bool:
        """Whether there is a search to step through, or one to repeat."""
        shown = self._shown
        return bool(shown.search is not None or shown.hit is not None or self._last_needle)

    # The line

    def open_find(self) -> None:
        """Type what to search for."""
        shown = self._shown
        if shown.reader is not None and shown.has_parts:
            self._origin = Origin(
                shown.reader, Anchor.of(shown.document, shown.cursor),
                ViewportSnapshot.of(shown.view), shown.view.at_end, shown.search,
                place_of(shown))
        self._typed = False
        self.prompt.open("find", self._last_needle)

    def typed(self, event: Prompt.Typed) -> None:
        """Search for what is typed so far, from where one was."""
        if event.kind == "find" and self.prompt.is_open and self._here is not None:
            self._typed = True
            self._search(event.text)

    async def cancel(self) -> None:
        """Go back to where one was before a search was typed, and to the search of then."""
        origin, self._origin = self._here, None
        if origin is None or not self._typed:
            return
        self.end()
        async with self._placement.in_order() as same:
            if not same:
                return
            self._restore_search(origin)
            await self._placement.arrive(partial(self._step_back, origin), sure=False)

    def _restore_search(self, origin: Origin) -> None:
        """Have the search again that was on before another one was typed."""
        shown, search = self._shown, origin.search
        if search is None:
            return
        search.seeks = False
        shown.search, shown.view.pattern = search, search.pattern
        if search.part is not None and search.part < len(shown.document):
            self._open_for(search.part, search)
        # The session may have been written meanwhile.
        self.refresh(0)

    @property
    def _here(self) -> Origin | None:
        """Where one was in this session when the line was opened."""
        origin = self._origin
        return origin if origin is not None and origin.reader is self._shown.reader else None

    def _step_back(self, origin: Origin) -> None:
        origin.shown.restore(self._shown.view)
        self._shown.view.at_end = origin.at_end
        self._shown.view.stay()

    def open_go_to(self) -> None:
        """Type where to go."""
        self.prompt.open("goto")

    async def accept(self, event: Prompt.Accepted) -> None:
        """Do what was typed."""
        if event.kind == "find":
            await self._accept_search(event.text)
        elif event.text.strip():
            await self.go_to(event.text)

    async def _accept_search(self, needle: str) -> None:
        search = self._shown.search
        if search is None or search.needle != needle:
            self._last_needle = needle or self._last_needle
            self._search(needle)
        elif self._typed:
            self._last_needle = needle
            if not search.seeks:
                self._leave_origin()
        else:
            await self.step(1)

    def _leave_origin(self) -> None:
        """Post the place where one was before the search was typed."""
        origin, shown = self._here, self._shown
        if origin is not None and origin.place is not None and (
            origin.part.part_in(shown.document) != shown.cursor
        ):
            self._pane.post_message(JumpedFrom(shown.session_id, origin.place))

    async def go_to(self, text: str) -> None:
        """Go to a turn, a time, a part or a share of the session."""
        async with self._placement.jump(), self._placement.in_order() as same:
            if not same or not len(self._shown.document):
                return
            await self._placement.until_whole()
            place = place_named(text, self._shown.document)
            if isinstance(place, str):
                self._pane.toast(place, "warning")
                self.prompt.open("goto", text)
                return
            anchor, view = Anchor.of(self._shown.document, place), self._shown.view
            await self._placement.arrive(
                lambda: view.step_to(anchor.part_in(view.document), top=True))

    # The search

    def start(self, needle: str) -> None:
        """Search the session from the reading place on; an empty needle ends the search."""
        self.end()
        self._origin = None
        self._last_needle = needle or self._last_needle
        self._search(needle)

    def _search(self, needle: str) -> None:
        """Search for a needle in place of what is searched for; an empty one for nothing."""
        shown = self._shown
        if shown.reader is None:
            return
        shown.forget_search()
        shown.mark_hit()
        if needle:
            origin = self._here
            start = origin.part if origin is not None else None
            search = shown.search = Search(needle, compiled(needle), start)
            shown.view.pattern = search.pattern
            self._scan_soon(search)
        else:
            self._pane.background(self._no_hit, group="search")
        shown.view.changed()
        self._pane.update_headings()

    def end(self) -> bool:
        """End the search and fold what it opened; return whether there was one."""
        shown = self._shown
        if shown.search is None:
            return False
        self._close_opened()
        shown.forget_search()
        shown.mark_hit()
        shown.view.changed()
        self._pane.update_headings()
        return True

    def refresh(self, start: int) -> None:
        """Search again what changed.

        Args:
            start: The first message that changed.
        """
        search = self._shown.search
        if search is None:
            return
        search.written(self._shown.document.skeleton, start)
        self._shown.view.hit = (search.part, search.ordinal) if search.part is not None else None
        self._scan_soon(search)

    def _scan_soon(self, search: Search) -> None:
        search.scan = scan = object()
        self._pane.background(partial(self._scan, search, scan), group="search")

    async def _scan(self, search: Search, scan: object) -> None:
        try:
            await self._placement.until_whole()
            await self._look_through(search)
        except Exception as error:
            self._pane.post_message(ProblemOccurred("The search failed", error))
        finally:
            if search.scan is scan:
                search.scan, search.seeks = None, False
                search.wake()

    async def _look_through(self, search: Search) -> None:
        reader, document, shown_at = self._shown.reader, self._shown.document, 0.0
        if reader is None or not len(document):
            return
        start = self._shown.cursor if search.start is None else search.start.part_in(document)
        search.begin_at(document.skeleton.message[start])
        async for _ in reader.scan(search, document):
            if search is not self._shown.search:
                return
            if search.seeks:
                await self._first_hit(search, start)
            search.wake()
            clock = asyncio.get_running_loop().time()
            if search.done or clock - shown_at > SHOWN_EVERY_S:
                shown_at = clock
                self._pane.update_headings()

    # Hits

    async def _first_hit(self, search: Search, start: int) -> None:
        part = search.first_from(self._shown.document.skeleton, start)
        if part is None:
            if search.done:
                await self._no_hit()
            return
        leaves = self._here is None
        async with self._placement.moving, self._placement.jump(far=True, counts=leaves):
            if search is self._shown.search:
                anchor = Anchor.of(self._shown.document, part)
                await self._to_hit(search, anchor, 0)
        search.seeks = False
        if not self.prompt.is_open:
            self._leave_origin()

    async def _no_hit(self) -> None:
        """Show the place where one was, while nothing is found of what is typed."""
        origin = self._here
        if origin is None:
            return
        async with self._placement.moving:
            self._close_opened()
            await self._placement.arrive(partial(self._step_back, origin), sure=False)

    async def step(self, step: int) -> None:
        """Go to the next (1) or previous (-1) hit; without a search, repeat the last one.

        Where the session was opened at a hit of a search over all sessions, go on to the next
        hit of that one.
        """
        search = self._shown.search
        if search is None and self._shown.hit is not None:
            await self._shown.hit.tour.step(step)
            return
        if search is None:
            if self._last_needle:
                self.start(self._last_needle)
            return
        while True:
            await self._shown.first_hit()
            async with self._placement.in_order() as same:
                if not same or search is not self._shown.search:
                    return
                if search.knows(self._shown.document.skeleton, self._shown.cursor, step):
                    async with self._placement.jump(far=True):
                        await self._step(search, step)
                    return
                progress = search.progress
            await progress.wait()

    async def show_hit(self, shown_hit: ShownHit) -> None:
        """Go to a hit of a search over all sessions, and open what it is folded into.

        Args:
            shown_hit: The hit; it is in this session.
        """
        self.end()
        shown, hit = self._shown, shown_hit.hit
        shown.hit = shown_hit
        shown.mark_hit()
        async with self._placement.in_order() as same:
            if not same or not len(shown.document) or hit.message_id is None:
                self._pane.update_headings()
                return
            place = partial(self._place_of, hit)
            if place() not in shown.document.sure():
                await self._placement.until_whole()
            part = await self._placement.loaded(place)
            if part is None:
                self._pane.toast("This hit is no longer in the session", "warning")
                return
            document, view = shown.document, shown.view
            line = open_for_hit(document, part, hit, shown_hit.marks)
            block = document.block(part)
            if block is not None and shown_hit.marks is not None:
                starts = block.hits(shown_hit.marks).starts
                view.hit = (part, starts.index(line)) if line in starts else None
            anchor = Anchor.of(document, part)
            await self._placement.arrive(
                lambda: view.step_to(anchor.part_in(view.document), line, lines=2))
            self._pane.update_headings()

    def _place_of(self, hit: Hit) -> int | None:
        """Return the part of a hit; None where that is not known or gone."""
        skeleton = self._shown.document.skeleton
        part = skeleton.locate(hit.message_id or "", hit.index)
        known = part is not None and skeleton.key(part) == (hit.message_id, hit.index)
        return part if known else None

    async def _step(self, search: Search, step: int) -> None:
        found = self._next_hit(search, step)
        if found is None:
            self._pane.toast(f"“{search.needle}” is not in this session")
            return
        await self._to_hit(search, Anchor.of(self._shown.document, found[0]), found[1])

    def _next_hit(self, search: Search, step: int) -> tuple[int, int] | None:
        """Return part and number of the next hit; the number is -1 for the last of the part."""
        if search.part is None or search.part != self._shown.cursor:
            part = search.next_part(self._shown.cursor - step, step)
            return None if part is None else (part, 0)
        ordinal = search.ordinal + step
        if 0 <= ordinal < len(_hit_lines(self._shown.document, search.part, search)):
            return search.part, ordinal
        part = search.next_part(search.part, step)
        return None if part is None else (part, 0 if step > 0 else -1)

    async def _to_hit(self, search: Search, anchor: Anchor, ordinal: int) -> None:
        """Open a part as far as its hits ask for, and show one of them.

        Args:
            search: The search.
            anchor: The part.
            ordinal: Which of its hits, from 0; -1 for the last.
        """
        shown = self._shown
        part = await self._placement.loaded(lambda: anchor.part_in(shown.document))
        if part is None or search is not shown.search:
            return
        if part != search.part:
            self._close_opened()
        self._open_for(part, search)
        lines = _hit_lines(shown.document, part, search)
        search.part, search.key = part, shown.document.skeleton.key(part)
        search.ordinal = max(0, ordinal if ordinal >= 0 else len(lines) - 1)
        shown.view.hit = (part, search.ordinal)
        line = lines[min(search.ordinal, len(lines) - 1)] if lines else 0
        anchor = Anchor.of(shown.document, part)
        await self._placement.arrive(
            lambda: shown.view.step_to(anchor.part_in(shown.document), line, lines=2))

    # Parts that are opened for their hits

    def _open_for(self, part: int, search: Search) -> None:
        document, hits = self._shown.document, search.count_in(part)
        run = document.run_of(part)
        if run is not None and not document.run_opened(run):
            document.turn_run(run)
            self._opened.runs.append(run)
        key = document.skeleton.key(part)
        block = document.block(part)
        if block is None or len(_hit_lines(document, part, search)) >= hits:
            return
        if self._opened.key is None:
            self._opened.key, self._opened.level = key, document.folds.get(key)
            self._opened.pages = document.pages.get(key, 1)
        document.folds[key] = "whole"
        document.forget(part)
        while len(_hit_lines(document, part, search)) < hits and (
            document.pages.get(key, 1) < MOST_PAGES
        ):
            block = document.block(part)
            if block is None or not block.lines or block.lines[-1].fold != "more":
                return
            document.pages[key] = document.pages.get(key, 1) + 1
            document.forget(part)

    def _close_opened(self) -> None:
        """Fold what was opened for a hit, unless the user folded it since."""
        opened, document = self._opened, self._shown.document
        self._opened = Opened()
        for run in opened.runs:
            if document.run_opened(run):
                document.turn_run(run)
        if opened.key is None or document.folds.get(opened.key) != "whole":
            return
        if opened.level is None:
            document.folds.pop(opened.key, None)
        else:
            document.folds[opened.key] = opened.level
        document.pages[opened.key] = opened.pages
        part = document.skeleton.locate(*opened.key)
        if part is not None:
            document.forget(part)
            document.height(part)


def _hit_lines(document: Document, part: int, search: Search) -> list[int]:
    block = document.block(part)
    return block.hits(search.pattern).starts if block else []

