from __future__ import annotations

from pathlib import Path

import pytest

from store.config import Settings
from store.queries.listing import ListQuery
from store.queries.summary import Totals
from store.sync.process import Standby
from store.sync.progress import Summary
from store.system.locations import config_path
from tests.tui.stores import NOW, Told, browser, put, settled
from tui.app import BackscrollApp
from tui.kit.text import cells
from tui.sessions.empty import empty_words
from tui.sessions.header import ListTitle
from tui.sessions.header_lines import Tally
from tui.state.library import Library


@pytest.mark.parametrize(
    ("query", "filter_text", "matched_of", "store", "reads", "words"),
    [
        (ListQuery(), "", 0, Totals(0, 0, 0, None, None), "",
         ["There are no sessions in this store"]),
        (ListQuery(), "", 0, Totals(0, 0, 0, None, None), "your agents' sessions",
         ["Reading your agents' sessions…", "Sessions appear here as they are read"]),
        (ListQuery(), "", 0, Totals(2, 2, 1, 5, None), "",
         ["No active session; 2 archived", "V shows them"]),
        (ListQuery(shelf="archived"), "", 0, Totals(2, 0, 1, 5, 5), "",
         ["No session is archived", "V shows the active ones"]),
        (ListQuery(workspace="/w/x"), "", 0, Totals(1, 0, 1, 5, 5), "",
         ["No sessions below /w/x", "The store has 1 session of other folders; "
          "W shows them"]),
        (ListQuery(), "zebra", 1200, Totals(1200, 0, 1, 5, 5), "",
         ["No session matches “zebra”", "1,200 are hidden by the filter; esc clears it"]),
    ],
)
def test_each_empty_list_says_why(
    query: ListQuery, filter_text: str, matched_of: int, store: Totals, reads: str,
    words: list[str],
) -> None:
    assert empty_words(query, filter_text, matched_of, store, reads=reads) == words


async def test_it_is_read_whole_on_a_narrow_list(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", [Told("ses_a", workspace="/w/api")])
    library = Library.open(path, "test", clock=lambda: NOW)
    library.workspace = "/w/other"
    app = BackscrollApp(library, Settings(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        drawn = [pane.view.render_line(y).text.strip() for y in range(8)]
        assert drawn[1] == "No sessions below /w/other"
        assert " ".join(drawn[2:]).strip().endswith("W shows them")


async def test_what_is_read_is_named_until_nothing_more_is_read(tmp_path: Path) -> None:
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text("[sources]\nsync_on_start = false\n")
    library = Library.open(put(tmp_path / "s.db", []), "library", clock=lambda: NOW)
    library.sync_targets = ()
    app = BackscrollApp(library, Settings(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        assert app.main.sessions.view.when_empty[0] == "Reading your agents' sessions…"
        await app.workers.wait_for_complete()
        pane = await settled(app, pilot)
        assert pane.view.when_empty == ["There are no sessions in this store"]
        app._syncing._heed(Standby())
        await settled(app, pilot)
        assert pane.view.when_empty == [
            "There are no sessions in this store",
            "Another backscroll fills it; sessions appear here as they are read"]
        app._syncing._heed(Summary())
        await settled(app, pilot)
        assert pane.view.when_empty == ["There are no sessions in this store"]


async def test_archived_ones_are_not_called_missing(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", [Told("ses_a", archived=True)]))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        assert pane.view.render_line(1).text.strip() == "No active session; 1 archived"


async def test_a_session_without_messages_says_so(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", [Told("ses_a")]))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        assert app.main.transcript is not None
        status = app.main.transcript.headings.status.render_line(0).text
        assert status.strip().startswith("This session has no messages")


@pytest.mark.parametrize("width", [24, 30, 36, 60])
async def test_the_tally_is_never_cut(width: int, tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", [Told("ses_a")]))
    async with app.run_test(size=(width, 20)) as pilot:
        await settled(app, pilot)
        title = app.main.sessions.query_one(ListTitle)
        title.tally = Tally(0, 90_000, None, 0, filtered=True)
        drawn = title.render_line(0).text
        assert " 0 of 90,000 " in drawn
        assert cells(drawn) == width
