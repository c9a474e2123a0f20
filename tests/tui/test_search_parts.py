"""The parts of the search screen that need no screen: lines, results, facets, words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from store.errors import StoreError
from store.language.query import Query, parse
from store.search.hits import Counts, Coverage, SessionHits, Update
from tests.hostile import CORPUS
from tests.store.talks import make_store
from tests.tui.search_made import NOW, bash, excerpt, hit, made, row, update
from tests.tui.seeded import START
from tui.kit.lines import Line, width_of
from tui.kit.paint import HIT
from tui.kit.text import cells
from tui.search import model as model_module
from tui.search.facets import chips, column, facets_of, spans_of, toggled, tokens_of
from tui.search.lines import excerpt_runs, heading_lines, hit_lines
from tui.search.marks import Marks, marks_of
from tui.search.model import SearchModel
from tui.search.results import HITS_OF_A_SESSION, Results, key_of
from tui.search.words import count_runs, nothing_lines, start_lines
from tui.state.library import Library


def asked(text: str) -> Query:
    return parse(text, now=NOW)


def marked(line: Line) -> list[str]:
    return [text for text, ink in line.runs if ink == HIT]


def words(lines: list[Line]) -> list[str]:
    return [line.whole_text for line in lines]


# Lines


def test_a_call_has_a_line_of_what_it_did_and_one_of_the_match() -> None:
    found = hit("WARNING sync failed, retry in 0.5 s", where="output",
                data=bash("pytest -q tests/sync", "WARNING sync failed", failed=True))
    first, second = hit_lines(found, row(), 72)
    assert first.text == "Bash  pytest -q tests/sync"
    assert first.whole_text.endswith(" exit 1 " + second_time(first))
    assert ("✗ exit 1 ", "error") in first.right
    assert second.text == "  WARNING sync failed, retry in 0.5 s"
    assert marked(second) == ["retry"]


def second_time(line: Line) -> str:
    return line.right[-1][0]


def test_a_match_in_what_a_call_did_takes_one_line() -> None:
    found = hit("git push --retry", where="input", data=bash("git push --retry", ""))
    (line,) = hit_lines(found, row(), 72)
    assert line.text == "Bash  git push --retry" and marked(line) == ["retry"]


def test_text_is_beside_its_speaker_and_goes_on_below() -> None:
    lines = hit_lines(hit("so it will retry " + "and again " * 30), row(), 50)
    assert len(lines) == 2
    assert lines[0].text.startswith("Assistant  so it will retry") and marked(lines[0])
    assert lines[1].text.endswith("…")
    (line,) = hit_lines(hit("retry it", where="prompt", role="user"), row(), 60)
    assert line.text == "You  retry it"
    assert hit_lines(hit("retry", where="reasoning"), row(), 60)[0].text == "Thinking  retry"


def test_the_match_is_seen_however_far_it_is_in_its_line() -> None:
    long = "word " * 100 + "the retry at last"
    for width in (20, 40, 80, 200):
        runs = excerpt_runs(excerpt(long), width)
        assert width_of(runs) <= width
        assert "retry" in [text for text, ink in runs if ink == HIT]
        assert runs[0][0] == "…"


def test_a_hit_of_another_day_has_its_day() -> None:
    same = hit_lines(hit("retry"), row(), 60)[0].right[-1][0]
    other = hit_lines(hit("retry", at=START - 9 * 86_400_000), row(), 60)[0].right[-1][0]
    assert ":" in same and ":" not in other


@pytest.mark.parametrize("name", list(CORPUS))
def test_hostile_text_is_harmless_and_fits(name: str) -> None:
    text = CORPUS[name]
    found = hit(f"{text}retry{text}")
    session = SessionHits(row(title=text, branch=text, workspace=text, model=text), [found])
    call = hit(f"{text}retry", where="output", data=bash(text, text))
    for width in (30, 75):
        lines = [*heading_lines(session, width, NOW), *hit_lines(found, row(), width),
                 *hit_lines(call, row(), width)]
        for line in lines:
            assert line.whole_text.isprintable(), line
            assert width_of(line.runs) <= width or not line.right


def test_a_heading_gives_way_to_its_facts() -> None:
    session = SessionHits(
        row(title="A long title " * 9, star=True, lineage="fork"), [hit("retry")], 3)
    for width in (40, 63, 64, 100):
        first, second = heading_lines(session, width, NOW)
        assert "4 hits" in first.whole_text and "★" in first.text and "fork" in first.text
        assert ("sonnet-4.5" in first.whole_text) == (width >= 64)
        assert "/srv/api" in second.text and "main" in second.text
    assert heading_lines(SessionHits(row(title=None)), 80, NOW)[0].text == "untitled"


# Results


def several(count: int, session: str = "ses_a", more: int = 0) -> SessionHits:
    hits = [hit(f"retry {n}", session=session, index=n) for n in range(count)]
    return SessionHits(row(session), hits, more)


def shown(*sessions: SessionHits, width: int = 80) -> Results:
    results = Results()
    results.set_width(width)
    results.show(sessions, now=NOW, fresh=True)
    return results


def test_the_first_hit_is_selected_and_the_keys_go_from_hit_to_hit() -> None:
    results = shown(several(2), several(1, "ses_b"))
    assert results.hit is not None and results.hit.index == 0
    results.move(1)
    assert results.hit.index == 1 and results.hit.session_id == "ses_a"
    results.move(5)
    assert results.hit.session_id == "ses_b"
    results.move(-5)
    assert (results.hit.session_id, results.hit.index) == ("ses_a", 0)
    results.move_session(1)
    assert results.hit.session_id == "ses_b"
    results.move_session(-1)
    assert (results.hit.session_id, results.hit.index) == ("ses_a", 0)
    results.move(1)
    results.move_session(-1)
    assert (results.hit.session_id, results.hit.index) == ("ses_a", 0)


def test_every_line_belongs_to_an_entry() -> None:
    results = shown(several(2), several(9, "ses_b", more=4))
    texts = [results.line(number)[0].text for number in range(results.height)]
    assert texts[0] == "Retry loop" and "" in texts
    assert texts[-1] == "… 8 more in this session"
    assert results.entry_at(results.height) is None and results.entry_at(-1) is None
    assert [results.line(number)[1] for number in (0, 2)] == ["", "assistant"]


def test_a_session_with_many_hits_is_folded_until_it_is_opened() -> None:
    results = shown(several(HITS_OF_A_SESSION + 1), several(30, "ses_b"))
    assert sum(results.line(n)[1] != "" for n in range(results.height)) == 11
    results.open("ses_b")
    assert sum(results.line(n)[1] != "" for n in range(results.height)) == 36
    results.open("ses_b")
    assert sum(results.line(n)[1] != "" for n in range(results.height)) == 11


def test_the_selection_stays_while_more_arrive() -> None:
    results = shown(several(1, "ses_b"))
    assert results.hit is not None
    key = key_of(results.hit)
    results.show([several(4), several(1, "ses_b")], now=NOW)
    assert results.selected == key and results.entry is not None and results.entry.start > 4
    results.show([several(4)], now=NOW)
    assert results.hit.session_id == "ses_a"
    results.show([], now=NOW)
    assert results.hit is None and results.entry is None and results.height == 0
    results.move(1)
    results.move_session(1)
    results.move_lines(1)


def test_a_hit_that_is_folded_away_opens_its_session_when_it_is_selected() -> None:
    results = shown(several(30))
    wanted = results.hits[20]
    results.select(key_of(wanted))
    assert results.hit is wanted and "ses_a" in results.opened


def test_hits_are_numbered_over_all_sessions() -> None:
    results = shown(several(6, more=10), several(2, "ses_b"))
    assert results.number_of(results.hits[0]) == 1
    assert results.number_of(results.hits[6]) == 17
    assert results.beside(results.hits[5], 1) is results.hits[6]
    assert results.beside(results.hits[0], -1) is None
    assert results.beside(results.hits[-1], 1) is None
    assert results.number_of(hit("retry", session="ses_x")) is None


def test_pages_go_by_lines() -> None:
    results = shown(several(6), several(6, "ses_b"), several(6, "ses_c"))
    results.move_lines(20)
    assert results.hit is not None and results.hit.session_id == "ses_c"
    results.move_lines(-20)
    assert results.hit.session_id == "ses_a"


# Facets


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("agent", "codex", "agent:codex"), ("tool", "Bash", "tool:Bash"),
        ("where", "output", "in:output"), ("role", "user", "role:user"),
        ("workspace", "/srv/my api", 'workspace:="/srv/my api"'),
        ("month", "2026-11", "after:2026-11 before:2026-12"),
        ("month", "2025-12", "after:2025-12 before:2026-01"),
        ("tool", 'odd "tool', 'tool:"odd ""tool"'),
    ],
)
def test_a_facet_is_a_piece_of_the_query(name: str, value: str, text: str) -> None:
    assert " ".join(tokens_of(name, value)) == text
    once = toggled(asked("retry"), name, value)
    assert once == f"retry {text}"
    query = asked(once)
    assert query.problems == () and spans_of(query, name, value)
    assert toggled(query, name, value) == "retry"


def test_a_facet_that_was_typed_is_known() -> None:
    assert toggled(asked("tool:bash retry agent:codex"), "tool", "Bash") == "retry agent:codex"
    assert spans_of(asked("-tool:bash"), "tool", "bash") == []
    assert spans_of(asked("after:2026-11"), "month", "2026-11") == []


def test_the_column_says_what_holds_and_how_many() -> None:
    groups = facets_of(
        {"agent": {"codex": 12, "claude-code": 3}, "tool": {f"T{n}": 20 - n for n in range(20)},
         "month": {"2026-09": 2, "2026-11": 31}, "workspace": {"/srv/api": 4, "": 1}},
        asked("agent:codex tool:T15"),
        {"2026-09-30": 2, "2026-11-01": 5, "2026-11-04": 5, "2026-11-05": 1, "2026-11-28": 20},
    )
    assert [name for name, _ in groups] == ["agent", "tool", "workspace", "month"]
    lines = column(groups, 28, now=NOW, opened=set(), saved={"pushes": "push"},
                   recent=["a\x1b[31mb"], text="push")
    texts = [line.whole_text for line in lines]
    assert "▌codex  12" in texts and " claude-code  3" in texts
    assert "▌T15  5" in texts and " … 14 more" in texts
    assert " no folder  1" in texts and "▌pushes" in texts
    assert texts.index(" Nov      ▃▂▁▁▁▁▇▁  31") < texts.index(" Sep      ▁▁▁▁▁▁▁▂  2")
    assert all(width_of([*line.runs, *line.right]) <= 28 for line in lines)
    assert all(text.isprintable() for text in texts)
    opened = column(groups, 28, now=NOW, opened={"tool"}, saved={}, recent=[], text="")
    assert sum(" T" in line.text or "▌T" in line.text for line in opened) == 20


def test_chips_are_the_same_in_a_line() -> None:
    groups = facets_of({"agent": {"codex": 1200, "pi": 3}}, asked("agent:pi"))
    assert chips(groups, NOW)[1][0] == ("codex 1.2k", "muted")
    assert chips(groups, NOW)[2][0] == ("✓pi 3", "tool bold")


# Words


def text_of(runs: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in runs)


def test_the_counts_name_what_they_leave_out() -> None:
    counts = Counts(48, 12, 37, 3, 3214, True)
    whole = count_runs(counts, Coverage(9, 9, True), 100, counting=False)
    assert text_of(whole) == (
        "48 hits in 12 sessions of 3,214  37 more in archived ones  all indexed")
    for room in range(8, 90):
        assert cells(text_of(count_runs(counts, Coverage(9, 9, True), room, counting=False))) \
            <= max(room, cells("48 hits in 12 sessions"))
    part = count_runs(counts, Coverage(1, 9, False, "the index is being made"), 60, counting=False)
    assert "the index is being made" in text_of(part)
    running = count_runs(Counts(5, 1), Coverage(1, 4), 60, counting=True)
    assert text_of(running) == "5+ hits in 1 session  searching 25%"
    assert text_of(count_runs(Counts(1, 1, whole=True), Coverage(), 60, counting=False)) == (
        "1 hit in 1 session  all searched")


def nothing(text: str, **more: object) -> str:
    given: dict[str, object] = {
        "unfiltered": None, "running": False, "failure": "", "reset": "backspace"} | more
    counts, coverage = given.pop("counts", Counts()), given.pop("coverage", Coverage(1, 1, True))
    return "\n".join(words(nothing_lines(asked(text), counts, coverage, 70, **given)))  # type: ignore[arg-type]


def test_no_hit_and_filters_that_hide_all_read_differently() -> None:
    assert nothing("retry") == "\nretry is not found"
    hidden = nothing("retry agent:codex", unfiltered=True)
    assert "The filters hide every hit: agent:codex" in hidden
    assert "retry is found without them · backspace takes them off" in hidden
    assert "with or without the filters" in nothing("retry agent:codex", unfiltered=False)
    assert nothing("agent:codex") == "\nNo session fits agent:codex"
    assert "37 hits in archived ones: add is:archived" in nothing(
        "retry", counts=Counts(0, 0, 37, 2, 9, True))
    assert "Not everything was searched: the scan was cut" in nothing(
        "retry", coverage=Coverage(1, 9, False, "the scan was cut"))
    assert nothing("retry", running=True) == "\nsearching…"
    assert nothing("retry", failure="it broke") == "\nit broke"


def test_the_start_says_what_can_be_typed() -> None:
    for width in (30, 70, 120):
        lines = start_lines(width, [("agent", ""), ("tool", "")])
        assert "agent: tool:" in "\n".join(words(lines))


# Marks


def test_marks_are_the_words_of_the_query() -> None:
    found = marks_of(asked("retry loop -never agent:x"))
    assert isinstance(found, Marks)
    text = "RetryLoop, retry_loop; never"
    assert [text[m.start():m.end()] for m in found.finditer(text)] == ["RetryLoop", "retry", "loop"]
    assert marks_of(asked("agent:x -no")) is None


async def test_a_search_that_failed_is_done_again_where_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Exception] = [ValueError("a fault"), StoreError("the server does not answer")]

    def answer(query: Query, more: object) -> list[Update]:
        if errors:
            raise errors.pop(0)
        return [update([SessionHits(row(), [hit("retry")])])]

    searcher = made(monkeypatch, answer)
    monkeypatch.setattr(model_module, "RENEWED_EVERY_S", 0)
    make_store(tmp_path / "s.db", "own").close()
    library = Library.open(tmp_path / "s.db", "test", clock=lambda: NOW)
    tasks, reported = list[asyncio.Future[None]](), list[str]()
    model = SearchModel(
        library, lambda work, group: tasks.append(asyncio.ensure_future(work())),
        lambda words, error: reported.append(str(error)))

    async def after(act: Callable[[], None]) -> tuple[int, str]:
        act()
        await asyncio.gather(*tasks)
        return len(searcher.asked), model.failure

    assert await after(lambda: model.ask("retry")) == (1, "The search failed")
    # The same would come again with each change of the store.
    assert await after(model.store_changed) == (1, "The search failed")
    assert await after(lambda: model.ask("retries")) == (2, "the server does not answer")
    assert await after(model.store_changed) == (3, "")
    assert reported == ["a fault"] and len(model.results.hits) == 1
    await library.close()
