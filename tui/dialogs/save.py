"""Asks where to save a text; a file that is there is replaced only on a second enter."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from textual.widget import Widget
from textual.widgets import Input

from store.engine.opening import open_target
from store.errors import BackscrollError
from store.exports.files import Prepared, prepare
from store.exports.registry import Format
from store.system.files import plain_name
from store.system.paths import expanded
from store.text.figures import size
from tui.dialogs.frame import Dialog
from tui.dialogs.notes import Notes, paragraph
from tui.host import cannot_save
from tui.kit.external import save_text
from tui.kit.line_bar import LineBar
from tui.kit.lines import Line
from tui.kit.text import one_line
from tui.kit.text_line import TextLine
from tui.kit.theme import palette_of

T = TypeVar("T")


def file_name(named: str, suffix: str) -> str:
    """Return a name that any file system takes."""
    return plain_name(named, "value")[:80] + suffix


class PathDialog(Dialog[Path]):
    """Asks for a path and writes there; gives the path, or None when it was left."""

    AUTO_FOCUS = "Input"

    def __init__(self, title: str, about: str, default: Path) -> None:
        """Make the dialog.

        Args:
            title: What is saved.
            about: Shown at the right of the title.
            default: The path that is offered.
        """
        super().__init__(title, about)
        self._default = default
        self._overwrite: str | None = None

    def body(self) -> Sequence[Widget]:
        """Compose the path, and what is known of it."""
        return [TextLine(str(self._default), select_on_focus=False),
                LineBar(id="save-told", ground="raised")]

    def offers(self) -> Mapping[str, str]:
        """Return what enter does."""
        return {"take": "save"}

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
        """Write, or say why not."""
        refused = cannot_save(self)
        if refused is not None:
            self._tell(refused)
            return
        wanted = self.query_one(Input).value.strip()
        if not wanted:
            self._tell("a path is needed")
            return
        try:
            path = self.placed(expanded(wanted))
        except BackscrollError as error:
            self._tell(one_line(str(error)))
            return
        if os.path.lexists(path) and not path.is_dir() and self._overwrite != wanted:
            self._overwrite = wanted
            self._tell(self.replacing(path), "tool")
            return
        try:
            told = await self.write(path, overwrite=self._overwrite == wanted)
        except BackscrollError as error:
            self._tell(one_line(str(error)))
            return
        self.app.notify(f"{told} to {path}", markup=False)
        self.dismiss(path)

    def replacing(self, path: Path) -> str:
        """Return what is said of a file that would be replaced, before the second enter."""
        return "this file exists already; press Enter again to replace it"

    def placed(self, path: Path) -> Path:
        """Return the file that is written for a path."""
        return path

    async def write(self, path: Path, *, overwrite: bool) -> str:
        """Write the file and return what was done: ``Saved 3 kB``.

        Raises:
            Refused: It cannot be written.
        """
        raise NotImplementedError


class SaveScreen(PathDialog):
    """Saves a text."""

    def __init__(self, text: str, named: str, suffix: str, folder: Path | None = None) -> None:
        """Make the dialog.

        Args:
            text: What is saved.
            named: What the default file name is made of.
            suffix: Its suffix.
            folder: The default folder; the current one where None.
        """
        about = size(len(text.encode("utf-8", "surrogatepass")))
        default = (folder or Path.cwd()) / file_name(named, suffix)
        super().__init__("Save to a file", about, default)
        self._text = text
        self._raw = False

    def offers(self) -> Mapping[str, str]:
        """Return what the keys do."""
        how = "exactly as it is, terminal escapes too" if self._raw else "controls made visible"
        return {"take": "save", "exact": how}

    async def take(self, verb: str) -> None:
        """Save, or change between harmless and exact."""
        if verb == "exact":
            self._raw = not self._raw
        else:
            await super().take(verb)

    async def write(self, path: Path, *, overwrite: bool) -> str:
        """Write the text."""
        return f"Saved {size(save_text(path, self._text, overwrite=overwrite, raw=self._raw))}"


class ExportScreen(PathDialog):
    """Exports a session in a format, as ``backscroll export`` does."""

    def __init__(self, target: str | Path, session_id: str, format: Format, title: str) -> None:
        """Make the dialog.

        Args:
            target: The store.
            session_id: The session.
            format: How it is written.
            title: The session's title, as dialogs name it.
        """
        super().__init__(f"Save as {format.name}", title, Path.cwd())
        self._target, self._session_id, self._format = target, session_id, format
        self._export_id = str(uuid.uuid4())

    def body(self) -> Sequence[Widget]:
        """Compose the path, what the format is, and what is known of the path."""
        field, told = super().body()
        return [field, Notes([paragraph(self._format.help, "muted")]), told]

    def placed(self, path: Path) -> Path:
        """Return the path; in a folder the usual name of such a file."""
        return self._on_store(lambda made: made.path_in(path)) if path.is_dir() else path

    async def write(self, path: Path, *, overwrite: bool) -> str:
        """Export the session."""
        def work(made: Prepared) -> str:
            count = made.write(path, replace=overwrite)
            masked = made.masks.counts.total()
            return f"Saved {size(count)}" + (f", {masked:,} secrets masked," if masked else "")

        return await asyncio.to_thread(self._on_store, work, path)

    def _on_store(self, work: Callable[[Prepared], T], out: Path | None = None) -> T:
        with closing(open_target(self._target)) as database:
            made = prepare(
                database, self._session_id, self._format, out=out, export_id=self._export_id)
            return work(made)
