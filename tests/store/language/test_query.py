"""Reading queries: terms, fields and problems, from any text."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.language.fields import BY_ANY_NAME, FIELDS
from store.language.query import (
    LONGEST,
    MOST_PIECES,
    Query,
    parse,
    quoted,
    without,
)

NOW = 1_795_000_000_000


def read(text: str) -> Query:
    return parse(text, now=NOW, zone=UTC, home="/home/mira")


def terms(text: str) -> list[tuple[str, str, bool]]:
    return [(each.text, each.kind, each.negated) for each in read(text).terms]


def filters(text: str) -> list[tuple[str, str, object, bool]]:
    return [(each.field, each.operator, each.value, each.negated) for each in read(text).filters]


pieces = st.one_of(
    st.text(max_size=12),
    st.sampled_from([
        '"', '""', "-", "--", ":", ",", "re:", "re:/", "/i", "agent:", "after:", "cost:>", "is:",
        "in:title", "last week", "3d", "\0", "\ud800", "é", "検", "(a+)+$", "~", "*", "=", "<=",
        "\n", "\u2028", "\u00a0", "[", "\\", "{99999}", "workspace:~/x", "foo:bar", "tag:a,b",
    ]),
)  # fmt: skip
queries = st.lists(pieces, max_size=14).flatmap(
    lambda some: st.sampled_from(["", " "]).map(lambda between: between.join(some)))


@given(queries)
def test_any_text_is_read_and_every_span_is_inside_it(text: str) -> None:
    query = read(text)
    assert query.text == text
    spans = [each.span for each in query.terms] + [each.span for each in query.filters]
    spans += [each.span for each in query.problems]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    own = [each.span for each in query.terms]
    assert own == sorted(own) and all(end <= start for (_, end), (start, _) in
                                      zip(own, own[1:], strict=False))
    for term in query.terms:
        if term.kind == "word":
            written = text[slice(*term.span)].encode("utf-16", "surrogatepass").decode(
                "utf-16", "replace")
            assert written.removeprefix("-" if term.negated else "").endswith(term.text[-1:])
    assert sum(len(each.filters) for each in query.conditions) == len(query.filters)


@given(queries)
def test_reading_a_query_without_one_of_its_pieces_leaves_the_others(text: str) -> None:
    query = read(text)
    for term in query.terms[:3]:
        rest = read(without(query, [term.span]))
        assert len(rest.terms) <= len(query.terms) + 2


@given(st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip())))
def test_a_quoted_value_is_read_as_it_was(value: str) -> None:
    (found,) = read("title:" + quoted(value)).filters
    assert found.value == value and not read("title:" + quoted(value)).problems
    (phrase,) = read('"' + value.replace('"', '""') + '"').terms
    assert (phrase.kind, phrase.text) == ("phrase", value)


@pytest.mark.parametrize("value", [
    "a", "~/code/api", "a b", 'say "hi"', "-x", "a,b", "C:\\code\\", "", " ", "re:x", "[x]", "=x",
    ">1", "foo:bar", "\\", "\\\\server\\x", "//x", "/", "/\\", "<", "é", "検索", ".",
])  # fmt: skip
def test_quoting(value: str) -> None:
    query = read("workspace:" + quoted(value))
    assert [each.value for each in query.filters] == (
        [value.replace("~", "/home/mira")] if value.strip() else [])
    assert not query.terms


@pytest.mark.parametrize(("text", "found"), [
    ("retry loop", [("retry", "word", False), ("loop", "word", False)]),
    ('"retry loop"', [("retry loop", "phrase", False)]),
    ('-"a b" -c', [("a b", "phrase", True), ("c", "word", True)]),
    ('"a""b"', [('a"b', "phrase", False)]),
    ('"a"b', [("a", "phrase", False), ("b", "word", False)]),
    ('say"hi" 5"', [('say"hi"', "word", False), ('5"', "word", False)]),
    ("--force -> -=", [("--force", "word", False), ("->", "word", False), ("-=", "word", False)]),
    ("-", []), ("- a", [("a", "word", False)]), ('""', []), ('" "', []),
    ("http://x/y:1 std::vector 12:30 C:\\x a/b.py:12 localhost:8080 TypeError: x:",
     [(each, "word", False) for each in
      ("http://x/y:1", "std::vector", "12:30", "C:\\x", "a/b.py:12", "localhost:8080",
       "TypeError:", "x:")]),
    ("re:/a b/i -re:/c/", [("a b", "regex", False), ("c", "regex", True)]),
    ("re:/a\\/b/", [("a/b", "regex", False)]), ('re:"a b"', [("a b", "regex", False)]),
    ("re:a.*b", [("a.*b", "regex", False)]),
    ("re: a", [("re:", "word", False), ("a", "word", False)]),
    ("RE:/x/", [("x", "regex", False)]), ("\u3000検索\u00a0x", [("検索", "word", False),
                                                          ("x", "word", False)]),
    ("a\0b", [("a\0b", "word", False)]), ("a\ud800b", [("a\ufffdb", "word", False)]),
])
def test_terms(text: str, found: list[tuple[str, str, bool]]) -> None:
    assert terms(text) == found
    assert not read(text).problems


@pytest.mark.parametrize(("text", "found"), [
    ("agent:codex", [("agent", ":", "codex", False)]),
    ("AGENT:Codex", [("agent", ":", "Codex", False)]),
    ("-agent:codex", [("agent", ":", "codex", True)]),
    ("agent:a,b", [("agent", ":", "a", False), ("agent", ":", "b", False)]),
    ('workspace:"my folder",x', [("workspace", ":", "my folder", False),
                                 ("workspace", ":", "x", False)]),
    ("folder:~ dir:~/x workspace:~x", [("workspace", ":", "/home/mira", False),
                                       ("workspace", ":", "/home/mira/x", False),
                                       ("workspace", ":", "~x", False)]),
    ("agent:=codex", [("agent", "=", "codex", False)]),
    ("title:>x", [("title", ":", ">x", False)]),
    ("cost:>0.5 cost:<2 cost:1", [("cost", ">", 0.5, False), ("cost", "<", 2.0, False),
                                  ("cost", ">=", 1.0, False)]),
    ("tokens:>=10k tokens:1M -tokens:<=1,500 tokens:=2g", [
        ("tokens", ">=", 10_000.0, False), ("tokens", ">=", 1_000_000.0, False),
        ("tokens", "<=", 1_500.0, True), ("tokens", "=", 2e9, False)]),
    ("cost:$1 cost:.5", [("cost", ">=", 1.0, False), ("cost", ">=", 0.5, False)]),
    ("is:running -is:Archived", [("is", ":", "running", False), ("is", ":", "archived", True)]),
    ("is:run in:pro", [("is", ":", "running", False), ("in", ":", "prompt", False)]),
    ("is:waiting", [("is", ":", "waiting", False)]),
    ("file:/x/y file:src/*.py path:a", [
        ("file", ":", "/x/y", False), ("file", ":", "src/*.py", False), ("file", ":", "a", False)]),
    ("id:ses_1 label:todo", [("id", ":", "ses_1", False), ("label", ":", "todo", False)]),
    ("-after:2026-01-01", [("before", ":", 1_767_225_600_000, False)]),
    ("until:2026-01-01", [("before", ":", 1_767_225_600_000, False)]),
    ('model:"a""b"', [("model", ":", 'a"b', False)]),
])
def test_filters(text: str, found: list[tuple[str, str, object, bool]]) -> None:
    assert filters(text) == found
    assert not read(text).problems and not read(text).terms


@pytest.mark.parametrize(("text", "level", "negated"), [
    ("tool:bash", "part", False), ("is:error", "part", False), ("is:error,running", "part", False),
    ("is:running", "session", False), ("-in:output", "part", True), ("agent:x", "session", False),
])
def test_levels(text: str, level: str, negated: bool) -> None:
    (condition,) = read(text).conditions
    assert (condition.level, condition.negated) == (level, negated)


@pytest.mark.parametrize(("text", "groups"), [
    ("agent:a agent:b", [["a", "b"]]), ("agent:a,b", [["a", "b"]]),
    ("tag:a tag:b", [["a"], ["b"]]), ("tag:a,b tag:c", [["a", "b"], ["c"]]),
    ("-agent:a -agent:b", [["a"], ["b"]]), ("agent:a -agent:b", [["a"], ["b"]]),
    ("title:x title:y", [["x"], ["y"]]), ("is:fork is:archived", [["fork"], ["archived"]]),
    ("tool:a file:b tool:c", [["a", "c"], ["b"]]), ("in:prompt in:text", [["prompt", "text"]]),
])
def test_which_values_are_alternatives(text: str, groups: list[list[str]]) -> None:
    assert [[each.value for each in one.filters] for one in read(text).conditions] == groups


@pytest.mark.parametrize(("text", "span", "words"), [
    ("a foo:bar", (2, 6), "no field `foo:`. Fields are agent, source"),
    ("agnt:codex", (0, 5), "Did you mean `agent:`?"), ("-wrkspace:x", (0, 10), "`workspace:`?"),
    ("folde:x", (0, 6), "`folder:`?"),
    ("agent:", (0, 6), "needs a value, as in `agent:codex`"), ("agent: x", (0, 6), "needs a value"),
    ("after:someday", (0, 13), "someday is no date; dates are 2026-11-01, 3d"),
    ("after:2026-02-30", (0, 16), "is no date"), ("after:99999y", (0, 12), "is no date"),
    ("cost:x", (0, 6), "x is no number"), ("tokens:1e9", (0, 10), "is no number"),
    ("is:runing", (0, 9), "did you mean `is:running`?"), ("role:me", (0, 7), "values are user"),
    ("x re:/a(/", (7, 9), "wrong: missing ), unterminated subpattern"),
    ("re:/a/q", (6, 7), "no flag `q`; flags are i, m, s, x"),
    ("re:/abc", (0, 7), "not closed"), ('"abc', (0, 4), "not closed"),
    ('agent:"abc', (6, 10), "not closed"), ("re:/(a{999}){999}/", (12, 18), "repeats too often"),
    ("re:/(?R)/", (5, 9), "wrong"), ("re:/" + "(" * 300 + "/", (5, 305), "wrong"),
])
def test_problems(text: str, span: tuple[int, int], words: str) -> None:
    (problem,) = read(text).problems
    assert words in problem.message
    assert problem.span[0] == span[0] or words == "wrong"


def test_what_goes_away_by_typing_on() -> None:
    unfinished = {text for text in ("agent:", '"ab', "re:/ab", "foo:bar", "is:nothing")
                  if all(each.unfinished for each in read(text).problems)}
    assert unfinished == {"agent:", '"ab', "re:/ab"}


def test_an_unclosed_quote_counts_as_closed() -> None:
    assert terms('"retry lo') == [("retry lo", "phrase", False)]
    assert filters('title:"retry lo') == [("title", ":", "retry lo", False)]


@pytest.mark.parametrize("text", [
    "x " * 10_000, '"' * 10_000, "a:" * 6_000, "-" * 10_001, "re:/" * 3_000, 'agent:"' * 2_000,
    "agent:a," * 2_000, "(" * 10_000, "re:" + "a{9}" * 200, "tag:" + "," * 9_990, "after:" * 2_000,
    "is:" + "e," * 4_000, "\\" * 10_000, 'title:"' + '""' * 4_000, "last " * 2_000,
])
def test_long_queries_are_cut(text: str) -> None:
    query = read(text)
    assert len(query.terms) <= MOST_PIECES
    if len(text) > LONGEST:
        assert "too long" in query.problems[-1].message


def test_more_words_than_are_read() -> None:
    query = read(" ".join(f"w{number}" for number in range(1_000)))
    assert len(query.terms) == MOST_PIECES
    assert query.problems[0].message == "Only the first 200 words and fields are used"


def test_every_field_has_one_name_and_an_example_that_can_be_read() -> None:
    assert len(BY_ANY_NAME) == len(FIELDS) + sum(len(each.aliases) for each in FIELDS.values())
    for field in FIELDS.values():
        query = read(field.example)
        assert not query.problems and {each.field for each in query.filters} == {field.name}
        for value, _ in field.choices:
            assert not read(f"{field.name}:{value}").problems, value


def test_the_fields_are_those_that_are_documented() -> None:
    assert list(FIELDS) == [
        "agent", "source", "model", "workspace", "branch", "project", "account", "owner",
        "role", "tool", "title", "file", "task", "channel", "status", "tag", "label", "id",
        "after", "before", "cost", "tokens", "is", "in"]
