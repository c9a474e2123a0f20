"""The list's own header: what is shown, of how many, in which order, and the filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from store.queries.list_options import GROUPS
from store.queries.listing import ListQuery
from tui.host import host_of
from tui.keys.names import key_label, key_name
from tui.kit.lines import Line
from tui.kit.paint import paint_of, strip_of
from tui.kit.text import cells, fit, fit_path
from tui.sessions.header_lines import ORDER_CELLS, SLASH, Tally, order_line, title_line
from tui.words.sessions import FILTER_WORDS, folder

if TYPE_CHECKING:
    from store.language.completion import KnownValues
    from tui.sessions.filter_line import FilterInput

ONLY, ALL_FOLDERS = " only ", "all folders"


class HeaderPart(Widget):
    """One line of facts, some at the left edge, some at the right; a click changes them."""

    class Pressed(Message):
        """A word of the header was clicked.

        Attributes:
            command: The id of the command that changes it.
        """

        def __init__(self, command: str) -> None:
            """Make the message."""
            super().__init__()
            self.command = command


class ListTitle(HeaderPart):
    """``Sessions  23 of 1,284          by workspace``.

    Attributes:
        saved: The name of the saved search that is shown, None where none is.
    """

    DEFAULT_CSS = "ListTitle { height: 1; width: 1fr; }"
    tally: reactive[Tally] = reactive(Tally())
    list_query: reactive[ListQuery] = reactive(ListQuery())
    saved: reactive[str | None] = reactive(None)

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        line = title_line(self.list_query, self.tally, self.size.width, saved=self.saved)
        return strip_of(line, self.size.width, paint_of(self.app))

    def on_click(self, event: events.Click) -> None:
        """Change the grouping, or which sessions are shown."""
        at_right = event.x > self.size.width - cells(GROUPS[self.list_query.group].label) - 2
        self.post_message(self.Pressed("list.group" if at_right else "list.view"))


class ListOrder(HeaderPart):
    """``/ filter          recent ↓``; the arrow is up where the smallest are first.

    The filter's words are drawn until the filter is loaded, which then lies upon them.
    """

    DEFAULT_CSS = "ListOrder { height: 1; width: 1fr; layout: horizontal; }"
    list_query: reactive[ListQuery] = reactive(ListQuery())

    def render_line(self, y: int) -> Strip:
        """Draw the slash, the words, and the order at the right edge."""
        paint, left = paint_of(self.app), cells(SLASH)
        line = Line(((SLASH, "user bold" if self.has_focus_within else "faint"),))
        width = max(0, self.size.width - left - ORDER_CELLS)
        words = Strip([Segment(fit(FILTER_WORDS, width), paint.placeholder)])
        blank = paint.style("blank", "panel")
        return Strip.join([
            strip_of(line, left, paint), words.adjust_cell_length(width, blank),
            strip_of(order_line(self.list_query, ORDER_CELLS), ORDER_CELLS, paint),
        ])

    def on_descendant_focus(self) -> None:
        """Highlight the slash while the filter has the focus."""
        self.refresh()

    def on_descendant_blur(self) -> None:
        """Stop highlighting the slash."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Change the sort, or open the filter."""
        if event.widget is not self:
            return  # The filter has it.
        at_right = event.x >= self.size.width - ORDER_CELLS
        self.post_message(self.Pressed("list.sort" if at_right else "list.filter"))


class ListLimit(HeaderPart):
    """``only ~/code/api      w all folders``; it is there while the list shows one folder."""

    DEFAULT_CSS = "ListLimit { height: 1; width: 1fr; }"
    workspace: reactive[str | None] = reactive(None)

    def render_line(self, y: int) -> Strip:
        """Draw the folder, and the key that shows all of them at the right edge."""
        width, table = self.size.width, host_of(self).commands
        keys = table.keys_of(table.by_id["list.folder"])
        key = f"{key_label(key_name(keys[0]))} " if keys else ""
        right = cells(key) + cells(ALL_FOLDERS) + 1
        room = max(0, width - cells(ONLY) - right - 2)
        where = fit_path(folder(self.workspace or ""), room)
        gap = " " * max(1, width - cells(ONLY) - cells(where) - right)
        runs = (
            (ONLY, "tool"), (where + gap, "tool bold"), (key, "text bold"),
            (ALL_FOLDERS + " ", "muted"),
        )
        return strip_of(Line(runs), width, paint_of(self.app))

    def on_click(self) -> None:
        """Show all folders again."""
        self.post_message(self.Pressed("list.folder"))


class ListHeader(Widget):
    """The lines of the header: two, and one more where the list is limited to a folder.

    Attributes:
        filter: What the filter is typed into; None until it is loaded.
    """

    BLANK = True  # Covered by its parts.
    DEFAULT_CSS = "ListHeader { height: auto; background: $surface; layout: vertical; }"

    def __init__(
        self, known: Callable[[], KnownValues], history: Callable[[], Sequence[str]]
    ) -> None:
        """Make the header.

        Args:
            known: Returns the values that fields have in the store.
            history: Returns what was searched for before.
        """
        super().__init__()
        self._known, self._history = known, history
        self._title, self._order, self._limit = ListTitle(), ListOrder(), ListLimit()
        self.filter: FilterInput | None = None

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self._title
        yield self._order

    def loaded_filter(self) -> FilterInput:
        """Return the filter, loaded where it is not yet."""
        if self.filter is None:
            from tui.query.line import QueryNotes
            from tui.sessions.filter_line import FilterInput

            notes = QueryNotes()
            self.filter = FilterInput(notes, self._known, self._history)
            self.filter.styles.margin = (0, ORDER_CELLS, 0, cells(SLASH))
            self._order.mount(self.filter)
            self.mount(notes)
        return self.filter

    def limit_to(self, workspace: str | None) -> None:
        """Show the folder that the list is limited to; None hides the line."""
        limit = self._limit
        limit.workspace = workspace
        limit.display = workspace is not None
        if limit.display and not limit.is_attached:
            self.mount(limit, after=self._title)
