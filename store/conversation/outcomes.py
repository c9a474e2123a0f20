"""How a tool call ended: its state, exit code and duration, as its part says them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from store.text.stored_json import as_dict

Status = Literal[
    "running", "waiting", "ok", "failed", "denied", "interrupted", "pending", "ended",
]
"""``ended``: with an output and a word of the agent's own; whether it went well is not known."""

_EXIT = re.compile(r"^Exit code (-?\d{1,9})\n?")
_HEAD = re.compile(
    r"^(?:Chunk ID: [^\n]*\n)?(?:Exit code: -?\d{1,9}\n)?Wall time: [^\n]*\n(?:Process [^\n]*\n)?"
    r"(?:(?:Original token count|Total output lines): [^\n]*\n)*Output:\n"
)
"""What Codex puts before a command's output; duration and exit code are shown beside it."""
HEAD_CHARACTERS = 4_000
"""Characters of an output in which exit code and duration are."""
MOST_MS = 1e13
"""Longer durations, and those that are no number, count as unknown."""
_UNSETTLED = frozenset({"input-streaming", "input-available", "approval-responded"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended.

    Attributes:
        status: Its state.
        word: The state in words, "" for a plain success.
        exit_code: The exit code of a command, None where unknown.
        milliseconds: How long it took, None where unknown.
        head: Characters of the output that repeat exit code and duration.
    """

    status: Status
    word: str = ""
    exit_code: int | None = None
    milliseconds: float | None = None
    head: int = 0

    @property
    def done(self) -> bool:
        """Whether the call did what it was asked to, as far as is known."""
        return self.status in ("ok", "ended")


def tool_name(data: Mapping[str, Any]) -> str:
    """Return the name of the tool that a part calls."""
    kind = str(data.get("type", ""))
    return kind[5:] if kind.startswith("tool-") else str(data.get("toolName") or "tool")


def details_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the source adds to a result; empty without it."""
    return as_dict(as_dict(data.get("resultProviderMetadata")).get("backscroll"))


def outcome(data: Mapping[str, Any], output: str, times: tuple[int, int] = (0, 0)) -> Outcome:
    """Return how a call ended.

    Args:
        data: The part.
        output: Its output or error as text.
        times: ``created_at`` and ``updated_at`` of the part, epoch ms; the duration where
            the source gives none.
    """
    details = details_of(data)
    code = details.get("exit_code")
    headed = _HEAD.match(output)
    head = headed.end() if headed else 0
    # An exit code is at the start of what is left, so that it is looked for there only.
    stated = _EXIT.match(output[head : head + 40])
    if stated:
        code = int(stated[1]) if code is None else code
        head += stated.end()
    status, word = _status(data, details, code)
    took = details.get("duration_ms")
    if took is None and status not in ("pending", "waiting") and times[1] > times[0]:
        took = times[1] - times[0]
    return Outcome(
        status, word, code if type(code) is int else None,
        took if isinstance(took, int | float) and 0 <= took < MOST_MS else None, head,
    )


def outcome_of(data: Mapping[str, Any], times: tuple[int, int] = (0, 0)) -> Outcome:
    """Return how a call ended, by the start of its output as it is in the part.

    Args:
        data: The part.
        times: As in ``outcome``.
    """
    output = data.get("errorText") or data.get("output")
    if isinstance(output, list) and output:
        output = as_dict(output[0]).get("text")
    start = output[:HEAD_CHARACTERS].lstrip() if isinstance(output, str) else ""
    return outcome(data, start, times)


def _status(data: Mapping[str, Any], details: dict[str, Any], code: Any) -> tuple[Status, str]:
    state, given = str(data.get("state") or ""), details.get("status")
    status: Status = "ok"
    word = ""
    if state in _UNSETTLED or data.get("preliminary"):
        status, word = "pending", "no result"
    elif state == "approval-requested":
        status, word = "waiting", "waits for approval"
    elif given == "denied" or state == "output-denied":
        status, word = "denied", "denied"
    elif given == "interrupted":
        status, word = "interrupted", "interrupted"
    elif state == "output-error" or given == "error" or code not in (None, 0):
        status, word = "failed", f"exit {code}" if code not in (None, 0) else "failed"
    if isinstance(details.get("word"), str):
        # The agent's own word, of which nothing more is known.
        word = details["word"]
        if state == "output-error":
            status = "interrupted"
        elif status == "ok":
            status = "ended"
    elif details.get("guessed"):
        word += " (a guess)"
    return status, word
