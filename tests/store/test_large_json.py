"""JSON that is read in pieces has the value that it has when it is read at once."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.engine.large_json import NotInPieces, loads_pieces

LONG = "a text with \"quotes\", \\ back\\slashes\\, lines\n and \U0001f600 é€ "
VALUES: list[Any] = [
    {"type": "tool-x", "output": LONG * 9_000, "n": 2**80}, [LONG * 4_000, 1.5, None, True],
    {"rows": [{"n": n, "t": LONG} for n in range(3_000)]}, {LONG * 2_000: {"a": []}},
    {"a": {str(n): {"b": [n] * 40} for n in range(4_000)}}, "\\" * 100_000, '"' * 90_000,
    {"output": "x" * 300_000 + "\ud83d" + "y" * 70_000},
]  # fmt: skip


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_large_value(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "replace" if not ascii_only else "strict")
    assert loads_pieces(cut(data, 65_536)) == json.loads(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@settings(max_examples=60)
@given(JSON, st.integers(1, 40), st.booleans(), st.sampled_from([None, 2]), st.integers(64, 90))
def test_any_value_cut_anywhere(
    value: Any, size: int, ascii_only: bool, indent: int | None, window: int
) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "replace")
    assert loads_pieces(cut(data, size), window) == json.loads(data)


@settings(max_examples=60)
@given(
    st.text("ab\\\"\n\ud83d\ude00\U0001f600\u00e9", min_size=60, max_size=400),
    st.integers(20, 60))
def test_escapes_where_a_window_ends(text: str, window: int) -> None:
    data = json.dumps([text, 1.5e-9]).encode()
    assert loads_pieces(cut(data, 7), window) == json.loads(data)


def test_the_collector_rests_while_many_objects_are_made() -> None:
    runs: list[Any] = []
    data = json.dumps([[number, []] for number in range(3_000)]).encode()
    gc.enable()  # A test of the start may have left it off.
    gc.callbacks.append(lambda *run: runs.append(run))
    try:
        loads_pieces([data])
        assert len(runs) <= 2  # The start and the end of one, after them.
        assert gc.isenabled()
    finally:
        gc.callbacks.pop()


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"', '{"a":', '["a" "b"]', "[1,]", "{} x", '"open', "NaN", '{"a":1,}'])
def test_what_is_no_json_is_not_read(text: str) -> None:
    with pytest.raises(NotInPieces):
        loads_pieces([text.encode()])
