"""What sessions cost, from the kept statistics alone."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

import pytest

from store.language.query import parse
from store.prices.table import Price, PriceTable
from store.stats.costs import costs_of, is_kept
from store.stats.statistics import ALWAYS, figures, open_rollups
from tests.store.stats.test_rollups import kept, note
from tests.store.talks import Talk
from tui.words.spending import cost_words

PRICES = PriceTable(
    [[Price(4, 20, 0.2, 5, 8, pattern="m"), Price(8, 40, pattern="m", tier="fast"),
      Price(0, 0, pattern="free")]]
)


@pytest.fixture
def talk(own_talk: Talk) -> Talk:
    return own_talk


def test_costs_are_told_estimated_or_unknown(talk: Talk) -> None:
    def session(**metadata: Any) -> str:
        made = talk.session()
        talk.message(made, "assistant", model={"model_id": "m"}, **metadata)
        note(talk, made)
        return made

    told = session(usage={"input": 9}, cost_usd=0.25)
    # 1,000 x 4 + 100 x 20 + 10,000 x 0.2 + 400 x 5 + 600 x 8 = 14,800 millionths.
    tokens = {"input": 1000, "output": 100, "cache_read": 10_000, "cache_write": 1000}
    estimated = session(usage=tokens, usage_details={"cache_write_1h": 600})
    # 1,000 x 8 + 100 x 40 = 12,000.
    fast = session(usage={"input": 1000, "output": 100}, usage_details={"tier": "fast"})
    unknown = session(usage={"input": 9}, usage_details={"tier": "flex"})
    path = talk.db.path
    assert not is_kept(path) and costs_of(path, [told], PRICES) == {}
    kept(path)
    found = costs_of(path, [told, estimated, fast, unknown, "ses_none"], PRICES)
    assert is_kept(path)
    assert {name: cost.usd for name, cost in found.items()} == {
        told: 0.25, estimated: pytest.approx(0.0148), fast: pytest.approx(0.012), unknown: None,
    }  # fmt: skip
    assert [found[name].is_estimate for name in (told, estimated, fast)] == [False, True, True]
    assert (found[told].answers, found[told].known, found[unknown].known) == (1, 1, 0)


def test_what_is_free_by_the_table_is_an_estimate_too(talk: Talk) -> None:
    session = talk.session()
    talk.message(session, "assistant", usage={"input": 9}, model={"model_id": "free"})
    note(talk, session)
    kept(talk.db.path)
    cost = costs_of(talk.db.path, [session], PRICES)[session]
    assert (cost.usd, cost.is_estimate) == (0.0, True)
    with open_rollups(talk.db, PRICES) as stats:
        query = parse("", now=0)
        whole = figures(talk.db, stats, by=None, span=ALWAYS, query=query, zone=UTC).whole
    assert (whole.cost_usd, whole.is_estimate) == (0.0, True)
    assert cost_words(whole) == "≈ $0"


def test_a_file_of_another_store_or_without_sense_tells_nothing(talk: Talk) -> None:
    session = talk.session()
    talk.message(session, "assistant", usage={"input": 9}, model={"model_id": "m"})
    note(talk, session)
    kept(talk.db.path)
    path = talk.db.path
    assert costs_of(path, [session], PRICES)
    stats = path.with_name(path.name + ".stats")
    stats.write_bytes(b"no database" * 99)
    assert costs_of(path, [session], PRICES) == {}
    assert costs_of(path.with_name("gone.db"), [session], PRICES) == {}


def test_a_subagent_is_counted_again_once_its_starters_total_has_it(talk: Talk) -> None:
    lead = talk.session()
    talk.message(lead, "assistant", usage={"input": 1000}, model={"model_id": "m"})
    lineage = json.dumps({"lineage": {"kind": "subagent"}})
    helper = talk.session(parent_id=lead, metadata_json=lineage)
    talk.message(helper, "assistant", usage={"input": 1000}, model={"model_id": "m"})
    for session in (lead, helper):
        note(talk, session)
    kept(talk.db.path)
    costs = costs_of(talk.db.path, [lead, helper], PRICES)
    assert [costs[name].estimated_usd for name in (lead, helper)] == [0.004, 0.004]
    so_far = {"usd": 0.5, "counter": "1"}
    talk.message(lead, "assistant", backscroll={"cost_so_far": so_far})
    told = json.dumps({"backscroll": {"cost": {"usd": 0.5, "totals": {"1": 0.5}}}})
    talk.db.connection.execute(
        "UPDATE chat_sessions SET metadata_json = ? WHERE id = ?", (told, lead))
    note(talk, lead)
    kept(talk.db.path)
    costs = costs_of(talk.db.path, [lead, helper], PRICES)
    assert [(costs[name].told_usd, costs[name].estimated_usd) for name in (lead, helper)] == [
        (0.5, 0.0), (0.0, 0.0),
    ]  # fmt: skip
