"""Partial JSON, split characters, and the lines of a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.recorder.json_text import NotJson, dump, join_halves, merge, parse
from store.recorder.partial_json import MISSING, PartialJson
from store.recorder.wire import ChunkReader, EndOfTurn, Malformed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10**6, 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner,
                                                                max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(("text", "value"), [
    ("", MISSING), ("{", {}), ('{"a', {}), ('{"a":', {}), ('{"a":t', {"a": True}),
    ('{"a":"x\\', {"a": "x"}), ('{"a":"\\u00e', {"a": ""}), ('{"a":[1,', {"a": [1]}),
    ('{"n":[-', MISSING), ('{"a":-', {}), ('{"a":1.5e', {"a": 1.5}), ('[{"b":nul', [{"b": None}]),
    ('"te', "te"), ("12", 12), ("tru", True), ("  ", MISSING), ("{]", {}), ("nope", MISSING),
    ('{"__proto__":{"x":1}}', MISSING), ('{"constructor":{"prototype":1}}', MISSING),
    ('{"constructor":1}', {"constructor": 1}), ('{"a":"\\ud83d', {"a": "\ud83d"}),
])
def test_repair(text: str, value: object) -> None:
    assert PartialJson(text).value() == value


@given(JSON, st.booleans(), st.data())
def test_a_whole_text_in_pieces_is_its_value(value: Any, ascii_only: bool, data: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    partial = PartialJson()
    position = 0
    while position < len(text):
        size = data.draw(st.integers(1, 9))
        partial.append(text[position : position + size])
        position += size
        if data.draw(st.booleans()):
            partial.value()
    assert partial.value() == value
    assert partial.text == text


@given(JSON, st.integers(0, 200))
def test_looking_early_changes_nothing(value: Any, cut: int) -> None:
    text = json.dumps(value)[:cut]
    looked, unlooked = PartialJson(), PartialJson(text)
    for char in text:
        looked.append(char)
        looked.value()
    assert looked.value() == unlooked.value()


def test_halves_of_a_character_are_joined_where_they_meet() -> None:
    partial = PartialJson('{"a":"')
    partial.append("\ud83d")
    assert partial.value() == {"a": "\ud83d"}
    partial.append('\ude00"}')
    assert partial.value() == {"a": "😀"}
    assert join_halves("x\ud83d\ude00\ud83d") == "x😀\ud83d"


def test_dump_keeps_text_and_escapes_what_cannot_be_stored() -> None:
    assert dump({"a": "漢😀\x00"}) == '{"a":"漢😀\\u0000"}'
    assert dump({"a": "\ud83d"}) == '{"a":"\\ud83d"}'
    assert dump({"n": 10**30}) == '{"n":' + "1" + "0" * 30 + "}"
    deep: Any = []
    for _ in range(800):
        deep = [deep]
    assert parse(dump(deep)) == deep


@pytest.mark.parametrize("text", ["NaN", "[1,]", "{'a':1}", "\ufeff1", "1 2", '"\t"'])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(NotJson):
        parse(text)


def test_merge_replaces_arrays_and_goes_into_objects() -> None:
    assert merge({"a": {"b": 1, "c": [1, 2]}, "d": 1}, {"a": {"c": [3]}, "d": None}) == {
        "a": {"b": 1, "c": [3]}, "d": None}
    assert merge({}, {"constructor": 1, "__proto__": 2, "x": 3}) == {"x": 3}


def read(*pieces: bytes) -> list[Any]:
    reader = ChunkReader()
    items = [item for piece in pieces for item in reader.feed(piece)]
    items += reader.end()
    return [item[0] if isinstance(item, tuple)
            else (item.line if isinstance(item, Malformed) else "done") for item in items]


def test_json_lines_in_any_pieces() -> None:
    wire = b'{"type":"a","n":1}\r\n\n{"type":"b"}\nnonsense\n[1]\n{"x":1}\n{"type":"c"}'
    expected = [{"type": "a", "n": 1}, {"type": "b"}, 4, 5, 6, {"type": "c"}]
    assert read(wire) == expected
    assert read(*(wire[i : i + 1] for i in range(len(wire)))) == expected


def test_server_sent_events() -> None:
    wire = (b': hello\nevent: x\nid: 1\ndata: {"type":"a"}\n\ndata:{"type":\ndata: "b"}\n\n'
            b'data: [DONE]\n\ndata: {"type":"c"}\ndata: {"type":"d"}\n\ndata: {"type":"e"}')
    assert read(wire) == [{"type": "a"}, {"type": "b"}, "done", {"type": "c"}, {"type": "d"},
                          {"type": "e"}]
    assert any(isinstance(item, EndOfTurn) for item in ChunkReader().feed(b"data: [DONE]\n\n"))


@pytest.mark.parametrize("ending", [b"\r\n", b"\r"])
def test_lines_may_end_as_in_any_stream_of_events(ending: bytes) -> None:
    wire = b'data: {"type":\ndata: "a"}\n\nnonsense\n\n: x\ndata: {"type":"b"}\n\n'
    wire = wire.replace(b"\n", ending)
    expected = [{"type": "a"}, 4, {"type": "b"}]
    assert read(wire) == expected
    assert read(*(wire[i : i + 1] for i in range(len(wire)))) == expected


def test_a_torn_last_line_is_named() -> None:
    assert read(b'{"type":"a"}\n{"type":"te') == [{"type": "a"}, 2]


def test_whole_messages_and_halves_of_characters_pass() -> None:
    assert read(b'\xef\xbb\xbf{"role":"user","parts":[]}\n{"type":"x","d":"\\ud83d"}\n') == [
        {"role": "user", "parts": []}, {"type": "x", "d": "\ud83d"}]
