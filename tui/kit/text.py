"""Text as it is drawn: harmless, as wide in every terminal, and wrapped.

Every string from a session goes through ``clean`` (or ``one_line``) before it is drawn.
Wrapping works on offsets into the source text, so that what was wrapped can be copied
as it was, and it is linear in the length of any text.
"""

from __future__ import annotations

from functools import lru_cache

from store.text.neutral import STAND_IN, is_plain, neutral
from tui.kit.glyphs import ASCII, ascii_only, glyphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

TAB_COLUMNS = 4
_WIDTH_CHANGERS = (
    "\u200d[\u2190-\u2bff\U0001f000-\U0001faff]?|[\u20dd-\u20e0\u20e2-\u20e4\ufe00-\ufe0f\u200c\U000e0020-\U000e007f"
    "\u180b-\u180f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
)
"""What terminals measure differently: joiners (with the emoji they join), variation
selectors, skin tones, what encloses a character."""
_FLAG_LETTER = range(0x1F1E6, 0x1F200)
_UNSETTLED = (
    "[\U0001f1e6-\U0001f1ff\U0001f6d8-\U0001f6dc\U0001fa75-\U0001fa77\U0001fa7d-\U0001fa7f"
    "\U0001fa87-\U0001fa8f\U0001faad-\U0001faaf\U0001fabb-\U0001fabf\U0001fac6-\U0001facf"
    "\U0001fada-\U0001fadf\U0001fae8-\U0001faef\U0001faf7-\U0001faff]"
)
"""Letters of flags, and emoji that are newer than Unicode 14: 0 to 4 columns, by terminal."""
_ASCII_BLOCKS = str.maketrans("█▉▊▋▌▍▎▏■▪", "#########*")
_NOT_ASCII = "[^\x00-\x7f]"
_NO_CELLS = f"[\u2400-\u2421{STAND_IN}]"


def clean(text: str) -> str:
    """Return text of any origin as it may be drawn; newlines stay, tabs are expanded."""
    text = neutral(text)
    if not text.isascii() and not is_plain(text):
        text = _patterns()[1].sub(_settled, _patterns()[0].sub("", text))
    return text.expandtabs(TAB_COLUMNS) if "\t" in text else text


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    import re  # Loaded and compiled when a text has more than plain characters.

    return re.compile(_WIDTH_CHANGERS), re.compile(_UNSETTLED)


def _settled(found: re.Match[str]) -> str:
    """Return a flag's letter as a letter, and a picture that terminals may lack as a stand-in."""
    code = ord(found[0])
    return chr(ord("A") + code - _FLAG_LETTER.start) if code in _FLAG_LETTER else STAND_IN


def drawable(text: str) -> str:
    """Return a run's text for this terminal: the kit's own guard against control characters."""
    if not text.isprintable():
        text = clean(text)
    if text.isascii() or glyphs() is not ASCII:
        return text
    return ascii_only(text.translate(_ASCII_BLOCKS))


@lru_cache(maxsize=2048)
def guarded(text: str) -> str:
    """Return a text as it may reach the screen, in as many columns as Rich counts for it.

    The last guard, for what was drawn without ``clean``; what went through that stays as it is.
    """
    import re

    shown = clean(text).replace("\n", "\u240a")
    if glyphs() is ASCII and not shown.isascii():
        from rich.cells import cell_len

        # A byte of a UTF-8 character may be a C1 control to a terminal without Unicode.
        shown = re.sub(_NOT_ASCII, lambda found: "?" * cell_len(found[0]), ascii_only(shown))
    if shown == text:
        return text
    from rich.cells import cell_len, set_cell_size

    width = cell_len(text)
    if cell_len(shown) > width:
        # What the text hid took no column, and its stand-ins would push the row on.
        shown = re.sub(_NO_CELLS, "", shown)
    return set_cell_size(shown, width)


def one_line(text: str, limit: int = 2000) -> str:
    """Return text for a single line: runs of white space become one space."""
    return " ".join(clean(text[:limit]).split())


def one_row(text: str) -> str:
    """Return text for a single line with its spaces as they are."""
    return clean(text).replace("\n", " ")


def cells(text: str) -> int:
    """Return how many columns cleaned text takes."""
    return len(text) if text.isascii() else _wide_cells(text)


