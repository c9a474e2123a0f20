"""How a query may go on where the cursor is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.language.completion import Known, complete
from store.language.fields import FIELDS
from store.language.query import parse

KNOWN = {
    "agent": [Known("claude-code", "40 sessions"), Known("codex"), Known("opencode")],
    "workspace": [Known("~/code/api"), Known("~/my folder"), Known('~/odd "name"')],
    "tool": [Known("Bash"), Known("mcp__look")],
}


def offered(text: str, cursor: int | None = None, *, asked: bool = False) -> list[str]:
    at = len(text) if cursor is None else cursor
    return [each.label for each in complete(text, at, KNOWN, asked=asked)]


def taken(text: str, cursor: int | None = None) -> str:
    at = len(text) if cursor is None else cursor
    first = complete(text, at, KNOWN)[0]
    return text[:first.span[0]] + first.text + text[first.span[1]:]


@pytest.mark.parametrize(("text", "labels"), [
    ("", []), ("r", []), ("ag", ["agent:"]), ("-ag", ["agent:"]), ("retry ag", ["agent:"]),
    ("fol", ["workspace:"]), ("to", ["tool:", "tokens:"]), ("xyz", []), ("agent: x", []),
    ("runn", ["is:running"]), ("ag ", []), ('"ag', []), ("re:ag", []), ("foo:ag", []),
    ("agent:", ["claude-code", "codex", "opencode"]), ("agent:co", ["codex", "claude-code",
                                                                   "opencode"]),
    ("agent:CODE", ["codex", "claude-code", "opencode"]), ("agent:codex", []), ("agent:zz", []),
    ("agent:codex,cl", ["claude-code"]), ("-agent:cl", ["claude-code"]), ("agent:=cl",
                                                                         ["claude-code"]),
    ("is:sta", ["starred"]), ("in:p", ["prompt", "input", "output"]), ("tool:l", ["mcp__look"]),
    ("after:ye", ["yesterday"]), ("after:last", ["last week", "last month"]),
    ("cost:>", [">1"]), ("workspace:~/m", ["~/my folder"]), ('workspace:"~/m', ["~/my folder"]),
    ("model:x", []),
])
def test_what_is_offered(text: str, labels: list[str]) -> None:
    assert offered(text) == labels


def test_all_fields_are_offered_when_asked_for() -> None:
    assert offered("", asked=True) == [f"{name}:" for name in FIELDS]
    assert offered("retry ", asked=True) == [f"{name}:" for name in FIELDS]


@pytest.mark.parametrize(("text", "cursor", "result"), [
    ("retry ag", None, "retry agent:"), ("ag retry", 2, "agent: retry"),
    ("agent:cl x", 8, "agent:claude-code x"), ("agent:clfoo x", 8, "agent:claude-code x"),
    ("workspace:~/m", None, 'workspace:"~/my folder"'),
    ('workspace:"~/m', None, 'workspace:"~/my folder"'),
    ('workspace:"~/m" x', 14, 'workspace:"~/my folder" x'),
    ("workspace:odd", None, 'workspace:"~/odd ""name"""'),
    ("agent:codex,cl,x", 14, "agent:codex,claude-code,x"), ("cost:>", None, "cost:>1"),
    ("after:last", None, 'after:"last week"'), ("-agent:=cl", None, "-agent:=claude-code"),
])
def test_what_is_put_in(text: str, cursor: int | None, result: str) -> None:
    assert taken(text, cursor) == result
    assert not [each for each in parse(result, now=0).problems if not each.unfinished]


@given(st.text(st.sampled_from('ag:ent,"-<>= oi sx~/\\\0é'), max_size=25), st.data())
def test_a_completion_replaces_a_piece_at_the_cursor(text: str, data: st.DataObject) -> None:
    cursor = data.draw(st.integers(0, len(text)))
    for asked in (False, True):
        for each in complete(text, cursor, KNOWN, asked=asked):
            start, end = each.span
            assert 0 <= start <= cursor <= end <= len(text)


@pytest.mark.parametrize("text", ["agent:" + "a," * 5_000, '"' * 9_999, "a:" * 5_000, "-" * 9_999])
def test_long_queries(text: str) -> None:
    complete(text, len(text), KNOWN, asked=True)
