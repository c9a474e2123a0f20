"""The characters that mean something, with stand-ins where the locale has only ASCII."""

from __future__ import annotations

from functools import lru_cache

from store.system.records import NamedTuple
from store.system.streams import speaks_unicode


class Glyphs(NamedTuple):
    """One cell each, without variation selectors."""

    running: str = "●"
    waiting: str = "◐"
    idle: str = "○"
    failed: str = "✗"
    done: str = "✔"
    folded: str = "▸"
    open: str = "▾"
    bar: str = "▎"
    thick_bar: str = "▌"
    right_half: str = "▐"
    branch: str = "├"
    last_branch: str = "└"
    rail: str = "│"
    rule: str = "─"
    dashed: str = "╌"
    fork: str = "↱"
    subagent: str = "↳"
    down: str = "↓"
    up: str = "↑"
    more: str = "…"
    star: str = "★"
    dot: str = "·"
    mark: str = "✓"
    label: str = "◆"
    about: str = "≈"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    levels: str = " ▁▂▃▅▇"


UNICODE = Glyphs()
ASCII = Glyphs(
    running="*", waiting="?", idle="o", failed="x", done="+", folded=">", open="v", bar="|",
    thick_bar="|", right_half="|", branch="|", last_branch="`", rail="|", rule="-", dashed="-",
    fork="/", subagent="\\", down="v", up="^", more="~", star="*", dot="-", mark="+",
    label="%", about="~",
    spinner="|/-\\", levels=" .:-=#",
)

_STAND_INS = str.maketrans({
    **{
        plain: substitute
        for ours, substitutes in zip(UNICODE, ASCII, strict=True)
        for plain, substitute in zip(ours, substitutes, strict=False)
        if plain != " "
    },
    "→": ">", "←": "<", "“": '"', "”": '"', "’": "'", "–": "-", "—": "-",
})


def ascii_only(text: str) -> str:
    """Return our own text with each glyph replaced by its ASCII stand-in."""
    return text.translate(_STAND_INS)


@lru_cache(maxsize=1)
def glyphs() -> Glyphs:
    """Return the glyphs for this process's locale."""
    return UNICODE if speaks_unicode() else ASCII
