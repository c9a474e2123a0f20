r"""Makes text of any origin harmless to a terminal, and what it hides visible.

The one place that decides this: drawing, printing, copying and exporting all go through it.

Replaced by a visible stand-in of one column:

- C0 controls other than newline and tab, and DEL, by their pictures (``␛``); C1 controls,
  bidi controls, line and paragraph separators and lone surrogates by ``U+FFFD``.
- Characters that nobody sees: zero-width spaces and joiners, the soft hyphen, tag
  characters, variation selectors, fillers and the rest of Unicode's default ignorables.
- Combining marks beyond the first ``MOST_MARKS`` on one character, by one stand-in.

Kept, as people's text needs them: a variation selector right behind a character that has
variants; the joiners of emoji sequences; joiners behind letters of scripts that join (Arabic,
Indic and their neighbours); the tags of the three flags that are made of tags.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

STAND_IN = "\ufffd"
"""What is shown for a character that has no picture."""
MOST_MARKS = 8
"""Combining marks that one character keeps."""

_CONTROLS = "".join(map(chr, (*range(0x09), *range(0x0B, 0x20), 0x7F)))
_PICTURES = {code: 0x2400 + code for code in map(ord, _CONTROLS)} | {0x7F: 0x2421}
_STEERING = "\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000e01f0-\U000e0fff"
)  # fmt: skip
_CHARACTERS_THAT_ACT = f"[{_CONTROLS}{_STEERING}{_SELECTORS}{_UNSEEN}]"
_MARKS = (
    "\u0300-\u034e\u0350-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06dc"
    "\u0730-\u074a\u0816-\u0819\u08d3-\u08e1\u08e3-\u0902\u093c\u0941-\u0948\u094d\u0951-\u0957"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f7e\u0f80-\u0f84"
    "\u1ab0-\u1ace\u1dc0-\u1dff\u20d0-\u20f0\u2de0-\u2dff\u302a-\u302d\u3099\u309a\ua66f-\ua672"
    "\ua674-\ua67d\ua8e0-\ua8f1\ufe20-\ufe2f\U0001d165-\U0001d169\U0001e000-\U0001e02a"
)
_COLOUR = r"\x1b\[[0-9;:]*[mK]"
_MANY_MARKS = f"[{_MARKS}]{{{MOST_MARKS + 1},}}"

_PLAIN = set(map(chr, range(0x20, 0x7F)))
"""Characters that are known to be plain; others are found by ``_PLAIN_RANGES`` and added."""
_PLAIN_RANGES = (
    (0xA0, 0xAC), (0xAE, 0x2FF), (0x2026, 0x2026), (0x2190, 0x22FF), (0x2500, 0x25FC),
    (0x2605, 0x2605), (0x2713, 0x2714), (0x2717, 0x2717), (0x2800, 0x28FF),
)  # fmt: skip
"""First and last of some that nothing here replaces: Latin letters, arrows, and what lines, boxes
and this program's own glyphs are made of."""
_KEPT_RANGES = (
    (0x370, 0x482), (0x48A, 0x590), (0x2010, 0x2027), (0x2030, 0x205E), (0x2300, 0x2DDF),
    (0x2E00, 0x2FFF),
    (0x3000, 0x3029), (0x3030, 0x3098), (0x309B, 0x3163), (0x3165, 0xA66E), (0xAC00, 0xD7A3),
    (0xFF01, 0xFF9F), (0x1F000, 0x1FAFF), (0x20000, 0x2FFFF),
)  # fmt: skip
"""Likewise of some that may be wide: Greek, Cyrillic, East Asian scripts, symbols and emoji."""
_LONG = 2_000
"""Patterns are quicker for a text of so many characters, however long it takes to load them."""

