from __future__ import annotations

import json
import sys

import pytest

from store.engine.values import decoded
from store.text.stored_json import MOST_LEVELS, DamagedJson, array_of, loads, readable_json


def nested(levels: int, mark: str = "[]") -> str:
    inner = '{"a":' if mark == "{}" else "["
    return inner * levels + "1" + ("}" if mark == "{}" else "]") * levels


@pytest.mark.parametrize("mark", ["[]", "{}"])
@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 255, 1000, 1025, 5000, 200_000])
def test_what_is_nested_too_deep_is_damaged(levels: int, mark: str) -> None:
    with pytest.raises(DamagedJson):
        loads(nested(levels, mark))
    assert decoded(f'{{"title":"t","x":{nested(levels, mark)}}}') == {}


@pytest.mark.parametrize("mark", ["[]", "{}"])
def test_what_is_nested_less_is_read(mark: str) -> None:
    text = nested(MOST_LEVELS, mark)
    assert json.dumps(loads(text)).replace(" ", "") == text
    assert json.loads(readable_json(loads(text))) == json.loads(text)


def test_many_brackets_are_no_depth() -> None:
    value = [{"text": "[[[" * 1000}] * 500
    assert loads(json.dumps(value)) == value


@pytest.mark.parametrize(("text", "value"), [
    ('"\\ud83d"', "\ud83d"), ("100000000000000000000", 10**20), (b"[1]", [1]),
])
def test_odd_values_are_read(text: str | bytes, value: object) -> None:
    assert loads(text) == value
    assert json.loads(readable_json(value)) == value


@pytest.mark.parametrize("text", ["", "{", "nope", b"\xff", "[1,]"])
def test_no_json_is_damaged(text: str | bytes) -> None:
    with pytest.raises(DamagedJson):
        loads(text)


def test_the_damage_is_named() -> None:
    with pytest.raises(DamagedJson, match=f"^nested deeper than {MOST_LEVELS} levels$"):
        loads(nested(5000))


@pytest.mark.parametrize("given", [
    [], [3, -1], ["a", ""], ["01J-x_y", 7], ['"', "b"], ["\\"], ["\x7f", "\n"], ["ü", "\u2028"],
])
def test_an_array_is_the_same_with_and_without_the_faster_library(
    given: list[str | int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(array_of(given)) == given
    monkeypatch.delitem(sys.modules, "orjson", raising=False)
    assert json.loads(array_of(given)) == given
