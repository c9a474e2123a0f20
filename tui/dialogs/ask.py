"""A dialog with one line of text to type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.widget import Widget
from textual.widgets import Input

from tui.dialogs.frame import Dialog
from tui.dialogs.notes import Notes, words
from tui.kit.text_line import TextLine, editable
from tui.kit.theme import palette_of


class AskDialog(Dialog[str]):
    """Gives the text that was typed, also an empty one; the first text where it is as it was."""

    AUTO_FOCUS = "Input"

    def __init__(
        self, title: str, text: str = "", *, verb: str, placeholder: str = "", note: str = "",
        about: str = "",
    ) -> None:
        """Make the dialog.

        Args:
            title: What it is about.
            text: The input's first text.
            verb: What enter does.
            placeholder: Shown in an empty input.
            note: One line below the input.
            about: Shown at the right of the title.
        """
        super().__init__(title, about)
        self._text, self._verb, self._placeholder, self._note = text, verb, placeholder, note

    def body(self) -> Sequence[Widget]:
        """Compose input and note."""
        field = TextLine(self._text, placeholder=self._placeholder, select_on_focus=False)
        return [field, Notes([words((self._note, "muted"))])] if self._note else [field]

    def offers(self) -> Mapping[str, str]:
        """Return what enter does."""
        return {"take": self._verb}

    def on_mount(self) -> None:
        """Put the cursor behind the text."""
        field = self.query_one(Input)
        field.styles.background = palette_of(self.app).background
        field.cursor_position = len(field.value)

    async def take(self, verb: str) -> None:
        """Give the text."""
        self.dismiss(self._given(self.query_one(Input).value))

    def _given(self, value: str) -> str:
        """Return the text; where nothing was typed, the one that was there, also if hostile."""
        return self._text if value == editable(self._text) else value
