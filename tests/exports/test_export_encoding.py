from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.text.exact_json import NotJson, column_value, decode, encode, encode_for_output

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_what_goes_out_comes_in_again(value: object) -> None:
    for text in (encode(value), encode_for_output(value)):
        text.encode()
        assert decode(text) == value
        assert "\n" not in text


def test_whole_numbers_past_64_bits_are_exact() -> None:
    assert decode(encode(2**70)) == 2**70
    assert decode(f'{{"n":{2**64}}}') == {"n": 2**64}


def test_a_lone_surrogate_is_escaped() -> None:
    assert encode("\ud83d") == '"\\ud83d"'
    assert decode('"\\ud83d"') == "\ud83d"


def test_output_escapes_what_a_terminal_obeys() -> None:
    assert encode_for_output("\x9b1m\u202e\x7f é") == '"\\u009b1m\\u202e\\u007f é"'


@pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", "[" * 100_000])
def test_text_that_is_no_json(text: str) -> None:
    with pytest.raises(NotJson):
        decode(text)
    assert column_value(text) == text


def test_a_column_without_a_value() -> None:
    assert column_value(None) is None