@lru_cache(maxsize=4096)
def _wide_cells(text: str) -> int:
    """Return the same of a text that is not all ASCII; Rich is loaded for what is not plain."""
    if is_plain(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Cut cleaned text to a width, with an ellipsis where something is cut."""
    if width <= 0:
        return ""
    if cells(text) <= width:
        return text
    return text[: _offset_at(text, width - 1)].rstrip() + glyphs().more


def fit_path(text: str, width: int) -> str:
    """Cut a path to a width from its left: its end matters most."""
    if cells(text) <= width:
        return text
    tail = text[-(2 * width + 8):]
    while tail and cells(tail) > width - 1:
        drop = max(1, cells(tail) - (width - 1)) if tail.isascii() else 1
        tail = tail[drop:]
    slash = tail.find("/")
    return glyphs().more + (tail[slash:] if 0 <= slash < len(tail) // 2 else tail)


def fit_middle(text: str, width: int) -> str:
    """Cut a path to a width in its middle: where it begins and its name matter."""
    if cells(text) <= width:
        return text
    start = text[: width // 3]
    return start + fit_path(text[len(start):], width - cells(start))


def _offset_at(text: str, width: int) -> int:
    """Return how many characters of the text fit in a width."""
    if text.isascii():
        return min(len(text), width)
    from rich.cells import split_graphemes

    used = 0
    for start, _end, size in split_graphemes(text[: 2 * width + 8])[0]:
        used += size
        if used > width:
            return start
    return min(len(text), 2 * width + 8)


def column_offset(text: str, column: int) -> int:
    """Return the character that covers a column of cleaned text."""
    return _offset_at(text, column) if column > 0 else 0


Span = tuple[int, int]
"""Start and end of one row in the text; white space between two rows is swallowed."""


def wrap(text: str, width: int) -> list[Span]:
    """Break one logical line (no newline in it) into rows.

    Args:
        text: Cleaned text.
        width: Columns of a row, at least 2.

    Returns:
        One span a row, at least one; each row is at most ``width`` columns wide.
    """
    width = max(2, width)
    if len(text) <= width and cells(text) <= width:
        return [(0, len(text))]
    return _wrap_ascii(text, width) if text.isascii() else _wrap_wide(text, width)


def break_cells(text: str, width: int) -> list[Span]:
    """Break one logical line into full rows, as a terminal does: no space is swallowed.

    Code and what programs print keep their columns so.

    Args:
        text: Cleaned text.
        width: Columns of a row, at least 2.

    Returns:
        One span a row, at least one; together they are the whole text.
    """
    width = max(2, width)
    if len(text) <= width and cells(text) <= width:
        return [(0, len(text))]
    if text.isascii():
        return [(at, min(at + width, len(text))) for at in range(0, len(text), width)]
    from rich.cells import cached_cell_len

    spans: list[Span] = []
    start = used = 0
    # No joiner is left in cleaned text: what combines takes no cell, and stays in its row.
    for begin, character in enumerate(text):
        size = 1 if character < "\u0300" else cached_cell_len(character)
        if used + size > width and used:
            spans.append((start, begin))
            start, used = begin, 0
        used += size
    return [*spans, (start, len(text))]


def _after_spaces(text: str, position: int) -> int:
    while position < len(text) and text[position] == " ":
        position += 1
    return position


def _wrap_ascii(text: str, width: int) -> list[Span]:
    spans: list[Span] = []
    start, length = 0, len(text)
    inked = _after_spaces(text, 0)
    while length - start > width:
        cut = text.rfind(" ", start, start + width + 1)
        if cut <= max(start, inked if not spans else start):
            spans.append((start, start + width))
            start += width
            continue
        end = cut
        while end > start + 1 and text[end - 1] == " ":
            end -= 1
        spans.append((start, end))
        start = _after_spaces(text, cut)
    if start < length or not spans:
        spans.append((start, length))
    return spans


def _wrap_wide(text: str, width: int) -> list[Span]:
    from rich.cells import split_graphemes

    spans: list[Span] = []
    start = used = ink_end = 0
    chance: tuple[int, int, int] | None = None  # row end, next start, columns up to there
    after_wide = False
    for begin, end, size in split_graphemes(text)[0]:
        if text[begin:end] == " ":
            if ink_end > start:
                chance = (ink_end, end, used + size)
            elif used + size > width:
                spans.append((start, begin))
                start, used = begin, 0
            used += size
            after_wide = False
            continue
        if (size == 2 or after_wide) and ink_end == begin > start:
            chance = (begin, begin, used)
        after_wide = size == 2
        if used + size > width and begin > start:
            row_end, next_start, columns = chance or (begin, begin, used)
            spans.append((start, row_end))
            start, used, chance = next_start, used - columns, None
            if used + size > width and begin > start:
                spans.append((start, begin))
                start, used = begin, 0
        used += size
        ink_end = end
    if start < len(text) or not spans:
        spans.append((start, ink_end if used > width else len(text)))
    return spans
