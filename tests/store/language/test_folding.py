"""Folding: no case, no accents, no width; and the way back to the original."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.language.folding import Folded, fold, index_form


@pytest.mark.parametrize(("text", "folded"), [
    ("RetryLoop", "retryloop"), ("İstanbul IŞIK ışık", "istanbul isik isik"), ("Straße", "strasse"),
    ("ﬁx ﬃ ſ", "fix ffi s"), ("naïve nai\u0308ve", "naive naive"), ("Ångström Øre Łódź æ Đ",
                                                                    "angstrom ore lodz ae d"),
    ("ＡＢＣ １２", "abc 12"), ("ｶﾞｷﾞ ガギ", "ガギ ガギ"), ("か\u3099", "が"), ("パハバ", "パハバ"),
    ("한국 \u1112\u1161\u11ab", "한국 한"), ("ΣΊΣΥΦΟΣ σίσυφος", "σισυφοσ σισυφοσ"), ("Ж Й", "ж и"),
    ("हिन्दी ไทย", "हिन्दी ไทย"), ("שָׁלוֹם", "שלום"),
    ("👨\u200d👩 ❤\ufe0f 👍🏽", "👨\u200d👩 ❤ 👍🏽"),
    ("co\u00adop\u200b", "coop"), ("½ … №", "1⁄2 ... no"), ("Ꭰ ꭰ", "ꭰ ꭰ"), ("", ""), ("\0", "\0"),
])
def test_fold(text: str, folded: str) -> None:
    expected = unicodedata.normalize("NFC", folded)
    assert unicodedata.normalize("NFC", fold(text)) == expected


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.long)])
def test_every_character_folds_alike_wherever_it_is(step: int) -> None:
    mostly_not_ascii = "é" * 70  # Long enough for the way by a table.
    joining = set("\u3099\u309aﾞﾟ") | {chr(code) for code in range(0x1100, 0x1200)}
    for character in map(chr, range(0, sys.maxunicode + 1, step)):
        folded = fold(character)
        assert fold(folded) == folded
        if character not in joining:
            assert fold(f"a{character}b") == f"a{folded}b"
            assert fold(mostly_not_ascii + character) == "e" * 70 + folded


@given(st.text(max_size=60), st.text(max_size=60))
def test_folding_pieces_is_folding_the_whole(one: str, other: str) -> None:
    assert fold(one + " " + other) == fold(one) + " " + fold(other)
    assert fold(fold(one)) == fold(one)


mixed = st.text(st.one_of(st.characters(), st.sampled_from("aZ-_ éßİıﬁ検が\u3099\u0301👨ｶﾞ한")),
                max_size=50)  # fmt: skip


@given(mixed, st.data())
def test_spans_lead_back_to_what_was_folded(text: str, data: st.DataObject) -> None:
    folded = Folded(text)
    start = data.draw(st.integers(0, len(folded.text)))
    end = data.draw(st.integers(start, len(folded.text)))
    first, last = folded.span(start, end)
    assert 0 <= first <= last <= len(text)
    assert folded.text[start:end] in fold(text[first:last])
    assert folded.span(0, len(folded.text))[0] == 0 or not folded.text or fold(text[:folded.span(
        0, len(folded.text))[0]]) == ""


@pytest.mark.parametrize(("text", "needle", "piece"), [
    ("Große Straße", "strasse", "Straße"), ("ein ﬁx", "fi", "ﬁ"),
    ("nai\u0308ve x", "nai", "nai\u0308"),
    ("x ガス", "ガ", "ガ"), ("か\u3099x", "が", "か\u3099"), ("日本語の検索", "検索", "検索"),
    ("İx", "x", "x"), ("a👨\u200d👩b", "b", "b"), ("½ tail", "tail", "tail"),
])
def test_what_a_match_was(text: str, needle: str, piece: str) -> None:
    folded = Folded(text)
    at = folded.text.index(fold(needle))
    start, end = folded.span(at, at + len(fold(needle)))
    assert text[start:end] == piece


@given(st.text(max_size=40))
def test_the_index_form_has_single_spaces_and_no_separators(text: str) -> None:
    form = index_form(text)
    assert "-" not in form and "_" not in form and form == " ".join(form.split())
    assert index_form(form) == form
