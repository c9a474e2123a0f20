"""What is shown as it is, what gets a stand-in, and what JSON escapes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.text.neutral import MOST_MARKS, STAND_IN, escaped, neutral, with_escapes
from tests.hostile import CORPUS, HIDING, NEVER, controls

FLAG = "\U0001f3f4\U000e0067\U000e0062{}\U000e007f"
WHOLE = (
    "👨‍👩‍👧 👩🏽‍💻 🏳️‍🌈 ❤️‍🔥 ☎️ ✔︎ 1️⃣ 🇩🇪", "می‌خواهم", "क्‍ष നന്‍മ ශ්‍රී", "葛󠄀飾区 ≨︀", "ᠮᠣᠩᠭᠣᠯ ᠤ᠋",
    FLAG.format("\U000e0065\U000e006e\U000e0067"), FLAG.format("\U000e0073\U000e0063\U000e0074"),
    "e\u0301\u0323 \u0928\u093c שָׁלוֹם ก็่", "a\tb\nc", "é ü ß 漢字 ﷺ │─● \ue0b0", "\u115f\u1161\u11a8",
)
ANY = st.text(alphabet=st.characters(codec=None) | st.sampled_from(
    "\u200b\u200c\u200d\ufe0f\u0301\U000e0041\x1b\x9b\r\n👍م"), max_size=40)


@pytest.mark.parametrize("text", WHOLE)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert neutral(text) == text
    assert escaped(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.long)])
def test_what_is_kept_without_a_pattern_the_patterns_keep(step: int) -> None:
    """A letter of a script that joins has the patterns asked."""
    for one in map(chr, range(0x80, 0x30000, step)):
        run = one * (MOST_MARKS + 1)
        if neutral(run) == run:
            assert neutral("م" + run) == "م" + run, hex(ord(one))


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
def test_what_hides_is_shown(text: str) -> None:
    shown = neutral(text)
    assert STAND_IN in shown and not NEVER.search(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200db", "a\ufffdb"), ("👍\u200d\u200d👍", "👍\ufffd\ufffd👍"), ("x\ufe0f", "x\ufffd"),
        ("👍" + "\ufe0f" * 3, "👍\ufe0f\ufffd\ufffd"), ("م\u200c\u200c", "م\ufffd\ufffd"),
        ("\U0001f3f4\U000e0067\U000e0062", "\U0001f3f4\ufffd\ufffd"), ("a\r\nb\rc", "a\nb␍c"),
        (FLAG.format("\U000e0061"), "\U0001f3f4" + "\ufffd" * 4),
        ("e" + "\u0301" * 20 + "x", "e" + "\u0301" * MOST_MARKS + "\ufffdx"), ("\x7f\x00", "␡␀"),
    ],
)  # fmt: skip
def test_what_belongs_to_nothing_gets_a_stand_in(text: str, shown: str) -> None:
    assert neutral(text) == shown


@given(ANY)
def test_nothing_steers_and_twice_is_once(text: str) -> None:
    shown = neutral(text)
    assert neutral(shown) == shown
    assert not controls(shown)
    assert not any(0x80 <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in shown)
    shown.encode()


@given(ANY)
def test_json_keeps_its_value_and_passes_the_writer_unchanged(text: str) -> None:
    whole = escaped(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(whole) == {text: [text]}
    assert neutral(whole) == whole


@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS)
def test_the_corpus_in_json(text: str) -> None:
    whole = escaped(json.dumps(text, ensure_ascii=False))
    assert json.loads(whole) == text
    assert not NEVER.search(whole) and not controls(whole)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m\x07\tb\n", "a\\x1b[31m\\x07\tb\n"), ("\x9b\x7f\u202e", "\\x9b\\x7f\\u202e"),
        ("a\u200db\U000e0041", "a\\u200db\\U000e0041"), ("\ud800 👍\u200d👍", "\\ud800 👍\u200d👍"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 8 + "\\u0301"), ("é漢", "é漢"),
    ],
)  # fmt: skip
def test_escapes_name_what_is_there(text: str, shown: str) -> None:
    assert with_escapes(text) == shown
    assert neutral(shown) == shown
