"""The least that a Textual app can be: the floor of starting and of memory."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static


class Hello(App[None]):
    """Says hello."""

    def compose(self) -> ComposeResult:
        """Make the one widget."""
        yield Static("hello, world")


if __name__ == "__main__":
    Hello().run()
