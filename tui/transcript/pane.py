"""The transcript pane's frame: its widgets, the selected part, header and status."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from store.activity.judgement import Activity
from store.rows import SessionRow
from tui.keys.pane import CommandPane
from tui.kit.glyphs import glyphs
from tui.kit.lines import Run
from tui.kit.text import one_line
from tui.messages import NothingSelected, PartSelected
from tui.transcript.document import Document
from tui.transcript.facts import message_facts
from tui.transcript.headings import FactLines, header_lines, status_line
from tui.transcript.item import Level
from tui.transcript.place import Place
from tui.transcript.prompt import Prompt
from tui.transcript.reader import SessionReader
from tui.transcript.search import Search
from tui.transcript.skeleton import UNSETTLED
from tui.transcript.view import TranscriptView


class TranscriptBase(CommandPane, Vertical):
    """Shows one session; see ``tui.transcript.transcript_pane`` for what its keys do."""

    SCOPE = "transcript"
    DEFAULT_CSS = """
    TranscriptBase { width: 1fr; height: 1fr; background: $background; }
    TranscriptBase > #transcript-header { margin-bottom: 0; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Make a pane that shows nothing yet."""
        super().__init__(id=id)
        self.view = TranscriptView(id="transcript-view")
        self.header = FactLines(2, id="transcript-header")
        self.waiting = FactLines(1, id="transcript-waiting")
        self.waiting.display = False
        self.status = FactLines(1, id="transcript-status")
        self.prompt = Prompt()
        self.reader: SessionReader | None = None
        self.search: Search | None = None
        self.activity: Activity | None = None
        self.parents: list[tuple[SessionRow, Place | None]] = []
        self.tools: Level = "short"
        self.reasoning: Level = "off"
        self._returns: SessionRow | None = None
        self._context_size = 0
        self._told: tuple[str, str, bool] | None = None
        self._warmed = False

    def compose(self) -> ComposeResult:
        """Compose header, transcript, prompt and status."""
        yield self.header
        yield self.view
        yield self.waiting
        yield self.prompt
        yield self.status

    @property
    def document(self) -> Document:
        """What is shown."""
        return self.view.document

    @property
    def session(self) -> SessionRow | None:
        """The session that is shown."""
        return self.reader.row if self.reader is not None else None

    @property
    def cursor(self) -> int:
        """The selected part."""
        return self.view.cursor

    def select(self, part: int, *, force: bool = False) -> None:
        """Select a part and say so, once for each."""
        self.view.cursor = part
        self.show_around()
        row = self.document.row(part) if len(self.document) else None
        runs = row is not None and self.runs(part)
        if row is not None and (force or self._told != (row.message_id, row.id, runs)):
            self._told = (row.message_id, row.id, runs)
            self.view.changed()
            self.post_message(PartSelected(row.session_id, row.message_id, row.id, runs=runs))
        elif not len(self.document) and (force or self._told is not None):
            self._told = None
            self.post_message(NothingSelected())

    def runs(self, part: int) -> bool:
        """Say whether a part is a call that runs."""
        item = self.document.item(part)
        if item is None or item.row is None or self.document.skeleton.states[part] != UNSETTLED:
            return False
        return self.document.setting.runs(item.row.updated_at, newest=item.around.newest)

    def background(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        """Start work beside the keys; it takes the place of what the group did before."""
        # A coroutine that is made here would never be awaited if its place were taken.
        self.run_worker(cast(Any, work), group=group, exclusive=True, exit_on_error=False)

    # What stands around

    def show_around(self) -> None:
        """Bring header and status up to date."""
        row = self.session
        if row is None:
            return
        below = (self.parents[-1][0].title or "the parent") if self.parents else ""
        self.header.show(header_lines(
            row, self.document, self.cursor, self.activity, self._context_size, below))
        line, columns = status_line(
            self.document, self.view.scroller.part, self.cursor, left=self._left(),
            width=self.size.width, search=self.search,
        )
        self.status.map_columns = columns
        self.status.show([line])

    def _left(self) -> list[Run]:
        search = self.search
        if search is not None:
            return _search_runs(search, self.document)
        if not len(self.document):
            return [("This session has no messages", "muted")]
        runs: list[Run] = []
        runs += self._follow_runs()
        known = self.document.message_row(self.cursor) if len(self.document) else None
        if known is not None:
            message, metadata = known
            runs.append((message_facts(message.role, message.created_at, metadata), "faint"))
        return runs

    def _follow_runs(self) -> list[Run]:
        """Say whether the end is followed; ``FollowingPane`` knows more."""
        return [(f"{glyphs().down} end  ", "ok")] if self.view.at_end else []

    @on(TranscriptView.Resized)
    def _resized(self) -> None:
        self.show_around()
        if self.document.lacking:
            self.background(self.stay, group="resized")

    async def stay(self) -> None:
        """Stand at the place; ``PlacingPane`` knows how."""


def _search_runs(search: Search, document: Document) -> list[Run]:
    runs: list[Run] = [("/", "muted"), (one_line(search.needle), "text bold"), ("  ", "text")]
    if search.total:
        runs.append((f"{search.number:,} of {search.total:,}", "text"))
    elif search.done:
        runs.append(("not in this session", "error"))
    if not search.done:
        count = max(1, len(document.skeleton.message_ids))
        runs.append((f"  looked through {100 * search.scanned // count} %", "faint"))
    elif search.total:
        runs.append(("  n N", "faint"))
    return runs
