"""The inbox and the outbox of a session: who sent what to whom, through which channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from store.queries.exchange import Box, Sent, exchange
from store.text.figures import count_of, moment
from tui.keys.footer import show_keys
from tui.kit.blocks import Block, Spot
from tui.kit.line_bar import LineBar
from tui.kit.lines import Line, Link, Run, Value, cut, set_width
from tui.kit.masked import shown
from tui.kit.text import one_line
from tui.stacked import StackedScreen

if TYPE_CHECKING:
    from store.store import Store

BOXES: tuple[tuple[str, Box | None], ...] = (
    ("all messages", None), ("inbox", "in"), ("outbox", "out"))
_MARKS: dict[Box, str] = {"in": "in", "out": "out", "own": ""}
_NAME = 24
"""Characters of a sender or a recipient."""


class SentTable(Block):
    """A line for each message."""

    def __init__(self, session_id: str, sent: Sequence[Sent]) -> None:
        """Take the messages.

        Args:
            session_id: The session whose inbox and outbox they are in.
            sent: The messages, oldest first.
        """
        self._session_id, self._sent = session_id, sent
        names = [one_line(shown(name), _NAME) for each in sent
                 for name in (each.sender, each.recipient)]
        self._name = max(map(len, names), default=0)

    def height(self, width: int) -> int:
        """Return the number of messages."""
        return len(self._sent)

    def line(self, number: int, width: int) -> Line:
        """Return the line of a message."""
        one = self._sent[number]
        cells = min(self._name, max(8, width // 5))
        away = one.session_id != self._session_id
        runs: list[Run] = [
            (f"{_MARKS[one.box].rjust(3)}  ", "fork" if one.box != "own" else "faint"),
            *set_width([(one_line(shown(one.sender) or "·", _NAME), "user")], cells),
            (" → ", "faint"),
            *set_width([(one_line(shown(one.recipient) or "·", _NAME), "assistant")], cells),
            ("  ", "text"),
        ]
        if one.channel:
            runs.append((f"#{one_line(shown(one.channel), _NAME)}  ", "tool"))
        runs.append((one_line(shown(one.words), 400), "text"))
        when = f"{'another session  ' if away else ''}{moment(one.at)[5:16]}"
        return Line(
            cut(runs, width - len(when) - 2), ((when, "faint"),),
            value=Value("message", lambda: one.words),
            link=Link("session" if away else "turn", one.session_id, one.message_id))

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the messages whose names, channel or words hold the needle."""
        return [at for at, each in enumerate(self._sent) if needle in " ".join(
            (each.sender, each.recipient, each.channel, each.words)).casefold()]


class ExchangeScreen(StackedScreen):
    """Shows what was sent; enter goes to a message."""

    SCOPE = "exchange"

    def __init__(self, store: Store, session_id: str) -> None:
        """Take the session."""
        super().__init__()
        self._store, self._session_id = store, session_id
        self._sent: list[Sent] | None = None
        self._box = 0

    def on_mount(self) -> None:
        """Read what was sent."""
        self.tell("reading the messages…")
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        try:
            self._sent = await self._store.read(exchange, self._session_id)
        except Exception as error:
            self.tell_unread("the messages", error)
        else:
            self._show()

    def next_box(self) -> None:
        """Show all messages, the inbox, or the outbox."""
        self._box = (self._box + 1) % len(BOXES)
        self._show()

    def _show(self) -> None:
        if self._sent is None:
            return
        name, box = BOXES[self._box]
        sent = [each for each in self._sent if box is None or each.box == box]
        told = "No message of this session names a sender or a recipient."
        if self._sent:
            told = f"Nothing is in the {name}."
        if sent:
            self.view.show([SentTable(self._session_id, sent)])
        else:
            self.tell(told)
        counts = Counter(each.box for each in self._sent)
        channels = {each.channel for each in self._sent if each.channel}
        title, head = (self.query_one(f"#stacked-{part}", LineBar) for part in ("title", "head"))
        title.show(Line((("Exchange", "text bold"),), ((name, "user"),)))
        facts = (f"{count_of(len(sent), 'message')}  {counts['in']:,} in the inbox, "
                 f"{counts['out']:,} in the outbox")
        if channels:
            facts += f", {count_of(len(channels), 'channel')}"
        head.show(Line(((facts, "muted"),)))
        show_keys(self)

    def follow(self) -> None:
        """Go to the message of the line."""
        link = self.view.line.link
        if link is not None:
            self.open_in_transcript(link.target, link.message_id)
