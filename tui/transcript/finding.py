"""Search in the open session: typing, stepping, and putting back what was opened for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from textual import on

from tui.messages import ProblemOccurred
from tui.transcript.document import Key
from tui.transcript.following import FollowingPane
from tui.transcript.item import Level
from tui.transcript.prompt import Prompt, place_named
from tui.transcript.search import Search, compiled
from tui.transcript.standing import Anchor

TOLD_EVERY_S = 0.1
MOST_PAGES = 16
"""How many lengths of the cap are opened to reach a hit."""


@dataclass(slots=True)
class Opened:
    """What stepping through hits has opened, to be put back."""

    key: Key | None = None
    level: Level | None = None
    pages: int = 1
    runs: list[tuple[int, int]] = field(default_factory=list)


class FindingPane(FollowingPane):
    """The transcript with its search and its go-to line."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start without a search."""
        super().__init__(id=id)
        self._opened = Opened()
        self._last_needle = ""
        self._looked = asyncio.Event()

    def open_prompt_to_find(self) -> None:
        """Type what to search for."""
        self.prompt.open("find", self._last_needle)

    def open_prompt_to_go(self) -> None:
        """Type where to go."""
        self.prompt.open("goto")

    @on(Prompt.Closed)
    def _prompt_closed(self, event: Prompt.Closed) -> None:
        event.stop()
        self._leave_prompt()

    def _leave_prompt(self) -> None:
        self.prompt.close()
        self.screen.set_focus(self.view)

    @on(Prompt.Accepted)
    async def _prompt_accepted(self, event: Prompt.Accepted) -> None:
        event.stop()
        self._leave_prompt()
        if event.kind == "find":
            self.start_search(event.text)
        elif event.text.strip():
            await self.go_to(event.text)

    async def go_to(self, text: str) -> None:
        """Go to a turn, a time, a part or a share of the session."""
        async with self.in_order() as same:
            if not same or not len(self.document):
                return
            await self.until_whole()
            place = place_named(text, self.document)
            if isinstance(place, str):
                self.app.notify(place, severity="warning", markup=False)
                return
            anchor = Anchor.of(self.document, place)
            await self.arrive(lambda: self._jumped(anchor.find(self.document)[0], top=True))

    # Search

    def start_search(self, needle: str) -> None:
        """Search the session; an empty needle ends the search."""
        self.end_search()
        if not needle or self.reader is None:
            return
        self._last_needle = needle
        self.search = Search(needle, compiled(needle))
        self.view.pattern = self.search.pattern
        self.view.changed()
        self._scan_soon(self.search)

    def end_search(self) -> bool:
        """End the search and fold what it opened; say whether there was one."""
        if self.search is None:
            return False
        self._put_back()
        self.search, self.view.pattern, self.view.hit = None, None, None
        self._progress()
        self.view.changed()
        self.show_around()
        return True

    def search_again(self, start: int) -> None:
        """Look again for what is searched, where the session was written."""
        search = self.search
        if search is None:
            return
        search.written(self.document.skeleton, start)
        self.view.hit = (search.part, search.ordinal) if search.part is not None else None
        self._scan_soon(search)

    def _scan_soon(self, search: Search) -> None:
        search.scan = scan = object()
        self.background(partial(self._scan, search, scan), group="search")

    async def _scan(self, search: Search, scan: object) -> None:
        try:
            await self.until_whole()
            await self._look_through(search)
        except Exception as error:
            self.post_message(ProblemOccurred("The search broke off", error))
        finally:
            if search.scan is scan:
                search.scan, search.seeks = None, False
                self._progress()

    async def _look_through(self, search: Search) -> None:
        reader, start, told_at = self.reader, self.cursor, 0.0
        if reader is None:
            return
        async for _ in reader.scan(search, self.document):
            if search is not self.search:
                return
            if search.seeks and search.parts and (search.parts[-1] >= start or search.done):
                await self._first_hit(search, start)
            self._progress()
            clock = asyncio.get_running_loop().time()
            if search.done or clock - told_at > TOLD_EVERY_S:
                told_at = clock
                self.show_around()

    def _progress(self) -> None:
        """Let those go on that wait for what is found."""
        self._looked.set()
        self._looked = asyncio.Event()

    async def sought(self) -> None:
        """Wait for the first hit of a search that was begun before: it is gone to first."""
        search = self.search
        while search is not None and search is self.search and search.seeks:
            await self._looked.wait()

    async def _first_hit(self, search: Search, start: int) -> None:
        async with self._order:
            part = search.next_part(start - 1, 1)
            if part is not None and search is self.search:
                anchor = Anchor.of(self.document, part)
                await self._to_hit(search, lambda: (anchor.find(self.document)[0], 0))
        search.seeks = False

    async def step_hit(self, step: int) -> None:
        """Go to the next or the previous hit."""
        search = self.search
        if search is None:
            if self._last_needle:
                self.start_search(self._last_needle)
            return
        while True:
            await self.sought()
            async with self.in_order() as same:
                if not same or search is not self.search:
                    return
                if search.knows(self.document.skeleton, self.cursor, step):
                    await self._step_hit(search, step)
                    return
                looked = self._looked
            await looked.wait()

    async def _step_hit(self, search: Search, step: int) -> None:
        found = self._next_hit(search, step)
        if found is None:
            self.app.notify(f"“{search.needle}” is not in this session", markup=False)
            return
        anchor, ordinal = Anchor.of(self.document, found[0]), found[1]
        await self._to_hit(search, lambda: (anchor.find(self.document)[0], ordinal))

    def _next_hit(self, search: Search, step: int) -> tuple[int, int] | None:
        """Return part and number of the next hit; the number is -1 for the last of the part."""
        if search.part is None or search.part != self.cursor:
            part = search.next_part(self.cursor - step, step)
            return None if part is None else (part, 0)
        ordinal = search.ordinal + step
        if 0 <= ordinal < len(self._hit_lines(search.part)):
            return search.part, ordinal
        part = search.next_part(search.part, step)
        return None if part is None else (part, 0 if step > 0 else -1)

    async def _to_hit(self, search: Search, hit: Callable[[], tuple[int, int]]) -> None:
        """Open a part as far as its hits ask for, and show one of them."""
        part = await self.had(lambda: hit()[0])
        if part is None or search is not self.search:
            return
        if part != search.part:
            self._put_back()
        self._open_for(part, search.count_in(part))
        lines, ordinal = self._hit_lines(part), hit()[1]
        search.part, search.key = part, self.document.skeleton.key(part)
        search.ordinal = max(0, ordinal if ordinal >= 0 else len(lines) - 1)
        self.view.hit = (part, search.ordinal)
        line = lines[min(search.ordinal, len(lines) - 1)] if lines else 0
        anchor = Anchor.of(self.document, part)
        await self.arrive(lambda: self._jumped(anchor.find(self.document)[0], line, lines=2))

    def _hit_lines(self, part: int) -> list[int]:
        block = self.document.block(part)
        return block.hits(self.search.pattern).starts if block and self.search else []

    def _open_for(self, part: int, hits: int) -> None:
        document = self.document
        run = document.run_of(part)
        if run is not None and not document.run_opened(run):
            document.turn_run(run)
            self._opened.runs.append(run)
        key = document.skeleton.key(part)
        block = document.block(part)
        if block is None or len(self._hit_lines(part)) >= hits:
            return
        if self._opened.key is None:
            self._opened.key, self._opened.level = key, document.folds.get(key)
            self._opened.pages = document.pages.get(key, 1)
        document.folds[key] = "whole"
        document.forget(part)
        while len(self._hit_lines(part)) < hits and document.pages.get(key, 1) < MOST_PAGES:
            block = document.block(part)
            if block is None or not block.lines or block.lines[-1].fold != "more":
                return
            document.pages[key] = document.pages.get(key, 1) + 1
            document.forget(part)

    def _put_back(self) -> None:
        """Fold what was opened for a hit, unless the user folded it since."""
        opened, document = self._opened, self.document
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
