"""The cells of the screen: what they should show, what the terminal shows, and what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby

from rich.cells import split_graphemes

from store.system.records import NamedTuple
from store.system.streams import ERASED_FROM

_TOKEN = re.compile(
    r"\x1b\[(\d+);(\d+)H|(?:\x1b\[([\d;]*)m)?([^\x00-\x1f\x7f]+)(?:\x1b\[0?m)?"
    r"|\x1b\[([\d;]*)m\x1b\[(\d+)X\x1b\[\d+C"
    r"|\x1b\[[\d;?]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|.", re.DOTALL)
"""A move, a text in one style, erased blanks, or something that draws nothing."""
_NARROW = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0377\u0384-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2030-\u205e\u2190-\u22ff\u2400-\u2426\u2500-\u25fc\u2800-\u28ff]*").fullmatch
"""Matches text of which each character takes one cell on every terminal."""
_PIECE = re.compile(" {3,}|(?:[^ ]| {1,2}(?! ))+")
"""Words with at most two blanks between them, or more blanks: one piece is sent as a whole."""
_INKS = frozenset(map(str, (*range(30, 39), *range(90, 98))))
_GROUNDS = frozenset(map(str, (*range(40, 49), *range(100, 108))))
"""Codes that begin a colour of the text, and one behind it."""
_SEEN_ON_BLANKS = frozenset(("4", "5", "7", "9", "21", "53"))
ERASED_TO_END_FROM = 4
"""Erasing so many blanks up to the end of a row takes fewer bytes than the blanks."""
_ENDS = {"1": "22", "2": "22", "3": "23", "4": "24", "21": "24", "5": "25", "6": "25",
         "7": "27", "8": "28", "9": "29", "53": "55"}
"""What ends an attribute; bold and faint end together, as single and double lines do."""
NOWHERE = -1
"""The column of a cursor of which only the row is known."""
UNKNOWN = "\x00"
"""The text of a cell of which nobody knows what the terminal shows."""


class Look(NamedTuple):
    """How a cell is drawn, as parameters of the sequence that selects it (SGR).

    Attributes:
        attributes: Bold, underlined and so on.
        ink: The colour of the text; "" for the terminal's own.
        ground: The colour behind it; "" for the terminal's own.
    """

    attributes: tuple[str, ...] = ()
    ink: str = ""
    ground: str = ""


PLAIN = Look()
Piece = tuple[int | str, str, str]
"""Some cells of a row: their column, where it has to be named; codes of their look; their text."""


@lru_cache(maxsize=4096)
def look_of(parameters: str) -> Look:
    """Return the look that a sequence selects, after everything was reset."""
    attributes, ink, ground = list[str](), "", ""
    codes = parameters.split(";")
    while codes:
        code = codes[0]
        length = 1 if code not in ("38", "48") else 5 if codes[1:2] == ["2"] else 3
        whole = ";".join(codes[:length])
        del codes[:length]
        if code in _INKS:
            ink = whole
        elif code in _GROUNDS:
            ground = whole
        elif code not in ("", "0", "39", "49"):
            attributes.append(code)
    return Look(tuple(attributes), ink, ground)


@lru_cache(maxsize=4096)
def selecting(look: Look, before: Look | None) -> str:
    """Return the shortest sequence that selects a look.

    Args:
        look: What is selected.
        before: What is selected now; None where that is not known.
    """
    if look == before:
        return ""
    anew = [code for code in ("0", *look.attributes, look.ink, look.ground) if code]
    if before is None:
        return f"\x1b[{';'.join(anew)}m"
    ends = {_ENDS.get(code, "0") for code in before.attributes if code not in look.attributes}
    if "0" in ends:
        return f"\x1b[{';'.join(anew)}m"
    codes = [*sorted(ends), *(code for code in look.attributes
                              if code not in before.attributes or _ENDS.get(code) in ends)]
    if look.ink != before.ink:
        codes.append(look.ink or "39")
    if look.ground != before.ground:
        codes.append(look.ground or "49")
    return f"\x1b[{min(';'.join(codes), ';'.join(anew), key=len)}m"


def _seen_on_blanks(look: Look) -> frozenset[str]:
    """Return the attributes of a look that are seen where a blank is drawn with it."""
    return _SEEN_ON_BLANKS.intersection(look.attributes)


@lru_cache(maxsize=4096)
def _of_blanks(look: Look) -> Look:
    """Return what is seen of a look where blanks are drawn with it."""
    return look if _seen_on_blanks(look) else Look(ground=look.ground)


@lru_cache(maxsize=2048)
def is_sure(grapheme: str) -> bool:
    """Return whether all terminals give a character as many cells as Textual counts for it.

    New emoji, joined ones and scripts whose letters combine are drawn in different widths.
    """
    if len(grapheme) != 1:
        return not grapheme
    code = ord(grapheme)
    combines = 0x0300 <= code < 0x0370 or 0x0590 <= code < 0x1100 or 0x1200 <= code < 0x1E00
    return not combines and not 0x1F000 <= code < 0x20000


def _pieces(texts: list[str], looks: list[Look], at: int, last: int) -> Iterator[Piece]:
    """Yield a row's pieces; one behind a character of unsure width names its column."""
    sure = True
    while at < last:
        look, end = looks[at], at + 1
        alone = not is_sure(texts[at])
        while end < last and looks[end] == look and (
                not texts[end] or not alone and is_sure(texts[end])):
            end += 1
        codes = ";".join(code for code in (*look.attributes, look.ink, look.ground) if code)
        yield "" if sure else at, codes, "".join(texts[at:end])
        at, sure = end, not alone


