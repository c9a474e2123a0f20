"""The words for what a session does."""

from __future__ import annotations

from typing import Literal, get_args

ActivityState = Literal[
    "idle", "running", "waiting-approval", "waiting-input", "queued", "retrying",
    "interrupted", "error", "ended", "unknown",
]
ActivityFrom = Literal["stored", "guessed"]
STATES: frozenset[str] = frozenset(get_args(ActivityState))
WAITING_STATES = frozenset(("waiting-approval", "waiting-input"))
RUNNING_STATES = frozenset(("running", "retrying"))
OPEN_STATES = RUNNING_STATES | WAITING_STATES
"""States that end with the process, or, without one, in time."""
BY_URGENCY: tuple[ActivityState, ...] = (
    "waiting-approval", "waiting-input", "running", "retrying", "queued", "error", "interrupted",
)
"""The states in the order in which a list by activity has them; all others come last."""
ALIVE, GONE = "alive", "gone"
"""States of ``live_activity`` that name only a process; the rows say what it does."""
INPUT_TOOLS = frozenset((
    "tool-question", "tool-AskUserQuestion", "tool-design_search", "tool-ask_user",
    "tool-request_user_input",
))
"""Types of tool calls that wait for the user's answer."""
