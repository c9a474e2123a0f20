"""The list of results without a screen: its entries in lines, and which one is selected."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, NamedTuple

from store.search.hits import Hit, SessionHits
from tui.kit.glyphs import glyphs
from tui.kit.lines import BLANK, Line
from tui.search.lines import HEADING_LINES, bar_of, heading_lines, hit_lines

HITS_OF_A_SESSION = 5
"""Hits of a session that are shown before it is opened."""

Key = tuple[str, str, int]
"""Names an entry that can be selected: session, message, index of the part.

The line that counts further hits has no message and the index -2.
"""


Kind = Literal["heading", "hit", "more", "gap"]


class Entry(NamedTuple):
    """Some lines of the list that belong together.

    Attributes:
        session: The number of its session.
        hit: The number of its hit in the session; None where it is no hit. A heading is one
            where the title matches.
        start: Its first line.
        lines: How many lines it has.
    """

    kind: Kind
    session: int
    hit: int | None
    start: int
    lines: int

    @property
    def selectable(self) -> bool:
        """Whether the cursor can be on it."""
        return self.kind == "more" or self.hit is not None


def key_of(hit: Hit) -> Key:
    """Return the key of a hit."""
    return hit.session_id, hit.message_id or "", hit.index


class Results:
    """What was found, in entries of a width; one of them is selected.

    Attributes:
        sessions: By session, in the order of the search.
        selected: The key of the selected entry; None while there is none.
        opened: Ids of sessions of which all known hits are shown.
        hits: All known hits in the order of the list, folded ones too.
        version: Grows with each change of what is shown.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.sessions: Sequence[SessionHits] = ()
        self.selected: Key | None = None
        self.opened: set[str] = set()
        self.hits: list[Hit] = []
        self.version = 0
        self._numbers: dict[Key, int] = {}
        self._entries: list[Entry] = []
        self._starts: list[int] = []
        self._width = 80
        self._now = 0
        self._laid: dict[Key, list[Line]] = {}

    # What is in it

    def show(
        self, sessions: Sequence[SessionHits], *, now: int, fresh: bool = False,
        renewed: bool = False,
    ) -> None:
        """Take what was found.

        Args:
            sessions: All sessions with hits that are known now.
            now: Epoch ms.
            fresh: Whether they are of another search: the first hit is selected.
            renewed: Whether they are read anew: the selected hit may be gone, or another.
        """
        entry, before = self.entry, [each for each in self._entries if each.selectable]
        place = before.index(entry) if renewed and entry is not None else None
        if fresh or renewed:
            self._laid.clear()
        if fresh:
            self.opened.clear()
            self.selected = None
        self.sessions, self._now = sessions, now
        self.hits = [hit for found in sessions for hit in found.hits]
        self._numbers = {key_of(hit): number for number, hit in enumerate(self.hits)}
        gone = self.selected is not None and self.selected[2] != -2 and (
            self.selected not in self._numbers)
        self._lay_out()
        if gone and place is not None:
            # The one that is there now.
            choice = [each for each in self._entries if each.selectable]
            self.selected = self.key_at(choice[min(place, len(choice) - 1)]) if choice else None

    def set_width(self, width: int) -> None:
        """Lay out for another width."""
        if width != self._width:
            self._width = width
            self._laid.clear()
            self._lay_out()

    def open(self, session_id: str) -> None:
        """Show all known hits of a session; those of an opened one are folded again."""
        self.opened ^= {session_id}
        self._lay_out()

    def _lay_out(self) -> None:
        entries: list[Entry] = []
        self.version += 1
        at = 0

        def add(kind: Kind, hit: int | None, lines: int) -> None:
            nonlocal at
            entries.append(Entry(kind, number, hit, at, lines))
            at += lines

        for number, found in enumerate(self.sessions):
            if number:
                add("gap", None, 1)
            title = 0 if found.hits and found.hits[0].where == "title" else None
            add("heading", title, HEADING_LINES)
            shown = self._shown(found)
            for hit in range(0 if title is None else 1, shown):
                add("hit", hit, len(self._lines_of(found, found.hits[hit])))
            if len(found.hits) + found.more > shown:
                add("more", None, 1)
        self._entries = entries
        self._starts = [entry.start for entry in entries]
        if self.selected is None or self._find(self.selected) is None:
            self.selected = self._nearest()

    def _shown(self, found: SessionHits) -> int:
        count = len(found.hits)
        if found.row.id in self.opened or count + found.more <= HITS_OF_A_SESSION + 1:
            return count
        return min(count, HITS_OF_A_SESSION)

    def _nearest(self) -> Key | None:
        """Return what to select where the selected entry is not in the list."""
        if self.selected is not None:
            for entry in self._entries:
                same = self.sessions[entry.session].row.id == self.selected[0]
                if entry.kind == "more" and same:
                    return self.key_at(entry)
        first = next((entry for entry in self._entries if entry.selectable), None)
        return None if first is None else self.key_at(first)

    def _lines_of(self, found: SessionHits, hit: Hit) -> list[Line]:
        key = key_of(hit)
        lines = self._laid.get(key)
        if lines is None:
            lines = self._laid[key] = hit_lines(hit, found.row, self._width - 5)
        return lines

    # Lines

    @property
    def height(self) -> int:
        """How many lines the list has."""
        return self._entries[-1].start + self._entries[-1].lines if self._entries else 0

    def entry_at(self, line: int) -> Entry | None:
        """Return the entry that a line belongs to; None beyond the end."""
        if not 0 <= line < self.height:
            return None
        return self._entries[bisect_right(self._starts, line) - 1]

    def line(self, number: int) -> tuple[Line, str]:
        """Return a line, and the role of its accent bar ("" for none)."""
        entry = self.entry_at(number)
        if entry is None or entry.kind == "gap":
            return BLANK, ""
        found, at = self.sessions[entry.session], number - entry.start
        if entry.kind == "heading":
            return heading_lines(found, self._width - 2, self._now)[at], ""
        if entry.hit is not None:
            hit = found.hits[entry.hit]
            return self._lines_of(found, hit)[at], bar_of(hit)
        left = len(found.hits) + found.more - self._shown(found)
        return Line([(f"{glyphs().more} {left:,} more in this session", "faint")]), ""

    def top_of(self, entry: Entry) -> int:
        """Return the first line to show with an entry: the heading above the first hit."""
        above = self.entry_at(entry.start - 1)
        with_heading = entry.kind == "hit" and above is not None and above.kind == "heading"
        return above.start if with_heading and above is not None else entry.start

    # The selection

    def key_at(self, entry: Entry) -> Key:
        """Return the key of an entry that can be selected."""
        found = self.sessions[entry.session]
        return (found.row.id, "", -2) if entry.hit is None else key_of(found.hits[entry.hit])

    def _find(self, key: Key) -> int | None:
        for number, entry in enumerate(self._entries):
            if entry.selectable and self.key_at(entry) == key:
                return number
        return None

    @property
    def entry(self) -> Entry | None:
        """The selected entry."""
        at = self._find(self.selected) if self.selected is not None else None
        return None if at is None else self._entries[at]

    @property
    def session(self) -> SessionHits | None:
        """The session of the selected entry."""
        entry = self.entry
        return None if entry is None else self.sessions[entry.session]

    @property
    def hit(self) -> Hit | None:
        """The selected hit; the first one that is folded where their count is selected."""
        entry = self.entry
        if entry is None:
            return None
        found = self.sessions[entry.session]
        if entry.hit is not None:
            return found.hits[entry.hit]
        return next(iter(found.hits[self._shown(found):]), None)

    def number_of(self, hit: Hit) -> int | None:
        """Return which of all hits one is, from 1; None where it is not known."""
        number = self._numbers.get(key_of(hit))
        if number is None:
            return None
        before = 0
        for found in self.sessions:
            if found.row.id == hit.session_id:
                break
            before += found.more
        return number + before + 1

    def beside(self, hit: Hit, by: int) -> Hit | None:
        """Return the hit some hits further on among those that are known; None at their end."""
        number = self._numbers.get(key_of(hit))
        if number is None or not 0 <= number + by < len(self.hits):
            return None
        return self.hits[number + by]

    def select(self, key: Key) -> None:
        """Select an entry; a folded hit opens its session."""
        self.selected = key
        if self._find(key) is None and key in self._numbers:
            self.opened.add(key[0])
            self._lay_out()

    def move(self, by: int) -> None:
        """Select the entry some entries further down, or up where it is negative."""
        self._to([entry for entry in self._entries if entry.selectable], by)

    def move_session(self, by: int) -> None:
        """Select the first hit of the session some sessions further down or up."""
        entry = self.entry
        first = [each for each in self._entries if each.hit == 0]
        if entry is not None and first:
            at = entry.session + by
            if by < 0 and entry.hit != 0:
                at += 1  # Back to the start of this session.
            self.selected = self.key_at(first[max(0, min(at, len(first) - 1))])

    def move_lines(self, lines: int) -> None:
        """Select the entry that is some lines further down or up."""
        entry = self.entry
        choice = [each for each in self._entries if each.selectable]
        if entry is None or not choice:
            return
        wanted = entry.start + lines
        near = min(choice, key=lambda each: abs(each.start - wanted))
        if near == entry:
            self.move(1 if lines > 0 else -1)
        else:
            self.selected = self.key_at(near)

    def _to(self, choice: list[Entry], by: int) -> None:
        if not choice:
            return
        entry = self.entry
        at = choice.index(entry) if entry in choice else 0
        self.selected = self.key_at(choice[max(0, min(at + by, len(choice) - 1))])
