"""The lines around the transcript: two above it, and two below."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from store.activity.judgement import Activity
from store.conversation.readable import decode
from store.rows import SessionRow
from store.text import figures
from store.text.stored_json import as_dict
from tui.host import host_of
from tui.kit.glyphs import glyphs
from tui.kit.guard import filtered
from tui.kit.lines import Line, Run
from tui.kit.masked import shown
from tui.kit.paint import Paint, paint_of, row_of
from tui.kit.text import cells, fit, one_line
from tui.transcript.document import Document
from tui.transcript.heights import Heights
from tui.transcript.new_below import NewBelow
from tui.transcript.search import Search
from tui.transcript.shown import ShownSession
from tui.transcript.skeleton import UNSETTLED, WAITING
from tui.words.calls import describe
from tui.words.messages import message_facts
from tui.words.sessions import folder, model_name

MAP_CELLS = 20
NO_SIGNS: Mapping[int, str] = {}
LIVE = ("running", "retrying", "waiting-approval", "waiting-input")
"""States in which more is expected at the end."""
LOOKED_BACK = 200
"""Parts at the end among which the call that waits is looked for."""
_STATES = {
    "running": ("running", "ok"), "retrying": ("retrying", "ok"),
    "waiting-approval": ("waits for approval", "tool"),
    "waiting-input": ("waits for input", "tool"), "queued": ("queued", "tool"),
    "interrupted": ("interrupted", "error"), "error": ("failed", "error"),
}


class FactLines(Widget):
    """Some lines with facts at their right edge."""

    DEFAULT_CSS = "FactLines { height: 1; }"
    ALLOW_SELECT = False

    @dataclass
    class Pressed(Message):
        """Clicked; ``share`` is the column as a share of the map, None beside it."""

        share: float | None

    def __init__(self, height: int, *, id: str, ground: str = "background") -> None:
        """Make a number of empty lines.

        Args:
            height: How many.
            id: The widget's id.
            ground: Role of the background.
        """
        super().__init__(id=id)
        self._ground = ground
        self.styles.height = height
        self._lines: list[Line] = []
        self._painted: tuple[list[Line], int, Paint, list[Strip]] | None = None
        self.map_columns: tuple[int, int] | None = None

    def show(self, lines: list[Line]) -> None:
        """Show other lines."""
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint the lines, cut to the width."""
        paint, (width, height) = paint_of(self.app), self.size
        known = self._painted
        # They are asked for whenever anything near them is painted.
        if known is None or known[0] is not self._lines or known[1:3] != (width, paint) \
                or len(known[3]) < height:
            lines = [*self._lines, *[Line([])] * (height - len(self._lines))]
            strips = [row_of(line, width, paint, ground=self._ground) for line in lines]
            known = self._lines, width, paint, strips
            self._painted = known
        strips = filtered(self, known[3][crop.y:crop.bottom])
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def render_line(self, y: int) -> Strip:
        """Return one line, for the mouse."""
        return self.render_lines(Region(0, y, self.size.width, 1))[0]

    def on_click(self, event: events.Click) -> None:
        """Post the click, with its place in the map."""
        share = None
        if self.map_columns is not None:
            low, high = self.map_columns
            if low <= event.x < high:
                share = (event.x - low + 0.5) / (high - low)
        self.post_message(self.Pressed(share))


def state_runs(state: str, elapsed: str = "", *, guessed: bool = False) -> list[Run]:
    """Return glyph and word of what a session does; nothing where it is idle.

    A guess is marked, as in the list.

    Args:
        state: One of the states of ``store.activity``.
        elapsed: For how long, "" where it is not shown.
        guessed: Whether the state is a guess.
    """
    word, ink = _STATES.get(state, ("", ""))
    if not word:
        return []
    word = f"~{word}" if guessed else word
    marks = glyphs()
    mark = {"ok": marks.running, "tool": marks.waiting}.get(ink, marks.failed)
    return [(f"{mark} {word}{' ' + elapsed if elapsed else ''}", ink)]


