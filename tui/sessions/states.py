"""What sessions do, in words; read by the command line too, which loads little."""

from __future__ import annotations

STATE_WORDS = {
    "running": "running", "retrying": "retrying", "waiting-approval": "needs approval",
    "waiting-input": "waiting", "queued": "queued", "interrupted": "interrupted",
    "error": "failed",
}
"""What a session does, where that is worth a word."""
