"""Finds text in the inspector: the line where it is typed, and the matches in the view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tui.kit.line_view import LineView
from tui.kit.lines import Run
from tui.kit.text import fit, one_line
from tui.kit.text_line import TextLine, post_to_parent


class FindBar(Horizontal):
    """``/`` and an input; hidden until it is opened."""

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; padding: 0 1; }
    FindBar.open { display: block; }
    FindBar > #find-mark { width: 2; }
    FindBar > Input { width: 1fr; height: 1; border: none; padding: 0; background: transparent; }
    FindBar > Input:focus { border: none; }
    FindBar > #find-count { width: auto; min-width: 10; text-align: right; }
    """

    _told = ""

    @dataclass
    class Changed(Message):
        """Another text is to be found."""

        text: str

    class Accepted(Message):
        """Enter: back to the view, with the matches marked."""

    class Closed(Message):
        """Escape: stop finding."""

    def compose(self) -> ComposeResult:
        """Compose mark, input and count."""
        yield Static("/", id="find-mark", markup=False)
        yield TextLine(id="find-text", placeholder="find", select_on_focus=True)
        yield Static("", id="find-count", markup=False)

    def open(self) -> None:
        """Show the bar; what is typed from now on goes into it."""
        self.add_class("open")
        self.screen.set_focus(self.query_one(Input))

    def close(self) -> None:
        """Hide the bar and forget the text."""
        self.remove_class("open")
        with self.prevent(Input.Changed):
            self.query_one(Input).value = ""

    @property
    def is_open(self) -> bool:
        """Whether the bar is shown."""
        return self.has_class("open")

    def tell(self, told: str) -> None:
        """Show how many hits there are."""
        if told != self._told:
            self._told = told
            self.query_one("#find-count", Static).update(Content(told))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Find as it is typed."""
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on in the view."""
        event.stop()
        post_to_parent(self, self.Accepted())

    def on_key(self, event: events.Key) -> None:
        """Close on escape, whatever the screen does with that key."""
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            post_to_parent(self, self.Closed())


class Finder:
    """Searches a view for what is typed into a bar."""

    def __init__(self, view: LineView, bar: FindBar, where: Callable[[], str]) -> None:
        """Take view and bar.

        Args:
            view: What is searched.
            bar: Where the text is typed.
            where: Returns the name of what the view shows.
        """
        self._view, self._bar, self._where = view, bar, where

    @property
    def needle(self) -> str:
        """What is searched for; empty without a search."""
        return self._view.needle

    @property
    def is_open(self) -> bool:
        """Whether there is a search, or a text for one is being typed."""
        return bool(self.needle) or self._bar.is_open

    def open(self) -> None:
        """Let a text be typed."""
        self._bar.open()

    def accept(self) -> None:
        """Hide the bar; the matches stay marked."""
        self._bar.remove_class("open")
        self._view.focus()

    def find(self, text: str) -> None:
        """Mark the matches of a text."""
        self._view.find(text)
        self._view.post_message(self._view.CursorMoved())

    def close(self) -> None:
        """End the search."""
        self._bar.close()
        self.find("")
        self._view.focus()

    def step(self, by: int) -> None:
        """Go to the next match (1) or the previous one (-1)."""
        if not self._view.found[1]:
            self._view.app.notify(
                f"“{self.needle}” is not in {self._where()}", severity="warning", markup=False)
        self._view.next_hit(by)

    def show_count(self) -> None:
        """Show in the bar which match the cursor is on."""
        at, hits = self._view.found
        count = f"{at:,} of {hits:,}" if hits else "no match"
        self._bar.tell(count if self.needle else "")

    @property
    def words(self) -> Run:
        """Which match the cursor is on, or what was not found, and where."""
        at, hits = self._view.found
        if hits:
            return f"match {at:,} of {hits:,}", "faint"
        where = self._where()
        room = self._view.cells - len(f"“” is not in {where}") - 20
        return f"“{fit(one_line(self.needle), max(6, room))}” is not in {where}", "tool"
