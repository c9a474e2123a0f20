"""The line at the bottom in which a search, or a place to go to, is typed."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from tui.keys.prompt import PromptLine
from tui.kit.text_line import post_to_parent
from tui.transcript.document import Document

PromptKind = Literal["find", "goto"]
_CLOCK = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d)[ T]?)?(\d{1,2}):(\d\d)(?::(\d\d))?")
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


class Prompt(Horizontal):
    """A mark and an input; hidden until it is opened."""

    DEFAULT_CSS = """
    Prompt { height: 1; display: none; padding: 0 1; }
    Prompt.open { display: block; }
    Prompt > #prompt-mark { width: 2; }
    Prompt > PromptLine { background: transparent; }
    """

    @dataclass
    class Accepted(Message):
        """Enter was pressed."""

        kind: PromptKind
        text: str

    @dataclass
    class Typed(Message):
        """The text changed."""

        kind: PromptKind
        text: str

    class Closed(Message):
        """Escape was pressed."""

    def __init__(self) -> None:
        """Make a hidden prompt."""
        super().__init__(id="prompt")
        self.kind: PromptKind = "find"

    def compose(self) -> ComposeResult:
        """Compose mark and input."""
        yield Static("/", id="prompt-mark", markup=False)
        yield PromptLine(id="prompt-text", words={}, select=True)

    def open(self, kind: PromptKind, text: str = "") -> None:
        """Show the prompt and focus it."""
        self.kind = kind
        field = self.query_one(PromptLine)
        field.words = {"accept": "keep the matches" if kind == "find" else "go there"}
        self.query_one(Static).update("/" if kind == "find" else ":")
        field.placeholder = "find in this session" if kind == "find" else (
            "turn, 14:03, 2026-11-28, #part or 50%")
        with self.prevent(Input.Changed):
            field.value = text
        self.add_class("open")
        self.screen.set_focus(field)

    def close(self) -> None:
        """Hide the prompt."""
        self.remove_class("open")

    @property
    def is_open(self) -> bool:
        """Whether the prompt is shown."""
        return self.has_class("open")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Post the text as it is typed."""
        event.stop()
        post_to_parent(self, self.Typed(self.kind, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Post the typed text."""
        event.stop()
        self.close()
        post_to_parent(self, self.Accepted(self.kind, event.value))

    def on_prompt_line_left(self, event: PromptLine.Left) -> None:
        """Close."""
        event.stop()
        self.close()
        post_to_parent(self, self.Closed())


def place_named(text: str, document: Document) -> int | str:
    """Return the part that a text names, or the reason why there is none.

    Args:
        text: A turn's number, ``#`` and a part's number, a share with ``%``, a time of day,
            or a date with or without a time.
        document: A complete document.
    """
    text, skeleton = text.strip(), document.skeleton
    if text.startswith("#") and text[1:].isdigit():
        number = int(text[1:])
        return number - 1 if 1 <= number <= len(skeleton) else (
            f"There is no part {number}; the last is {len(skeleton)}")
    if text.endswith("%") and text[:-1].strip().isdigit():
        return min(len(skeleton) - 1, len(skeleton) * int(text[:-1]) // 100)
    if text.isdigit():
        number, turns = int(text), skeleton.turns
        return skeleton.first[turns[number - 1]] if 1 <= number <= len(turns) else (
            f"There is no turn {number}; the last is {len(turns)}")
    at = _time_named(text, skeleton.created[0] if skeleton.created else 0)
    if at is None:
        return "Type a turn (12), a time (14:03), a date (2026-11-28), a part (#412) or 50%"
    message = bisect_left(skeleton.created, at, 0, _sorted_end(document))
    if message >= len(skeleton.message_ids):
        return "The session ended before that time"
    return skeleton.first[message]


def _sorted_end(document: Document) -> int:
    """Return how many messages are in order of time: queued ones at the end are not."""
    flags = document.skeleton.flags
    end = len(flags)
    while end and flags[end - 1] & 2:
        end -= 1
    return end


def _time_named(text: str, start: int) -> int | None:
    """Return epoch ms of a time; one without a date is the first such after the start."""
    found = _CLOCK.fullmatch(text)
    dated = _DAY.fullmatch(text)
    try:
        if dated:
            return _local(int(dated[1]), int(dated[2]), int(dated[3]), 0, 0)
        if not found:
            return None
        hour, minute = int(found[4]), int(found[5])
        if found[1]:
            return _local(int(found[1]), int(found[2]), int(found[3]), hour, minute)
        day = time.localtime(start / 1000)
        at = _local(day.tm_year, day.tm_mon, day.tm_mday, hour, minute)
        return at if at + 59_999 >= start else at + 86_400_000
    except (ValueError, OverflowError):
        return None


def _local(year: int, month: int, day: int, hour: int, minute: int) -> int:
    return int(time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))) * 1000
