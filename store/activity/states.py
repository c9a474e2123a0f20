"""The activity states of sessions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    ActivityState = Literal[
        "idle", "running", "waiting-approval", "waiting-input", "queued", "retrying",
        "interrupted", "error", "ended", "unknown",
    ]
    ActivityFrom = Literal["stored", "guessed"]

_STATES: tuple[ActivityState, ...] = (
    "idle", "running", "waiting-approval", "waiting-input", "queued", "retrying",
    "interrupted", "error", "ended", "unknown",
)
STATES: frozenset[str] = frozenset(_STATES)
WAITING_STATES = frozenset(("waiting-approval", "waiting-input"))
RUNNING_STATES = frozenset(("running", "retrying"))
OPEN_STATES = RUNNING_STATES | WAITING_STATES
"""States that end with the process, or without one after some time."""
BY_URGENCY: tuple[ActivityState, ...] = (
    "waiting-approval", "waiting-input", "running", "retrying", "queued", "error", "interrupted",
)
"""The order of states in a list sorted by activity; all others come last."""
ALIVE, GONE = "alive", "gone"
"""States of ``live_activity`` that only say whether a process lives."""
INPUT_TOOLS = frozenset((
    "tool-question", "tool-AskUserQuestion", "tool-design_search", "tool-ask_user",
    "tool-request_user_input", "tool-ask_question", "tool-ask_followup_question",
))
"""Types of tool calls that wait for the user's answer."""
