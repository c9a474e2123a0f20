"""How a row of the session list is drawn."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from store.queries.list_options import GROUPS, SORTS
from store.queries.listing import ListQuery, ListRow
from tui.kit import figures
from tui.kit.glyphs import Glyphs
from tui.kit.palette import Palette
from tui.kit.text import cells, fit, fit_path, one_line
from tui.sessions.columns import figures_of, shown_columns
from tui.sessions.model import GroupSpan, ListModel
from tui.sessions.wording import STATE_WORDS, age, folder, heading, model_name, short_kind

Piece = tuple[str, Style]
GUTTER = 3
"""Columns of the bar, the state's glyph and a space."""
ONE_LINE_FROM = 72
"""From this width on a row has room for all its columns on one line."""
TALL_FROM = 14
"""From this height of the list on a row has two lines."""

LEAST_ORIGIN = 5
"""Columns below which the origin is left out beside a state's word."""
ORIGIN_COLUMNS = 26


@lru_cache(maxsize=256)
def style(colour: str, ground: str, bold: bool = False, italic: bool = False) -> Style:
    """Return a cached rich style.

    Args:
        colour: Of the text, as ``#rrggbb``.
        ground: The background likewise.
        bold: Whether the text is bold.
        italic: Whether it is italic.
    """
    return Style(color=colour, bgcolor=ground, bold=bold, italic=italic)


class Entry(NamedTuple):
    """What is drawn of a row beside the session itself."""

    depth: int = 0
    last: bool = False
    rails: int = 0
    children: int = 0
    folded: bool = False
    selected: bool = False
    marked: bool = False

    @classmethod
    def of(cls, model: ListModel, at: int, *, selected: bool, marked: bool) -> Entry:
        """Return the facts of an entry of a list.

        Args:
            model: The list.
            at: The entry.
            selected: Whether the cursor is on it.
            marked: Whether it is marked.
        """
        rowid = model.rowids[at]
        return cls(
            model.depths[at], bool(model.lasts[at]), model.rails[at],
            model.children.get(rowid, 0), rowid in model.folded, selected, marked,
        )


def row_height(width: int, height: int) -> int:
    """Return the lines of a row: two where there is room, one on a wide or a low list.

    Args:
        width: Of the list, in columns.
        height: Of the list, in lines; 0 while that is not known.
    """
    return 2 if width < ONE_LINE_FROM and (not height or height >= TALL_FROM) else 1


