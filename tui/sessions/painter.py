"""How a row of the session list is drawn: as lines, which the list and the first frame paint."""

from __future__ import annotations

from datetime import date

from store.queries.list_options import GROUPS, SORTS
from store.queries.listing import ListQuery, ListRow
from store.system.records import NamedTuple
from store.text import figures
from tui.kit.glyphs import Glyphs
from tui.kit.lines import Line, Run
from tui.kit.masked import shown
from tui.kit.text import cells, fit, fit_path, one_line
from tui.sessions.columns import ONE_LINE_FROM, figures_of, shown_columns
from tui.sessions.facts import facts_of
from tui.sessions.model import GroupSpan, ListModel
from tui.words.sessions import STATE_WORDS, age, heading

GUTTER = 3
"""Columns of the bar, the state's glyph and a space."""
TALL_FROM = 14
"""From this height of the list on a row has two lines."""

LEAST_FACTS = 5
"""Columns below which facts are left out beside a state's word."""
FACTS_COLUMNS = 26
BLANK_ROW = Line(ground="panel")


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
    """Draws rows for one width and moment; the ground of each line is the row's.

    Attributes:
        width: Columns.
        height: Lines of a row, 1 or 2.
        focused: Whether the list has the focus.
        now: Epoch ms.
        differing: Fields of the facts by which the sessions of the list differ.
        masked: Whether the view is masked.
    """

    width: int
    height: int
    glyphs: Glyphs
    query: ListQuery
    focused: bool
    now: int
    differing: frozenset[str] = frozenset()
    masked: bool = False

    def heading(self, span: GroupSpan, line: int, *, counted: bool) -> Line:
        """Draw a line of a group's heading; its last line has the name.

        Args:
            span: The group.
            line: 0 or 1, within the heading.
            counted: Whether it has all its sessions yet.
        """
        if line == 0:
            return BLANK_ROW
        noun = figures.count_of(span.sessions, "session") if counted else ""
        group = GROUPS[self.query.group]
        name = heading(span.name, group, date.fromtimestamp(self.now / 1000))
        room = self.width - cells(noun) - 3
        cut = fit_path(name, room) if group.heading == "folder" else fit(name, room)
        return Line([(f" {cut}", "muted bold")], [(noun + " ", "faint")], ground="panel")

    def missing(self, entry: Entry, line: int) -> Line:
        """Draw a row whose session is still being read."""
        ground = self._ground(entry)
        text = " " * GUTTER + self.glyphs.more if line == 0 else ""
        return Line([(text, "faint")], ground=ground)

    def session(self, row: ListRow, entry: Entry, line: int) -> Line:
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
        return Line(left, [*right, (" ", "text")], ground=ground)

    def _ground(self, entry: Entry) -> str:
        if not entry.selected:
            return "panel"
        return "focus" if self.focused else "raised"

    def _bar(self, entry: Entry) -> Run:
        if entry.selected:
            return self.glyphs.thick_bar, "user" if self.focused else "mark"
        return " ", "text"

    def _state(self, row: ListRow, entry: Entry) -> Run:
        glyphs = self.glyphs
        if entry.marked:
            return glyphs.mark, "fork bold"
        glyph, ink = self._activity(row)
        if row.lineage is not None and entry.depth:
            glyph = glyphs.subagent if row.lineage == "subagent" else glyphs.fork
            if ink == "faint":
                ink = "fork"
        return glyph, ink

    def _activity(self, row: ListRow) -> Run:
        glyphs = self.glyphs
        state = row.activity or "idle"
        if state in ("running", "retrying"):
            return glyphs.running, "ok"
        if state.startswith("waiting") or state == "queued":
            return glyphs.waiting, "tool"
        if state in ("error", "interrupted"):
            return glyphs.failed, "error"
        return glyphs.idle, "faint"

    def _tree(self, entry: Entry, line: int) -> Run:
        """Draw the lines that hang a session under its parent."""
        if not entry.depth:
            return "", "text"
        glyphs = self.glyphs
        rails = "".join(
            f"{glyphs.rail} " if entry.rails >> depth & 1 else "  "
            for depth in range(1, min(entry.depth, 6))
        )
        if line == 0:
            own = (glyphs.last_branch if entry.last else glyphs.branch) + glyphs.rule
        else:
            own = "  " if entry.last else f"{glyphs.rail} "
        return rails + own, "rule"

    def _title(self, row: ListRow, entry: Entry) -> list[Run]:
        blank = (" ", "text")
        plain = row.archived_at is not None
        words = one_line(shown(row.title) or "", 400)
        ink = "muted" if plain or not words else "text"
        ink += " bold" if entry.selected else ""
        ink += "" if words else " italic"
        tail: list[Run] = []
        if row.star:
            tail.append((f" {self.glyphs.star}", "tool"))
        if entry.children and entry.folded:
            tail.append((f" {self.glyphs.folded}{entry.children}", "fork"))
        head = [self._bar(entry)]
        head += [self._tree_gutter(entry, 0), self._state(row, entry), blank] if entry.depth else [
            self._state(row, entry), blank]
        facts = self._one_line_facts(row, entry) if self.height == 1 else [self._age(row, entry)]
        room = self.width - sum(cells(text) for text, _ in (*head, *tail, *facts)) - 2
        return [*head, (fit(words or "untitled", room), ink), *tail]

    def _tree_gutter(self, entry: Entry, line: int) -> Run:
        tree, ink = self._tree(entry, line)
        return "  " + tree, ink

    def _age(self, row: ListRow, entry: Entry) -> Run:
        running = row.activity in ("running", "retrying")
        at: int = getattr(row, SORTS[self.query.sort].date)
        words = age(at, self.now)
        return words, "ok" if running else "faint"

    def _word(self, row: ListRow, entry: Entry) -> list[Run]:
        """Return the state as a word, where it is worth one."""
        dot = f" {self.glyphs.dot} "
        pieces: list[Run] = []
        word = STATE_WORDS.get(row.activity or "")
        if row.activity == "unknown" and row.said and isinstance(row.said.get("word"), str):
            # The word of the source, which has no meaning here.
            word = one_line(row.said["word"], 24)
        if row.prompts_only:
            pieces += [("prompts only", "muted"),
                       (dot, "faint")]
        if word:
            word = f"~{word}" if row.activity_from == "guessed" else word
            pieces += [(word, self._activity(row)[1]),
                       (dot, "faint")]
        if row.archived_at is not None:
            pieces += [("archived", "muted"),
                       (dot, "faint")]
        return pieces

    def _facts(self, row: ListRow, entry: Entry) -> list[Run]:
        head = [self._bar(entry)]
        if entry.depth:
            head.append(self._tree_gutter(entry, 1))
        head.append(("  ", "text"))
        words, figures_width = self._word(row, entry), cells(self._figures(row, entry)[0])
        room = self.width - figures_width - 2 - sum(cells(text) for text, _ in (*head, *words))
        facts = self._told(row, room) if not words or room >= LEAST_FACTS else ""
        return [*head, *words, (facts, "faint")] if facts else [*head, *words[:-1]]

    def _told(self, row: ListRow, room: int) -> str:
        return facts_of(row, self.differing, GROUPS[self.query.group], room)

    def _figures(self, row: ListRow, entry: Entry) -> Run:
        columns = shown_columns(self.width, self.height, SORTS[self.query.sort])
        return figures_of(row, columns, self.height), "faint"

    def _one_line_facts(self, row: ListRow, entry: Entry) -> list[Run]:
        when, when_ink = self._age(row, entry)
        if self.width < ONE_LINE_FROM:
            shown, ink = self._figures(row, entry)
            return [(f"{shown} ", ink), (f"{when:>4}", when_ink)]
        words = self._word(row, entry)
        room = FACTS_COLUMNS - sum(cells(text) for text, _ in words)
        facts = self._told(row, max(0, room - 1))
        if words and not facts:
            dot, _ink = words.pop()
            room += cells(dot)
        return [*words, (facts + " " * (room - cells(facts)), "faint"),
                self._figures(row, entry), (f"{when:>5}", when_ink)]
