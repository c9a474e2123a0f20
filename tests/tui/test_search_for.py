"""The key that searches all sessions for what is selected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.language.query import parse
from tests.tui.seeded import SESSION, START, Said, make_store, text, tool
from tests.tui.verbs_app import Running, running
from tui.search.screen import SearchScreen
from tui.words.searching import error_line, text_query, value_query, wanted_of_part

SAID = [
    Said("user", [text("Look at the parser")]),
    Said("assistant", [
        tool("Read", {"file_path": "/srv/api/src/my parser.py"}, "1\timport re", call="r1"),
        tool("Bash", {"command": "pytest -q\n"}, "Exit code 2\ncollected 4\nE ValueError: bad\n1 "
             "failed", state="output-error", call="b1"),
        text("A long answer. " * 20),
    ]),
]


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ("word", "word"), ("src/app.py", "src/app.py"), ("two words", '"two words"'),
        ("-flag", '"-flag"'), ('say "so"', '"say ""so"""'), ("agent:codex", '"agent:codex"'),
        ("\n\n  first line\nsecond", '"first line"'), ("", ""), (" \n ", ""),
    ],
)
def test_a_text_is_a_phrase(given: str, query: str) -> None:
    assert text_query(given) == query
    parsed = parse(query, now=START)
    assert parsed.problems == () and not parsed.filters
    wanted = next((line.strip() for line in given.splitlines() if line.strip()), "")
    assert [term.text for term in parsed.terms] == ([wanted] if wanted else [])


def test_a_long_text_is_cut() -> None:
    assert len(text_query("x " * 100_000)) < 400


def test_a_path_is_a_file_and_a_command_what_was_run() -> None:
    assert value_query("input.file_path", "/srv/a.py") == "file:/srv/a.py"
    assert value_query("path", "/srv/my a.py") == 'file:"/srv/my a.py"'
    assert value_query("input.command", "git push") == 'in:input "git push"'
    assert value_query("output", "all done") == '"all done"'
    assert value_query("command", "  ") == value_query("path", " ") == ""


def test_a_failed_call_offers_its_error_too() -> None:
    data: dict[str, Any] = SAID[1].parts[1]
    assert error_line(data) == "1 failed"
    assert [each.name for each in wanted_of_part(data)] == ["command", "error"]
    assert error_line(SAID[1].parts[0]) == ""
    assert wanted_of_part({"type": "data-event", "x": 1}) == []
    assert wanted_of_part(text("long " * 90)) == []


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "s.db", SAID)


def query_of(run: Running) -> str:
    assert isinstance(run.app.screen, SearchScreen)
    return run.app.screen.query_line.value


async def test_from_the_transcript(store: Path) -> None:
    async with running(store) as run:
        await run.open(SESSION)
        await run.press("g", "full_stop", "equals_sign")
        assert query_of(run) == 'file:"/srv/api/src/my parser.py"'
        assert run.app.screen.model.counts.hits == 1  # type: ignore[attr-defined]
        await run.press("escape", "full_stop", "equals_sign")
        assert "Search all sessions for" in run.dialog()
        await run.press("down", "enter")
        assert query_of(run) == 'in:output "1 failed"'
        await run.press("escape", "full_stop", "equals_sign")
        assert run.last == "Select the text to search for with the mouse first"


async def test_from_the_inspector_and_the_details(store: Path) -> None:
    async with running(store) as run:
        await run.open(SESSION)
        await run.press("g", "full_stop", "enter")
        await run.press("equals_sign")
        assert query_of(run) == 'file:"/srv/api/src/my parser.py"'
        await run.press("escape", "1", "d", "equals_sign")
        assert query_of(run) == '"Look at the parser"'
        await run.press("escape")
        await run.press("right_square_bracket")
        assert type(run.app.screen).__name__ == "DetailsScreen"


async def test_a_search_that_is_open_is_used_again(store: Path) -> None:
    async with running(store) as run:
        await run.press("S", *"parser", "down", "d", "equals_sign")
        assert query_of(run) == '"Look at the parser"'
        screens = [type(screen).__name__ for screen in run.app.screen_stack]
        assert screens.count("SearchScreen") == 1 and "DetailsScreen" not in screens
