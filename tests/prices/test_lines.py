"""Files of prices: what is taken of them, and what is refused."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import Refused
from store.prices.lines import RATES, BadPrices, lines_of, written
from store.prices.loading import load_prices, read_prices, take_prices
from store.prices.table import REQUEST_SIZES, Above, Price, PriceTable
from store.system.files import write_whole

LITELLM = {
    "sample_spec": {"input_cost_per_token": "the price", "mode": "one of: chat"},
    "gpt-x": {
        "litellm_provider": "openai", "mode": "chat", "source": "https://example.org/prices",
        "input_cost_per_token": 5e-06, "output_cost_per_token": 3e-05,
        "cache_read_input_token_cost": 5e-07,
        "input_cost_per_token_above_272k_tokens": 1e-05,
        "output_cost_per_token_above_272k_tokens": 4.5e-05,
        "input_cost_per_token_batches": 2.5e-06, "output_cost_per_token_batches": 1.5e-05,
        "input_cost_per_token_priority": 1.25e-05, "output_cost_per_token_priority": 7.5e-05,
        "input_cost_per_token_above_272k_tokens_batches": 5e-06,
        "cache_creation_input_token_cost_above_12hr": 1.0, "supports_vision": True,
    },
    "claude-x": {
        "litellm_provider": "anthropic", "mode": "chat",
        "input_cost_per_token": 4e-06, "output_cost_per_token": 2e-05,
        "cache_read_input_token_cost": 2e-07, "cache_creation_input_token_cost": 5e-06,
        "cache_creation_input_token_cost_above_1hr": 8e-06,
        "provider_specific_entry": {"fast": 2.0, "us": 1.1},
    },
    "deepseek/ds": {
        "litellm_provider": "deepseek", "mode": "chat",
        "input_cost_per_token": 3e-07, "output_cost_per_token": 1.2e-06,
    },
    "dashscope/steps": {
        "litellm_provider": "dashscope", "mode": "chat", "tiered_pricing": [
            {"range": [0, 32000.0], "input_cost_per_token": 1e-06, "output_cost_per_token": 5e-06},
            {"range": [32000.0, 128000.0], "input_cost_per_token": 2e-06,
             "output_cost_per_token": 9e-06},
        ],
    },
    "thinks": {
        "litellm_provider": "dashscope", "mode": "chat", "input_cost_per_token": 1e-06,
        "output_cost_per_token": 1e-06, "output_cost_per_reasoning_token": 4e-06,
    },
    "odd-size": {
        "litellm_provider": "x", "mode": "chat", "input_cost_per_token": 1e-06,
        "output_cost_per_token": 1e-06, "input_cost_per_token_above_77k_tokens": 1e-06,
    },
    "picture": {"litellm_provider": "x", "mode": "image_generation", "input_cost_per_pixel": 1},
    "by-second": {"litellm_provider": "x", "mode": "chat", "input_cost_per_second": 0.01},
}  # fmt: skip


def test_litellms_table_is_understood() -> None:
    lines = lines_of(LITELLM, source="litellm.json", date="2026-11-28")
    found = {(line.pattern, line.tier): line for line in lines}
    assert set(found) == {
        ("gpt-x", "standard"), ("gpt-x", "batch"), ("gpt-x", "priority"), ("claude-x", "standard"),
        ("claude-x", "fast"), ("claude-x", "us"), ("ds", "standard"), ("steps", "standard"),
    }  # fmt: skip
    assert found["gpt-x", "standard"] == Price(
        5, 30, 0.5, above=(Above(272_000, 10, 45),), pattern="gpt-x", date="2026-11-28",
        source="LiteLLM, https://example.org/prices",
    )  # fmt: skip
    assert found["gpt-x", "batch"].above == (Above(272_000, 5),)
    assert found["claude-x", "standard"].cache_write_1h == 8
    assert found["claude-x", "fast"].cache_read == 0.4
    assert found["claude-x", "us"].cache_write_5m == 5.5
    assert found["ds", "standard"].providers == ("deepseek", "")
    assert found["ds", "standard"].cache_read is None
    assert found["steps", "standard"].above == (Above(32_000, 2, 9),)


def litellm(**fields: Any) -> dict[str, Any]:
    good = {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6,
            "output_cost_per_token": 1e-6}  # fmt: skip
    return {"good": good, "bad\x1b[31m": {**good, **fields}}


def ours(**fields: Any) -> dict[str, Any]:
    return {"prices": [{"id": "good", "input": 1}, {"id": "bad\x1b[31m", "input": 1, **fields}]}


@pytest.mark.parametrize(("value", "reason"), [
    ([], "an object is needed"), (7, "an object is needed"), ({}, "no prices"),
    ({"prices": []}, "no prices"), ({"prices": [7]}, "entry 1: is not an object"),
    ({"prices": [{"input": 1}]}, "entry 1: id: a text"),
    ({"prices": [{"id": ["a", 7], "input": 1}]}, "entry 1: id: a text"),
    ({"prices": [{"id": "x" * 300, "input": 1}]}, "entry 1: id: a text"),
    ({"a": 7}, "a: is not an object"),
    (ours(output="1"), "output: a number is needed"),
    (ours(output=True), "output: a number is needed"),
    (ours(output=-1), "output: must be 0 to 100,000"),
    (ours(output=math.nan), "output: must be 0 to 100,000"),
    (ours(output=math.inf), "output: must be 0 to 100,000"),
    (ours(output=10**400), "output: must be 0 to 100,000"),
    (ours(above={"200000": {"input": -1}}), "above.200000.input: must be"),
    (ours(above={"7": {}}), "above.7: the size of a request is one of 32000"),
    (ours(above=[1]), "above: a table is needed"),
    (ours(tiers={"batch": 7}), "tiers.batch: a table is needed"),
    (ours(tiers={"batch": {"tiers": {}}}), "tiers.batch.tiers: there is no such field"),
    (ours(tiers={str(n): {} for n in range(99)}), "tiers: a table is needed"),
    (ours(providers="azure"), "providers: a list"), (ours(providers=[7]), "providers: a text"),
    (ours(source=7), "source: a text"), (ours(date="x" * 999), "date: a text"),
    (ours(colour="red"), "colour: there is no such field"),
    (litellm(input_cost_per_token="1"), "input_cost_per_token: a number is needed"),
    (litellm(output_cost_per_token=-1e-6), "output_cost_per_token: is out of range"),
    (litellm(output_cost_per_token=math.nan), "output_cost_per_token: is out of range"),
    (litellm(output_cost_per_token=10**400), "output_cost_per_token: is out of range"),
    (litellm(output_cost_per_token=3.0), "output: must be 0 to 100,000"),
    (litellm(mode=["chat"]), "mode: a text is needed"),
    (litellm(tiered_pricing=7), "tiered_pricing: a list of objects"),
    (litellm(tiered_pricing=[{"input_cost_per_token": 1e-6}]), "tiered_pricing.0.range: a number"),
    (litellm(provider_specific_entry={"fast": "2"}), "provider_specific_entry.fast: a number"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(value: Any, reason: str) -> None:
    with pytest.raises(BadPrices) as caught:
        lines_of(value)
    said = str(caught.value)
    assert reason in said
    assert "\x1b" not in said and len(said) < 400
    if "bad" in str(value):
        assert said.startswith("bad\\x1b[31m: ")


def test_an_id_with_choices_stands_for_few() -> None:
    lines = lines_of({"prices": [{"id": "{us,eu}.m{1,2}", "input": 1}]})
    assert {line.pattern for line in lines} == {"us.m1", "us.m2", "eu.m1", "eu.m2"}
    with pytest.raises(BadPrices, match="more than 64 ids"):
        lines_of({"prices": [{"id": "{a,b}" * 40, "input": 1}]})


@pytest.mark.parametrize("content", [
    b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"prices": [' + b"[" * 5000, b"NaN",
    b'{"m": {"input_cost_per_token": NaN}}', b'{"prices": [{"id": "a", "input": 1e999}]}',
    b'{"prices": [{"id": "a", "input": -Infinity}]}', b"null",
])  # fmt: skip
def test_hostile_files_are_refused_and_change_nothing(content: bytes, tmp_path: Path) -> None:
    kept, given = tmp_path / "data" / "prices.json", tmp_path / "given.json"
    given.write_text(json.dumps(ours()))
    assert len(take_prices(given, kept)) == 2
    before = kept.read_bytes()
    given.write_bytes(content)
    with pytest.raises(Refused, match="given.json"):
        take_prices(given, kept)
    assert kept.read_bytes() == before
    assert os.listdir(kept.parent) == ["prices.json"]


def test_a_file_that_is_none_or_too_large_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(65 << 20)
    os.mkfifo(tmp_path / "pipe")
    for path in (large, tmp_path / "pipe", tmp_path, tmp_path / "nowhere"):
        with pytest.raises(Refused, match="cannot be read"):
            take_prices(path, tmp_path / "kept.json")
    assert not (tmp_path / "kept.json").exists()


def test_a_taken_file_is_private_and_goes_before_the_package(tmp_path: Path) -> None:
    kept, given = tmp_path / "data" / "prices.json", tmp_path / "given.json"
    given.write_text(json.dumps({"prices": [{"id": "claude-opus-5-5", "input": 7, "output": 9}]}))
    take_prices(given, kept)
    assert kept.stat().st_mode & 0o777 == 0o600
    table = load_prices({}, kept)
    price = table.price("claude-opus-5-5")
    assert price is not None and price.input == 7 and price.source == "given.json"
    assert price.date >= "2026" and price.cache_read is None
    over = load_prices({"claude-opus-5-5": {"input": 8}, "bad": {"input": "x"}}, kept)
    price = over.price("claude-opus-5-5")
    assert price is not None and (price.input, price.source) == (8, "config.toml")
    assert over.price("bad") is None and over.problem is None


def test_a_damaged_taken_file_is_named_and_left_out(tmp_path: Path) -> None:
    kept = tmp_path / "prices.json"
    kept.write_text("{")
    table = load_prices({}, kept)
    assert table.problem is not None and str(kept) in table.problem
    assert table.price("claude-opus-5-5") is not None


RATE = st.none() | st.floats(0, 100_000) | st.integers(0, 100)
RATE_TABLE = st.dictionaries(st.sampled_from(RATES), RATE, min_size=1)
SIZES = st.sampled_from([str(size) for size in REQUEST_SIZES])
ENTRY = st.fixed_dictionaries(
    {"id": st.text("abc-.*/{", min_size=1, max_size=9), "input": st.floats(0, 100)},
    optional={
        **dict.fromkeys(RATES[1:], RATE), "above": st.dictionaries(SIZES, RATE_TABLE, max_size=3),
        "tiers": st.dictionaries(st.sampled_from(["batch", "fast"]), RATE_TABLE),
        "providers": st.lists(st.sampled_from(["azure", "xai", ""]), max_size=2),
        "source": st.text(max_size=9), "date": st.just("2026-11-28"),
    },
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from([*RATES, "id", "prices", "above", "tiers", "200000", "input_cost_per_token",
                         "output_cost_per_token", "tiered_pricing", "range", "litellm_provider",
                         "mode"]),
        inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(ENTRY, min_size=1, max_size=5))
def test_what_is_written_reads_the_same(entries: list[dict[str, Any]]) -> None:
    lines = lines_of({"prices": entries})
    assert lines_of(json.loads(json.dumps(written(lines)))) == lines
    table = PriceTable([lines])
    assert set(table.thresholds) <= set(REQUEST_SIZES)
    for line in lines:
        for rate in RATES:
            value = getattr(line, rate)
            assert value is None or 0 <= value <= 100_000
        table.price(line.pattern)


@given(st.dictionaries(st.text(max_size=9), JSON, max_size=4) | JSON)
def test_any_json_is_taken_whole_or_refused(value: Any) -> None:
    try:
        lines = lines_of(value)
    except BadPrices as error:
        assert "\n" not in str(error)
    else:
        assert lines


def test_the_package_and_a_json_listing_read_the_same(tmp_path: Path) -> None:
    from tui.cli.prices import _json

    table = load_prices({}, tmp_path / "none.json")
    listed = {"prices": [_json(table, line) for line in table.layers[2]], "digest": table.digest}
    write_whole(tmp_path / "listed.json", [json.dumps(listed)])
    assert tuple(read_prices(tmp_path / "listed.json")) == table.layers[2]
