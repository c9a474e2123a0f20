"""When what was recorded goes to the store. Source: the contract's "Save policy"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from store.errors import Invalid

SaveOn = Literal["chunk", "step", "turn"]

_BLOCK_ENDS = frozenset((
    "text-end", "reasoning-end", "tool-input-start", "tool-input-available", "tool-input-error",
    "tool-approval-request", "tool-approval-response", "tool-output-error",
    "tool-output-denied", "finish-step", "reset-step", "finish", "abort", "error",
))
TURN_ENDS = frozenset(("finish", "abort"))
_STEP_ENDS = frozenset(("finish-step", "error")) | TURN_ENDS
_SAVES_NOW: dict[str, frozenset[str]] = {
    "chunk": _BLOCK_ENDS, "step": _STEP_ENDS, "turn": TURN_ENDS,
}


_RESTS = 9
"""A server that others use, too, takes longer for a save, and gets fewer of them."""
_LONGEST_MS = 1e12
"""Thirty years: a whole number may be too large for a time."""


@dataclass(frozen=True, slots=True)
class SavePolicy:
    """How much may be lost, and for how long.

    Attributes:
        save_on: ``chunk`` saves as chunks arrive; ``step`` at each ``finish-step``;
            ``turn`` at ``finish``, which loses the message in flight on a crash.
        save_buffer_size: With ``chunk``: bytes that may wait before they are saved.
        save_buffer_ms: With ``chunk``: how long they may wait.
        busy_buffer_ms: With ``chunk``: how long they may wait where a server takes long to answer;
            see ``wait_s``.
    """

    save_on: SaveOn = "chunk"
    save_buffer_size: int = 65_536
    save_buffer_ms: int = 16
    busy_buffer_ms: int = 50

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            Invalid: One is out of range; the message names it.
        """
        if self.save_on not in ("chunk", "step", "turn"):
            raise Invalid(f"save_on must be chunk, step or turn, not {self.save_on}")
        for name in ("save_buffer_size", "save_buffer_ms", "busy_buffer_ms"):
            value = getattr(self, name)
            # Half a millisecond is a time too; NaN is no number.
            if not isinstance(value, int | float) or not value >= 0:
                raise Invalid(f"{name} must be a number from 0 on")

    @property
    def saves_now(self) -> frozenset[str]:
        """The types of chunks after which nothing may wait."""
        return _SAVES_NOW[self.save_on]

    @property
    def full(self) -> float:
        """How many bytes may wait; with ``step`` and ``turn`` there is no limit."""
        if self.save_on != "chunk":
            return float("inf")
        return self.save_buffer_size if self.save_buffer_ms else 0

    def wait_s(self, took_s: float = 0.0) -> float:
        """Return how many seconds chunks may wait.

        They wait nine times as long as the last save took, where that is more than
        ``save_buffer_ms``, up to ``busy_buffer_ms``.

        Args:
            took_s: How long the last save to a server took.
        """
        wait_ms = max(self.save_buffer_ms, min(_RESTS * took_s * 1_000, self.busy_buffer_ms))
        return min(wait_ms, _LONGEST_MS) / 1_000
