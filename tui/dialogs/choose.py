"""A dialog that shows facts and lets one of some options be taken, or just be confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.widget import Widget

from tui.dialogs.frame import Dialog
from tui.dialogs.notes import Notes
from tui.keys.layouts import latin
from tui.keys.queue import Work
from tui.kit.blocks import Block, Fixed
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Link, Run
from tui.kit.text import one_line


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be chosen.

    Attributes:
        value: What the dialog gives.
        refused: Why it cannot be taken now, None where it can.
        key: A letter or digit that takes it at once; "" for none.
    """

    name: str
    value: Any
    about: str = ""
    refused: str | None = None
    look: str = "text"
    key: str = ""


class ChooseDialog(Dialog[Any]):
    """Options below some notes; without options enter confirms and gives True."""

    AUTO_FOCUS = "LineView"

    def __init__(
        self, title: str, options: Sequence[Option] = (), *, about: str = "",
        notes: Sequence[Block] = (), verb: str = "take", start: int = 0,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """Make the dialog.

        Args:
            title: What it is about.
            options: From the top; none makes it a confirmation.
            about: Shown at the right of the title.
            notes: What is to be known before.
            verb: What enter does, for the line of keys.
            start: The option that is chosen at first.
            more: Further verbs of dialogs with their labels; each gives itself as the value.
        """
        super().__init__(title, about)
        self._options, self._notes, self._verb = list(options), list(notes), verb
        self._start, self._more = start, more or {}

    def body(self) -> Sequence[Widget]:
        """Compose notes and options."""
        widgets: list[Widget] = []
        if self._notes:
            notes = Notes(self._notes)
            notes.styles.margin = (1, 0, 0, 0)
            widgets.append(notes)
        if self._options:
            view = LineView(ground="raised")
            view.styles.margin = (1, 0, 0, 0)
            widgets.append(view)
        return widgets

    def offers(self) -> Mapping[str, str]:
        """Return what enter does, and what else there is."""
        return {"take": self._verb, **self._more}

    def on_mount(self) -> None:
        """List the options."""
        if self._options:
            view = self.query_one(LineView)
            view.styles.height = min(16, len(self._options))
            view.show([Fixed(self._lines)])
            self.call_after_refresh(view.move_to, self._start)

    def _lines(self, width: int) -> list[Line]:
        lines = []
        for number, option in enumerate(self._options):
            look = "faint" if option.refused else option.look
            lead = ((option.key.ljust(3), "user bold"),) if self._has_letters else ()
            runs: tuple[Run, ...] = (*lead, (one_line(option.name), look))
            about = option.refused or option.about
            right: tuple[Run, ...] = ((one_line(about), "muted"),) if about else ()
            lines.append(Line(runs, right, link=Link("choice", str(number))))
        return lines

    def work_for(self, key: str) -> Work | None:
        """Return what a key runs; the letter of an option comes before the keys of dialogs."""
        letter = latin(key) if self._has_letters else ""
        for option in self._options:
            if option.key and option.key == letter:
                return partial(self._take, option)
        return super().work_for(key)

    async def take(self, verb: str) -> None:
        """Give what is chosen, or the verb."""
        if verb == "take":
            self._take_selected()
        else:
            self.dismiss(verb)

    @property
    def _has_letters(self) -> bool:
        return any(option.key for option in self._options)

    def _take_selected(self) -> None:
        if self._options:
            self._take(self._options[self.query_one(LineView).cursor])
        else:
            self.dismiss(True)

    def _take(self, option: Option) -> None:
        if option.refused:
            self.app.notify(option.refused, severity="warning", markup=False)
        else:
            self.dismiss(option.value)

    def on_line_view_activated(self, message: LineView.Activated) -> None:
        """Take the option that was clicked."""
        message.stop()
        self._take_selected()
