"""A line to type into, as all lines of this app are."""

from __future__ import annotations

import re

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from store.text.neutral import neutral

_BREAKS = re.compile("[\t\n]")


class TextLine(Input):
    """An input whose value is harmless, whatever it is filled with, and on one line.

    It submits on enter at once: a key typed right behind it is none of the text.
    """

    def validate_value(self, value: str) -> str:
        """Return the value as it is shown and edited."""
        return editable(value)

    def on_key(self, event: events.Key) -> None:
        """Submit on enter, before the next key is given to anything."""
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            tell_above(self, self.Submitted(self, self.value))


def editable(text: str) -> str:
    """Return text as an input shows it: controls have stand-ins, white space is a space."""
    return text if text.isprintable() and text.isascii() else _BREAKS.sub(" ", neutral(text))


def tell_above(widget: Widget, message: Message) -> None:
    """Give a message to a widget's parent, ahead of all that comes up from the widget later.

    In the widget's own queue it would stand behind what waits for the key that is being
    dealt with, and the next key would come before it.
    """
    if widget.parent is not None:
        widget.parent.post_message(message)