def header_lines(
    row: SessionRow, document: Document, cursor: int, activity: Activity | None, context: int,
    back: str = "", family: str = "",
) -> list[Line]:
    """Return title, state and turn; source, model, workspace, branch and context.

    Args:
        row: The session.
        document: What is shown of it.
        cursor: The selected part.
        activity: What the session does.
        context: Tokens in the context now, 0 where unknown.
        back: Title of what escape leads back to.
        family: What it comes to with all below it, "" where that is not shown.
    """
    metadata = as_dict(decode(row.metadata_json))
    title = one_line(shown(row.title) or "") or "untitled"
    first = Line([(title, "text bold")])
    if activity is not None:
        first.right = state_runs(activity.state, guessed=activity.from_ == "guessed")
    turns = document.skeleton.turns
    if document.complete and turns:
        number = document.skeleton.turn_of(document.skeleton.message[cursor])
        gap = "  " if first.right else ""
        first.right = [*first.right, (f"{gap}turn {number:,} of {len(turns):,}", "faint")]
    source = as_dict(metadata.get("source")).get("kind") or row.agent
    model = as_dict(decode(row.model_json or "{}")).get("model_id")
    facts = [
        one_line(str(source)), model_name(model if isinstance(model, str) else None),
        folder(row.workspace_root) if row.workspace_root else "",
        one_line(str(metadata.get("git_branch") or "")),
    ]
    words = f" {glyphs().dot} ".join(fact for fact in facts if fact)
    second = Line([(words, "faint")])
    if back:
        second.runs = [(f"esc back to {fit(one_line(back), 32)}  ", "fork"), *second.runs]
    if context:
        second.right = [(f"context {figures.tokens(context)}", "faint")]
    if family:
        gap = "  " if second.right else ""
        second.right = [(f"{family}{gap}", "faint"), *second.right]
    if row.archived_at:
        first.runs = [*first.runs, ("  archived", "muted")]
    return [first, second]


def status_line(
    document: Document, cursor: int, *, left: list[Run], width: int, search: Search | None,
    signs: Mapping[int, str] = NO_SIGNS,
) -> tuple[Line, tuple[int, int] | None]:
    """Return the line below, and the columns of its map.

    Args:
        document: What is shown.
        cursor: The selected part.
        left: The runs at the left.
        width: Columns of the line.
        search: The search that is on, if any.
        signs: Signs of labels and marks by part, in order.
    """
    total = len(document)
    if not total:
        return Line(left), None
    if not document.complete:
        return Line(left, right=[(f"{glyphs().more} of the session is being counted", "faint")]), (
            None)
    position: list[Run] = [(f"part {cursor + 1:,} of {total:,} ", "muted")]
    room = MAP_CELLS if width >= 72 else 10 if width >= 50 else 0
    hits = search.parts if search is not None else ()
    cells_of_map = minimap(
        document.heights, room, cursor, document.skeleton.errors, hits, signs)
    share = f" {100 * (cursor + 1) // total:>3}%"
    right = [*position, *cells_of_map, (share, "muted")]
    end = width - 1 - cells(share)
    return Line(left, right=right), (end - len(cells_of_map), end)


