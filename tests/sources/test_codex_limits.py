"""The windows of a plan that Codex's server reports are kept on the answer they came with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.sources.codex.responses import limits_of
from tests.sources.codex_lines import START, Lines, read_one, thread_id

RESET = START // 1000 + 3600
FIVE_HOURS = {"used_percent": 25.0, "window_minutes": 300, "resets_at": RESET}
WEEK = {"used_percent": 39, "window_minutes": 10_080, "resets_at": RESET + 86_400}
KEPT = [
    {"used_percent": 25.0, "window_minutes": 300, "resets_at": RESET * 1000,
     "limit": "codex", "plan": "plus"},
    {"used_percent": 39, "window_minutes": 10_080, "resets_at": (RESET + 86_400) * 1000,
     "limit": "codex", "plan": "plus"},
]  # fmt: skip


def limits(**windows: Any) -> dict[str, Any]:
    return {"limit_id": "codex", "plan_type": "plus", "limit_name": None, **windows}


def kept(lines: Lines, home: Path) -> list[Any]:
    messages = read_one(lines, home).messages
    return [m.metadata.get("rate_limits") for m in messages if m.role == "assistant"]


def test_after_the_record_of_an_answer(tmp_path: Path) -> None:
    lines = Lines(thread_id(1))
    lines.event("token_count", info=None, rate_limits=limits(primary=WEEK))
    lines.user("go")
    call = lines.call("shell", command="x")
    lines.usage("r1")
    lines.output(call, "done")
    lines.event("token_count", info=None, rate_limits=limits(primary=FIVE_HOURS, secondary=WEEK))
    lines.says("that is it")
    lines.usage("r2")
    lines.event("token_count", info=None, rate_limits=limits(primary=None, secondary=None))
    lines.user("more")
    # Before its answer it is about no answer.
    lines.event("token_count", info=None, rate_limits=limits(primary=FIVE_HOURS))
    lines.says("yes")
    lines.usage("r3")
    assert kept(lines, tmp_path) == [KEPT, None, None]


def test_older_versions_that_count_before_the_items(tmp_path: Path) -> None:
    lines = Lines(thread_id(1), None)
    lines.user("go")
    lines.event("agent_message", message="done")
    used = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    at = lines.at
    window = {"used_percent": 3, "window_minutes": 299, "resets_in_seconds": 60}
    lines.event("token_count", info={"total_token_usage": used, "last_token_usage": used},
                rate_limits={"primary": window})  # fmt: skip
    lines.says("done")
    assert kept(lines, tmp_path) == [
        [{"used_percent": 3, "window_minutes": 299, "resets_at": at + 60_000}]
    ]


@pytest.mark.parametrize("odd", [
    None, [], "much", {"primary": []}, {"primary": {}}, {"primary": FIVE_HOURS | {"resets_at": 0}},
    {"primary": FIVE_HOURS | {"window_minutes": "300"}},
    {"primary": FIVE_HOURS | {"window_minutes": 10**9}},
    {"primary": FIVE_HOURS | {"used_percent": float("nan")}},
    {"primary": FIVE_HOURS | {"resets_at": float("inf")}},
    {"primary": FIVE_HOURS | {"resets_at": 10**400}},
])  # fmt: skip
def test_odd_ones_are_left_out(odd: Any) -> None:
    assert limits_of({"rate_limits": odd}, START) == []
