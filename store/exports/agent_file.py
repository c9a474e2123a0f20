"""Common parts of the session files that agents resume."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from store.exports.reading import Row, SessionReading


class AgentFile(Protocol):
    """A session file for an agent."""

    @property
    def lines(self) -> list[str]:
        """Its lines without their newline."""
        ...

    @property
    def prompt(self) -> str | None:
        """An unanswered last prompt, which is not in the file; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A session file that its agent finds by its name.

    Attributes:
        session_id: A UUID.
        name: The file's name.
        lines: JSON lines without their newline.
        prompt: An unanswered last prompt, which is not in the file; None if there is none.
    """

    session_id: str
    name: str
    lines: list[str]
    prompt: str | None


def written(made: AgentFile, reading: SessionReading) -> Iterator[str]:
    """Yield a file's lines; an omitted last prompt is added to the reading's remarks."""
    if made.prompt is not None:
        reading.remarks.append(f"the file omits the last prompt; send it yourself: {made.prompt}")
    if made.lines:
        reading.agent_id = reading.export_id
    for line in made.lines:
        yield f"{line}\n"


def title_of(session: Row, *, given_only: bool = False) -> str | None:
    """Return a session's title on one line, the user's own first; None without a title.

    Args:
        session: Its row.
        given_only: Whether to ignore a title that was made from the first prompt.
    """
    metadata = session["metadata"] if isinstance(session["metadata"], dict) else {}
    user = metadata.get("user")
    own = user.get("title") if isinstance(user, dict) else None
    is_prompt = given_only and metadata.get("title_from") == "first-prompt"
    title = own or session.get("title") or (None if is_prompt else metadata.get("title"))
    return " ".join(title.split()) if isinstance(title, str) else None
