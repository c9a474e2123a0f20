"""How an answer ended, where it did not end as answers do."""

from __future__ import annotations

import re
from collections.abc import Mapping

from store.system.records import NamedTuple
from store.text.stored_json import as_dict

_NORMAL = frozenset({
    "aborted", "cancelled", "canceled", "completed", "completion", "complete", "done", "end",
    "end_turn", "error", "eos", "finished", "function_call", "interrupted", "length",
    "max_tokens", "null", "none", "other", "pause_turn", "refusal", "replaced",
    "content_filter", "review_ended", "safety", "stop", "stop_sequence", "stopped", "success",
    "tool", "tool_call", "tool_calls", "tool_use", "unknown", "user",
    "user_turn_end", "user_interrupt", "model_context_window_exceeded", "finish_reason_unspecified",
})  # fmt: skip
"""Reasons that models and agents give, which say no more than the answer shows."""
_BETWEEN = re.compile(r"[\s.-]+|(?<=[a-z])(?=[A-Z])")


class Ending(NamedTuple):
    """How an answer ended.

    Attributes:
        words: They may hold a word of the session, which is neutralised before it is shown.
        stopped: Whether it was stopped; else it ended for a reason that is not known, which may
            be a good one.
    """

    words: str
    stopped: bool

    @property
    def glyph(self) -> str:
        """The character before the words."""
        return "✗" if self.stopped else "○"


def ending_of(metadata: Mapping[str, object]) -> Ending | None:
    """Return that an answer was stopped, or a reason for its end that is not known.

    Args:
        metadata: The message's; the reason is ``backscroll.finish_reason``.

    Returns:
        None for an answer that ended as others do.
    """
    details = as_dict(metadata.get("backscroll"))
    given = details.get("finish_reason")
    word = " ".join(given.split()) if isinstance(given, str) else ""
    if _BETWEEN.sub("_", word).lower() in _NORMAL:
        word = ""
    if details.get("aborted_at") or details.get("aborted"):
        return Ending(f"stopped here ({word})" if word else "stopped here", True)
    return Ending(f"ended: {word}", False) if word else None
