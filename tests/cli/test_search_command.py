"""``search``: what is printed, its JSON, its pages, and its exit codes."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.search import running
from tests.hostile import CORPUS, NEVER, controls
from tests.store.making import add_message, add_part, add_session
from tui.cli import main, search
from tui.start.wanted import BrowserWanted

from .conftest import Run


def test_prints_hits_by_session(run: Run, demo: Path) -> None:
    result = run("search", "retry", "tool:edit")
    assert result.code == 0
    heading, call, excerpt = result.out.splitlines()
    assert heading.startswith("Retry loop in the sync worker  1 hit · claude-code · ")
    assert call.split(maxsplit=2)[2] == "Edit  src/sync/worker.py"
    assert excerpt == "      raise Retry(error) from error"
    assert result.err == "1 hit in 1 session of 21\n"


def test_context_shows_the_lines_around(run: Run, demo: Path) -> None:
    whole = run("search", "GiveUp", "in:output", "--context", "1", "--limit", "1")
    lines = [line.strip() for line in whole.out.splitlines()[2:]]
    assert len(lines) == 3
    assert "GiveUp" in lines[1]


def test_json_has_what_the_help_says(run: Run, demo: Path) -> None:
    found = run("search", "retry", "--json", "--limit", "3").json
    assert set(found) == {"query", "order", "hits", "sessions", "counts", "facets", "coverage",
                          "cursor", "problems"}
    assert found["query"] == "retry"
    assert found["counts"]["hits"] == 10
    assert found["counts"]["whole"] is True
    assert sum(found["facets"]["where"].values()) == 10
    assert len(found["hits"]) == 3
    for hit in found["hits"]:
        assert set(hit) == {
            "session_id", "message_id", "part_id", "index", "created_at", "where", "role", "tool",
            "state", "failed", "excerpt", "matches", "score"}
        excerpt = hit["excerpt"]
        marked = [excerpt["text"][start:end] for start, end in excerpt["marks"]]
        assert marked
        assert {mark.lower() for mark in marked} == {"retry"}
        assert found["sessions"][hit["session_id"]]["title"] == "Retry loop in the sync worker"


@pytest.mark.parametrize("order", ["newest", "best"])
def test_pages_continue(run: Run, demo: Path, order: str) -> None:
    whole = run("search", "tool:bash is:error", "--json", "--limit", "100", "--order", order).json
    pages: list[Any] = []
    cursor: list[str] = []
    for _ in range(10):
        page = run("search", "tool:bash is:error", "--json", "--limit", "20", "--order", order,
                   *cursor).json
        pages += page["hits"]
        if page["cursor"] is None:
            break
        cursor = ["--cursor", page["cursor"]]
    assert pages == whole["hits"]
    assert len(pages) == 56


def test_a_page_says_how_to_go_on(run: Run, demo: Path) -> None:
    first = run("search", "tool:bash is:error", "--limit", "1")
    assert "There are more. Continue with --cursor " in first.err


def test_no_hits_are_asked_for_and_counted(run: Run, demo: Path) -> None:
    result = run("search", "retry", "--limit", "0")
    assert result.out == "" and "hits in" in result.err
    assert "--cursor" not in result.err


def test_nothing_found(run: Run, demo: Path) -> None:
    result = run("search", "nothing_like_this")
    assert (result.code, result.out) == (0, "")
    assert result.err == "No hits in 21 sessions\n"


@pytest.mark.parametrize(("query", "words"), [
    ("retry after:foo", "is no date"),
    ("re:/(/", "The regular expression is wrong"),
    ("is:nonsense", "There is no `is:nonsense`"),
    ("  ", "nothing to search for"),
])  # fmt: skip
def test_a_query_that_cannot_be_read_is_wrong_usage(
    run: Run, demo: Path, query: str, words: str
) -> None:
    result = run("search", query)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_an_unknown_field_is_reported_and_searched_as_text(run: Run, demo: Path) -> None:
    result = run("search", "foo:bar")
    assert result.code == 0
    assert "There is no field `foo:`" in result.err
    assert "agent, source, model" in result.err


@pytest.mark.parametrize("asked", [("retry", "-docker"), ("-docker", "retry")])
def test_a_query_may_begin_with_what_it_leaves_out(
    run: Run, demo: Path, asked: tuple[str, ...]
) -> None:
    document = run("search", "--json", *asked).json
    assert document == run("search", "--json", " ".join(asked)).json
    assert document["query"] == " ".join(asked) and document["hits"]
    listed = run("sessions", "--query", "-agent:claude", "--json")
    assert listed.code == 0 and listed.out == run("sessions", "--query=-agent:claude", "--json").out
    assert run("search", "retry", "--limit", "-1").code == 2
    assert "Did you mean --json?" in run("search", "retry", "--jsn").err


def test_a_cursor_of_another_order_is_wrong_usage(run: Run, demo: Path) -> None:
    assert run("search", "retry", "--cursor", "nonsense").code == 2
    assert run("search", "retry", "--cursor", "1:2:m", "--order", "best").code == 2


def test_an_empty_library(run: Run) -> None:
    result = run("search", "retry")
    assert (result.code, result.out) == (0, "")
    assert "Run `backscroll sync` first" in result.err
    assert run("search", "retry", "--json").json["hits"] == []


def test_open_goes_on_in_the_browser(run: Run, demo: Path) -> None:
    hit = run("search", "raise Retry tool:edit", "--json").json["hits"][0]
    with pytest.raises(BrowserWanted) as wanted:
        main(["search", "raise Retry tool:edit", "--open"])
    assert wanted.value.store == str(demo)
    assert wanted.value.place == (hit["session_id"], hit["message_id"], hit["part_id"])


def test_open_without_a_hit_fails(run: Run, demo: Path) -> None:
    result = run("search", "nothing_like_this", "--open")
    assert (result.code, result.out, result.err) == (1, "", "backscroll: no hits\n")


def test_hostile_text_is_neutralised(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_database(path, create=True).close()
    connection = sqlite3.connect(path)
    add_session(connection, "ses", metadata={"title": "needle " + CORPUS["clear"]})
    for number, (name, text) in enumerate(CORPUS.items()):
        message = add_message(connection, "ses", f"m{number}", number)
        data: dict[str, Any] = {"type": f"tool-{name}", "state": "output-available", "input": text,
                                "output": f"{text} needle {text}"}
        text_only: dict[str, Any] = {"type": "text", "text": f"needle {text}"}
        for index, one in enumerate((data, text_only)):
            add_part(connection, "ses", message, f"p{number}.{index}", index,
                     type=one["type"], data=one)
    connection.commit()
    connection.close()
    for more in ((), ("--context", "2"), ("--json",)):
        result = run("search", "needle", "--store", path, "--limit", "1000", *more)
        assert result.code == 0
        assert not controls(result.out)
        assert not NEVER.search(result.out)
        assert result.out.count("needle") >= 2 * len(CORPUS)


def test_counts_that_are_not_whole_say_so(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST_COUNTED", 3)
    assert run("search", "retry").err == "3+ hits in 1+ sessions of 21\n"


def test_what_was_not_searched_is_reported(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    monkeypatch.setattr(search, "SCAN_S", 0.0)
    result = run("search", "nothing_like_this")
    assert result.code == 0
    told = r"^Only the newest [\d,]+ of 4,\d+ messages were searched: there is no index yet$"
    assert re.search(told, result.err, re.MULTILINE)
