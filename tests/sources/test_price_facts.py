"""What sources keep of an answer that decides its price, and what they tell of costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database
from store.engine.values import decoded
from store.prices.estimating import AnswerUsage, estimate
from store.prices.loading import package_prices
from store.prices.table import PriceTable
from store.queries.running_totals import OwnCost, RunningTotals
from store.queries.shared_answers import shared_answers
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from store.usage import spent_of
from tests.sources.claude_rows import File, read_one
from tests.sources.codex_lines import Lines, thread_id
from tests.sources.samples import DATA
from tests.sources.test_arrival import databases

__all__ = ["databases"]


def usage(output: int, hour: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "input_tokens": 5, "output_tokens": output, "cache_creation_input_tokens": 100,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 100 - hour, "ephemeral_1h_input_tokens": hour,
        },
        **more,
    }  # fmt: skip


@pytest.mark.parametrize(("said", "details"), [
    (usage(1, service_tier="standard", speed="standard", inference_geo=""), None),
    (usage(1, hour=60), {"cache_write_1h": 60}),
    (usage(1, speed="fast", service_tier="standard"), {"tier": "fast"}),
    (usage(1, service_tier="batch", hour=100), {"cache_write_1h": 100, "tier": "batch"}),
    (usage(1, inference_geo="us"), {"tier": "us"}),
    (usage(1, speed="fast", inference_geo="us"), {"tier": "fast us"}),
    ({"input_tokens": 1, "cache_creation": 7, "speed": ["fast"], "service_tier": None}, None),
    ({"input_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": "9"}}, None),
])  # fmt: skip
def test_claude_tells_what_is_not_usual(
    said: dict[str, Any], details: dict[str, Any] | None, tmp_path: Path
) -> None:
    file = File()
    file.user("hi")
    file.assistant("yes", id="m1", usage=said)
    assert read_one(file, tmp_path).messages[1].metadata.get("usage_details") == details


def test_the_row_that_counts_tells_it(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    file.assistant("one", id="m1", usage=usage(1, hour=20, speed="fast"))
    file.assistant("two", id="m1", usage=usage(9, hour=30))
    file.assistant("three", id="m1", usage=usage(5, hour=40))
    metadata = read_one(file, tmp_path).messages[1].metadata
    assert metadata["usage_details"] == {"cache_write_1h": 30}


def test_a_counter_tells_what_each_model_has_of_it(tmp_path: Path) -> None:
    file = File()
    file.user("hi")
    file.assistant("yes", id="m1")
    models = {
        "claude-opus-5-5": {"costUSD": 1.25}, "claude-haiku-4-5": {"costUSD": 0.25},
        "odd": {"costUSD": "x"}, "none": 7, "n" * 999: {"costUSD": 1}, "nothing": {"costUSD": 0},
    }  # fmt: skip
    file.note("cost-state", totalCostUSD=1.5, startTime=7, modelUsage=models)
    draft = read_one(file, tmp_path)
    assert draft.messages[1].metadata["backscroll"]["cost_so_far"] == {
        "usd": 1.5, "counter": "7", "models": {"claude-opus-5-5": 1.25, "claude-haiku-4-5": 0.25},
    }  # fmt: skip
    file.note("cost-state", totalCostUSD=1e300, startTime=7, modelUsage=[1])
    assert read_one(file, tmp_path).metadata["backscroll"]["cost"]["usd"] == 1.5


def costs_of(database: Database) -> dict[str, list[OwnCost]]:
    """What each session spent by its source's notes."""
    shared = shared_answers(database)
    totals: dict[str, RunningTotals] = {}
    for session, at, text in database.connection.execute(
        "SELECT session_id, created_at, metadata_json FROM chat_messages WHERE role = 'assistant'"
    ):
        metadata = decoded(text)
        model = (metadata.get("model") or {}).get("model_id", "")
        totals.setdefault(session, RunningTotals()).take(at, model, metadata)
    found = {}
    for session, total in totals.items():
        costs = total.costs(session, shared.begun_at, shared.begun_models)
        if costs:
            found[name_of(database, session)] = costs
    return found


