"""Typed messages that panes post up; the main screen acts on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.message import Message


class SessionHighlighted(Message):
    """The list's cursor moved to a session (by id; None when the list is empty)."""

    def __init__(self, session_id: str | None) -> None:
        """Make the message."""
        super().__init__()
        self.session_id = session_id


class SessionOpened(Message):
    """The user wants this session in the transcript, with the focus there.

    Attributes:
        message_id: Where to place it, None for the remembered place or the end.
    """

    def __init__(self, session_id: str, message_id: str | None = None) -> None:
        """Make the message."""
        super().__init__()
        self.session_id = session_id
        self.message_id = message_id


class PartSelected(Message):
    """The transcript's focus moved to a part, or that part changed.

    Attributes:
        runs: Whether it is a call that runs, as the transcript shows it.
    """

    def __init__(
        self, session_id: str, message_id: str, part_id: str, *, runs: bool = False
    ) -> None:
        """Make the message.

        Args:
            session_id: The session.
            message_id: The message of the part.
            part_id: The part.
            runs: As the attribute.
        """
        super().__init__()
        self.session_id = session_id
        self.message_id = message_id
        self.part_id = part_id
        self.runs = runs


class JumpedFrom(Message):
    """A jump led away from a place in the transcript; the list of places keeps it."""

    def __init__(self, session_id: str, place: Mapping[str, Any]) -> None:
        """Make the message.

        Args:
            session_id: The session.
            place: The place, as ``TranscriptPane.place`` returns it.
        """
        super().__init__()
        self.session_id = session_id
        self.place = place


class NothingSelected(Message):
    """The selection is on no part: the session has none, or the selected message."""


class InspectRequested(Message):
    """The user wants the inspector on the selected part, with the focus there."""


class ProblemOccurred(Message):
    """Something failed; shown as a toast and kept in the log file."""

    def __init__(self, summary: str, error: BaseException | None = None) -> None:
        """Make the message."""
        super().__init__()
        self.summary = summary
        self.error = error
