"""A tool call in words: its name, its object, how it ended, what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from tui.kit import figures
from tui.kit.text import one_line

Status = Literal[
    "running", "waiting", "ok", "failed", "denied", "interrupted", "pending", "ended",
]
"""``ended``: with an output and a word of the agent's own; whether it went well is not known."""
BodyKind = Literal["text", "diff", "todo", "markdown", "code"]
PATHS = frozenset({"file_path", "filePath", "path", "absolute_path", "notebook_path"})
"""Arguments that name a file."""


@dataclass(slots=True)
class Call:
    """A tool call, ready to be laid out.

    Attributes:
        name: The tool as people call it.
        what: One line that says what it did.
        marks: Runs after it, such as ``+9 -3``.
        word: How it ended, "" for an unremarkable success.
        milliseconds: How long it took; None where unknown.
        size: How much came back, in words.
        said: A person's words in answer to the call.
        body: What opens below: text, diff lines, or ``(state, text)`` of a check list.
        result: What the call gave back, where the body is something else; or the fixed text
            around a person's words.
        lead_lines: Body lines that show when outputs are short.
        from_end: Whether the short form shows the end of the body.
        call_id: ``toolCallId``.
    """

    name: str
    what: str
    status: Status
    word: str = ""
    marks: list[tuple[str, str]] = field(default_factory=list)
    milliseconds: float | None = None
    size: str = ""
    kind: BodyKind = "text"
    said: str = ""
    body: Any = ""
    result: str = ""
    lead_lines: int = 4
    from_end: bool = False
    language: str = ""
    call_id: str = ""

    @property
    def result_tells(self) -> bool:
        """Whether the result says more than that all went well."""
        return self.status == "failed" or (
            self.status in ("denied", "interrupted") and not self.said
        )

    @property
    def searched(self) -> str:
        """All that shows when the call is open whole."""
        if self.kind == "diff":
            body = "\n".join(line.text for line in self.body)
        elif self.kind == "todo":
            body = "\n".join(text for _state, text in self.body)
        else:
            body = self.body
        shown = (f"{self.name} {self.what}", self.said, body, self.result)
        return "\n".join(filter(None, shown))


def shortened(text: str, root: str | None) -> str:
    """Return a path from the workspace on, or with ``~`` for the home."""
    text = one_line(text)
    if root and text.startswith(root.rstrip("/") + "/"):
        return text[len(root.rstrip("/")) + 1:]
    return figures.home_path(text)


def ended_in(call: Call) -> str:
    """Return the call's duration for people, "" where it is unknown or nothing."""
    return figures.duration(call.milliseconds) if call.milliseconds is not None else ""
