"""The list's own header: what is shown, of how many, in which order, and the filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from store.queries.list_options import GROUPS, SHELVES, SORTS
from store.queries.listing import ListQuery
from tui.host import host_of
from tui.keys.names import key_label, key_name
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line
from tui.kit.paint import paint_of, strip_of
from tui.kit.text import cells, fit, fit_path, one_line
from tui.query.line import QueryInput, QueryNotes
from tui.words.sessions import FILTER_WORDS, folder

if TYPE_CHECKING:
    from store.language.completion import KnownValues

ONLY, ALL_FOLDERS = " only ", "all folders"


class Tally(NamedTuple):
    """How many sessions are shown.

    Attributes:
        shown: After the filter; None while nothing is counted yet.
        total: Before the filter.
        looked_at: How many the filter has looked at so far, None when it is done.
        marked: How many are marked.
        unseen: How many of these are not in the list.
        filtered: Whether there is a filter.
        searching: Whether the filter searches, or will, what was said in the sessions.
        partly: Whether it has ended before all of that was searched.
    """

    shown: int | None = None
    total: int = 0
    looked_at: int | None = None
    marked: int = 0
    unseen: int = 0
    filtered: bool = False
    searching: bool = False
    partly: bool = False

    def words(self) -> str:
        """Return the words of the header."""
        if self.shown is None:
            return "counting" + glyphs().more
        words = f"{self.total:,}"
        if self.filtered:
            words = f"{self.shown:,} of {self.total:,}"
        if self.looked_at is not None:
            words += f"  {100 * self.looked_at // max(1, self.total)}%{glyphs().more}"
        elif self.searching:
            words += f"  searching{glyphs().more}"
        elif self.partly:
            words += "  not all searched"
        if self.marked:
            words += f"  {self.marked} marked"
        return words + (f", {self.unseen} not listed" if self.unseen else "")


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
        name = SHELVES[self.list_query.shelf].label
        if self.saved is not None:
            name = fit(one_line(self.saved), max(8, self.size.width // 2))
        group = GROUPS[self.list_query.group].label + " "
        width = self.size.width
        words = "  " + self.tally.words()
        if cells(name) + cells(words) + cells(group) + 2 > width:
            group = " "  # A number that is cut is a wrong one.
        words = fit(words, width - cells(name) - cells(group) - 1)
        gap = " " * max(0, width - 1 - cells(name) - cells(words) - cells(group))
        runs = (f" {name}", "text bold"), (words + gap, "muted"), (group, "faint")
        return strip_of(Line(runs), width, paint_of(self.app))

    def on_click(self, event: events.Click) -> None:
        """Change the grouping, or which sessions are shown."""
        at_right = event.x > self.size.width - cells(GROUPS[self.list_query.group].label) - 2
        self.post_message(self.Pressed("list.group" if at_right else "list.view"))


class ListOrder(HeaderPart):
    """``recent ↓``, beside the filter; the arrow is up where the smallest are first."""

    DEFAULT_CSS = "ListOrder { height: 1; width: 14; }"
    list_query: reactive[ListQuery] = reactive(ListQuery())

    def render_line(self, y: int) -> Strip:
        """Draw the order at the right edge."""
        sort = SORTS[self.list_query.sort]
        words = f"{sort.label} {glyphs().up if sort.ascending else glyphs().down} "
        pad = " " * max(0, self.size.width - cells(words))
        return strip_of(Line(((pad + words, "faint"),)), self.size.width, paint_of(self.app))

    def on_click(self) -> None:
        """Change the sort."""
        self.post_message(self.Pressed("list.sort"))


class FilterInput(QueryInput):
    """The filter; it is reached by its key or a click, not by Tab."""

    def __init__(
        self, notes: QueryNotes, known: Callable[[], KnownValues],
        history: Callable[[], Sequence[str]],
    ) -> None:
        """Make an empty filter.

        Args:
            notes: Shows how it may go on, and what is wrong with it.
            known: Returns the values that fields have in the store.
            history: Returns what was searched for before.
        """
        super().__init__(
            notes, id="filter", placeholder=FILTER_WORDS, known=known, history=history,
            words={"accept": "keep", "leave": "clear", "next": "next session"})


class _Slash(Widget):
    DEFAULT_CSS = "_Slash { height: 1; width: 3; }"

    def render_line(self, y: int) -> Strip:
        lit = isinstance(self.parent, Widget) and self.parent.has_focus_within
        run = " / ", "user bold" if lit else "faint"
        return strip_of(Line((run,)), 3, paint_of(self.app))


class ListLimit(HeaderPart):
    """``only ~/code/api      w all folders``; it is there while the list shows one folder."""

    DEFAULT_CSS = "ListLimit { height: 1; width: 1fr; display: none; }"
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
    """The lines of the header: two, and one more where the list is limited to a folder."""

    DEFAULT_CSS = """
    ListHeader { height: auto; background: $surface; layout: vertical; }
    ListHeader > Horizontal { height: 1; }
    """

    def on_descendant_focus(self) -> None:
        """Highlight the slash while the filter has the focus."""
        self.query_one(_Slash).refresh()

    def on_descendant_blur(self) -> None:
        """Stop highlighting the slash."""
        self.query_one(_Slash).refresh()

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

    def compose(self) -> ComposeResult:
        """Make the parts."""
        notes = QueryNotes()
        yield ListTitle()
        yield ListLimit()
        with Horizontal():
            yield _Slash()
            yield FilterInput(notes, self._known, self._history)
            yield ListOrder()
        yield notes

    def limit_to(self, workspace: str | None) -> None:
        """Show the folder that the list is limited to; None hides the line."""
        limit = self.query_one(ListLimit)
        limit.workspace = workspace
        limit.display = workspace is not None
