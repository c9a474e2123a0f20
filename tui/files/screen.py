"""A file of a session as it was at each point: earlier and later, against the disk, saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual import events

from store.errors import BackscrollError
from store.files.disk import standing
from store.files.saving import safe_parts
from store.queries.touches import Touches
from store.system.files import write_whole
from store.text.figures import size
from tui.dialogs.save import PathDialog
from tui.files.reading import (
    Compared,
    FileAtPoints,
    file_blocks,
    point_line,
    read_file,
    title_line,
)
from tui.keys.footer import show_keys
from tui.kit import clipboard
from tui.kit.blocks import Fixed
from tui.kit.line_bar import LineBar
from tui.kit.lines import Line
from tui.stacked import StackedScreen
from tui.verbs.doing import asking
from tui.words.files import since_words

if TYPE_CHECKING:
    from store.files.history import Content, Point
    from store.store import Store

COMPARED: tuple[Compared, ...] = ("change", "text", "disk")


class FileScreen(StackedScreen):
    """Shows one file; keys go from point to point."""

    SCOPE = "file"

    def __init__(
        self, store: Store, session_id: str, key: str | None = None,
        part_id: str | None = None, *, found: Touches | None = None,
        below: StackedScreen | None = None,
    ) -> None:
        """Take the file to show.

        Args:
            store: The store.
            session_id: The session.
            key: The file; None for the one that the call changed.
            part_id: The call to begin at.
            found: What the session touched, where that was read already.
            below: The screen that this one was opened from.
        """
        super().__init__()
        self._store, self._asked = store, (session_id, key, part_id, found)
        self._below = below
        self.file: FileAtPoints | None = None
        self.number = 0
        self.compared: Compared = "change"

    def on_mount(self) -> None:
        """Read the file."""
        self.view.show([_told("reading the file…")])
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        try:
            self.file = await self._store.read(read_file, *self._asked)
        except BackscrollError as error:
            self.view.show([_told(str(error))])
        except Exception as error:
            self.view.show([_told("the file could not be read")])
            self.host.report("The file could not be read", error)
        else:
            self.number = self.file.start
            self.show_point()

    def on_resize(self, event: events.Resize) -> None:
        """Fit the head to the screen."""
        self.call_after_refresh(self._show_head)

    def show_point(self) -> None:
        """Show the current point."""
        if self.file is not None:
            self.view.show(file_blocks(self.file, self.number, self.compared))
            self._show_head()
            show_keys(self)

    def _show_head(self) -> None:
        if self.file is None:
            return
        title, head = (self.query_one(f"#stacked-{name}", LineBar) for name in ("title", "head"))
        title.show(title_line(self.file, self.number, max(8, title.size.width - 4)))
        head.show(point_line(self.file, self.number, self.compared, max(8, head.size.width - 4)))

    @property
    def point(self) -> Point | None:
        """The point that is shown."""
        file = self.file
        return file.points[self.number] if file is not None and file.points else None

    def no_step(self, by: int) -> str | None:
        """Return why there is no earlier or later point, None where there is one.

        Args:
            by: -1 for an earlier one, 1 for a later one.
        """
        if self.file is None or not self.file.points:
            return "Nothing is known of this file"
        if 0 <= self.number + by < len(self.file.points):
            return None
        return "This is the last point" if by > 0 else "This is the first point"

    def step(self, by: int) -> None:
        """Show an earlier or later point."""
        self.number += by
        self.show_point()

    def next_view(self) -> None:
        """Show what the point changed, its whole text, or how the disk differs."""
        self.compared = COMPARED[(COMPARED.index(self.compared) + 1) % len(COMPARED)]
        self.show_point()

    def follow(self) -> None:
        """Go to the call or checkpoint of the line in the transcript."""
        link = self.view.line.link
        if link is None and self.point is not None and self.point.use is not None:
            call = self.point.use.call
            self.open_in_transcript(self._asked[0], call.place.message_id, call.part_id or None)
        elif link is not None:
            self.open_in_transcript(link.target, link.message_id, link.part_id)

    def open_in_transcript(
        self, session_id: str, message_id: str | None = None, part_id: str | None = None
    ) -> None:
        """Close, with the screen below, and show a session.

        Args:
            session_id: The session.
            message_id: Where to place it.
            part_id: The part to select.
        """
        if self._below is None:
            super().open_in_transcript(session_id, message_id, part_id)
            return
        self.dismiss()
        self._below.open_in_transcript(session_id, message_id, part_id)

    async def fork(self) -> None:
        """Fork the session after the point's message, or before the checkpoint of the line."""
        file, link = self.file, self.view.line.link
        message_id = self.fork_message()
        if file is None or message_id is None:
            return
        before = link is not None and link.kind == "checkpoint"
        if before and link is not None and link.part_id:
            # A checkpoint of a call: what is before the call's message is kept.
            message_id, before = file.before.get(message_id, message_id), False
        await asking(self, self._fork(file.session_id, message_id, before=before))

    async def _fork(self, session_id: str, message_id: str, *, before: bool) -> None:
        from tui.verbs.forking import fork_at

        if await fork_at(self.host, session_id, message_id, before=before):
            self.dismiss()
            if self._below is not None:
                self._below.dismiss()

    def fork_message(self) -> str | None:
        """Return the message of the line's checkpoint, or of the point; None without one."""
        link = self.view.line.link
        if link is not None and link.kind == "checkpoint":
            return link.message_id
        use = self.point.use if self.point is not None else None
        return use.call.place.message_id if use is not None else None

    async def copy_path(self) -> None:
        """Copy the file's path."""
        if self.file is not None:
            await clipboard.copy(self.host, self.file.key, "the path")

    def save(self) -> None:
        """Ask where to save the file as it was at this point."""
        if self.file is not None and self.point is not None:
            self.app.push_screen(SaveCopyScreen(self.file, self.point.content))


class SaveCopyScreen(PathDialog):
    """Saves a content of a file, byte by byte."""

    def __init__(self, file: FileAtPoints, content: Content) -> None:
        """Make the dialog.

        Args:
            file: The file.
            content: Its content at a point.
        """
        self._body = content.body or b""
        self._content = content
        name = safe_parts(file.shown)[-1]
        super().__init__("Save a copy", size(len(self._body)), Path.cwd() / name)

    def replacing(self, path: Path) -> str:
        """Return how the file that would be replaced differs, and how to replace it."""
        from store.files.disk import present

        now = present(str(path))
        told = since_words(self._content, now, standing(self._content, now))
        return f"{told or 'The same file exists already.'} Press Enter again to replace it."

    async def write(self, path: Path, *, overwrite: bool) -> str:
        """Write the file."""
        return f"Saved {size(write_whole(path, [self._body], replace=overwrite))}"


def _told(text: str) -> Fixed:
    return Fixed(lambda _: [Line(((text, "faint"),))])