def _looks(text: str, look: Look) -> list[Look]:
    """Return the look of each cell of a narrow text; many blanks around its words have no ink.

    So they are the same as the blanks beside them that have the same ground.
    """
    if text.isspace():
        return [_of_blanks(look)] * len(text)
    looks = [look] * len(text)
    if text[:3] == "   " or text[-3:] == "   ":
        blank, words = _of_blanks(look), text.lstrip(" ")
        start, stop = len(text) - len(words), len(text.rstrip(" "))
        if start > 2:
            looks[:start] = [blank] * start
        if len(text) - stop > 2:
            looks[stop:] = [blank] * (len(text) - stop)
    return looks


class Cells:
    """Takes frames, and gives what a terminal needs to show the last one.

    A frame is what Textual writes for an update: moves, and texts in one style each. A cell
    counts as changed together with the words around it that have its style, so that words
    arrive whole; blanks that are only passed are not sent.

    Attributes:
        width: Columns.
        height: Rows.
        cursor: Column and row of the text cursor, from 0; an input method draws beside it.
    """

    def __init__(self, width: int, height: int, *, erases: bool = True) -> None:
        """Make a blank screen of which nothing is known to be shown.

        Args:
            width: Columns.
            height: Rows.
            erases: Whether the terminal erases with the colour that is selected.
        """
        self.width, self.height = width, height
        self.cursor = self._cursor_shown = (0, 0)
        self._erases = erases
        self._texts = [[" "] * width for _ in range(height)]
        self._looks = [[PLAIN] * width for _ in range(height)]
        self._shown = [[UNKNOWN] * width for _ in range(height)]
        self._shown_looks = [[PLAIN] * width for _ in range(height)]
        self._unsure: set[int] = set()
        self._frame = 0
        self._changed: dict[int, int] = {}
        self._look: Look | None = None
        self._at: tuple[int, int] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the terminal may show something else than it should."""
        return bool(self._changed) or self.cursor != self._cursor_shown

    def forget(self) -> None:
        """Note that nobody knows what the terminal shows: everything is sent again."""
        for y in range(self.height):
            self._shown[y] = [UNKNOWN] * self.width
        self._look = None
        self._changed = dict.fromkeys(range(self.height), self._frame)

    def know(self) -> None:
        """Note that the terminal shows what it should."""
        self._shown = [list(texts) for texts in self._texts]
        self._shown_looks = [list(looks) for looks in self._looks]
        self._changed.clear()
        self._cursor_shown = self.cursor

    def are_shown(self, rows: range, start: int) -> bool:
        """Return whether the terminal shows in some rows, from a column on, what it should."""
        return all(self._is_shown(y, start, self.width) for y in rows)

    def pieces(self, y: int, start: int, end: int) -> list[Piece]:
        """Return what the terminal should show in a part of a row, by looks.

        Args:
            y: The row.
            start: The first column.
            end: The one behind the last.
        """
        return list(_pieces(self._texts[y], self._looks[y], start, end))

    def draw(self, frame: str) -> None:
        """Take a frame."""
        self._frame += 1
        x = y = 0
        for row, column, parameters, text, ground, erased in _TOKEN.findall(frame):
            if text:
                x = self._put(x, y, text, look_of(parameters))
            elif erased:
                x = self._put(x, y, " " * int(erased), look_of(ground))
            elif row:
                x, y = int(column) - 1, int(row) - 1
        self.cursor = (x, y)

    def _put(self, x: int, y: int, text: str, look: Look) -> int:
        """Put a text into a row; return the column behind it."""
        if _NARROW(text):
            graphemes, size, looks = list(text), len(text), _looks(text, look)
        else:
            graphemes = []
            for begin, end, cells in split_graphemes(text)[0]:
                if cells:
                    graphemes += [text[begin:end], *[""] * (cells - 1)]
                elif graphemes:
                    graphemes[-1 if graphemes[-1] else -2] += text[begin:end]
            size = len(graphemes)
            looks = [look] * size
            if not all(map(is_sure, graphemes)):
                self._unsure.add(y)
        end = x + size
        if y < self.height and x < self.width:
            texts = self._texts[y]
            if not texts[x] and x:
                texts[x - 1] = " "
            if end > self.width:
                graphemes = graphemes[:self.width - x]
            texts[x:x + len(graphemes)] = graphemes
            if end < self.width and not texts[end]:
                texts[end] = " "
            self._looks[y][x:x + len(graphemes)] = looks[:len(graphemes)]
            self._changed[y] = self._frame
        return end

    # What is sent

    def take(self, most: int) -> str:
        """Return what shows changed rows on the terminal, those of the newest frame first.

        Args:
            most: Bytes, about; at least one row is taken.
        """
        self._at = None
        pieces, size = list[str](), 0
        for y in sorted(self._changed, key=lambda y: (-self._changed[y], y)):
            if size >= most:
                break
            del self._changed[y]
            row = "".join(self._row(y))
            pieces.append(row)
            size += len(row) if row.isascii() else len(row.encode())
        if not self._changed and (size or self.cursor != self._cursor_shown):
            if self.cursor != (0, 0) or self._cursor_shown != (0, 0):
                pieces.append(f"\x1b[{self.cursor[1] + 1};{self.cursor[0] + 1}H")
            self._cursor_shown = self.cursor
        return "".join(pieces)

    def reset(self) -> str:
        """Return what selects the terminal's own look, before others draw."""
        look, self._look = self._look, PLAIN
        return selecting(PLAIN, look)

    def _row(self, y: int) -> list[str]:
        texts, looks, shown, shown_looks = (
            self._texts[y], self._looks[y], self._shown[y], self._shown_looks[y])
        if y in self._unsure:
            self._doubt(y)
        sent: list[str] = []
        if texts == shown and looks == shown_looks:
            return sent
        at = 0
        for _look, same in groupby(looks):
            end = at + len(list(same))
            if texts[at:end] != shown[at:end] or looks[at:end] != shown_looks[at:end]:
                self._run(sent, y, at, end)
            at = end
        shown[:] = texts
        shown_looks[:] = looks
        return sent

    def _doubt(self, y: int) -> None:
        """Have a row sent whole from the first character on whose width may be another one."""
        texts, shown = self._texts[y], self._shown[y]
        first = next((x for x in range(self.width)
                      if not is_sure(texts[x]) or not is_sure(shown[x])), self.width)
        shown[first:] = [UNKNOWN] * (self.width - first)
        if all(map(is_sure, texts)):
            self._unsure.discard(y)

    def _run(self, sent: list[str], y: int, start: int, end: int) -> None:
        """Send what differs of a run of cells with one look."""
        look, texts = self._looks[y][start], self._texts[y][start:end]
        text = "".join(texts)
        if "" in texts or len(text) != end - start:
            self._text(sent, y, start, end, look)
            return
        for piece in _PIECE.finditer(text):
            first, stop = start + piece.start(), start + piece.end()
            if not piece[0].isspace():
                if not self._is_shown(y, first, stop):
                    if len(set(piece[0])) == 1:
                        first, stop = self._differing(y, first, stop)
                    self._text(sent, y, first, stop, look)
            elif not self._is_blank(y, first, stop, look):
                self._blanks(sent, y, first, stop, look)

    def _is_shown(self, y: int, start: int, end: int) -> bool:
        texts = self._texts[y][start:end]
        if texts != self._shown[y][start:end]:
            return False
        looks, shown = self._looks[y][start:end], self._shown_looks[y][start:end]
        return looks == shown or all(
            one == other or (text == " " and _of_blanks(one) == _of_blanks(other))
            for text, one, other in zip(texts, looks, shown, strict=True))

    def _differing(self, y: int, start: int, end: int) -> tuple[int, int]:
        """Return where what differs of a rule begins and ends, which is no word."""
        while self._is_shown(y, start, start + 1):
            start += 1
        while self._is_shown(y, end - 1, end):
            end -= 1
        return start, end

    def _is_blank(self, y: int, start: int, end: int, look: Look) -> bool:
        """Return whether the terminal shows blanks that look the same."""
        if any(text != " " for text in self._shown[y][start:end]):
            return False
        return all(
            one == look or (one.ground == look.ground and not _seen_on_blanks(one))
            for one in set(self._shown_looks[y][start:end])
        ) and not _seen_on_blanks(look)

    def _text(self, sent: list[str], y: int, start: int, end: int, look: Look) -> None:
        self._move(sent, start, y)
        self._select(sent, look)
        texts = self._texts[y][start:end]
        if y not in self._unsure:
            sent.append("".join(texts))
            self._at = self._behind(end, y)
            return
        for x, text in enumerate(texts, start):
            if text:
                self._move(sent, x, y)
                sent.append(text)
                self._at = self._behind(x + 1, y) if is_sure(text) else (NOWHERE, y)
            elif self._at != (NOWHERE, y):
                self._at = self._behind(x + 1, y)

    def _blanks(self, sent: list[str], y: int, start: int, end: int, look: Look) -> None:
        self._move(sent, start, y)
        if not _seen_on_blanks(look):
            # What is not seen on blanks need not be selected.
            before = self._look if self._look and not _seen_on_blanks(self._look) else PLAIN
            look = before._replace(ground=look.ground)
        self._select(sent, look)
        if self._erases and not _seen_on_blanks(look):
            if end == self.width and end - start >= ERASED_TO_END_FROM:
                sent.append("\x1b[K")
                return
            if end - start >= ERASED_FROM:
                sent.append(f"\x1b[{end - start}X")
                return
        sent.append(" " * (end - start))
        self._at = self._behind(end, y)

    def _behind(self, x: int, y: int) -> tuple[int, int]:
        """Return where the terminal's cursor is; behind the last column terminals differ."""
        return (x if x < self.width else NOWHERE, y)

    def _move(self, sent: list[str], x: int, y: int) -> None:
        if self._at == (x, y):
            return
        in_row = self._at is not None and self._at[1] == y
        sent.append(f"\x1b[{x + 1}G" if in_row else f"\x1b[{y + 1};{x + 1}H")
        self._at = (x, y)

    def _select(self, sent: list[str], look: Look) -> None:
        sent.append(selecting(look, self._look))
        self._look = look
