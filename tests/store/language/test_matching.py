"""Finding the terms of a query in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.language.matching import (
    Folded,
    TermMatcher,
    index_form,
    index_needle,
    matcher,
)
from store.language.patterns import BadPattern, compiled
from store.language.query import Term, parse
from store.language.values import begins_word, value_test


def found(query: str, text: str) -> list[str] | None:
    spans = matcher(parse(query, now=0).terms).spans(text)
    return None if spans is None else [text[start:end] for start, end in spans]


@pytest.mark.parametrize(("query", "text", "pieces"), [
    ("retry loop", "class RetryLoop", ["Retry", "Loop"]), ("loop", "retry_loops", ["loop"]),
    ("retryloop", "retry_loop RetryLoop retry-loop", ["retry_loop", "RetryLoop", "retry-loop"]),
    ("retry-loop", "RetryLoop retry_loop", ["RetryLoop", "retry_loop"]),
    ("retry_loop", "retry loop", None), ("RETRYLOOP", "a.retry__loop", ["retry__loop"]),
    ("utf8", "UTF-8", ["UTF-8"]), ("2026-11-01", "20261101", None),
    ("20261101", "2026-11-01", None),
    ("__init__", "init __init__", ["__init__"]), ("--force", "git push --force", ["--force"]),
    ("src/main.py", "/x/src/main.py:3", ["src/main.py"]), ("a.c", "abc", None),
    ('"retry loop"', "Retry\n   Loop", ["Retry\n   Loop"]), ('"retry loop"', "retry_loop", None),
    ('"a-b"', "ab a-b", ["a-b"]), ('" a "', "xax", ["a"]),
    ("naive", "naïve", ["naïve"]), ("naïve", "naive", ["naive"]), ("strasse", "Straße", ["Straße"]),
    ("検索", "全文検索エンジン", ["検索"]), ("検", "全文検索", ["検"]), ("か", "が", None),
    ("istanbul", "İSTANBUL", ["İSTANBUL"]), ("👍", "ok 👍🏽", ["👍"]),
    ("foo -bar", "foo", ["foo"]), ("foo -bar", "foobar", None), ("-foo", "bar", []),
    ('-"a b"', "a  b", None), ("re:/^b+$/", "a\nbbb\n", ["bbb"]), ("re:/B/", "b", None),
    ("re:/B/i", "abb", ["b", "b"]), ("re:/é/", "É", None), ("-re:/x/", "y", []),
    ("re:/a.c/s", "a\nc", ["a\nc"]), ("re:/x*/", "ab", ["", "", ""]), ("a", "", None),
    ("", "x", []),
    ("a\0b", "xa\0b", ["a\0b"]), ("aa", "aaaa", ["aa", "aa"]),
])
def test_matching(query: str, text: str, pieces: list[str] | None) -> None:
    assert found(query, text) == pieces


texts = st.text(st.sampled_from("abAB-_ 12.éß検\n"), max_size=30)


@given(texts, texts.map(str.strip).filter(lambda text: bool(text.split())),
       st.sampled_from(["word", "phrase"]))
def test_what_is_found_is_found_by_the_index_and_has_spans(
    text: str, needle: str, kind: str
) -> None:
    if kind == "word":
        needle = needle.split()[0]
    term = Term(needle, kind, False, (0, 0))  # type: ignore[arg-type]
    one, folded = TermMatcher(term), Folded(text)
    spans = one.spans(folded)
    assert one.found(folded) is bool(spans)
    assert spans == sorted(spans)
    if spans:
        form = index_needle(term)
        assert form is not None and form in index_form(text)
    assert one.spans(folded, 1) == spans[:1]


@given(texts, texts.map(str.strip).filter(lambda text: len(text.split()) == 1))
def test_a_word_that_is_in_a_text_is_found(text: str, word: str) -> None:
    term = TermMatcher(Term(word, "word", False, (0, 0)))
    assert term.found(Folded(text + word + "x"))


HOSTILE = [
    (r"(a+)+$", "a" * 60 + "b"), (r"(a|aa)+$", "a" * 90 + "b"), (r"(x+x+)+y", "x" * 200),
    (r"(.*?,){20}P", "1,2,3,4,5,6,7,8,9,10,11,12\n" * 400), (r"^(\w+\s?)*$", "word " * 40 + "!"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "text"), HOSTILE)
def test_a_hostile_expression_gives_up(
    monkeypatch: pytest.MonkeyPatch, source: str, text: str
) -> None:
    monkeypatch.setattr("store.language.patterns.SLOWEST_S", 0.05)
    pattern = compiled(source)
    for _ in range(50):  # Once its time is used up it costs nothing.
        pattern.spans(text, slowest_s=0.01)
    assert pattern.gave_up or pattern.spans(text) == []


def test_an_expression_that_gave_up_is_reported() -> None:
    source, text = HOSTILE[3]
    terms = matcher(parse(f"re:/{source}/", now=0).terms)
    assert not terms.gave_up
    assert terms.spans(text) is None
    assert terms.gave_up


@pytest.mark.parametrize("source", [
    "(a{1000}){1000}", "a{99999999}", "(" * 400 + "a" + ")" * 400, "a" * 1_001, "[", "(?P<n", "*",
    "(?R)", "a{1000}{1000}", r"\p{L}", "(?e)a", "(?(9)a|b)",
])
def test_bad_expressions_are_refused(source: str) -> None:
    with pytest.raises(BadPattern):
        compiled(source)


@pytest.mark.parametrize(("name", "wanted", "fits"), [
    ("claude-code", "claude", True), ("claude-code", "code", True), ("opencode", "code", False),
    ("NotebookEdit", "edit", True), ("mcp__x__read", "read", True), ("Reading", "read", True),
    ("検索ツール", "ツ", True), ("É-x", "e", True), ("", "", True), ("abc", "b", False),
])
def test_words_of_names(name: str, wanted: str, fits: bool) -> None:
    assert begins_word(name, wanted) is fits


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_value_can_be_compared(wanted: str, value: str) -> None:
    for field in ("agent", "title", "workspace", "file", "id"):
        for operator in (":", "="):
            value_test(field, operator, wanted)(value)
        assert value_test(field, "=", value)(value)


def test_two_separators_in_a_word_may_be_left_out() -> None:
    term = parse("retry__loop", now=0).terms
    assert all(matcher(term).spans(text) for text in ("RetryLoop", "retry_loop", "retry__loop"))
