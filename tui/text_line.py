"""A line to type into, as all lines of this app are."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input


class TextLine(Input):
    """Tells of enter at once: a key typed right behind it is none of the text."""

    def on_key(self, event: events.Key) -> None:
        """Submit on enter, before the next key is given to anything."""
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            tell_above(self, self.Submitted(self, self.value))


def tell_above(widget: Widget, message: Message) -> None:
    """Give a message to a widget's parent, ahead of all that comes up from the widget later.

    In the widget's own queue it would stand behind what waits for the key that is being
    dealt with, and the next key would come before it.
    """
    if widget.parent is not None:
        widget.parent.post_message(message)
