"""What goes out: the choices, and what they make of a session, looked at before it is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from store.engine.database import Database
from store.engine.opening import open_target
from store.exports.files import Prepared, prepare
from store.exports.reading import View
from store.exports.registry import Format
from store.exports.selection import Outputs, Selection
from store.prices.loading import load_prices
from store.sharing.masks import Masked, Masking

Messages = Literal["all", "from", "until", "context", "hidden"]
MESSAGES: dict[Messages, str] = {
    "all": "all that are visible", "from": "from the selected one on",
    "until": "up to the selected one", "context": "what the model would be sent now",
    "hidden": "all, hidden ones too",
}
OUTPUTS: dict[Outputs, str] = {"all": "in full", "short": "the first lines", "none": "left out"}
MOST_SHOWN = 100_000
"""Characters of a preview."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What goes out, and how.

    Attributes:
        messages: Which messages.
        let_through: What is not masked, by its value.
    """

    format: Format
    messages: Messages = "all"
    images: bool = True
    outputs: Outputs = "all"
    secrets: bool = True
    emails: bool = False
    home: bool = False
    let_through: frozenset[str] = frozenset()


class Outgoing(NamedTuple):
    """The sessions that go out.

    Attributes:
        store: Their store.
        sessions: Their ids; several where the format can hold them.
        message_id: The message that is selected; None where none is.
        masking: What the config masks.
        prices: What models cost, by the config; see ``load_prices``.
    """

    store: Path | str
    sessions: Sequence[str]
    message_id: str | None
    masking: Masking
    prices: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def prepared(self, database: Database, choices: Choices, out: Path | None = None) -> Prepared:
        """Return what is written.

        Args:
            database: The store, open.
            choices: What goes out.
            out: Where it is written.

        Raises:
            Refused: An own rule cannot be used, or the format holds one session only.
        """
        ends = choices.messages in ("from", "until")
        selection = Selection(
            self.message_id if choices.messages == "from" else None,
            self.message_id if choices.messages == "until" else None,
            images=choices.images, outputs=choices.outputs)
        views: dict[Messages, View] = {"context": "context", "hidden": "hidden"}
        view: View = views.get(choices.messages, "display")
        masking = replace(
            self.masking, secrets=choices.secrets, emails=choices.emails, home=choices.home,
            let_through=self.masking.let_through | choices.let_through)
        return prepare(
            database, self.sessions[0], choices.format, view=view, masked=masking.any,
            masking=masking, out=out, selection=selection if ends or selection != Selection()
            else None, further=self.sessions[1:] if choices.format.several else (),
            pictures=choices.images,
            prices=load_prices(self.prices) if choices.format.masked else None)

    def write(self, choices: Choices, path: Path, *, replace: bool) -> int:
        """Write the file and return its size in bytes.

        Args:
            choices: What goes out.
            path: The file.
            replace: Whether a file that is there is replaced.

        Raises:
            Refused: It cannot be written.
        """
        with closing(open_target(self.store)) as database:
            return self.prepared(database, choices, path).write(path, replace=replace)

    def file_in(self, folder: Path, choices: Choices) -> Path:
        """Return the usual file of such an export in a folder."""
        with closing(open_target(self.store)) as database:
            return self.prepared(database, choices).path_in(folder)

    def look(self, choices: Choices, stopped: Event) -> Look | None:
        """Return what would be written; None where it was stopped.

        Args:
            choices: What goes out.
            stopped: Set when it is no longer wanted.

        Raises:
            Refused: It cannot be made.
        """
        with closing(open_target(self.store)) as database:
            made = self.prepared(database, choices)
            is_page = choices.format.name == "html"
            page, size, shown, length = PageText(), 0, list[str](), 0
            for piece in made.pieces():
                if stopped.is_set():
                    return None
                size += len(piece.encode("utf-8", "surrogatepass"))
                if length <= MOST_SHOWN:
                    said = page.text_of(piece) if is_page else piece
                    shown.append(said)
                    length += len(said)
        text = "".join(shown)
        return Look(
            text[:MOST_SHOWN], size, made.masks.counts, made.masks.found, choices,
            is_cut=length > MOST_SHOWN)


_NOT_READ = frozenset({"style", "script", "title", "button", "output"})
_LINES = frozenset({
    "article", "blockquote", "br", "details", "div", "dl", "dt", "figcaption", "h1", "h3", "h4",
    "h5", "h6", "header", "hr", "li", "nav", "p", "pre", "section", "summary", "tr",
})  # fmt: skip


class PageText(HTMLParser):
    """Reads a page of ``--to html`` as text: all that it says, what is folded too."""

    def __init__(self) -> None:
        """Begin before the page."""
        super().__init__()
        self._said: list[str] = []
        self._unread = 0

    def text_of(self, piece: str) -> str:
        """Return what the next piece of the page says."""
        self.feed(piece)
        said, self._said = "".join(self._said), []
        return re.sub(r"\n\s*\n", "\n", said)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Begin a line, or what is not read."""
        self._unread += tag in _NOT_READ
        if tag in _LINES:
            self._said.append("\n")
        elif tag in ("dd", "span", "td", "th", "time"):
            self._said.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """End what is not read."""
        self._unread -= tag in _NOT_READ

    def handle_data(self, data: str) -> None:
        """Take text."""
        if not self._unread:
            self._said.append(data)


class Look(NamedTuple):
    """What would be written.

    Attributes:
        text: Its beginning, as text.
        size: In bytes.
        counts: How much is masked, by kind.
        masked: Each mask, with where it stands.
        choices: What it was made by.
        is_cut: Whether more is written than the text.
    """

    text: str
    size: int
    counts: Counter[str]
    masked: list[Masked]
    choices: Choices
    is_cut: bool
