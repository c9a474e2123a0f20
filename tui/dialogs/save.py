"""Asks where to save a text; a file that is there is replaced only on a second enter."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from textual.widget import Widget
from textual.widgets import Input

from store.errors import Refused
from store.system.files import plain_name
from store.system.paths import expanded
from tui.dialogs.frame import Dialog
from tui.kit.external import save_text
from tui.kit.figures import size
from tui.kit.line_bar import LineBar
from tui.kit.lines import Line
from tui.kit.text import one_line
from tui.kit.text_line import TextLine
from tui.kit.theme import palette_of


def file_name(named: str, suffix: str) -> str:
    """Return a name that any file system takes."""
    return plain_name(named, "value")[:80] + suffix


class SaveScreen(Dialog[Path]):
    """Saves a text; gives the path, or None when it was left."""

    AUTO_FOCUS = "Input"

    def __init__(self, text: str, named: str, suffix: str, folder: Path | None = None) -> None:
        """Make the dialog.

        Args:
            text: What is saved.
            named: What the default file name is made of.
            suffix: Its suffix.
            folder: The default folder; the current one where None.
        """
        super().__init__("Save to a file", size(len(text.encode("utf-8", "surrogatepass"))))
        self._text = text
        self._default = (folder or Path.cwd()) / file_name(named, suffix)
        self._overwrite: str | None = None
        self._raw = False

    def body(self) -> Sequence[Widget]:
        """Compose the path, and what is known of it."""
        return [TextLine(str(self._default), select_on_focus=False),
                LineBar(id="save-told", ground="raised")]

    def offers(self) -> Mapping[str, str]:
        """Return what the keys do."""
        how = "exactly as it is, terminal escapes too" if self._raw else "controls made visible"
        return {"take": "save", "exact": how}

    def on_mount(self) -> None:
        """Show the input."""
        self.query_one(Input).styles.background = palette_of(self.app).background

    def _tell(self, told: str, look: str = "error") -> None:
        self.query_one("#save-told", LineBar).show(Line(((told, look),)))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another path asks again before it replaces a file."""
        self._overwrite = None
        self._tell("")

    async def take(self, verb: str) -> None:
        """Save, or say why not; or change between harmless and exact."""
        if verb == "exact":
            self._raw = not self._raw
            return
        wanted = self.query_one(Input).value.strip()
        if not wanted:
            self._tell("a path is needed")
            return
        path = expanded(wanted)
        if os.path.lexists(path) and not path.is_dir() and self._overwrite != wanted:
            self._overwrite = wanted
            self._tell("this file exists already; press Enter again to replace it", "tool")
            return
        try:
            count = save_text(
                path, self._text, overwrite=self._overwrite == wanted, raw=self._raw
            )
        except Refused as error:
            self._tell(one_line(str(error)))
            return
        self.app.notify(f"Saved {size(count)} to {path}", markup=False)
        self.dismiss(path)