def usage_of(metadata: dict[str, Any]) -> AnswerUsage:
    fresh, output, reasoning, cache_read, cache_write = spent_of(metadata).tokens
    return AnswerUsage(fresh, output, reasoning, cache_read, cache_write)


def name_of(database: Database, session: str) -> str:
    """The first letters of the source's id of a session."""
    query = "SELECT json_extract(metadata_json, '$.source.id') FROM chat_sessions WHERE id = ?"
    return str(database.connection.execute(query, (session,)).fetchone()[0])[:8]


def test_the_sample_costs_what_claude_noted(databases: Any) -> None:
    from store.sources.claude_code import ClaudeCodeSource

    database = databases("sample")
    root = DATA / "claude-code" / "home" / ".claude"
    Sync(database, Settings(helpers=0)).run([Target(ClaudeCodeSource(), root)])
    found = costs_of(database)
    # b2fcb4ba is a fork: 0.1166748 - 0.0921312 that its parent 8ab87d4f had noted.
    assert {name: sum(cost.usd for cost in costs) for name, costs in found.items()} == (
        pytest.approx({
            "8ab3b19e": 0.035965, "7cf74ca4": 0.1204662, "1015307c": 0.0969128,
            "8ab87d4f": 0.0921312, "b2fcb4ba": 0.0245436, "c2c30812": 0.0778562,
            "32bb6361": 0.064305,
        })
    )  # fmt: skip
    # The parent's three notes: 0.0442258, then 0.0796318 - 0.0442258, then 0.0921312 - 0.0796318.
    parent = [round(cost.usd, 7) for cost in found["8ab87d4f"]]
    assert parent == [0.0442258, 0.035406, 0.0124994]
    assert {cost.model for costs in found.values() for cost in costs} == {"claude-opus-5-5"}


def test_the_estimates_of_the_sample_come_near_what_claude_noted(databases: Any) -> None:
    """Requests that no transcript shows, for titles and summaries, are in the notes alone."""
    from store.sources.claude_code import ClaudeCodeSource

    database, table = databases("sample"), PriceTable([package_prices()])
    root = DATA / "claude-code" / "home" / ".claude"
    Sync(database, Settings(helpers=0)).run([Target(ClaudeCodeSource(), root)])
    estimated: dict[str, float] = {}
    for session, text in database.connection.execute(
        "SELECT session_id, metadata_json FROM chat_messages"
        " WHERE role = 'assistant' AND json_extract(metadata_json, '$.usage') IS NOT NULL"
    ):
        metadata = decoded(text)
        price = table.price(metadata["model"]["model_id"], metadata["model"]["provider_id"])
        cost = estimate(usage_of(metadata), price)
        assert cost is not None
        name = name_of(database, session)
        estimated[name] = estimated.get(name, 0.0) + cost
    # In this session every request is an answer that shows, so both say the same.
    assert estimated["32bb6361"] <= 0.064305 + 1e-9
    assert estimated["8ab3b19e"] <= 0.035965 + 1e-9


def test_codex_tells_the_tier_of_a_thread(tmp_path: Path) -> None:
    from store.sources.codex import CodexSource

    lines = Lines(thread_id(7), 0)
    for number, tier in enumerate(("default", "fast", "flex", None)):
        settings = {"model": "gpt-5.5", "service_tier": tier}
        lines.event("thread_settings_applied", thread_settings=settings)
        lines.user(f"prompt {number}")
        lines.says("yes")
        lines.usage(f"resp_{number}", given=100)
    path = lines.write(tmp_path)
    source = CodexSource()
    unit = next(iter(source.units(path, [])))
    messages = source.read(path, unit).sessions[0].messages
    answers = [one for one in messages if one.role == "assistant"]
    assert [one.metadata.get("usage_details") for one in answers] == [
        None, {"tier": "priority"}, {"tier": "flex"}, None,
    ]  # fmt: skip
