"""A line to type into."""

from __future__ import annotations

import re

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from store.text.neutral import neutral

_BREAKS = re.compile("[\t\n]")


class TextLine(Input):
    """An input whose value is harmless and one line.

    It submits on enter at once: a key typed right after it does not go into the text.
    """

    def validate_value(self, value: str) -> str:
        """Return the value as it is shown and edited."""
        return editable(value)

    def on_key(self, event: events.Key) -> None:
        """Submit on enter, before the next key is given to anything."""
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            post_to_parent(self, self.Submitted(self, self.value))


def editable(text: str) -> str:
    """Return text as an input shows it: controls have stand-ins, white space is a space."""
    return text if text.isprintable() and text.isascii() else _BREAKS.sub(" ", neutral(text))


def post_to_parent(widget: Widget, message: Message) -> None:
    """Give a message to a widget's parent, ahead of all that comes up from the widget later.

    In the widget's own queue it would come behind the key that is handled now, and the next
    key would come before it.
    """
    if widget.parent is not None:
        widget.parent.post_message(message)
