"""A line to type into that is part of a pane: enter uses what was typed, escape leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.message import Message

from tui.keys.declaration import AnyCommand, Command, CommandFactory
from tui.keys.pane import CommandOwner
from tui.keys.queue import Work
from tui.keys.table import commands_of
from tui.kit.text_line import TextLine, post_to_parent


class PromptLine(CommandOwner, TextLine, inherit_css=False):
    """An input line with keys of its own; its parent hears ``Submitted`` and ``Left``.

    It does not inherit the CSS of ``Input``, which takes longer to parse than the app's own.

    Attributes:
        words: What its keys do here, by the verb of the command: ``{"accept": "find"}``.
    """

    SCOPE = "prompt"
    COMPONENT_CLASSES = TextLine.COMPONENT_CLASSES
    DEFAULT_CSS = """
    PromptLine {
        height: 1; width: 1fr; background: $surface; color: $foreground;
        scrollbar-size: 0 0; pointer: text;
    }
    PromptLine > .input--placeholder { color: $text-muted; }
    PromptLine > .input--cursor {
        background: $input-cursor-background; color: $input-cursor-foreground;
        text-style: $input-cursor-text-style;
    }
    PromptLine > .input--selection {
        background: $input-selection-background; color: $input-selection-foreground;
    }
    """

    class Left(Message):
        """Escape was pressed."""

    def __init__(
        self, placeholder: str = "", *, id: str | None = None, words: Mapping[str, str],
        select: bool = False,
    ) -> None:
        """Make an empty line.

        Args:
            placeholder: Shown while nothing is typed.
            id: The widget's id.
            words: What its keys do here.
            select: Whether its text is selected when it gets the focus.
        """
        super().__init__(
            id=id, placeholder=placeholder, compact=True, select_on_focus=select)
        self.words = dict(words)

    def work_for(self, key: str) -> Work | None:
        """Return what a key runs here; one without a use is the owner's."""
        command = commands_of(self).for_key(self.SCOPE, key)
        if command is None or command.available(self) is not None:
            return None
        return super().work_for(key)

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return what a key does here."""
        label = super().footer_label(command)
        return label and self.words.get(command.id.partition(".")[2], label)

    def accept(self) -> None:
        """Use what was typed."""
        post_to_parent(self, self.Submitted(self, self.value))

    def leave(self) -> None:
        """Go back to where the line was opened."""
        post_to_parent(self, self.Left())


    # What a line that completes overrides

    def uses(self, verb: str) -> bool:
        """Return whether a key of completions and history has a use now."""
        return False

    def complete(self) -> None:
        """Take a completion."""

    def offer(self) -> None:
        """Show completions before anything is typed."""

    def step(self, by: int) -> None:
        """Choose the next (1) or previous (-1) completion, or query of the history."""


def _used(verb: str) -> Callable[[PromptLine], str | None]:
    return lambda line: None if line.uses(verb) else "This line completes nothing"


_command = CommandFactory[PromptLine]("prompt")

PROMPT_COMMANDS: tuple[Command[PromptLine], ...] = (
    _command("accept", ("enter",), "use", "Use what was typed", "Find",
             lambda line: line.accept(), footer=10, meaning="open"),
    _command("leave", ("escape",), "leave", "Leave the line", "Screen",
             lambda line: line.leave(), footer=20, meaning="close"),
    _command("complete", ("tab",), "complete", "Take the completion that is chosen, or the first",
             "Find", lambda line: line.complete(), footer=30, available=_used("complete")),
    _command("next", ("down",), "next", "Next completion, or the next query of the history",
             "Find", lambda line: line.step(1), footer=15, available=_used("next"),
             meaning="down"),
    _command("previous", ("up",), "previous",
             "Previous completion, or the query before it in the history", "Find",
             lambda line: line.step(-1), available=_used("previous"), meaning="up"),
    _command("offer", ("ctrl+space", "ctrl+@"), "fields", "Show the fields of a query", "Find",
             lambda line: line.offer(), available=_used("offer")),
)
