"""The Markdown of answers, and code, as HTML; raw HTML in it is text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.exports.html.markup import link, linked, safe_address, shown
from store.text.code import coloured
from store.text.markdown import MOST_BRACKETS, parser
from store.text.neutral import neutral

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST_RENDERED = 200_000
"""Characters beyond which a text is shown as it is."""
_HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}
"""The page's own headings come above those of a text."""
_TAGS = frozenset({
    "p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "strong",
    "em", "s", *_HEADINGS,
})  # fmt: skip
_INKS = {
    "faint italic": "c", "tool": "n", "reasoning": "k", "user": "f", "assistant": "b", "ok": "s",
    "error": "e", "text bold": "g", "faint": "x",
}  # fmt: skip
"""Classes of the style by the role of a colour."""
_ALIGNED = {"text-align:right": "right", "text-align:center": "center"}


def prose(text: str) -> str:
    """Return Markdown as HTML."""
    text = neutral(text).strip("\n")
    if len(text) <= LONGEST_RENDERED and text.count("[") <= MOST_BRACKETS:
        rendered = _Renderer()
        rendered.run(parser().parse(text))
        if rendered.has_text or not text.strip():
            return "".join(rendered.pieces)
        # The parser drops what is nested too deeply; no words are lost.
    return f'<div class="plain">{linked(text)}</div>'


def code(text: str, language: str) -> str:
    """Return code as coloured HTML.

    Args:
        text: As the session has it.
        language: What its fence names; unknown ones are not coloured.
    """
    lines = []
    for line in coloured(neutral(text), language):
        lines.append("".join(
            f'<span class="{_INKS[ink]}">{shown(piece)}</span>' if ink in _INKS else shown(piece)
            for piece, ink in line
        ))  # fmt: skip
    return "\n".join(lines)


class _Renderer:
    """Walks the parser's tokens once."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.has_text = False
        self.addresses: list[str] = []

    def run(self, tokens: list[Token]) -> None:
        for token in tokens:
            self._token(token)

    def _token(self, token: Token) -> None:
        match token.type:
            case "inline":
                for child in token.children or ():
                    self._inline(child)
            case "fence" | "code_block":
                language = token.info.split()[0].split("{")[0] if token.info.strip() else ""
                coded = code(token.content.rstrip("\n"), language)
                self._put(f"<pre><code>{coded}</code></pre>")
            case "hr":
                self._put("<hr>")
            case _:
                self._tag(token)

    def _put(self, markup: str) -> None:
        self.pieces.append(markup)
        self.has_text = True

    def _tag(self, token: Token) -> None:
        if token.hidden or token.tag not in _TAGS:
            return
        tag = _HEADINGS.get(token.tag, token.tag)
        if token.nesting < 0:
            self.pieces.append(f"</{tag}>" if tag != "table" else "</table></div>")
            return
        attributes = ""
        start = token.attrGet("start")
        if tag == "ol" and start is not None:
            attributes = f' start="{int(start)}"'
        align = _ALIGNED.get(str(token.attrGet("style") or ""))
        if align is not None:
            attributes = f' class="{align}"'
        self.pieces.append('<div class="wide">' if tag == "table" else "")
        self.pieces.append(f"<{tag}{attributes}>")

    def _inline(self, token: Token) -> None:
        match token.type:
            case "text":
                # Entities are decoded by the parser, so that the characters are checked again.
                self._put(shown(token.content) if self.addresses else linked(token.content))
            case "code_inline":
                self._put(f"<code>{shown(token.content)}</code>")
            case "softbreak":
                self.pieces.append("\n")
            case "hardbreak":
                self.pieces.append("<br>")
            case "image":
                address = str(token.attrGet("src") or "")
                self._put(link(address, f"[image {shown(token.content)}]"))
            case "link_open":
                self._open_link(str(token.attrGet("href") or ""))
            case "link_close":
                self._close_link()
            case _:
                self._tag(token)

    def _open_link(self, address: str) -> None:
        self.addresses.append(address)
        self.pieces.append("")
        self._start = len(self.pieces)

    def _close_link(self) -> None:
        """Put the link around what came since; say where it leads if its text hides that."""
        address = self.addresses.pop()
        content = "".join(self.pieces[self._start :])
        del self.pieces[self._start :]
        safe = safe_address(address)
        self.pieces.append(link(address, content))
        if safe is None and address and not address.startswith("#"):
            self.pieces.append(f' <span class="target">({shown(address)})</span>')
        elif safe is not None and _names_another(content, safe):
            self.pieces.append(f' <span class="target">({shown(safe)})</span>')


def _names_another(content: str, address: str) -> bool:
    """Return whether a link's text looks like an address that it does not lead to."""
    named = "://" in content or content.lower().startswith("www.")
    return named and not address.startswith(content.removesuffix("/"))
