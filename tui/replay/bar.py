"""The position bar of a replay: time of day, turns as ticks, waits, and the place on it."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message

from store.replay.log import bounded
from store.replay.player import Player
from store.replay.timeline import Origin, Timeline
from store.text import figures
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run, width_of
from tui.kit.paint import MARGIN
from tui.replay.reading import Left
from tui.transcript.headings import FactLines
from tui.words.messages import same_day

SECONDS_FROM, DAYS_FROM = 60, 90
"""Columns from which times have seconds, and days where the session takes several."""
ORIGINS: dict[Origin, tuple[str, str]] = {
    "log": ("from the log", "log"),
    "both": ("from the log, and from the times of the rows before it", "log and rows"),
    "rows": ("from the times of the rows", "rows"),
    "none": ("without times: a second each message", "no times"),
}
"""Where the times are from, in full and in short."""


def elapsed_words(milliseconds: int) -> str:
    """Return a stretch of time, such as ``0:42``, ``1:02:13`` and ``3d 04:05:06``."""
    minutes, seconds = divmod(max(0, milliseconds) // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{hours // 24:,}d {hours % 24:02}:{minutes:02}:{seconds:02}"


def time_words(at: int, width: int, *, days: bool) -> str:
    """Return the local time of day.

    Args:
        at: Epoch ms.
        width: Columns of the bar.
        days: Whether the session takes several days, so that a wide bar names them.
    """
    at = bounded(at)
    words = figures.clock(at) if width >= SECONDS_FROM else figures.clock(at)[:5]
    return f"{figures.moment(at)[:10]} {words}" if days and width >= DAYS_FROM else words


def bar_line(
    player: Player, timeline: Timeline, width: int, unread: Left | None = None
) -> tuple[Line, tuple[int, int]]:
    """Return the bar between the time that is shown and the last, and its columns.

    Args:
        player: Where the replay is.
        timeline: Has the turns.
        width: Columns of the line, without its margins.
        unread: How far the session is read: what is to come has dots; None where it all is.
    """
    axis = player.axis
    if timeline.origin == "none":
        left, right = elapsed_words(player.at - axis.begin), elapsed_words(axis.finish - axis.begin)
    else:
        days = not same_day(axis.begin, axis.finish)
        left = time_words(player.at, width, days=days)
        right = "now" if player.running else time_words(axis.finish, width, days=days)
    cells = max(1, width - len(left) - len(right) - 2)
    runs: list[Run] = [(f"{left} ", "text")]
    start = width_of(runs)
    read = cells
    if unread is not None and not unread.log:
        read = max(1, min(cells, cells * unread.done // max(1, unread.of)))
    runs += bar_cells(player, timeline, read)
    runs.append((glyphs().dot * (cells - read), "faint"))
    runs.append((f" {right}", "muted"))
    return Line(runs), (start + MARGIN, start + MARGIN + read)


def bar_cells(player: Player, timeline: Timeline, cells: int) -> list[Run]:
    """Return one run a cell: what was played, ticks of turns, waits, and the place.

    Args:
        player: Where the replay is.
        timeline: Has the turns.
        cells: How many.
    """
    marks, axis, here = glyphs(), player.axis, _cell(player.share, cells)
    steps = max(1, cells - 1)
    edges = [axis.moment((cell - 0.5) / steps * player.length, skip=player.skip)
             for cell in range(cells)]
    edges.append(axis.finish + 1)
    runs: list[Run] = []
    for cell in range(cells):
        played, stretch = cell <= here, (edges[cell], edges[cell + 1])
        if cell == here:
            runs.append((marks.running, "text bold"))
        elif timeline.has_turn(*stretch):
            runs.append((marks.rail, "user bold" if played else "muted"))
        else:
            mark = marks.dashed if axis.has_wait(*stretch) else marks.rule
            runs.append((mark, "assistant" if played else "faint"))
    return runs


def _cell(share: float, cells: int) -> int:
    return max(0, min(cells - 1, round(share * (cells - 1))))


def _origins(timeline: Timeline, left: Left | None) -> tuple[str, str]:
    """Return where the times are from, or how much is still to be read, in full and in short."""
    if left is None:
        return ORIGINS[timeline.origin]
    if left.log:
        return f"reading the log: {left.of:,} changes", "reading"
    return f"reading: {left.done:,} of {left.of:,} messages", "reading"


def facts_line(
    player: Player, timeline: Timeline, width: int, left: Left | None = None
) -> Line:
    """Return what the replay does: speed, elapsed time, turn, waits, where the times are from.

    Args:
        player: Plays the session.
        timeline: The times of the session.
        width: Columns of the line, without its margins.
        left: How far the session is read; None where it all is.
    """
    marks, axis = glyphs(), player.axis
    if player.live:
        state: Run = (f"{marks.running} live", "ok bold")
    elif player.playing:
        state = (f"{marks.folded} {player.speed}x", "ok bold")
    else:
        state = (f"{marks.thick_bar}{marks.thick_bar} paused {player.speed}x", "tool bold")
    turns = len(timeline.turn_times)
    turn = timeline.turn_at(player.at)
    facts = [
        f"{elapsed_words(player.at - axis.begin)} of {elapsed_words(axis.finish - axis.begin)}",
        f"turn {turn:,} of {turns:,}" if turns else "",
        "waits skipped" if player.skip else "waits in full",
    ]
    full, short = _origins(timeline, left)
    for count in range(len(facts), 0, -1):
        words = "  ".join(fact for fact in facts[:count] if fact)
        runs: list[Run] = [state, (f"  {words}", "muted")]
        for origin in (full, short):
            if width_of(runs) + len(origin) + 2 <= width:
                return Line(runs, right=[(origin, "faint")])
    return Line([state], right=[(short, "faint")])


class PositionBar(FactLines):
    """The bar and what is said below it; a click or a drag goes to a place."""

    DEFAULT_CSS = "PositionBar { height: 2; }"

    @dataclass
    class Sought(Message):
        """The mouse asks for a place, as a share of the whole."""

        share: float

    def __init__(self) -> None:
        """Make it empty."""
        super().__init__(2, id="replay-bar", ground="panel")
        self._dragging = False

    def show_replay(
        self, player: Player, timeline: Timeline, left: Left | None = None
    ) -> None:
        """Show where a replay is.

        Args:
            player: Plays the session.
            timeline: The times of the session.
            left: How far the session is read; None where it all is.
        """
        width = max(1, self.size.width - 2 * MARGIN)
        line, self.map_columns = bar_line(player, timeline, width, left)
        self.show([line, facts_line(player, timeline, width, left)])

    def on_click(self, event: events.Click) -> None:
        """Do nothing more: pressing the button went there already."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Go where the bar is pressed, and hold its place."""
        columns = self.map_columns
        if columns is not None and event.y == 0 and columns[0] <= event.x < columns[1]:
            event.stop()
            self._dragging = True
            self.capture_mouse()
            self._seek(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Go along with the mouse."""
        if self._dragging:
            self._seek(event.x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Release the place."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _seek(self, column: int) -> None:
        low, high = self.map_columns or (0, 1)
        share = (column - low) / max(1, high - low - 1)
        self.post_message(self.Sought(max(0.0, min(1.0, share))))
