"""The transcript pane without its verbs: opening, places, moving, what stands around."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from store.activity import activity_of
from store.queries import transcript as queries
from store.rows import SessionRow
from store.store import Store
from tui.glyphs import glyphs
from tui.messages import PartSelected, ProblemOccurred
from tui.panes.base import CommandPane
from tui.text import one_line
from tui.transcript.document import Document
from tui.transcript.facts import context_tokens, message_facts
from tui.transcript.headings import FactLines, header_lines, status_line
from tui.transcript.item import Level, Setting
from tui.transcript.lines import Line, Run
from tui.transcript.place import MOST_FOLDS, Place, read_place
from tui.transcript.plain import as_dict, decode
from tui.transcript.prompt import Prompt
from tui.transcript.reader import SessionReader
from tui.transcript.search import Search
from tui.transcript.view import TranscriptView

PREFETCHED = 40
"""Parts on each side of the screen whose rows are read before they are asked for."""


class TranscriptBase(CommandPane, Vertical):
    """Shows one session; see ``tui.panes.transcript`` for what its keys do."""

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
        self.status = FactLines(1, id="transcript-status")
        self.prompt = Prompt()
        self.reader: SessionReader | None = None
        self.search: Search | None = None
        self.parents: list[tuple[SessionRow, Place | None]] = []
        self.tools: Level = "short"
        self.reasoning: Level = "off"
        self._returns: SessionRow | None = None
        self._context_size = 0
        self._told: tuple[str, str] | None = None
        self._warmed = False

    def compose(self) -> ComposeResult:
        """Compose header, transcript, prompt and status."""
        yield self.header
        yield self.view
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

    # Opening

    async def open_session(
        self, store: Store, row: SessionRow, *, message_id: str | None = None, place: Any = None
    ) -> None:
        """Show a session: first a window, and once that is painted all the rest.

        Args:
            store: The store that holds it.
            row: The session.
            message_id: The message to select; None for the place.
            place: What ``place`` returned for this session, or None for its end.
        """
        self._keep_parent(row)
        known = read_place(place) if message_id is None else None
        at_end = message_id is None and (known is None or bool(known.get("at_end")))
        around = None if at_end else message_id or (known or {}).get("message")
        reader = SessionReader(store, row)
        setting = self.view.content_setting
        setting.tools, setting.reasoning = self.tools, self.reasoning
        document = await reader.open(setting, around, at_end=at_end)
        self.reader, self.search, self._context_size, self._told = reader, None, 0, None
        self.view.show(document)
        self.view.at_end = at_end
        if known is not None:
            document.folds = {(fold[0], fold[1]): fold[2] for fold in known.get("folds", [])}
        self._stand(known, message_id)
        self.show_around()
        self.call_after_refresh(self._complete)

    def _keep_parent(self, row: SessionRow) -> None:
        """Remember where a child was opened from; any other session forgets the way."""
        if self._returns is not None and row.parent_id == self._returns.id:
            self.parents.append((self._returns, self.place()))
        elif not (self.parents and row.id == self.parents[-1][0].id):
            self.parents.clear()
        else:
            self.parents.pop()
        self._returns = None

    def _stand(self, known: Place | None, message_id: str | None) -> None:
        """Put the anchor and the cursor where they belong in what is here."""
        document, scroller = self.document, self.view.scroller
        if not len(document):
            return
        if message_id is not None:
            part = document.skeleton.locate(message_id)
            if part is not None:
                self.view.cursor = part
                scroller.show(part)
                self.keep_cursor(1)
                return
        if known is None or known.get("at_end"):
            scroller.to_end()
            self.view.cursor = self._last_part()
        else:
            part = document.skeleton.locate(known["message"], known.get("index", 0))
            if part is not None:
                scroller.to(part, known.get("line", 0))
        chosen = (known or {}).get("selected")
        if chosen:
            part = document.skeleton.locate(chosen[0], chosen[1])
            self.view.cursor = part if part is not None else self.view.cursor
        self.keep_cursor(1)
        self.view.changed()

    def _last_part(self) -> int:
        document = self.document
        return next((p for p in range(len(document) - 1, -1, -1) if document.shows(p)), 0)

    def _complete(self) -> None:
        self.run_worker(self._fill(), group="fill", exclusive=True, exit_on_error=False)

    async def _fill(self) -> None:
        """Read what the first paint did without."""
        reader = self.reader
        if reader is None:
            return
        try:
            if not self._warmed:
                self._warmed = True
                self.run_worker(_warm, thread=True, exit_on_error=False)
            if not self.document.complete:
                await self._load_skeleton(reader)
            text = await reader.store.read(queries.last_usage, reader.row.id)
            if reader is self.reader:
                self._context_size = context_tokens(as_dict(decode(text))) if text else 0
                self.select(self.cursor, force=True)
                await self.prefetch()
        except Exception as error:
            self.post_message(ProblemOccurred("The session could not be read whole", error))

    async def _load_skeleton(self, reader: SessionReader) -> None:
        skeleton, heights = await reader.skeleton(self.document.setting)
        if reader is not self.reader:
            return
        document, scroller = self.document, self.view.scroller
        top = document.skeleton.key(scroller.part) if len(document) else None
        chosen = document.skeleton.key(self.cursor) if len(document) else None
        line = scroller.line
        at_end = self.view.at_end
        document.use(skeleton, heights, complete=True, at_start=True)
        scroller.part = (skeleton.locate(*top) if top else None) or 0
        self.view.cursor = (skeleton.locate(*chosen) if chosen else None) or 0
        scroller.line = line
        if len(document):
            await reader.have(document, self._near())
            if at_end:
                scroller.to_end()
            else:
                scroller.to(scroller.part, scroller.line)
        if self.view.text_selection is not None:
            self.screen.clear_selection()
        self.view.changed()

    def show_session_none(self, text: str) -> None:
        """Show why there is no session."""
        self.reader = self.search = None
        self.parents.clear()
        self.view.show(Document(self.view.content_setting))
        self.header.show([Line([(one_line(text), "muted")])])
        self.status.show([])

    def store_changed(self) -> None:
        """Somebody wrote to the store: look whether it touched this session."""
        if self.reader is not None:
            self.run_worker(self._refresh(), group="refresh", exclusive=True, exit_on_error=False)

    async def _refresh(self) -> None:
        reader = self.reader
        if reader is None:
            return
        try:
            shown = self.view.shown_parts()
            await reader.read_again(self.document, shown)
            await self._load_skeleton(reader)
            if reader is self.reader:
                self.view.changed()
                self.show_around()
        except Exception as error:
            self.post_message(ProblemOccurred("The session could not be read again", error))

    # Place

    def place(self) -> Place | None:
        """Return where the reader stands, for the state file."""
        document, scroller = self.document, self.view.scroller
        if self.reader is None or not len(document):
            return None
        message_id, index = document.skeleton.key(min(scroller.part, len(document) - 1))
        chosen = document.skeleton.key(self.cursor)
        folds = list(document.folds.items())[-MOST_FOLDS:]
        return Place(
            message=message_id, index=index, line=scroller.line, selected=list(chosen),
            folds=[[key[0], key[1], level] for key, level in folds], at_end=self.view.at_end,
        )

    # Moving

    def _near(self, lines: int = 0) -> range:
        """Return the parts that a move may walk over, by what their heights are thought to be."""
        document, scroller = self.document, self.view.scroller
        want = abs(lines) + 2 * scroller.height
        step, part, seen = (-1 if lines < 0 else 1), scroller.part, 0
        while 0 <= part < len(document) and seen < want:
            seen += document.heights[part]
            part += step
        screen = scroller.part
        below = 0
        while screen < len(document) and below < 2 * scroller.height:
            below += document.heights[screen]
            screen += 1
        return range(min(part, scroller.part), max(part, screen) + 1)

    async def walk(self, lines: int) -> int:
        """Move by lines; returns by how many it moved."""
        if self.reader is None or not len(self.document):
            return 0
        if lines < 0:
            self.view.at_end = False
        await self.reader.have(self.document, self._near(lines))
        moved = self.view.scroller.move(lines)
        await self.settle(1 if lines > 0 else -1)
        return moved

    async def jump(self, part: int, line: int = 0, *, top: bool = False, lines: int = 3) -> None:
        """Select a part and bring it onto the screen.

        Args:
            part: The part.
            line: Which of its lines is to be seen.
            top: Put it at the top even where it can be seen already.
            lines: How many lines from there are to be seen.
        """
        if self.reader is None or not len(self.document):
            return
        document, scroller = self.document, self.view.scroller
        self.view.at_end = False
        low = max(0, part - PREFETCHED // 2)
        await self.reader.have(document, range(low, part + PREFETCHED // 2))
        if top:
            scroller.to(part, line)
        else:
            block = document.block(part)
            tall = len(block.lines) - line if block is not None else 1
            scroller.show(part, line, min(tall, max(1, lines), scroller.height))
        self.view.cursor = part
        await self.settle(0)

    async def settle(self, direction: int) -> None:
        """Paint a new place, once the rows for it are here."""
        if self.reader is not None and await self.reader.have(
            self.document, self._near()
        ):
            self.view.scroller.to(self.view.scroller.part, self.view.scroller.line)
        self.view.changed()
        if direction:
            self.keep_cursor(direction)
        self.select(self.cursor)
        self.call_after_refresh(self._prefetch_soon)

    def _prefetch_soon(self) -> None:
        self.run_worker(self.prefetch(), group="prefetch", exclusive=True, exit_on_error=False)

    async def prefetch(self) -> None:
        """Read the rows around the screen before they are asked for."""
        shown, reader = self.view.shown_parts(), self.reader
        if reader is not None:
            around = range(shown.start - PREFETCHED, shown.stop + PREFETCHED)
            await reader.have(self.document, around)

    def keep_cursor(self, direction: int) -> None:
        """Let the selected part be one that is on the screen."""
        rows = self.view.rows()
        document = self.document
        own = [row for row in rows if (block := document.block(row.part)) is not None
               and row.line >= block.top]
        if not own or any(row.part == self.cursor for row in own):
            return
        heads = [row.part for row in own
                 if (block := document.block(row.part)) is not None and row.line == block.top]
        if direction > 0:
            self.view.cursor = heads[0] if heads else own[0].part
        else:
            self.view.cursor = heads[-1] if heads else own[-1].part

    def select(self, part: int, *, force: bool = False) -> None:
        """Select a part and say so, once for each."""
        self.view.cursor = part
        self.show_around()
        row = self.document.row(part) if len(self.document) else None
        if row is not None and (force or self._told != (row.message_id, row.id)):
            self._told = (row.message_id, row.id)
            self.view.changed()
            self.post_message(PartSelected(row.session_id, row.message_id, row.id))

    # What stands around

    def show_around(self) -> None:
        """Bring header and status up to date."""
        row = self.session
        if row is None:
            return
        now = self.reader.store.clock() if self.reader is not None else 0
        below = (self.parents[-1][0].title or "the parent") if self.parents else ""
        state = activity_of(row, now=now).state
        self.header.show(
            header_lines(row, self.document, self.cursor, state, self._context_size, below))
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
        runs: list[Run] = []
        if self.view.at_end:
            runs.append((f"{glyphs().down} end  ", "ok"))
        known = self.document.message_row(self.cursor) if len(self.document) else None
        if known is not None:
            message, metadata = known
            runs.append((message_facts(message.role, message.created_at, metadata), "faint"))
        return runs

    @on(TranscriptView.Resized)
    def _resized(self) -> None:
        self.show_around()


def _search_runs(search: Search, document: Document) -> list[Run]:
    runs: list[Run] = [("/", "muted"), (one_line(search.needle), "text b"), ("  ", "text")]
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


def _warm() -> None:
    """Import what the first Markdown and the first code block need."""
    from tui.transcript.highlight import warm
    from tui.transcript.markdown import parser

    parser()
    warm()


__all__ = ["Setting", "TranscriptBase"]
