"""Common parts of the session files that agents resume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    """A session file that its agent finds by its name, and the files that belong to it.

    Attributes:
        session_id: The session's id at the agent.
        name: The file's name; for a session that is a folder, its path from where that is.
        lines: Its lines without their newline.
        prompt: An unanswered last prompt, which is not in the file; None if there is none.
        beside: Texts of the session's other files, by their paths from where ``name`` is.
    """

    session_id: str
    name: str
    lines: list[str]
    prompt: str | None
    beside: Mapping[str, str] = field(default_factory=dict)


def written(made: AgentFile, reading: SessionReading) -> Iterator[str]:
    """Yield a file's lines; what else there is to write or to say is added to the reading."""
    if made.prompt is not None:
        reading.remarks.append(f"the file omits the last prompt; send it yourself: {made.prompt}")
    if made.lines:
        reading.agent_id = reading.export_id
        if isinstance(made, NamedFile):
            reading.agent_id, reading.beside = made.session_id, dict(made.beside)
    for line in made.lines:
        yield f"{line}\n"


def title_of(session: Row, *, given_only: bool = False) -> str | None:
    """Return a session's title on one line, the user's own first; None without a title.

    Args:
        session: Its row.
        given_only: Whether to ignore a title that was made from a prompt.
    """
    metadata = session["metadata"] if isinstance(session["metadata"], dict) else {}
    user = metadata.get("user")
    own = user.get("title") if isinstance(user, dict) else None
    is_prompt = given_only and metadata.get("title_from") in ("first-prompt", "last-prompt")
    title = own or session.get("title") or (None if is_prompt else metadata.get("title"))
    return " ".join(title.split()) if isinstance(title, str) else None
