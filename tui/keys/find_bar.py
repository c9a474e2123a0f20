"""The line where a text to find is typed."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tui.keys.prompt import PromptLine
from tui.kit.text_line import post_to_parent


class FindBar(Horizontal):
    """``/`` and an input; hidden until it is opened."""

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; padding: 0 1; }
    FindBar.open { display: block; }
    FindBar > #find-mark { width: 2; }
    FindBar > PromptLine { background: transparent; }
    FindBar > #find-count { width: auto; min-width: 10; text-align: right; }
    """

    def __init__(self, placeholder: str = "find") -> None:
        """Make a closed bar; ``placeholder`` is what it shows while nothing is typed."""
        super().__init__()
        self._placeholder = placeholder
        self._told = ""

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
        yield PromptLine(self._placeholder, id="find-text", select=True,
                         words={"accept": "keep the matches"})
        yield Static("", id="find-count", markup=False)

    def open(self) -> None:
        """Show the bar; what is typed from now on goes into it."""
        self.add_class("open")
        self.screen.set_focus(self.query_one(PromptLine))

    def close(self) -> None:
        """Hide the bar and forget the text."""
        self.remove_class("open")
        with self.prevent(Input.Changed):
            self.query_one(PromptLine).value = ""

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

    def on_prompt_line_left(self, event: PromptLine.Left) -> None:
        """Stop finding."""
        event.stop()
        post_to_parent(self, self.Closed())
