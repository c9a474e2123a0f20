"""The other process of ``store.sync.by_turns`` with small steps, for its tests."""

from __future__ import annotations

from store.sources.base import steps
from store.sync import by_turns

STEP_BYTES = (1 << 18, 8 << 20)

if __name__ == "__main__":
    steps.STEP_BYTES = STEP_BYTES  # type: ignore[assignment]
    by_turns.main()
