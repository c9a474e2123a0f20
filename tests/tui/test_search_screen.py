"""The search screen in the whole app."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from gc import collect, get_objects
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from textual.strip import Strip

from store.language.query import Query
from store.search.hits import Counts, Coverage, SessionHits, Update
from tests.hostile import NEVER, controls, hostile_store
from tests.tui.search_made import hit, made, row, update
from tests.tui.seeded import START, Said, long_talk, make_store, text, tool
from tests.tui.verbs_app import Running, drawn, running
from tui.kit import glyphs as glyphs_module
from tui.search import model as model_module
from tui.search import screen as screen_module
from tui.search.hits_view import HitsView
from tui.search.screen import SearchScreen

ONE, TWO, THREE, FOUR = (f"ses_{letter * 26}" for letter in "abcd")


def talk(word: str, age: int = 0) -> list[Said]:
    at = START - age * 60_000
    return [
        Said("user", [text(f"Please {word} the upload")], at=at),
        Said("assistant", [
            {"type": "reasoning", "text": f"I think of {word} first"},
            text("Then I look at it."),
            tool("Bash", {"command": "make upload"}, "\n".join(
                ["line"] * 40 + [f"WARNING {word} in 0.5 s"] + ["line"] * 40), call="b1"),
        ], at=at + 1000),
    ]


def session(title: str, age: int, **more: Any) -> dict[str, Any]:
    at = START - age * 60_000
    return {"metadata_json": f'{{"title":"{title}"}}', "created_at": at, "updated_at": at, **more}


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "PREVIEW_AFTER_S", 0.001)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    make_store(path, talk("retry", 1), session_id=ONE, session=session("Retry loop", 1))
    make_store(path, talk("retry", 2), session_id=TWO, session=session(
        "Upload", 2, agent="codex", workspace_root="/srv/site"))
    make_store(path, talk("unusual", 3), session_id=THREE, session=session("Other", 3))
    return path


@asynccontextmanager
async def searching(path: Path, *keys: str, size: tuple[int, int] = (160, 40)) -> AsyncIterator[
    tuple[Running, SearchScreen]
]:
    async with running(path, size) as run:
        await run.press("S")
        screen = run.app.screen
        assert isinstance(screen, SearchScreen)
        await run.press(*keys)
        yield run, screen


def selected_row(screen: SearchScreen) -> int:
    entry = screen.model.results.entry
    assert entry is not None
    return entry.start - screen.hits.scroll_offset.y


def status(run: Running) -> str:
    """Which hit the transcript shows, as its status line says it."""
    shown = run.transcript.shown.hit
    words = shown.tour.words if shown is not None else ""
    assert words in drawn(run.app.screen)
    return words


def typed(words: str) -> tuple[str, ...]:
    names = {" ": "space", ":": "colon", '"': "quotation_mark"}
    return tuple(names.get(letter, letter) for letter in words)


async def test_results_come_as_one_types_and_no_key_is_lost(store: Path) -> None:
    async with searching(store, *typed("retry")) as (run, screen):
        assert screen.query_line.value == "retry"
        shown = drawn(screen)
        assert "Retry loop" in shown and "Upload" in shown and "Other" not in shown
        assert "7 hits in 2 sessions of 3" in shown
        assert "WARNING retry in 0.5 s" in shown
        await run.press(*typed(" unusual"))
        assert screen.query_line.value == "retry unusual"
        assert "retry unusual is not found" in drawn(screen)
        await run.press(*["backspace"] * len("retry unusual"))
        assert "Search everything" in drawn(screen)


async def test_what_is_written_is_found_at_once_and_the_selection_stays(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_module, "RENEWED_EVERY_S", 0.0)
    monkeypatch.setattr(model_module, "RESTS", 0)
    async with searching(store, *typed("retry"), "down", "n", "n") as (run, screen):
        results = screen.model.results
        chosen = results.selected
        row = selected_row(screen)
        make_store(store, talk("retry"), session_id=FOUR, session=session("Newer", 0))
        await run.app.show_written()
        await run.quiet()
        assert "10 hits in 3 sessions of 4" in drawn(screen)
        assert [each.row.id for each in results.sessions] == [FOUR, ONE, TWO]
        assert chosen is not None and results.selected == chosen
        assert selected_row(screen) == row
        # What is gone is left out, and what is changed is shown as it is now.
        connection = sqlite3.connect(store)
        connection.execute("DELETE FROM chat_parts WHERE message_id = ?", (chosen[1],))
        connection.execute("UPDATE chat_parts SET data_json = replace(data_json, 'upload', 'copy')")
        connection.commit()
        connection.close()
        await run.app.show_written()
        await run.quiet()
        assert "10 hits" not in drawn(screen) and "retry the upload" not in drawn(screen)
        texts = [hit.excerpt.text for hit in results.hits]
        assert "Please retry the copy" in texts and "Please retry the upload" not in texts
        assert results.selected is not None and results.selected[1] != chosen[1]


async def test_the_search_is_done_again_when_one_comes_back_to_it(store: Path) -> None:
    async with searching(store, *typed("retry"), "down", "enter") as (run, _screen):
        make_store(store, talk("retry"), session_id=FOUR, session=session("Newer", 0))
        await run.app.show_written()
        await run.press("escape")
        await run.quiet()
        assert "10 hits in 3 sessions of 4" in drawn(run.app.screen)


async def test_enter_opens_the_part_and_escape_comes_back(store: Path) -> None:
    async with searching(store, *typed("warning retry")) as (run, screen):
        await run.press("down", "n")
        chosen = screen.model.results.hit
        assert chosen is not None and chosen.session_id == TWO
        await run.press("enter")
        assert run.app.screen is run.app.main
        transcript = run.transcript
        assert transcript.session is not None and transcript.session.id == TWO
        document = transcript.document
        assert document.skeleton.key(transcript.cursor) == (chosen.message_id, chosen.index)
        whole = drawn(run.app.screen)
        assert "WARNING retry in 0.5 s" in whole and "hit 2 of 2" in whole
        assert run.sessions.selected_id == TWO
        await run.press("escape")
        again = run.app.screen
        assert isinstance(again, SearchScreen) and again.query_line.value == "warning retry"
        assert again.model.results.hit is chosen
        await run.press("escape")
        assert run.app.screen is run.app.main


async def test_escape_comes_back_to_where_the_hit_was_opened(store: Path) -> None:
    async with searching(store, *typed("warning retry"), "enter", "escape") as (run, _screen):
        again = run.app.screen
        assert isinstance(again, SearchScreen) and again.query_line.has_focus
        await run.press("down", "enter", "escape", "n")
        again = run.app.screen
        assert isinstance(again, SearchScreen) and again.hits.has_focus
        assert again.query_line.value == "warning retry"
        assert again.model.results.hit is not None
        assert again.model.results.hit.session_id == TWO
        await run.press("escape", "S")
        again = run.app.screen
        assert isinstance(again, SearchScreen) and again.query_line.has_focus


async def test_the_footer_says_where_tab_goes(store: Path) -> None:
    async with searching(store, *typed("retry")) as (run, screen):
        assert "↓ to the hits" in drawn(screen).split("\n")[-1]
        for word in ("facets", "query"):
            assert "tab hits" not in drawn(screen)
            await run.press("tab")
            keys = drawn(screen).split("\n")[-1]
            assert f"tab {word}" in keys
            assert ("open at the hit" in keys) == (word == "facets") != ("space narrow" in keys)


async def test_what_runs_is_counted_at_the_top(store: Path) -> None:
    async with searching(store, *typed("retry")) as (_run, screen):
        assert "3 sessions  ● 1 running" in drawn(screen).split("\n")[0]
        counter = screen.host.main.counter  # type: ignore[attr-defined]
        counter._active = [row(activity=state) for state in ("running", "retrying", "waiting")]
        screen.host.main.show_summary()  # type: ignore[attr-defined]
        assert "3 sessions  ● 2 running" in drawn(screen).split("\n")[0]


@pytest.mark.parametrize("key", ["S", "$"])
async def test_a_count_that_comes_while_a_screen_is_composed_does_no_harm(
    key: str, store: Path
) -> None:
    async with running(store) as run:
        show = run.app.open_search if key == "S" else run.app.open_stats
        run.app.main.counter._active = [row(activity="running")]
        show()
        run.app.main.show_summary()
        await run.quiet()
        assert "1 running" in drawn(run.app.screen)


async def test_the_text_of_hits_is_selected_with_the_mouse(store: Path) -> None:
    async with searching(store, *typed("warning retry")) as (run, screen):
        lines = drawn(screen).split("\n")
        y = next(number for number, line in enumerate(lines) if "WARNING retry" in line[30:90])
        x = lines[y].index("WARNING")
        selected = screen.model.results.selected
        await run.pilot.mouse_down(offset=(x, y))
        await run.pilot.hover(offset=(x + 13, y))
        await run.pilot.mouse_up(offset=(x + 13, y))
        await run.quiet()
        assert screen.get_selected_text() in ("WARNING retry", "WARNING retry ")
        assert run.app.screen is screen and screen.model.results.selected == selected
        screen.hits.text_select_all()
        whole = screen.get_selected_text()
        assert whole is not None and whole.startswith("Retry loop")
        assert "▎" not in whole and "▌" not in whole and "WARNING retry in 0.5 s" in whole


async def test_next_and_previous_go_through_all_sessions(store: Path) -> None:
    async with searching(store, *typed("warning retry"), "enter") as (run, _screen):
        seen = []
        for key in ("n", "n", "N", "N"):
            assert run.transcript.session is not None
            seen.append((run.transcript.session.id, status(run)))
            await run.press(key)
        assert seen == [
            (ONE, "hit 1 of 2"), (TWO, "hit 2 of 2"), (TWO, "hit 2 of 2"), (ONE, "hit 1 of 2")]
        assert run.told[-2:] == ["This is the last hit", "This is the first hit"]


async def test_letters_jump_to_a_hit_and_places_come_back_from_it(store: Path) -> None:
    async with searching(store, *"retry", "down") as (run, screen):
        stops = screen.hits.jump_stops()
        assert len(stops) > 3
        await run.press("semicolon", "d")
        assert screen.model.results.selected == stops[2] and not screen.hits._codes
        await run.press("h", "semicolon", "s")
        assert screen.in_facets and screen.facets.cursor == screen.facets.jump_stops()[1]
        await run.press("l", "enter")
        assert run.app.screen is run.app.main
        opened = run.app.main.opener.shown, run.transcript.shown.message_id
        await run.press("n", "n")
        assert (run.app.main.opener.shown, run.transcript.shown.message_id) != opened
        await run.press("ctrl+o", "ctrl+o")
        assert (run.app.main.opener.shown, run.transcript.shown.message_id) == opened


@pytest.mark.long
async def test_a_find_in_the_transcript_comes_before_the_hits(store: Path) -> None:
    async with searching(store, *typed("warning retry"), "enter") as (run, _screen):
        await run.press("slash", *typed("line"), "enter")
        assert "/line" in drawn(run.app.screen)
        await run.press("n")
        assert run.transcript.session is not None and run.transcript.session.id == ONE
        await run.press("escape")
        assert "hit 1 of 2" in drawn(run.app.screen)
        await run.press("n")
        assert run.transcript.session.id == TWO


async def test_a_facet_narrows_by_the_text_of_the_query(store: Path) -> None:
    async with searching(store, *typed("retry"), "tab", "tab") as (run, screen):
        assert screen.facets.has_focus and screen.facets.line.link is not None
        while screen.facets.line.text.strip() != "codex":
            await run.press("j")
        await run.press("space")
        assert screen.query_line.value == "retry agent:codex"
        assert "Retry loop" not in drawn(screen) and "Upload" in drawn(screen)
        await run.press("enter")
        assert screen.query_line.value == "retry" and "Retry loop" in drawn(screen)


async def test_filters_that_hide_all_are_named_and_taken_off(store: Path) -> None:
    async with searching(store, *typed("unusual agent:codex")) as (run, screen):
        assert "The filters hide every hit: agent:codex" in drawn(screen)
        await run.press("down", "backspace")
        assert screen.query_line.value == "unusual" and "Other" in drawn(screen)


async def test_completions_leave_the_counts_in_sight(store: Path) -> None:
    async with searching(store, *typed("retry ag"), size=(80, 24)) as (run, screen):
        below, box = screen.query_one("#search-below"), screen.query_one("_Completions")
        assert box.display and below.display
        assert box.region.y == below.region.bottom and box.region.width == 80
        for archived in (0, 5, 123_456):
            # What has no room beside the order is left out whole.
            screen.model.counts = Counts(
                123_456, 53, archived_hits=archived, all_sessions=52_000, whole=True)
            screen.model.coverage = Coverage(9, 9, True)
            screen._show_counts()
            (line,) = (one for one in drawn(screen).splitlines() if "newest first" in one)
            assert "123,456 hits in 53 sessions of 52,000" in line and "…" not in line
            assert ("  5 more in archived ones  " in line) is (archived == 5)
            assert ("  all indexed  " in line) is (archived != 5)


async def test_a_bad_query_is_named_below_it(store: Path) -> None:
    async with searching(store, *typed("retry foo:bar")) as (_run, screen):
        assert "There is no field `foo:`" in drawn(screen)


async def test_a_search_is_saved_by_a_name_and_found_again(store: Path) -> None:
    async with searching(store, *typed("retry"), "down", "asterisk") as (run, screen):
        assert "Save this search" in run.dialog()
        await run.press(*typed("my pushes"), "enter")
        assert screen.model.keeper.kept.saved == {"my pushes": "retry"}
        assert "my pushes" in drawn(screen)
        await run.press("slash", *["backspace"] * 5, *typed("unusual"), "down", "V")
        assert "my pushes" in run.dialog()
        await run.press("enter")
        assert screen.query_line.value == "retry"
        await run.press("down", "asterisk")
        assert "Remove the saved search" in run.dialog()
        await run.press("enter")
        assert screen.model.keeper.kept.saved == {}


async def test_searches_of_before_come_back(store: Path) -> None:
    async with searching(store, *typed("retry"), "enter") as (run, _screen):
        await run.press("S")
        screen = run.app.screen
        assert isinstance(screen, SearchScreen) and screen.query_line.value == "retry"
        await run.press(*typed("unusual"))
        assert screen.query_line.value == "unusual"
        await run.press(*["backspace"] * 7)
        assert "retry" in drawn(screen)
        await run.press("up")
        assert screen.query_line.value == "retry"


@pytest.mark.parametrize(
    ("size", "parts"),
    [((200, 60), "facets preview"), ((150, 40), "facets preview"), ((120, 40), "facets"),
     ((100, 30), "facets"), ((99, 30), "chips"), ((80, 24), "chips"), ((40, 12), "chips")],
)
@pytest.mark.one_in(3)
async def test_the_columns_fit_the_width(size: tuple[int, int], parts: str, store: Path) -> None:
    async with searching(store, *typed("retry"), size=size) as (_run, screen):
        shown = {
            name for name, widget in (("facets", screen.facets), ("preview", screen.preview),
                                      ("chips", screen.chips)) if widget.display}
        assert shown == set(parts.split())
        assert "Retry loop" in drawn(screen)
        assert all(len(line) <= size[0] for line in drawn(screen).split("\n"))


async def test_chips_narrow_too(store: Path) -> None:
    async with searching(store, *typed("retry"), "tab", "tab", size=(80, 24)) as (run, screen):
        assert screen.chips.has_focus
        await run.press("right", "enter")
        assert screen.query_line.value == "retry agent:codex"
        assert "✓codex" in drawn(screen)


async def test_the_preview_shows_the_transcript_at_the_hit(store: Path) -> None:
    async with searching(store, *typed("warning retry")) as (run, screen):
        shown = "\n".join(line[100:] for line in drawn(screen).split("\n"))
        assert "WARNING retry" in shown and "hit 1 of 2" in shown and "turn 1 of 1" in shown
        await run.press("down", "n")
        shown = "\n".join(line[100:] for line in drawn(screen).split("\n"))
        assert "hit 2 of 2" in shown and "Upload" in shown


async def test_the_mouse_selects_opens_and_narrows(store: Path) -> None:
    async with searching(store, *typed("warning retry")) as (run, screen):
        lines = drawn(screen).split("\n")
        place = [y for y, line in enumerate(lines) if "Upload" in line[30:90]][0] + 2
        await run.pilot.click(offset=(50, place))
        await run.quiet()
        assert screen.model.results.hit is not None
        assert screen.model.results.hit.session_id == TWO
        place = [y for y, line in enumerate(lines) if line.startswith("  codex")][0]
        await run.pilot.click(offset=(5, place))
        await run.quiet()
        assert screen.query_line.value == "warning retry agent:codex"
        await run.pilot.click(offset=(50, 4))
        await run.quiet()
        assert run.app.screen is run.app.main and run.transcript.session is not None
        assert run.transcript.session.id == TWO


async def test_a_session_opens_to_all_of_its_hits(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(20))
    async with searching(path, *typed("answer")) as (run, screen):
        assert "… 15 more in this session" in drawn(screen)
        await run.press("down", "o")
        assert "more in this session" not in drawn(screen)
        assert len(screen.model.results.hits) == 20
        await run.press("o", *["j"] * 9)
        entry = screen.model.results.entry
        assert entry is not None and entry.kind == "more"
        await run.press("enter")
        assert "more in this session" not in drawn(screen)


async def test_hits_go_on_behind_those_that_were_read(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(30))
    async with searching(path, *typed("answer"), "down", "j", "j", "j", "j", "enter") as (run, _):
        assert status(run) == "hit 5 of 30"
        await run.press("n", "n", "n")
        assert status(run) == "hit 8 of 30"


# What only a searcher that is made by hand can do


async def test_the_selection_keeps_its_row_while_more_arrive(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = SessionHits(row(ONE), [hit(f"retry {n}", session=ONE, index=n) for n in range(4)])
    early = SessionHits(row(TWO, "Upload"), [hit("retry", session=TWO)])
    searcher = made(monkeypatch, lambda query, more: [
        update([early], ready=False, done=False), update([late, early])])
    searcher.gate = asyncio.Semaphore(0)
    async with running(store, (120, 24)) as run:
        await run.press("S")
        for key in "retry":
            await run.pilot.press(key)
        screen = run.app.screen
        assert isinstance(screen, SearchScreen)
        await run.pilot.press("down")
        assert screen.model.results.entry is not None
        before = screen.model.results.entry.start - screen.hits.scroll_offset.y
        assert "searching" in drawn(screen)
        searcher.gate.release()
        await run.quiet()
        entry = screen.model.results.entry
        assert entry is not None and entry.start > before
        assert screen.model.results.hit is not None
        assert screen.model.results.hit.session_id == TWO
        assert entry.start - screen.hits.scroll_offset.y == before


async def test_enter_waits_for_the_hits_of_what_is_typed(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server they take a while, and those of the query before are still shown."""
    hits = {"retry": SessionHits(row(ONE), [hit("retry", session=ONE)]),
            "retry now": SessionHits(row(TWO, "Upload"), [hit("retry", session=TWO)])}
    nothing = update([], ready=False, done=False)
    searcher = made(monkeypatch, lambda query, more: [
        nothing, update([hits[query.text]] if query.text in hits else [])])
    async with searching(store, *typed("retry")) as (run, screen):
        searcher.gate = asyncio.Semaphore(0)
        for key in (*typed(" now"), "enter"):
            await run.pilot.press(key)
        assert run.app.screen is screen and screen.model.results.hit is not None
        assert screen.model.results.hit.session_id == ONE
        searcher.gate.release()
        await run.quiet()
        assert not screen.is_attached and run.sessions.selected_id == TWO


