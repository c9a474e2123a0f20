"""Search in the open session: typing, stepping, and putting back what was opened for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from textual import on

from tui.messages import ProblemOccurred
from tui.transcript.document import Key
from tui.transcript.following import FollowingPane
from tui.transcript.item import Level
from tui.transcript.prompt import Prompt, place_named
from tui.transcript.search import Search, compiled

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
        await self.until_whole()
        place = place_named(text, self.document)
        if isinstance(place, str):
            self.app.notify(place, severity="warning", markup=False)
        else:
            await self.jump(place, top=True)

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
        self.background(partial(self._scan, self.search), group="search")

    def end_search(self) -> bool:
        """End the search and fold what it opened; say whether there was one."""
        if self.search is None:
            return False
        self._put_back()
        self.search, self.view.pattern, self.view.hit = None, None, None
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
        self.background(partial(self._scan, search), group="search")

    async def _scan(self, search: Search) -> None:
        reader, start = self.reader, self.cursor
        if reader is None:
            return
        try:
            await self.until_whole()
            start, told_at = self.cursor, 0.0
            async for _ in reader.scan(search, self.document):
                if search is not self.search:
                    return
                if search.seeks and search.parts and (
                    search.parts[-1] >= start or search.done
                ):
                    search.seeks = False
                    await self._first_hit(search, start)
                clock = asyncio.get_running_loop().time()
                if search.done or clock - told_at > TOLD_EVERY_S:
                    told_at = clock
                    self.show_around()
            search.seeks = False
        except Exception as error:
            self.post_message(ProblemOccurred("The search broke off", error))

    async def _first_hit(self, search: Search, start: int) -> None:
        part = search.next_part(start - 1, 1)
        if part is not None:
            await self._to_hit(search, part, 0)

    async def step_hit(self, step: int) -> None:
        """Go to the next or the previous hit."""
        search = self.search
        if search is None:
            if self._last_needle:
                self.start_search(self._last_needle)
            return
        if search.part is None or search.part != self.cursor:
            start = self.cursor - (step > 0)
            part = search.next_part(start if step > 0 else start + 1, step)
            ordinal = 0
        else:
            hits = self._hit_lines(search.part)
            ordinal = search.ordinal + step
            part = search.part
            if not 0 <= ordinal < len(hits):
                part, ordinal = search.next_part(search.part, step), 0 if step > 0 else -1
        if part is None:
            self.app.notify(f"“{search.needle}” is not in this session", markup=False)
            return
        await self._to_hit(search, part, ordinal)

    async def _to_hit(self, search: Search, part: int, ordinal: int) -> None:
        """Open a part as far as its hits ask for, and show one of them."""
        if self.reader is None:
            return
        if part != search.part:
            self._put_back()
        await self.reader.have(self.document, range(part, part + 1))
        self._open_for(part, search.count_in(part))
        lines = self._hit_lines(part)
        search.part, search.key = part, self.document.skeleton.key(part)
        search.ordinal = max(0, ordinal if ordinal >= 0 else len(lines) - 1)
        self.view.hit = (part, search.ordinal)
        line = lines[min(search.ordinal, len(lines) - 1)] if lines else 0
        await self.jump(part, line, lines=2)

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
            if block is None or not block.lines or block.lines[-1].action != "more":
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
