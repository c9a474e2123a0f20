"""The Markdown of answers, parsed; markdown-it is imported when the first text is parsed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MOST_BRACKETS = 4_000
"""Text with more of them is shown as it is: each could begin a link."""


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """Return the parser: CommonMark with tables and strikethrough, raw HTML as text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
