"""A part with its surroundings: all that its layout depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from store.activity.judgement import RUNNING_FOR_MS, Activity
from store.activity.states import WAITING_STATES
from store.queries.transcript import Child
from store.rows import MessageRow, PartRow

Level = Literal["off", "short", "whole"]
LEVELS: tuple[Level, ...] = ("off", "short", "whole")


@dataclass(slots=True)
class Setting:
    """Widths, modes and facts that hold for all parts of a session on the screen.

    Attributes:
        width: Columns of the content, without gutter.
        measure: Columns for prose.
        root: The session's workspace folder.
        agent: The agent that the session was opened with.
        children: Sessions that a tool call of this one started.
        now: The present, epoch ms.
        running: Whether the session runs, so that calls at its end without a result run.
        ended: Whether nothing of it runs, even if it was written just now.
        labels: The user's labels, by message id.
        waiting: ``waiting-approval`` or ``waiting-input`` where the session waits; else empty.
        parent: Title of the session that inherited messages come from.
    """

    width: int
    measure: int
    root: str | None = None
    agent: str = ""
    children: Sequence[Child] = ()
    now: int = 0
    tools: Level = "short"
    reasoning: Level = "off"
    parent: str = ""
    running: bool = False
    ended: bool = False
    waiting: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def take(self, activity: Activity) -> bool:
        """Take the session's activity; return whether its open calls look different now."""
        before = self.running, self.ended, self.waiting
        self.running = activity.state in ("running", "retrying")
        self.ended = activity.state in ("interrupted", "error", "ended") or (
            activity.state == "idle" and activity.from_ == "stored")
        self.waiting = activity.state if activity.state in WAITING_STATES else ""
        return before != (self.running, self.ended, self.waiting)

    def runs(self, touched_at: int, *, newest: bool) -> bool:
        """Return whether a call without a result runs.

        Args:
            touched_at: When it was last written, epoch ms.
            newest: Whether its message is the last one of the conversation.
        """
        if self.ended or (self.waiting and newest):
            return False
        return self.now - touched_at < RUNNING_FOR_MS or (self.running and newest)


class Around(NamedTuple):
    """What a part's layout depends on besides its row and its message.

    Attributes:
        heads: Whether its message's name and facts are shown above it.
        gap: Whether there is an empty line above it.
        new_day: Whether it is the first of its day.
        hidden: ``(messages, hidden_at)`` where a run of hidden messages begins here.
        opened: Whether that run is open.
        first_inherited: Whether the copied beginning starts here.
        last: Whether it is the last part of its message.
        newest: Whether its message is the last one of the conversation.
    """

    flags: int = 0
    heads: bool = False
    gap: bool = True
    new_day: bool = False
    hidden: tuple[int, int] | None = None
    opened: bool = False
    first_inherited: bool = False
    last: bool = False
    newest: bool = False


@dataclass(slots=True)
class Item:
    """One part of a session, ready to be laid out.

    Attributes:
        row: The part; None for a message without parts.
        data: Its decoded ``data_json``.
        metadata: Its message's decoded ``metadata_json``.
        around: Its surroundings.
        level: How far it is open; None for the mode that holds for all.
        pages: How many pages of a long part are shown.
    """

    row: PartRow | None
    message: MessageRow
    data: dict[str, Any]
    metadata: dict[str, Any]
    around: Around = field(default_factory=Around)
    level: Level | None = None
    pages: int = 1

    @property
    def damaged(self) -> str | None:
        """The part's ``data_json`` where it is no JSON object that can be shown; else None."""
        text = self.row.data_json if self.row is not None and not self.data else "{}"
        return text if text.strip() not in ("", "{}") else None

    @property
    def type(self) -> str:
        """The part's type, "" for a message without parts."""
        return self.row.type if self.row is not None else ""