async def test_enter_opens_nothing_where_more_is_typed_after_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SessionHits(row(ONE), [hit("retry", session=ONE)])
    searcher = made(monkeypatch, lambda query, more: [
        update([], ready=False, done=False), update([found])])
    searcher.gate = asyncio.Semaphore(0)
    async with searching(store) as (run, screen):
        for key in (*typed("retr"), "enter", "y"):
            await run.pilot.press(key)
        searcher.gate.release()
        await run.quiet()
        assert run.app.screen is screen and screen.model.results.hit is not None


async def test_a_closed_search_leaves_no_widgets(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(monkeypatch, lambda query, more: [update([])])
    kept = []
    async with running(store, (160, 40)) as run:
        for _ in range(3):
            await run.press("S")
            kept.append(ref(run.app.screen.query_one(HitsView)))
            await run.press("escape")
        # The last one is let go with the next message.
        for _ in range(100):
            collect()
            if not any(each() for each in kept[:2]):
                break
            await run.pilot.pause(0.05)
        assert [each() for each in kept[:2]] == [None, None]


async def test_a_closed_search_leaves_nothing_that_was_drawn(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(monkeypatch, lambda query, more: [
        update([SessionHits(row(ONE), [hit("an unusual word", session=ONE)])])])

    def strips() -> list[str]:
        collect()
        return [each.text for each in get_objects() if isinstance(each, Strip)]

    async with running(store, (160, 40)) as run:
        left = []
        for _ in range(5):
            await run.press("S", *"unusual")
            shown = strips()
            assert any("an unusual word" in text for text in shown)
            await run.press("escape", "escape")
            assert run.app.screen is run.app.main
            left.append(strips())
            assert not any("an unusual word" in text for text in left[-1])
        # Nor any blank line, of its containers and scroll bars: a screen has over 40. What
        # the main screen has drawn differs by a pane or so, once.
        assert len(shown) - len(left[-1]) > 40
        assert len(left[-1]) - len(left[0]) < 4 * 8


async def test_what_was_not_searched_is_named(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(query: Query, more: Mapping[str, Any]) -> list[Update]:
        cut = Coverage(3, 10, False, "3 of 10 messages searched; the index is being made")
        return [update([], counts=Counts(0, 0, 5, 1, 7, True), coverage=cut)]

    made(monkeypatch, answer)
    async with searching(store, *typed("retry")) as (_run, screen):
        shown = drawn(screen)
        assert "the index is being made" in shown
        assert "5 hits in archived ones" in shown


async def test_a_search_that_fails_says_so(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from store.errors import StoreError

    def answer(query: Query, more: Mapping[str, Any]) -> list[Update]:
        raise StoreError("the store is gone")

    made(monkeypatch, answer)
    async with searching(store, *typed("retry")) as (_run, screen):
        assert "the store is gone" in drawn(screen)


@pytest.mark.long
async def test_a_saved_search_is_a_view_of_the_session_list(store: Path) -> None:
    from tui.sessions.filter_line import FilterInput
    from tui.sessions.header import ListTitle

    async with searching(store, *typed("agent:codex"), "down", "asterisk") as (run, screen):
        await run.press(*typed("by codex"), "enter", "escape", "escape")
        assert run.app.screen is run.app.main
        title, line = run.sessions.query_one(ListTitle), run.sessions.query_one(FilterInput)
        await run.press("1", "V", "V")
        assert title.render_line(0).text.startswith(" All sessions  3") and line.value == ""
        await run.press("V")
        assert title.render_line(0).text.startswith(" by codex  1 of 3")
        assert line.value == "agent:codex"
        await run.press("V")
        assert title.render_line(0).text.startswith(" Sessions  3") and line.value == ""
        await run.press("V", "V", "V", "backspace")
        assert title.render_line(0).text.startswith(" Sessions  3") and line.value == ""


@pytest.mark.long
async def test_hostile_sessions_are_harmless_here_too(tmp_path: Path) -> None:
    path = hostile_store(tmp_path / "s.db")
    async with running(path, (170, 50)) as run:
        await run.press("S", *"a", "down", "end", "g", "tab", "j", "j", "space")
        screen = run.app.screen
        assert isinstance(screen, SearchScreen) and screen.model.results.hits
        screen.model.keeper.save("a\x1b]0;EVIL\x07b", "\x1b[31mred")
        screen.model.keeper.used("\x1b]0;EVIL\x07 x")
        screen.ask("")
        for query in (
            "", "e", "\x1b]0;EVIL\x07", '"\x1b[31m', "nothing-of-this\x9b agent:x", "re:/(/",
        ):
            screen.ask(query)
            await run.quiet()
            assert run.app.guard.caught == [], query
            shown = drawn(run.app.screen)
            assert not controls(shown) and not NEVER.search(shown), query
        screen.ask("e")
        await run.quiet()
        await run.press("right", "enter")
        assert run.app.screen is run.app.main and run.app.guard.caught == []


async def test_it_reads_without_colours_and_in_ascii(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("LC_ALL", "C")
    glyphs_module.glyphs.cache_clear()
    try:
        keys = (*typed("retry"), "down", "tab", "j", "space")
        async with searching(store, *keys, size=(120, 40)) as (_run, screen):
            shown = drawn(screen)
            assert [letter for letter in shown if not letter.isascii()] == []
            assert "|codex" in shown or "|claude-code" in shown
    finally:
        monkeypatch.undo()
        glyphs_module.glyphs.cache_clear()


async def test_the_best_hits_come_first_on_a_key(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [SessionHits(row(ONE), [hit("retry", session=ONE)])]
    searcher = made(monkeypatch, lambda query, more: [update(found)])
    async with searching(store, *typed("retry"), "down", "s") as (run, _screen):
        assert searcher.asked[-1][1]["order"] == "best"
        assert run.last == "The best hits first"
        await run.press("s")
        assert searcher.asked[-1][1]["order"] == "newest"


async def test_going_back_reads_the_hits_that_were_folded(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(9), session_id=ONE)
    late = [Said("user", [text("answer me")], at=START - 86_400_000)]
    make_store(path, late, session_id=TWO, session=session("Late", 1500))
    async with searching(path, *typed("answer"), "down", "G", "enter") as (run, _screen):
        assert status(run) == "hit 10 of 10"
        await run.press("N")
        assert status(run) == "hit 9 of 10"
        assert run.transcript.session is not None and run.transcript.session.id == ONE
