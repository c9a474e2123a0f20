"""What the details say that a session cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store.prices.table import Price, PriceTable
from store.queries import details
from tests.store.talks import Talk
from tui.details.facts import fact_blocks

PRICES = PriceTable([[Price(4, pattern="m")]])


@pytest.fixture
def talk(own_talk: Talk) -> Talk:
    return own_talk


def noted(usd: float) -> dict[str, Any]:
    return {"cost_so_far": {"usd": usd, "counter": "1"}}


def told(talk: Talk, session: str) -> list[str]:
    """The lines about tokens and cost, with single blanks."""
    overview = details.overview(talk.db, session)
    blocks = fact_blocks(overview, details.timeline(talk.db, session, PRICES))
    lines = [
        " ".join(block.line(number, 80).whole_text.replace("─", "").split())
        for block in blocks for number in range(block.height(80))
    ]  # fmt: skip
    start = next(at for at, line in enumerate(lines) if line.startswith("Tokens"))
    return [line for line in lines[start : start + 10] if "$" in line or line.startswith("cost")]


def test_a_fork_says_what_it_added_itself(talk: Talk) -> None:
    parent, fork = talk.session(), talk.session()
    first = talk.message(parent, "assistant", usage={"input": 5}, backscroll=noted(0.5))
    talk.message(fork, "assistant", usage={"input": 5}, inherited_from=first)
    assert details.timeline(talk.db, fork).noted is None
    talk.message(fork, "assistant", usage={"input": 5}, backscroll=noted(1.25))
    assert details.timeline(talk.db, parent).noted == 0.5
    assert details.timeline(talk.db, fork).noted == 0.75
    cost = {"backscroll": {"cost": {"usd": 1.25, "from": "cost-state", "totals": {"1": 1.25}}}}
    talk.db.connection.execute(
        "UPDATE chat_sessions SET metadata_json = ? WHERE id = ?", (json.dumps(cost), fork))
    assert told(talk, fork) == ["Tokens 0 tokens $0.750 by cost-state"]


def test_what_no_answer_tells_is_named(talk: Talk) -> None:
    session = talk.session()
    talk.message(session, "assistant", usage={"input": 5}, cost_usd=0.25)
    talk.db.connection.execute("UPDATE chat_sessions SET cost_usd = 0.75")
    assert told(talk, session) == ["Tokens 0 tokens $0.750", "beyond $0.500 that no answer tells"]
    talk.db.connection.execute("UPDATE chat_sessions SET cost_usd = 0.25")
    assert told(talk, session) == ["Tokens 0 tokens $0.250"]


def test_without_a_cost_an_estimate_is_shown_as_one(talk: Talk) -> None:
    session = talk.session()
    assert told(talk, session) == ["cost not recorded"]
    talk.message(session, "assistant", usage={"input": 100_000}, model={"model_id": "m"})
    assert told(talk, session) == ["Tokens 0 tokens ≈ $0.40", "cost estimated by its tokens"]