class RowPainter(NamedTuple):
    """Draws rows for one width, theme and moment.

    Attributes:
        width: Columns.
        height: Lines of a row, 1 or 2.
        focused: Whether the list has the focus.
        now: Epoch ms.
    """

    width: int
    height: int
    palette: Palette
    glyphs: Glyphs
    query: ListQuery
    focused: bool
    now: int

    def heading(self, span: GroupSpan, line: int) -> Strip:
        """Draw a line of a group's heading; its last line has the name."""
        palette = self.palette
        if line == 0:
            return blank(self.width, palette.panel)
        noun = figures.count_of(span.sessions, "session")
        group = GROUPS[self.query.group]
        name = heading(span.name, group, date.fromtimestamp(self.now / 1000))
        room = self.width - cells(noun) - 3
        cut = fit_path(name, room) if group.heading == "folder" else fit(name, room)
        return self._line(
            [(f" {cut}", style(palette.muted, palette.panel, bold=True))],
            [(noun + " ", style(palette.faint, palette.panel))], palette.panel,
        )

    def missing(self, entry: Entry, line: int) -> Strip:
        """Draw a row whose session is still being read."""
        ground = self._ground(entry)
        text = " " * GUTTER + self.glyphs.more if line == 0 else ""
        return self._line([(text, style(self._faint(entry), ground))], [], ground)

    def session(self, row: ListRow, entry: Entry, line: int) -> Strip:
        """Draw a line of a session.

        Args:
            row: The session.
            entry: How it is arranged in the list.
            line: 0 or 1, within the row.
        """
        ground = self._ground(entry)
        if self.height == 1:
            left, right = self._title(row, entry), self._one_line_facts(row, entry)
        elif line == 0:
            left, right = self._title(row, entry), [self._age(row, entry)]
        else:
            left, right = self._facts(row, entry), [self._figures(row, entry)]
        return self._line(left, [*right, (" ", style(self.palette.text, ground))], ground)

    def _ground(self, entry: Entry) -> str:
        if not entry.selected:
            return self.palette.panel
        return self.palette.focus if self.focused else self.palette.raised

    def _faint(self, entry: Entry) -> str:
        return self.palette.muted if entry.selected else self.palette.faint

    def _line(self, left: list[Piece], right: list[Piece], ground: str) -> Strip:
        """Set pieces at both edges; the left ones are cut where the room ends."""
        room = self.width - sum(cells(text) for text, _ in right)
        segments, used = [], 0
        for text, look in left:
            text = fit(text, room - used - (1 if right and text.strip() else 0))
            used += cells(text)
            segments.append(Segment(text, look))
        segments.append(Segment(" " * (room - used), style(self.palette.text, ground)))
        segments += [Segment(text, look) for text, look in right]
        return Strip(segments, self.width)

    def _bar(self, entry: Entry) -> Piece:
        palette = self.palette
        if entry.selected:
            colour = palette.user if self.focused else palette.faint
            return self.glyphs.thick_bar, style(colour, self._ground(entry))
        return " ", style(palette.text, palette.panel)

    def _state(self, row: ListRow, entry: Entry) -> Piece:
        palette, glyphs, ground = self.palette, self.glyphs, self._ground(entry)
        if entry.marked:
            return glyphs.mark, style(palette.fork, ground, bold=True)
        glyph, colour = self._activity(row, entry)
        if row.lineage is not None and entry.depth:
            glyph = glyphs.subagent if row.lineage == "subagent" else glyphs.fork
            if colour == self._faint(entry):
                colour = palette.fork
        return glyph, style(colour, ground)

    def _activity(self, row: ListRow, entry: Entry) -> tuple[str, str]:
        palette, glyphs = self.palette, self.glyphs
        state = row.activity or "idle"
        if state in ("running", "retrying"):
            return glyphs.running, palette.ok
        if state.startswith("waiting") or state == "queued":
            return glyphs.waiting, palette.tool
        if state in ("error", "interrupted"):
            return glyphs.failed, palette.error
        return glyphs.idle, self._faint(entry)

    def _tree(self, entry: Entry, line: int) -> Piece:
        """Draw the lines that hang a session under its parent."""
        if not entry.depth:
            return "", style(self.palette.text, self._ground(entry))
        glyphs = self.glyphs
        rails = "".join(
            f"{glyphs.rail} " if entry.rails >> depth & 1 else "  "
            for depth in range(1, min(entry.depth, 6))
        )
        if line == 0:
            own = (glyphs.last_branch if entry.last else glyphs.branch) + glyphs.rule
        else:
            own = "  " if entry.last else f"{glyphs.rail} "
        ground = self._ground(entry)
        colour = self.palette.muted if entry.selected else self.palette.rule
        return rails + own, style(colour, ground)

    def _title(self, row: ListRow, entry: Entry) -> list[Piece]:
        palette, ground = self.palette, self._ground(entry)
        blank = (" ", style(palette.text, ground))
        plain = row.archived_at is not None
        words = one_line(row.title or "", 400)
        look = style(
            palette.muted if plain or not words else palette.text, ground,
            bold=entry.selected, italic=not words,
        )
        tail: list[Piece] = []
        if row.star:
            tail.append((f" {self.glyphs.star}", style(palette.tool, ground)))
        if entry.children and entry.folded:
            tail.append((f" {self.glyphs.folded}{entry.children}", style(palette.fork, ground)))
        head = [self._bar(entry)]
        head += [self._tree_gutter(entry, 0), self._state(row, entry), blank] if entry.depth else [
            self._state(row, entry), blank]
        facts = self._one_line_facts(row, entry) if self.height == 1 else [self._age(row, entry)]
        room = self.width - sum(cells(text) for text, _ in (*head, *tail, *facts)) - 2
        return [*head, (fit(words or "untitled", room), look), *tail]

    def _tree_gutter(self, entry: Entry, line: int) -> Piece:
        tree, look = self._tree(entry, line)
        return "  " + tree, look

    def _age(self, row: ListRow, entry: Entry) -> Piece:
        palette, ground = self.palette, self._ground(entry)
        running = row.activity in ("running", "retrying")
        at: int = getattr(row, SORTS[self.query.sort].date)
        words = age(at, self.now)
        colour = palette.ok if running else self._faint(entry)
        return words, style(colour, ground)

    def _word(self, row: ListRow, entry: Entry) -> list[Piece]:
        """Return the state as a word, where it is worth one."""
        ground, dot = self._ground(entry), f" {self.glyphs.dot} "
        pieces: list[Piece] = []
        word = STATE_WORDS.get(row.activity or "")
        if row.activity == "unknown" and row.said and isinstance(row.said.get("word"), str):
            # The word of the source, which has no meaning here.
            word = one_line(row.said["word"], 24)
        if row.prompts_only:
            pieces += [("prompts only", style(self.palette.muted, ground)),
                       (dot, style(self._faint(entry), ground))]
        if word:
            word = f"~{word}" if row.activity_from == "guessed" else word
            pieces += [(word, style(self._activity(row, entry)[1], ground)),
                       (dot, style(self._faint(entry), ground))]
        if row.archived_at is not None:
            pieces += [("archived", style(self.palette.muted, ground)),
                       (dot, style(self._faint(entry), ground))]
        return pieces

    def _facts(self, row: ListRow, entry: Entry) -> list[Piece]:
        ground = self._ground(entry)
        head = [self._bar(entry)]
        if entry.depth:
            head.append(self._tree_gutter(entry, 1))
        head.append(("  ", style(self.palette.text, ground)))
        words, figures_width = self._word(row, entry), cells(self._figures(row, entry)[0])
        room = self.width - figures_width - 2 - sum(cells(text) for text, _ in (*head, *words))
        if words and room < LEAST_ORIGIN:
            return [*head, *words[:-1]]
        origin = self._origin(row, room), style(self._faint(entry), ground)
        return [*head, *words, origin]

    def _origin(self, row: ListRow, room: int) -> str:
        """Return folder, source and model of a session, with a shorter source on few cells."""
        kind = "subagent" if row.lineage == "subagent" else one_line(row.source or row.agent, 60)
        place = ""
        if GROUPS[self.query.group].field != "workspace" and row.workspace:
            place = folder(row.workspace).rstrip("/").rpartition("/")[2]
        long, short = (
            f" {self.glyphs.dot} ".join(filter(None, (place, name, model_name(row.model))))
            for name in (kind, short_kind(kind))
        )
        return long if cells(long) <= room else fit(short, room)

    def _figures(self, row: ListRow, entry: Entry) -> Piece:
        columns = shown_columns(self.width, self.height, SORTS[self.query.sort])
        look = style(self._faint(entry), self._ground(entry))
        return figures_of(row, columns, self.height), look

    def _one_line_facts(self, row: ListRow, entry: Entry) -> list[Piece]:
        look = style(self._faint(entry), self._ground(entry))
        when, when_look = self._age(row, entry)
        if self.width < ONE_LINE_FROM:
            spent = figures.tokens(row.tokens) if row.tokens else ""
            return [(f"{spent:>6} ", look), (f"{when:>4}", when_look)]
        words = self._word(row, entry)
        room = ORIGIN_COLUMNS - sum(cells(text) for text, _ in words)
        origin = self._origin(row, max(0, room - 1))
        return [*words, (origin + " " * (room - cells(origin)), look),
                self._figures(row, entry), (f"{when:>5}", when_look)]


def blank(width: int, ground: str) -> Strip:
    """Return an empty line."""
    return Strip([Segment(" " * width, style("#000000", ground))], width)
