"""How an answer ended: shown only where the reason is not a usual one."""

from __future__ import annotations

from typing import Any

import pytest

from store.conversation.endings import ending_of
from store.exports.html.parts import ending


@pytest.mark.parametrize(("details", "words"), [
    ({}, ""), ({"finish_reason": "end_turn"}, ""), ({"finish_reason": "tool-calls"}, ""),
    ({"finish_reason": "toolUse"}, ""), ({"finish_reason": "STOP"}, ""),
    ({"finish_reason": "UserTurnEnd"}, ""), ({"finish_reason": "MaxTokens"}, ""),
    ({"finish_reason": 7}, ""), ({"finish_reason": " "}, ""),
    ({"finish_reason": "quota\nspent"}, "ended: quota spent"),
    ({"finish_reason": "interrupted", "aborted_at": 1}, "stopped here"),
    ({"finish_reason": "power_cut", "aborted_at": 1}, "stopped here (power_cut)"),
])  # fmt: skip
def test_a_reason_that_is_not_usual_is_shown(details: dict[str, Any], words: str) -> None:
    metadata = {"backscroll": details}
    assert ending_of(metadata) == words
    page = f'<p class="failed">✗ {words}</p>' if words else ""
    assert page in (made := ending(metadata, "text")) and bool(made) == bool(words)


def test_metadata_of_any_shape_says_nothing() -> None:
    assert ending_of({"backscroll": "x"}) == ending_of({}) == ""
