"""What a source guesses of a turn that may be over."""

from __future__ import annotations

from typing import Any

MAY_GO_ON_FOR_MS = 10_000
"""How long after its last words an answer is taken for one that continues."""


def may_go_on(at: int) -> dict[str, Any]:
    """Return the activity of a session whose last answer does not say whether it is finished.

    Args:
        at: When its last words were written, epoch ms.
    """
    until = at + MAY_GO_ON_FOR_MS
    return {"state": "running", "from": "guessed", "since": at, "until": until}
