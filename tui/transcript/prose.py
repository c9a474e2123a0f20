"""Text and reasoning, and the caps that keep one part from filling the memory."""

from __future__ import annotations

import re

from store.text import figures
from store.text.stored_json import as_dict
from tui.kit.glyphs import glyphs
from tui.kit.key_hints import keyed
from tui.kit.lines import Line, Run, cut, indented, width_of
from tui.kit.markdown import layout
from tui.kit.text import one_line
from tui.kit.wrap import plain_lines
from tui.transcript.item import Item, Setting

CAP_CHARACTERS = 64_000
CAP_MARKDOWN = 32_000
"""Parsing takes up to 20 microseconds for a character of text that is all markup."""
CAP_LINES = 2_000
_TAGS = re.compile(r"""</?[a-z][a-z_-]*(?: [a-z_-]+="[^"<>]*")*>""")


def capped(
    text: str, pages: int, characters: int = CAP_CHARACTERS
) -> tuple[str, Line | None]:
    """Cut text to what is shown; also return the line that counts the rest.

    Args:
        text: The whole text.
        pages: How many times the cap is shown.
        characters: The cap.
    """
    limit = characters * pages
    if len(text) <= limit:
        return text, None
    cut = text.rfind("\n", limit // 2, limit)
    cut = cut if cut > 0 else limit
    rest = text[cut:]
    left = f"{rest.count(chr(10)) + 1:,} more lines, {figures.size(len(rest))}"
    return text[:cut], more_line(left)


def capped_lines(lines: list[Line], pages: int) -> list[Line]:
    """Cut lines to what is shown, with a line that counts the rest."""
    limit = CAP_LINES * pages
    if len(lines) <= limit:
        return lines
    return [*lines[:limit], more_line(f"{len(lines) - limit:,} more lines")]


def more_line(left: str) -> Line:
    """Return the line at the end of what is cut."""
    hint = keyed("transcript.fold", "shows more")
    return Line([(f"{glyphs().more} {left}  ", "muted"), (hint, "faint")], fold="more")


def text_lines(item: Item, setting: Setting, *, markdown: bool, ink: str = "text") -> list[Line]:
    """Lay out a text part.

    Args:
        item: The part.
        setting: What holds for all parts.
        markdown: Whether it is rendered as Markdown.
        ink: What plain text is drawn with.
    """
    text = item.data.get("text")
    limit = CAP_MARKDOWN if markdown else CAP_CHARACTERS
    shown, more = capped(text if isinstance(text, str) else "", item.pages, limit)
    if not shown.strip():
        return []
    if markdown:
        lines = layout(shown, setting.measure, setting.width, ink)
    else:
        lines = plain_lines(shown.strip("\n"), setting.measure, ink)
    lines = capped_lines(lines, item.pages)
    return [*lines, more] if more is not None else lines


def reasoning_lines(item: Item, setting: Setting) -> tuple[list[Line], bool]:
    """Lay out reasoning; returns the lines and whether something is folded away."""
    raw = item.data.get("text")
    text = raw.strip() if isinstance(raw, str) else ""
    level = item.level or setting.reasoning
    opened = level == "whole" and bool(text)
    details = as_dict(as_dict(item.data.get("providerMetadata")).get("backscroll"))
    took = details.get("duration_ms")
    head = "thought"
    if isinstance(took, int | float) and took > 500:
        head += f" for {figures.duration(took)}"
    if not text:
        head += "" if item.data.get("state") == "streaming" else ", not recorded"
    mark = glyphs().open if opened else glyphs().folded
    runs: list[Run] = [(f"{mark} ", "faint"), (head, "reasoning italic")]
    if not opened:
        first = one_line(text, 400).lstrip("#* ").replace("**", "")
        runs += [("  ", "text"), (first, "faint italic")]
        room = min(setting.width, setting.measure + 4)
        return [Line(cut(runs, room), fold="fold")], len(text) > 0
    shown, more = capped(text, item.pages, CAP_MARKDOWN)
    lines = [Line(runs, fold="fold")]
    body = layout(shown, setting.measure - 2, setting.width - 2, "muted italic")
    lines += [indented(line, 2) for line in capped_lines(body, item.pages)]
    return ([*lines, more] if more is not None else lines), False


def first_line(text: str, width: int, lead: list[Run], ink: str) -> Line:
    """Return text cut to one line behind its lead.

    Args:
        text: Any text.
        width: Cells, with the lead.
        lead: Runs before the text.
        ink: What the text is drawn with.
    """
    words = one_line(_TAGS.sub(" ", text[:4000]))
    return Line([*lead, *cut([(words, ink)], max(4, width - width_of(lead)))], fold="fold")
