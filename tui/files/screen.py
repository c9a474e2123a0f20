"""The files of a session as they were at each point: compared, against the disk, saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from store.errors import BackscrollError
from store.files.disk import Standing, standing
from store.files.saving import safe_parts
from store.queries.touches import Touches
from store.system.files import write_whole
from store.text.figures import size
from tui.dialogs.save import PathDialog
from tui.files.reading import (
    Asked,
    Compared,
    FileAtPoints,
    FileNames,
    file_blocks,
    point_line,
    read_file,
    standings,
    title_line,
)
from tui.keys.declaration import AnyCommand
from tui.keys.footer import BottomLine, show_keys
from tui.kit import clipboard
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.stacked import StackedScreen
from tui.verbs.doing import asking
from tui.words.files import since_words

if TYPE_CHECKING:
    from store.files.history import Content, Point
    from store.store import Store

LIST_FROM = 110
"""From this width of the screen the list of files is beside the file."""
MOST_COMPARED = 1_000
"""Changed files of the list that are compared with the disk."""
COMPARED_AT_ONCE = 100
COMPARE_LABEL = "compare from here"
COMPARED: tuple[Compared, ...] = ("change", "text", "disk")


class FileScreen(StackedScreen):
    """Shows one file of several; keys go from point to point, and from file to file.

    Attributes:
        number: The point that is shown.
        base: The point that it is compared with; None for the one before it.
    """

    SCOPE = "file"
    AUTO_FOCUS = "#file-main"
    DEFAULT_CSS = """
    FileScreen > #file-body { height: 1fr; }
    FileScreen #file-list { width: 44; margin-right: 1; display: none; }
    FileScreen.wide.several #file-list { display: block; }
    FileScreen #file-main { width: 1fr; }
    """

    def __init__(
        self, store: Store, session_id: str, key: str | None = None,
        part_id: str | None = None, *, message_id: str | None = None,
        found: Touches | None = None, below: StackedScreen | None = None,
    ) -> None:
        """Take the file to show.

        Args:
            store: The store.
            session_id: The session.
            key: The file; None for the one that the call changed, or the last changed one.
            part_id: The call to begin at.
            message_id: The message to begin at.
            found: What the session touched, where that was read already.
            below: The screen that this one was opened from.
        """
        super().__init__(LineView(id="file-main", ground="background"))
        self._store = store
        self._asked = Asked(session_id, key, part_id, message_id, found)
        self._below = below
        self._standings: dict[str, Standing] = {}
        self.file: FileAtPoints | None = None
        self.number = 0
        self.base: int | None = None
        self.compared: Compared = "change"

    def compose(self) -> ComposeResult:
        """Compose head, list, file and keys."""
        yield LineBar(id="stacked-title", ground="raised")
        yield LineBar(id="stacked-head", ground="background")
        with Horizontal(id="file-body"):
            files = LineView(id="file-list")
            files.can_focus, files.shows_cursor = False, True
            yield files
            yield self.view
        yield BottomLine()

    def on_mount(self) -> None:
        """Read the file."""
        self.tell("reading the file…")
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        if await self._read():
            await self._compare_with_disk()

    async def _read(self) -> bool:
        """Read the file and show it; return whether it could be."""
        try:
            self.file = await self._store.read(read_file, self._asked)
        except Exception as error:
            self.tell_unread("the file", error)
        else:
            self.number, self.base = self.file.start, None
            self._show_list()
            self.show_point()
            return True
        return False

    async def _compare_with_disk(self) -> None:
        """Find how the changed files of the list are on disk, some at a time."""
        file = self.file
        if file is None:
            return
        keys = [row.key for row in file.files[:MOST_COMPARED] if row.changes]
        for start in range(0, len(keys), COMPARED_AT_ONCE):
            batch = keys[start : start + COMPARED_AT_ONCE]
            try:
                self._standings |= await self._store.read(
                    standings, file.session_id, file.touches, batch)
            except BackscrollError:
                return  # The session is gone; what is shown of it stays.
            self._show_list()

    def _show_list(self) -> None:
        if self.file is None or not self.is_attached:
            return
        files = self.file.files
        self.set_class(len(files) > 1, "several")
        view = self.query_one("#file-list", LineView)
        view.show([FileNames(files, self._standings)], stay=True)
        view.move_to(self._place)

    @property
    def _place(self) -> int:
        """The line of the file in the list."""
        key = self.file.key if self.file is not None else ""
        rows = self.file.files if self.file is not None else []
        return next((at for at, row in enumerate(rows) if row.key == key), 0)

    def on_resize(self, event: events.Resize) -> None:
        """Show the list where there is room, and fit the head to the screen."""
        self.set_class(event.size.width >= LIST_FROM, "wide")
        self.call_after_refresh(self._show_head)

    # Other files

    def no_file(self, by: int) -> str | None:
        """Return why there is no file before or after this one, None where there is one.

        Args:
            by: -1 for the one before, 1 for the one after.
        """
        if self.file is None:
            return "The file is still being read"
        if 0 <= self._place + by < len(self.file.files):
            return None
        return "This is the last file" if by > 0 else "This is the first file"

    async def go_to_file(self, by: int) -> None:
        """Show the file before or after this one in the list."""
        if self.file is not None:
            await self._choose(self.file.files[self._place + by].key)

    async def _choose(self, key: str) -> None:
        """Show another file, as it was at the message that the screen was opened for."""
        if self.file is None or key == self.file.key:
            return
        self._asked = replace(self._asked, key=key, part_id=None, found=self.file.touches)
        await self._read()

    async def on_line_view_activated(self, message: LineView.Activated) -> None:
        """Show the file that was clicked in the list."""
        link = message.line.link
        if link is not None and link.kind == "file":
            message.stop()
            await self._choose(link.target)
            self.view.focus()

    # Points

    def show_point(self) -> None:
        """Show the current point."""
        if self.file is not None:
            self.view.show(file_blocks(self.file, self.number, self.compared, self.base))
            self._show_head()
            show_keys(self)

    def _show_head(self) -> None:
        if self.file is None:
            return
        title, head = (self.query_one(f"#stacked-{name}", LineBar) for name in ("title", "head"))
        title.show(title_line(self.file, self.number, max(8, title.size.width - 4)))
        head.show(point_line(
            self.file, self.number, self.compared, max(8, head.size.width - 4), self.base))

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

    def compare_from_here(self) -> None:
        """Compare the points that are shown next with this one; again: with the one before."""
        self.base = self.number if self.base is None else None
        self.compared = "change"
        self.show_point()

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return a command's words in the footer; comparing ends with the key that began it."""
        label = super().footer_label(command)
        return "end comparing" if label == COMPARE_LABEL and self.base is not None else label

    def next_view(self) -> None:
        """Show what the point changed, its whole text, or how the disk differs."""
        self.compared = COMPARED[(COMPARED.index(self.compared) + 1) % len(COMPARED)]
        self.show_point()

    def follow(self) -> None:
        """Go to the call or checkpoint of the line in the transcript."""
        link = self.view.line.link
        if link is None and self.point is not None and self.point.use is not None:
            call = self.point.use.call
            self.open_in_transcript(
                self._asked.session_id, call.place.message_id, call.part_id or None)
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
            message_id, before = file.before[message_id], False
        await asking(self, self._fork(file.session_id, message_id, before=before))

    async def _fork(self, session_id: str, message_id: str, *, before: bool) -> None:
        from tui.verbs.forking import fork_at

        if await fork_at(self.host, session_id, message_id, before=before):
            self.dismiss()
            if self._below is not None:
                self._below.dismiss()

    def no_fork(self) -> str | None:
        """Return why nothing would be in a fork here, None where something would."""
        link, file = self.view.line.link, self.file
        is_first = (file is not None and link is not None and link.kind == "checkpoint"
                    and link.message_id not in file.before)
        return "Nothing comes before the first message" if is_first else None

    def fork_message(self) -> str | None:
        """Return the message of the line's checkpoint, or of the point; None without one."""
        link = self.view.line.link
        if link is not None and link.kind in ("checkpoint", "saved"):
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
