"""When what was recorded goes to the store. Source: the contract's "Save policy"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SaveOn = Literal["chunk", "step", "turn"]


@dataclass(frozen=True, slots=True)
class SavePolicy:
    """How much may be lost, and for how long.

    Attributes:
        save_on: ``chunk`` saves as chunks arrive; ``step`` at each ``finish-step``;
            ``turn`` at ``finish``, which loses the message in flight on a crash.
        save_buffer_size: With ``chunk``: bytes that may wait before they are saved.
        save_buffer_ms: With ``chunk``: how long they may wait.
    """

    save_on: SaveOn = "chunk"
    save_buffer_size: int = 65_536
    save_buffer_ms: int = 16

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: One is out of range; the message names it.
        """
        if self.save_on not in ("chunk", "step", "turn"):
            raise ValueError(f"save_on is chunk, step or turn, not {self.save_on}")
        for name in ("save_buffer_size", "save_buffer_ms"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is not negative")
