"""The two lines above the transcript and the one below it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from store.activity.judgement import Activity
from store.rows import SessionRow
from tui.kit import figures
from tui.kit.glyphs import glyphs
from tui.kit.guard import filtered
from tui.kit.lines import Line, Run, cut, width_of
from tui.kit.paint import Paint, paint_of
from tui.kit.text import cells, fit, one_line
from tui.sessions.wording import folder, model_name
from tui.transcript.document import Document
from tui.transcript.minimap import minimap
from tui.transcript.plain import as_dict, decode
from tui.transcript.search import Search

MAP_CELLS = 20
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

    def __init__(self, height: int, *, id: str) -> None:
        """Make a number of empty lines."""
        super().__init__(id=id)
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
            known = self._lines, width, paint, [_fact_strip(a, width, paint) for a in lines]
            self._painted = known
        strips = filtered(self, known[3][crop.y:crop.bottom])
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def render_line(self, y: int) -> Strip:
        """Return one line, for the mouse."""
        return self.render_lines(Region(0, y, self.size.width, 1))[0]

    def on_click(self, event: events.Click) -> None:
        """Say where in the map the click was."""
        share = None
        if self.map_columns is not None:
            low, high = self.map_columns
            if low <= event.x < high:
                share = (event.x - low + 0.5) / (high - low)
        self.post_message(self.Pressed(share))


def _fact_strip(line: Line, width: int, paint: Paint) -> Strip:
    right = width_of(line.right)
    runs = cut(line.runs, max(0, width - 2 - (right + 2 if right else 0)))
    right_runs = cut(line.right, max(0, width - 2 - width_of(runs)))
    fill = max(0, width - 2 - width_of(runs) - width_of(right_runs))
    segments = [Segment(" ", paint.style("text"))]
    segments += [Segment(text, paint.style(ink)) for text, ink in runs]
    segments.append(Segment(" " * fill, paint.style("text")))
    segments += [Segment(text, paint.style(ink)) for text, ink in right_runs]
    segments.append(Segment(" ", paint.style("text")))
    return Strip(segments).adjust_cell_length(width, paint.style("text"))


def state_runs(state: str, elapsed: str = "", *, guessed: bool = False) -> list[Run]:
    """Return glyph and word of what a session does; nothing where it rests.

    A guess is marked, as in the list.
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
    below: str = "",
) -> list[Line]:
    """Return title, state and turn; source, model, workspace, branch and context.

    Args:
        row: The session.
        document: What is shown of it.
        cursor: The selected part.
        activity: What the session does.
        context: Tokens in the context now, 0 where unknown.
        below: Title of the session that escape leads back to.
    """
    metadata = as_dict(decode(row.metadata_json))
    title = one_line(row.title or "") or "untitled"
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
    if below:
        second.runs = [(f"esc back to {fit(one_line(below), 32)}  ", "fork"), *second.runs]
    if context:
        second.right = [(f"context {figures.tokens(context)}", "faint")]
    if row.archived_at:
        first.runs = [*first.runs, ("  archived", "muted")]
    return [first, second]


def status_line(
    document: Document, top: int, cursor: int, *, left: list[Run], width: int,
    search: Search | None,
) -> tuple[Line, tuple[int, int] | None]:
    """Return the line below, and the columns of its map.

    Args:
        document: What is shown.
        top: The part at the top of the screen.
        cursor: The selected part.
        left: What stands at the left.
        width: Columns of the line.
        search: The search that is on, if any.
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
    cells_of_map = minimap(document.heights, room, cursor, document.skeleton.errors, hits)
    share = f" {100 * (cursor + 1) // total:>3}%"
    right = [*position, *cells_of_map, (share, "muted")]
    end = width - 1 - cells(share)
    return Line(left, right=right), (end - len(cells_of_map), end)
