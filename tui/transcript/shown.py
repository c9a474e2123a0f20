"""The session that the transcript shows, and what its parts ask of the pane."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from textual.message import Message
from textual.timer import Timer

from store.activity.judgement import Activity
from store.conversation.outline_marks import is_outline
from store.conversation.readable import decode
from store.rows import SessionRow
from store.text.stored_json import as_dict
from tui.kit.glyphs import glyphs
from tui.transcript.document import Document, Key
from tui.transcript.item import Level, Setting
from tui.transcript.reader import SessionReader
from tui.transcript.search import Search
from tui.transcript.shown_hit import ShownHit
from tui.transcript.view import TranscriptView

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.worker import WorkType


class PaneServices(Protocol):
    """What a part of the transcript asks of the pane that holds it."""

    def background(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        """Run work beside the keys; newer work of a group cancels the older."""

    def cancel(self, group: str) -> None:
        """Cancel the work of a group."""

    def in_thread(self, work: Callable[[], None]) -> None:
        """Run work in a thread."""

    def update_headings(self) -> None:
        """Bring the lines around the transcript up to date."""

    def toast(
        self, text: str, severity: Literal["information", "warning", "error"] = "information",
        timeout: float | None = None,
    ) -> None:
        """Show a toast; the text is plain, not markup.

        Args:
            text: What it says.
            severity: Its colour.
            timeout: Seconds until it goes; None for the usual time.
        """

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Timer:
        """Call something once, after some seconds."""

    def set_interval(self, interval: float, callback: Callable[[], Any]) -> Timer:
        """Call something every few seconds."""

    def call_after_refresh(self, callback: Callable[..., Any]) -> bool:
        """Call something after the next paint."""

    def post_message(self, message: Message) -> bool:
        """Post a message from the pane."""


class OwnServices:
    """Mixin for the pane or screen that holds the parts: most of ``PaneServices``."""

    def background(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        """Run work beside the keys; newer work of a group cancels the older."""
        # Not a coroutine: one would never be awaited if newer work came first.
        called: WorkType[None] = work
        cast("Widget", self).run_worker(called, group=group, exclusive=True, exit_on_error=False)

    def cancel(self, group: str) -> None:
        """Cancel the work of a group."""
        node = cast("Widget", self)
        node.workers.cancel_group(node, group)

    def in_thread(self, work: Callable[[], None]) -> None:
        """Run work in a thread."""
        cast("Widget", self).run_worker(work, thread=True, exit_on_error=False)

    def toast(
        self, text: str, severity: Literal["information", "warning", "error"] = "information",
        timeout: float | None = None,
    ) -> None:
        """Show a toast; the text is plain, not markup.

        Args:
            text: What it says.
            severity: Its colour.
            timeout: Seconds until it goes; None for the usual time.
        """
        app = cast("Widget", self).app
        app.notify(text, severity=severity, timeout=timeout, markup=False)


@dataclass(eq=False, slots=True)
class ShownSession:
    """The session on the screen; its document is the view's.

    Attributes:
        view: Shows the document, and holds the position in it.
        reader: Reads the session; None while there is none.
        activity: What the session does.
        search: The search in it, if any.
        hit: The hit of a search over all sessions that it was opened at, if any.
        back: The title of what escape leads back to; "" for the list.
        context_size: Tokens in its context now, 0 where unknown.
        family: What it comes to with all below it, in words; "" without any, or until it is read.
        tools: How far tool calls are open that the user has not folded one by one.
        reasoning: How far reasoning is open.
        marks: Letters of marks in the session, by key of their part.
        signs: By part, in order: the letter of its mark, or the sign of its message's label.
    """

    view: TranscriptView
    reader: SessionReader | None = None
    activity: Activity | None = None
    search: Search | None = None
    hit: ShownHit | None = None
    back: str = ""
    context_size: int = 0
    family: str = ""
    tools: Level = "short"
    reasoning: Level = "off"
    marks: dict[Key, str] = field(default_factory=dict)
    signs: dict[int, str] = field(default_factory=dict)
    _signed_for: tuple[object, ...] = ()

    @property
    def document(self) -> Document:
        """What is known of the session."""
        return self.view.document

    @property
    def session(self) -> SessionRow | None:
        """The row of the session."""
        return self.reader.row if self.reader is not None else None

    @property
    def cursor(self) -> int:
        """The selected part."""
        return self.view.cursor

    @property
    def has_parts(self) -> bool:
        """Whether a session is shown that is not empty."""
        return self.reader is not None and len(self.document) > 0

    @property
    def is_unread(self) -> bool:
        """Whether the session is listed, and its file not read yet."""
        row = self.session
        return row is not None and is_outline(as_dict(decode(row.metadata_json)))

    @property
    def session_id(self) -> str:
        """The session's id; there must be a session."""
        assert self.reader is not None
        return self.reader.row.id

    @property
    def message_id(self) -> str:
        """The id of the selected message; there must be one."""
        return self.document.skeleton.key(self.cursor)[0]

    def setting(self) -> Setting:
        """Return a setting for the present size, with the modes that hold now."""
        setting = self.view.content_setting
        setting.tools, setting.reasoning = self.tools, self.reasoning
        return setting

    def turn(self) -> tuple[str | None, bool]:
        """Return the user message that begins the selected turn, and whether it is the last."""
        skeleton = self.document.skeleton
        number = skeleton.turn_of(skeleton.message[self.cursor])
        if not number:
            return None, False
        return skeleton.message_ids[skeleton.turns[number - 1]], number == len(skeleton.turns)

    def mark_hit(self) -> None:
        """Mark the words of the hit that was opened, in place of those of a search."""
        self.view.pattern = self.hit.marks if self.hit is not None else None
        self.view.hit = None

    def forget_search(self) -> None:
        """End the search, and wake those that wait for what it finds."""
        search, self.search = self.search, None
        if search is not None:
            search.wake()

    async def first_hit(self) -> None:
        """Wait until the search has shown its first hit, where it is still to do so."""
        search = self.search
        while search is not None and search is self.search and search.seeks:
            await search.progress.wait()

    def take_marks(self, marks_in: Callable[[str], dict[Key, str]] | None) -> None:
        """Show marks and labels of the session as they are now, in the gutter and the map."""
        self.marks = marks_in(self.session_id) if marks_in is not None and self.reader else {}
        skeleton, labels = self.document.skeleton, self.document.setting.labels
        state = (skeleton, len(skeleton), labels, self.marks)
        if state == self._signed_for:
            return
        self._signed_for = state
        self.signs = self._signs() if labels or self.marks else {}
        signs = {skeleton.key(part): sign for part, sign in self.signs.items()}
        if signs != self.view.signs:
            self.view.signs = signs
            self.view.changed()

    def _signs(self) -> dict[int, str]:
        document, labels, skeleton = (
            self.document, self.document.setting.labels, self.document.skeleton)
        wanted = {message_id for message_id, _index in self.marks} | set(labels)
        signs: dict[int, str] = {}
        for number, message_id in enumerate(skeleton.message_ids):
            if message_id not in wanted:
                continue
            parts = skeleton.parts_of(number)
            if message_id in labels:
                signs[next(filter(document.shows, parts), parts.start)] = glyphs().label
            letters = ((part, self.marks.get((message_id, skeleton.index[part])))
                       for part in parts)
            signs |= {part: letter for part, letter in letters if letter is not None}
        return dict(sorted(signs.items()))

    def take_labels(self) -> None:
        """Lay out again the messages whose label changed in the session's row."""
        metadata = self.session.metadata_json if self.session is not None else ""
        labels: dict[str, str] = {}
        if '"labels"' in metadata:
            found = as_dict(as_dict(as_dict(decode(metadata)).get("user")).get("labels"))
            labels = {name: str(text) for name, text in found.items()}
        document = self.document
        if labels == document.setting.labels:
            return
        changed = set(labels.items()) ^ set(document.setting.labels.items())
        document.setting.labels = labels
        for message_id in {name for name, _text in changed}:
            part = document.skeleton.locate(message_id) if len(document) else None
            if part is not None:
                document.forget(part)
        self.view.changed()