def minimap(
    heights: Heights, cells: int, here: int, errors: Sequence[int], hits: Sequence[int],
    signs: Mapping[int, str] = NO_SIGNS,
) -> list[Run]:
    """Return one run a cell.

    Args:
        heights: Lines by part.
        cells: How many cells; each covers as many parts.
        here: The selected part.
        errors: Parts with errors, in order.
        hits: Parts with hits, in order.
        signs: Signs by part, in order; the first of a cell is drawn in place of its height.
    """
    count = len(heights)
    cells = min(cells, count)
    if cells <= 0:
        return []
    edges = [count * cell // cells for cell in range(cells + 1)]
    above = [heights.above(edge) for edge in edges]
    sizes = [(above[n + 1] - above[n]) / (edges[n + 1] - edges[n]) for n in range(cells)]
    most = max(max(sizes), 1)
    levels = glyphs().levels[1:]
    runs: list[Run] = []
    signed = list(signs)
    for cell, size in enumerate(sizes):
        low, high = edges[cell], edges[cell + 1]
        level = levels[min(len(levels) - 1, int(size / most * len(levels)))]
        ink = "faint"
        if _within(errors, low, high):
            ink = "error"
        if _within(hits, low, high):
            ink = "tool"
        place = bisect_left(signed, low)
        if place < len(signed) and signed[place] < high:
            level, ink = signs[signed[place]], ink if ink != "faint" else "fork"
        if low <= here < high:
            ink = f"{'text' if ink == 'faint' else ink} reverse"
        runs.append((level, ink))
    return runs


def _within(parts: Sequence[int], low: int, high: int) -> bool:
    place = bisect_left(parts, low)
    return place < len(parts) and parts[place] < high


class Headings:
    """Keeps the lines around the transcript up to date."""

    def __init__(self, shown: ShownSession, new_below: NewBelow) -> None:
        """Make the widgets, still empty.

        Args:
            shown: The session.
            new_below: Counts what has come below.
        """
        self._shown, self._new_below = shown, new_below
        self.header = FactLines(2, id="transcript-header")
        self.waiting = FactLines(1, id="transcript-waiting")
        self.waiting.display = False
        self.status = FactLines(1, id="transcript-status")

    def show_opening(self, title: str | None) -> None:
        """Show that a session is being opened."""
        name = one_line(title or "") or "untitled"
        opening = Line([(f"opening{glyphs().more}", "faint")])
        self.header.show([Line([(name, "text bold")]), opening])

    def show_nothing(self, text: str) -> None:
        """Show why there is no session."""
        self.header.show([Line([(one_line(text), "muted")])])
        self.status.show([])

    def update(self, width: int) -> None:
        """Show the session as it is now.

        Args:
            width: Columns of the status line.
        """
        shown = self._shown
        if shown.session is not None:
            self.header.show(header_lines(
                shown.session, shown.document, shown.cursor, shown.activity, shown.context_size,
                shown.back, shown.family))
            line, columns = status_line(
                shown.document, shown.cursor, left=self._left(), width=width,
                search=shown.search, signs=shown.signs)
            self.status.map_columns = columns
            self.status.show([line])
        words = _waiting_words(shown)
        self.waiting.display = bool(words)
        if words:
            self.waiting.show([Line([(f" {glyphs().waiting} {words} ", "tool bold reverse")])])

    def _left(self) -> list[Run]:
        shown, document = self._shown, self._shown.document
        if shown.search is not None:
            return _search_runs(shown.search, document)
        if shown.hit is not None and shown.hit.tour.words:
            return [(shown.hit.tour.words, "text bold"), ("  n N", "faint")]
        if not len(document):
            return [(empty_words(shown), "muted")]
        label = document.setting.labels.get(shown.message_id)
        runs: list[Run] = [(f"“{one_line(label)}”  ", "tool")] if label else []
        runs += self._end_runs()
        known = document.message_row(shown.cursor)
        if known is not None:
            message, metadata = known
            runs.append((message_facts(message.role, message.created_at, metadata), "faint"))
        return runs

    def _end_runs(self) -> list[Run]:
        """Return whether the end is followed, or how much has come below."""
        shown = self._shown
        if shown.view.at_end:
            live = shown.activity is not None and shown.activity.state in LIVE
            return [(f"{glyphs().down} {'following' if live else 'end'}  ", "ok")]
        count = self._new_below.count()
        if not count:
            return []
        return [(f"{glyphs().down} {count:,} new below", "tool bold"), ("  G  ", "muted")]


def _search_runs(search: Search, document: Document) -> list[Run]:
    runs: list[Run] = [("/", "muted"), (one_line(search.needle), "text bold"), ("  ", "text")]
    if search.total and search.done:
        runs.append((f"{search.number:,} of {search.total:,}", "text"))
    elif search.total:
        runs.append((f"{search.total:,} so far", "text"))
    elif search.done:
        runs.append(("not in this session", "error"))
    if not search.done:
        count = max(1, len(document.skeleton.message_ids))
        runs.append((f"  looked through {100 * search.scanned // count} %", "faint"))
    elif search.total:
        runs.append(("  n N", "faint"))
    return runs


def empty_words(shown: ShownSession) -> str:
    """Return why a session without messages has none; of one that nothing reads, the way out."""
    if not shown.is_unread:
        return "This session has no messages"
    return host_of(shown.view).why_unread() or "Reading this session"


def _waiting_words(shown: ShownSession) -> str:
    """Return what the session waits for, "" where it does not wait."""
    state = shown.activity.state if shown.activity is not None else ""
    if state not in ("waiting-approval", "waiting-input"):
        return ""
    what = "your approval" if state == "waiting-approval" else "your answer"
    return f"waits for {what}{_waiting_call(shown.document, state)}"


def _waiting_call(document: Document, state: str) -> str:
    wanted = WAITING if state == "waiting-approval" else UNSETTLED
    count = len(document)
    for part in range(count - 1, max(-1, count - 1 - LOOKED_BACK), -1):
        item = document.item(part) if document.skeleton.states[part] == wanted else None
        if item is not None:
            call = describe(item.data)
            return f": {one_line(call.name)} {one_line(call.what)}"
    return ""
