"""A line for a query, and what is shown below it: completions and problems.

An owner composes a ``QueryNotes`` below its ``QueryInput`` and connects the two::

    notes = QueryNotes()
    yield QueryInput(notes, id="filter")
    yield notes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.host import host_of
from tui.keys.prompt import PromptLine
from tui.kit.lines import Line
from tui.kit.paint import blank, paint_of, strip_of
from tui.kit.text import cells, fit, one_line, wrap
from tui.kit.text_line import post_to_parent

if TYPE_CHECKING:
    from store.language.completion import Completion, KnownValues
    from store.language.query import Problem, Query

MOST_ROWS = 8
"""Completions that are shown at once."""
MOST_PROBLEM_LINES = 4


class QueryInput(PromptLine):
    """A line that a query is typed into.

    It posts ``Input.Changed`` and ``Input.Submitted``. Tab takes the first completion, down
    and up choose another, enter takes the chosen one. Where no completions are shown, up in an
    empty line goes back through the history, and else up and down post ``Stepped``.

    Attributes:
        known: Returns the values that fields have in the store.
        history: Returns the queries of before, the newest first.
    """

    class Stepped(Message):
        """Up or down was pressed, and the line has no use for it.

        Attributes:
            step: 1 for down, -1 for up.
        """

        def __init__(self, step: int) -> None:
            """Make the message."""
            super().__init__()
            self.step = step


    def __init__(
        self, notes: QueryNotes, *, id: str | None = None, placeholder: str = "",
        known: Callable[[], KnownValues] | None = None,
        history: Callable[[], Sequence[str]] | None = None, hits_below: bool = False,
        words: Mapping[str, str] | None = None,
    ) -> None:
        """Make an empty line.

        Args:
            notes: Shows completions and problems; the owner composes it below the line.
            id: The widget's id.
            placeholder: Shown while the line is empty.
            known: Returns the values of the store.
            history: Returns the queries of before.
            hits_below: Whether down goes from a word to what was found, below the line, and
                escape closes completions that are only offered.
            words: What the keys do here, as ``PromptLine`` takes it.
        """
        super().__init__(placeholder, id=id, words=words or {})
        self.notes = notes
        self.known, self.history, self._hits_below = known, history, hits_below
        self._back = -1  # The entry of the history that is shown.
        self._set_by_history: str | None = None
        notes.line = self

    @property
    def parsed(self) -> Query:
        """What is typed, as a query of now."""
        from store.language.query import parse

        return parse(self.value, now=host_of(self).library.clock())

    # What is shown

    def on_input_changed(self) -> None:
        """Show how the query may go on, and what is wrong with it."""
        if self.value != self._set_by_history:
            self._back, self._set_by_history = -1, None
        self._show(asked=False)

    def _show(self, *, asked: bool, finished: bool = False) -> None:
        if not self.value and not asked:
            self.notes.show((), ())
            return
        from store.language.completion import complete

        offered: Sequence[Completion] = ()
        of_history = self._set_by_history is not None
        if self.has_focus and not finished and not of_history:
            known = self.known() if self.known is not None else None
            offered = complete(self.value, self.cursor_position, known, asked=asked)
        if self._hits_below and not asked and offered and self._is_word(offered[0]):
            # The words of a search are seldom meant as the state that they begin.
            offered = [each for each in offered if each.text.endswith(":")]
        at = self.cursor_position if offered else -1
        self.notes.set_class(bool(offered) and self._is_word(offered[0]), "of-word")
        self.notes.show(offered, [
            problem for problem in self.parsed.problems
            if (finished or not problem.unfinished) and not _touches(problem, at)
        ])

    def on_blur(self) -> None:
        """Hide the completions."""
        self.notes.show((), self.notes.shown_problems)

    # Keys

    def accept(self) -> None:
        """Take the completion that was chosen, else use what was typed."""
        if self.notes.chosen is not None:
            self.take(self.notes.chosen)
        else:
            self._show(asked=False, finished=True)
            super().accept()

    def leave(self) -> None:
        """Hide the completions where one was chosen, else leave the line."""
        if self.notes.chosen is not None or (self.notes.offered and self._hits_below):
            self.notes.show((), self.notes.shown_problems)
        else:
            super().leave()

    def uses(self, verb: str) -> bool:
        """Return whether a key has a use now; tab has one where there are completions."""
        return verb != "complete" or bool(self.notes.offered)

    def complete(self) -> None:
        """Take the completion that was chosen, or the first one."""
        self.take(self.notes.chosen or self.notes.offered[0])

    def offer(self) -> None:
        """Show how the query may begin."""
        self._show(asked=True)

    def step(self, by: int) -> None:
        """Choose the next completion (1) or the one before; else go through history or hits."""
        notes = self.notes
        if notes.offered and (notes.chosen is not None or (by > 0 and not self._leaves_word())):
            notes.choose(by)
        elif self._older(-by) is not None:
            self._go_back(-by)
        else:
            post_to_parent(self, self.Stepped(by))

    def on_key(self, event: events.Key) -> None:
        """Hide the completions when the cursor moves."""
        if event.key in ("left", "right", "home", "end"):
            self.notes.show((), self.notes.shown_problems)

    def _leaves_word(self) -> bool:
        """Return whether down goes to the hits rather than to the first completion."""
        notes = self.notes
        return self._hits_below and notes.chosen is None and self._is_word(notes.offered[0])

    def _is_word(self, offered: Completion) -> bool:
        """Return whether a completion is for a word, not for the value of a field."""
        start, end = offered.span
        word = self.value[start:end]
        return bool(word) and ":" not in self.value[:start].rpartition(" ")[2] + word

    def take(self, completion: Completion) -> None:
        """Put a completion into the line."""
        start, end = completion.span
        rest = self.value[end:]
        text = completion.text + (" " if completion.ends and not rest else "")
        self.value = self.value[:start] + text + rest
        self.cursor_position = start + len(text)
        self._show(asked=False)

    def _older(self, step: int) -> int | None:
        """Return the number of an older (1) or newer query of the history; None without one."""
        queries = self.history() if self.history is not None else ()
        if (self.value and self._back < 0) or not queries or self._back + step < -1:
            return None
        return min(self._back + step, len(queries) - 1)

    def _go_back(self, step: int) -> None:
        """Show an older query of the history, or a newer one."""
        number = self._older(step)
        if number is None or self.history is None:
            return
        self._back = number
        self._set_by_history = self.history()[number] if number >= 0 else ""
        self.value = self._set_by_history
        self._set_by_history = self.value
        self.cursor_position = len(self.value)


def _touches(problem: Problem, cursor: int) -> bool:
    return problem.span[0] <= cursor <= problem.span[1]


class QueryNotes(Widget):
    """What is shown below a query: completions above what is there, and problems.

    Attributes:
        line: The line that it is for.
        offered: The completions that are shown.
        chosen: The one that was chosen with the keys.
        shown_problems: The problems that are shown.
    """

    DEFAULT_CSS = """
    QueryNotes { height: auto; width: 1fr; layout: vertical; }
    """

    line: QueryInput

    def __init__(self) -> None:
        """Make it empty."""
        super().__init__()
        self.offered: tuple[Completion, ...] = ()
        self.shown_problems: tuple[Problem, ...] = ()
        self._number = -1
        self._box, self._problems = _Completions(), _Problems()

    @property
    def chosen(self) -> Completion | None:
        """The completion that was chosen with the keys; None for none."""
        return self.offered[self._number] if self._number >= 0 else None

    def show(self, offered: Sequence[Completion], problems: Sequence[Problem]) -> None:
        """Show completions and problems in place of those before.

        Args:
            offered: How the query may go on.
            problems: What is wrong with it.
        """
        self.offered, self._number = tuple(offered), -1
        if not self._problems.is_attached and (offered or problems):
            # Not when the screen is made, which waits for each of its widgets.
            self.mount(self._box, self._problems)
        self._box.show(self.offered, -1)
        if self.shown_problems != tuple(problems):
            self.shown_problems = tuple(problems)
            self._problems.show([problem.message for problem in problems])

    def choose(self, step: int) -> None:
        """Choose the next completion, or the one before."""
        self._number = min(self._number + step, len(self.offered) - 1)
        self._box.show(self.offered, self._number)

    def on__completions_taken(self, event: _Completions.Taken) -> None:
        """Take the completion that was clicked."""
        event.stop()
        if event.number < len(self.offered):
            self.line.take(self.offered[event.number])


class _Completions(Widget):
    """A box over what is below the line, one row for each completion."""

    DEFAULT_CSS = """
    _Completions { overlay: screen; display: none; height: 1; width: 1fr; max-width: 80; }
    """

    class Taken(Message):
        """A completion was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__()
        self._offered: tuple[Completion, ...] = ()
        self._number, self._top = -1, 0

    def show(self, offered: tuple[Completion, ...], number: int) -> None:
        """Show completions, with one chosen; -1 for none."""
        self._offered, self._number = offered, number
        self._top = max(0, min(self._top, number), number - MOST_ROWS + 1)
        self.styles.height = max(1, min(MOST_ROWS, len(offered)))
        self.display = bool(offered)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at, width, paint = self._top + y, self.size.width, paint_of(self.app)
        if at >= len(self._offered):
            return blank(width, paint, "raised")
        found = self._offered[at]
        label = one_line(found.label)
        room = width - cells(label) - 6
        about = fit(one_line(found.help), room) if room > 8 else ""
        return strip_of(
            Line(((f" {label} ", "text bold"),), ((f" {about} ", "muted"),) if about else ()),
            width, paint, ground="focus" if at == self._number else "raised",
        )

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Taken(self._top + event.y))


class _Problems(Widget):
    """Lines that say what is wrong with a query."""

    DEFAULT_CSS = "_Problems { display: none; height: auto; width: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._messages: list[str] = []

    def show(self, messages: list[str]) -> None:
        """Show problems; nothing takes no room."""
        self._messages = messages
        self.display = bool(messages)
        self.refresh(layout=True)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return max(1, len(self._lines(width)))

    def _lines(self, width: int) -> list[str]:
        lines = [
            text[start:end].strip()
            for text in map(one_line, self._messages) for start, end in wrap(text, width - 2)
        ]
        if len(lines) > MOST_PROBLEM_LINES:
            lines = [*lines[:MOST_PROBLEM_LINES - 1], lines[MOST_PROBLEM_LINES - 1] + " …"]
        return lines

    def render_line(self, y: int) -> Strip:
        lines, width, paint = self._lines(self.size.width), self.size.width, paint_of(self.app)
        if y >= len(lines):
            return blank(width, paint, "panel")
        return strip_of(Line(((f" {lines[y]}", "error"),)), width, paint)
