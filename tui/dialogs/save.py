"""Asks where to save a text; a file that is there is replaced only on a second enter."""

from __future__ import annotations

import os
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from store.errors import Refused
from store.system.files import plain_name
from store.system.paths import expanded
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


class SaveScreen(ModalScreen[Path | None]):
    """Saves a text; gives the path, or None when it was left."""

    AUTO_FOCUS = "Input"
    DEFAULT_CSS = """
    SaveScreen { align: center middle; }
    SaveScreen > Vertical { width: 84; max-width: 92%; height: auto; padding: 1; }
    SaveScreen Input { height: 1; border: none; padding: 0 1; }
    SaveScreen Input:focus { border: none; }
    """

    def __init__(self, text: str, named: str, suffix: str, folder: Path | None = None) -> None:
        """Make the dialog.

        Args:
            text: What is saved.
            named: What the default file name is made of.
            suffix: Its suffix.
            folder: The default folder; the current one where None.
        """
        super().__init__()
        self._text = text
        self._default = (folder or Path.cwd()) / file_name(named, suffix)
        self._overwrite: str | None = None
        self._raw = False

    def compose(self) -> ComposeResult:
        """Compose title, path and what is known."""
        with Vertical():
            yield LineBar(id="save-title", ground="raised")
            yield TextLine(str(self._default), select_on_focus=False)
            yield LineBar(id="save-told", ground="raised")
            yield LineBar(id="save-keys", ground="raised")

    def on_mount(self) -> None:
        """Say what the keys do."""
        palette = palette_of(self.app)
        self.query_one(Vertical).styles.background = palette.raised
        self.query_one(Input).styles.background = palette.background
        about = size(len(self._text.encode("utf-8", "surrogatepass")))
        title = Line((("Save to a file", "text bold"),), ((about, "muted"),))
        self.query_one("#save-title", LineBar).show(title)
        self._show_keys()

    def _show_keys(self) -> None:
        how = "exactly as it is, terminal escapes too" if self._raw else "controls made visible"
        self.query_one("#save-keys", LineBar).show(Line((
            ("enter", "text bold"), (" save   ", "muted"), ("esc", "text bold"),
            (" leave   ", "muted"), ("ctrl+t", "text bold"), (f" {how}", "muted"),
        )))

    def _tell(self, told: str, look: str = "error") -> None:
        self.query_one("#save-told", LineBar).show(Line(((told, look),)))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another path asks again before it replaces a file."""
        self._overwrite = None
        self._tell("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Save, or say why not."""
        event.stop()
        wanted = event.value.strip()
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

    def on_key(self, event: events.Key) -> None:
        """Leave, or change between harmless and exact."""
        if event.key == "escape":
            event.stop()
            self.dismiss(None)
        elif event.key == "ctrl+t":
            event.stop()
            self._raw = not self._raw
            self._show_keys()
