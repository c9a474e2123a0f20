"""The list's filter in a pane: fields, what is said in sessions, archived ones, problems."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

from store.engine.database import open_database
from store.errors import StoreError
from store.language.query import Query
from store.search import running, searching
from tests.store import making
from tests.tui.stores import NOW, Told, browser, put, settled
from tui.app import BackscrollApp
from tui.query.line import QueryNotes
from tui.sessions.header import ListTitle
from tui.sessions.loader import ListLoader
from tui.sessions.pane import SessionsPane

SESSIONS = [
    Told("ses_a", "Retry loop", "/w/api", age=5, tokens=5_000),
    Told("ses_b", "Dark theme", "/w/site", age=4, source="codex"),
    Told("ses_c", "Old notes", "/w/notes", age=9000, archived=True),
    Told("ses_d", "Broken build", "/w/api", age=9000, source="codex", activity="error"),
]


def store(folder: Path) -> Path:
    path = put(folder / "s.db", SESSIONS)
    connection = open_database(path).connection
    said = {"ses_a": "nothing much", "ses_b": "a pelican on a bicycle", "ses_c": "pelicans"}
    for id, text in said.items():
        making.add_message(connection, id, f"msg_{id}", at=NOW)
        making.add_part(connection, id, f"msg_{id}", f"prt_{id}", 0,
                        data={"type": "text", "text": text})
    making.add_message(connection, "ses_d", "msg_ses_d", at=NOW, role="assistant")
    making.add_part(
        connection, "ses_d", "msg_ses_d", "prt_ses_d", 0, type="tool-Bash", tool_state="done",
        data_json=json.dumps({"type": "tool-Bash", "toolCallId": "t", "state": "output-available",
                              "input": {"command": "make"}, "output": "ok"}))
    connection.close()
    return path


def found(pane: SessionsPane) -> str:
    rows = [pane.view.rows[rowid] for rowid in pane.view.model.rowids]
    return "".join(sorted(row.id[-1] for row in rows))


async def filtered(
    app: BackscrollApp, pilot: Pilot[None], text: str, *, leave: bool = True
) -> SessionsPane:
    await pilot.press("slash")
    app.main.sessions.query_one("#filter").value = text  # type: ignore[attr-defined]
    if leave:
        await pilot.press("enter")
    return await settled(app, pilot)


async def test_what_a_query_leaves_in_the_list(tmp_path: Path) -> None:
    app = browser(store(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        for text, left in (
            ("agent:codex", "bd"), ("agent:codex workspace:api", "d"), ("-agent:codex", "a"),
            ("pelican", "b"), ("pelican agent:claude", ""), ("pelican is:archived", "c"),
            ("is:archived", "c"), ("-is:archived", "abd"), ("tool:bash", "d"),
            ("tool:bash -agent:codex", ""), ("is:error", "d"), ("is:error tool:bash", ""),
            ("in:prompt nothing", "a"), ("retry -pelican", "a"), ("role:assistant", "d"),
            ("tokens:>1k", "a"), ("after:1d", "ab"), ("agent:", "abd"), ("", "abd"),
        ):
            pane = await filtered(app, pilot, text)
            assert (text, found(pane)) == (text, left)
            assert not pane.filter.is_searching


async def test_titles_come_at_once_and_what_was_said_stays_when_the_store_changes(
    tmp_path: Path,
) -> None:
    path = store(tmp_path)
    app = browser(path)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await filtered(app, pilot, "pelican")
        assert found(pane) == "b"
        put(path, [Told("ses_e", "Pelican again", "/w/api", age=0)])
        shown: list[str] = []
        show = pane.view.show

        def recorded(model: object, *rest: object) -> None:
            shown.append("".join(sorted(str(rowid) for rowid in model.rowids)))  # type: ignore[attr-defined]
            show(model, *rest)  # type: ignore[arg-type]

        pane.view.show = recorded  # type: ignore[method-assign, assignment]
        pane.store_changed()
        await settled(app, pilot)
        assert set(shown) == {"25"} and found(pane) == "be"


async def test_an_empty_list_says_that_it_still_searches(tmp_path: Path) -> None:
    app = browser(store(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        words: list[list[str]] = []
        headers: list[str] = []
        shown = pane.contents._shown

        def recorded(looked_at: int | None) -> None:
            shown(looked_at)
            words.append(pane.view.when_empty)
            headers.append(pane.query_one(ListTitle).tally.words())

        pane.contents._shown = recorded
        await filtered(app, pilot, "zeppelin")
        assert (headers[0], headers[-1]) == ("0 of 3  searching…", "0 of 3")
        assert words[0][0] == "No title matches “zeppelin” yet"
        assert words[-1] == ["No session matches “zeppelin”",
                             "3 are hidden by the filter; esc clears it"]
        assert "0 of 3" in pane.query_one(ListTitle).render_line(0).text


async def test_a_list_says_that_not_all_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    monkeypatch.setattr(
        searching, "sessions_with_hits", partial(running.sessions_with_hits, seconds=0.0))
    app = browser(store(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await filtered(app, pilot, "zeppelin")
        assert pane.query_one(ListTitle).tally.words() == "0 of 3  not all searched"
        assert pane.view.when_empty[1] == "Not everything was searched: there is no index yet"


async def test_a_search_that_failed_is_not_shown_as_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = browser(store(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        said, fails = ListLoader.said, True

        async def failing(
            loader: ListLoader, query: Query
        ) -> AsyncGenerator[tuple[set[int], str], None]:
            if fails:
                raise StoreError("the store is away")
            async for step in said(loader, query):
                yield step

        monkeypatch.setattr(ListLoader, "said", failing)
        await filtered(app, pilot, "pelican")
        assert pane.query_one(ListTitle).tally.words() == "0 of 3  not all searched"
        assert pane.view.when_empty[:2] == [
            "No session matches “pelican”", "Not everything was searched: the store is away"]
        fails = False
        pane.store_changed()
        await settled(app, pilot)
        assert found(pane) == "b"
        assert pane.query_one(ListTitle).tally.words() == "1 of 3"


async def test_fields_are_offered_and_mistakes_are_said(tmp_path: Path) -> None:
    app = browser(store(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("slash", *"age", "tab")
        pane = await settled(app, pilot)
        await pilot.press("c", "o")
        notes = pane.query_one(QueryNotes)
        assert [each.label for each in notes.offered] == ["codex", "claude-code"]
        assert {each.help for each in notes.offered} == {"2 sessions"}
        await pilot.press("tab")
        await settled(app, pilot)
        assert (pane.filter_text, found(pane)) == ("agent:codex ", "bd")
        await filtered(app, pilot, "agnt:codex", leave=False)
        assert notes.size.height > 1 and "no field `agnt:`" in notes.shown_problems[0].message
        await pilot.press("escape")
        await settled(app, pilot)
        assert (pane.filter_text, notes.size.height, found(pane)) == ("", 0, "abd")
        assert pane.view.has_focus


async def test_down_in_the_filter_moves_the_list(tmp_path: Path) -> None:
    app = browser(store(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("slash", *"api")
        pane = await settled(app, pilot)
        assert pane.selected_id == "ses_a"
        await pilot.press("down")
        await settled(app, pilot)
        assert pane.filter_has_focus and pane.selected_id == "ses_d"
        await pilot.press("up")
        assert pane.selected_id == "ses_a"


async def test_up_in_an_empty_filter_brings_back_earlier_ones(tmp_path: Path) -> None:
    app = browser(store(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await filtered(app, pilot, "agent:codex")
        await filtered(app, pilot, "retry")
        await pilot.press("escape", "slash", "up")
        pane = await settled(app, pilot)
        assert (pane.filter_text, found(pane)) == ("retry", "a")
        await pilot.press("up")
        await settled(app, pilot)
        assert (pane.filter_text, found(pane)) == ("agent:codex", "bd")