# What an unseen character may belong to. It is rare, so these are compiled when they are needed:
# that takes 2.6 ms, which every start would pay.
_EMOJI = "[\xa9\xae\u203c-\u3299\U0001f000-\U0001faff]"
_HAS_EMOJI_STYLE = "[#*0-9\xa9\xae\u203c-\u3299\U0001f000-\U0001faff]"
_HAS_VARIANTS = (
    "[\u1000-\u109f\u2200-\u2aff\u3000-\u9fff\ua840-\ua87f\uf900-\ufaff"
    "\uff00-\uff60\U00020000-\U000323af]"
)
_JOINS = (
    "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17d3\u1820-\u18aa\u1b00-"
    "\u1b4b\ua800-\ua8ff\ua980-\ua9df\uaa00-\uaadf\uabc0-\uabed\ufb50-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00011fff]"
)
_JAMO = "[\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb]"
_MONGOLIAN = "[\u1820-\u18aa]"
_TAG_FLAG = (
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063"
    "\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_LONGEST_TAG_FLAG = 7


_compiled: dict[str, re.Pattern[str]] = {}


def _pattern(source: str) -> re.Pattern[str]:
    """Return a pattern, compiled when a text has more than plain characters.

    Nor is ``re`` imported before, which takes longer than all else before a picture is shown.
    """
    found = _compiled.get(source)
    if found is None:
        import re

        found = _compiled[source] = re.compile(source)
    return found


def _acts() -> re.Pattern[str]:
    return _pattern(_CHARACTERS_THAT_ACT)


def _mark_run() -> re.Pattern[str]:
    return _pattern(_MANY_MARKS)


def is_plain(text: str) -> bool:
    """Say whether a text has only characters that are one column wide and steer nothing."""
    return _PLAIN.issuperset(text) or all(map(_is_plain_character, text))


def _is_plain_character(character: str) -> bool:
    if character in _PLAIN:
        return True
    found = _is_within(ord(character), _PLAIN_RANGES)
    if found:
        _PLAIN.add(character)
    return found


def _is_within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


def _is_kept(text: str) -> bool:
    """Say whether a text is short and has nothing that is replaced, without a pattern."""
    return len(text) < _LONG and all(
        _is_plain_character(one) or _is_within(ord(one), _KEPT_RANGES) for one in set(text))


def neutral_line(text: str, limit: int = 2000) -> str:
    """Return neutral text for a single line: runs of white space become one space."""
    return " ".join(neutral(text[:limit]).split())


def without_colour(text: str) -> str:
    """Drop the colour sequences of a program's output, before ``neutral`` shows them."""
    if "\x1b" not in text:
        return text
    import re

    return re.sub(_COLOUR, "", text)


def neutral(text: str) -> str:
    """Return the text with newlines and tabs kept and every other control made visible.

    A carriage return before a newline is dropped. Doing it twice changes nothing more.
    """
    if text.isascii():
        if text.isprintable():
            return text
        return text.replace("\r\n", "\n").translate(_PICTURES)
    if is_plain(text) or _is_kept(text):
        return text
    text = _mark_run().sub(_fewer_marks, text.replace("\r\n", "\n"))
    return _acts().sub(_stand_in, text)


def neutral_row(text: str) -> str:
    """Return neutral text in one row, such as a name: line breaks and tabs are shown as signs."""
    return neutral(text).replace("\n", "\u240a").replace("\t", "\u2409")


def escaped(text: str) -> str:
    r"""Return JSON with each character that ``neutral`` replaces written as ``\uXXXX``.

    Only the strings of a JSON text can hold such characters, so its value stays the same.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    text = _mark_run().sub(lambda run: run[0][:MOST_MARKS] + _escape(run[0][MOST_MARKS:]), text)
    return _acts().sub(_escape_one, text)


def with_escapes(text: str) -> str:
    r"""Return the text with each character that ``neutral`` replaces as its escape, as ``\x1b``.

    Newlines and tabs stay. What was there can be read off, unlike from a stand-in.
    """
    if text.isprintable() and text.isascii():
        return text
    text = _mark_run().sub(lambda run: run[0][:MOST_MARKS] + _named(run[0][MOST_MARKS:]), text)
    return _acts().sub(
        lambda found: found[0] if _belongs(found.string, found.start()) else _named(found[0]), text
    )


def _named(text: str) -> str:
    codes = map(ord, text)
    return "".join(
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000
        else f"\\U{code:08x}" for code in codes
    )  # fmt: skip


def _fewer_marks(run: re.Match[str]) -> str:
    return run[0][:MOST_MARKS] + STAND_IN


def _stand_in(found: re.Match[str]) -> str:
    character = found[0]
    picture = _PICTURES.get(ord(character))
    if picture is not None:
        return chr(picture)
    return character if _belongs(found.string, found.start()) else STAND_IN


def _escape_one(found: re.Match[str]) -> str:
    if found[0] in "\n\r\t" or _belongs(found.string, found.start()):
        return found[0]
    return _escape(found[0])


def _escape(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2],
                                                                 strict=True))


def _belongs(text: str, at: int) -> bool:
    """Say whether an unseen character is part of the text beside it, and is kept."""
    import re

    code = ord(text[at])
    before = text[at - 1 : at]
    if code in (0x200C, 0x200D):
        after = text[at + 1 : at + 2]
        emoji = re.match(_EMOJI, before) or before == "\ufe0f"
        if code == 0x200D and emoji and re.match(_EMOJI, after):
            return True
        return re.match(_JOINS, before) is not None and _acts().match(after) is None
    if code in (0xFE0E, 0xFE0F):
        return re.match(_HAS_EMOJI_STYLE, before) is not None
    if 0xFE00 <= code <= 0xFE0D or 0xE0100 <= code <= 0xE01EF:
        return re.match(_HAS_VARIANTS, before) is not None
    if code in (0x115F, 0x1160):
        beside = text[at + 1 : at + 2] if code == 0x115F else before
        return re.match(_JAMO, beside) is not None
    if 0x180B <= code <= 0x180F:
        return re.match(_MONGOLIAN, before) is not None
    if 0xE0020 <= code <= 0xE007F:
        start = text.rfind("\U0001f3f4", max(0, at - _LONGEST_TAG_FLAG), at)
        flag = re.compile(_TAG_FLAG).match(text, start) if start >= 0 else None
        return flag is not None and at < flag.end()
    return False
