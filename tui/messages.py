"""Typed messages that panes post up; the screen hands them on."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class SessionHighlighted(Message):
    """The list's cursor moved to a session (by id; None when the list is empty)."""

    session_id: str | None


@dataclass
class SessionOpened(Message):
    """The user wants this session in the transcript, with the focus there.

    Attributes:
        message_id: Where to place it, None for the remembered place or the end.
    """

    session_id: str
    message_id: str | None = None


@dataclass
class PartSelected(Message):
    """The transcript's focus moved to a part."""

    session_id: str
    message_id: str
    part_id: str


@dataclass
class InspectRequested(Message):
    """The user wants the inspector on the selected part, with the focus there."""


@dataclass
class ProblemOccurred(Message):
    """Something failed; shown as a toast and kept in the log file."""

    summary: str
    error: BaseException | None = None
