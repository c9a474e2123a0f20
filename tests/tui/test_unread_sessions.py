"""Sessions that are listed before their file was read: what the list and the transcript show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from store.config import Settings as Config
from store.engine.database import open_database
from store.sync.engine import Sync
from store.sync.progress import Progress
from store.sync.settings import Settings
from tests.sources.samples import FIRST
from tests.store.test_sync_outlines import listed_only
from tests.tui.stores import put, settled, some
from tui.app import BackscrollApp
from tui.live.syncing import progress_words
from tui.sessions.columns import COLUMNS, UNREAD
from tui.state.library import Library

SAMPLE = FIRST["pi"]


async def test_a_session_that_is_not_read_yet_says_so_and_is_asked_for_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "library.db"
    database = open_database(path, create=True)
    listed_only(database, SAMPLE)
    asked: list[str] = []
    monkeypatch.setattr(BackscrollApp, "read_first", lambda self, name: asked.append(name))
    monkeypatch.setattr(BackscrollApp, "why_unread", lambda self: None)
    app = BackscrollApp(Library.open(path, "library"), Config(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        pane.turns.count_now()
        await settled(app, pilot)
        rows = pane.view.rows.values()
        assert len(rows) == 3 and {COLUMNS[0].text(row) for row in rows} == {UNREAD}
        chosen = pane.selection.id
        assert chosen is not None
        app.main.opener.open(chosen)
        await settled(app, pilot)
        assert "Reading this session" in status(app) and asked[-1] == chosen
        Sync(database, Settings(helpers=0)).run([SAMPLE.target()])
        app.main.watcher.poller.poll(file=True)
        await settled(app, pilot)
        await app.main.watcher.follow()
        await settled(app, pilot)
        pane.turns.count_now()
        await settled(app, pilot)
        assert "part " in status(app)
        rows = pane.view.rows.values()
        assert {COLUMNS[0].text(row) for row in rows} == {"1 turn", "2 turns", "3 turns"}
    database.close()


async def test_where_nothing_reads_it_says_what_does(tmp_path: Path) -> None:
    path = tmp_path / "a store.db"
    database = open_database(path, create=True)
    listed_only(database, SAMPLE)
    database.close()
    app = BackscrollApp(Library.open(path, "a store.db"), Config(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        assert pane.selection.id is not None
        app.main.opener.open(pane.selection.id)
        await settled(app, pilot)
        way_out = f"Not read yet; run: backscroll sync --store '{path}'"
        assert way_out[:40] in status(app)
        assert app.main.transcript is not None
        fork = app.commands.by_id["transcript.fork"]
        assert fork.available(app.main.transcript) == way_out
        app._reads_sessions = True
        assert "read next" in (fork.available(app.main.transcript) or "")


async def test_a_session_without_messages_is_none_that_is_read_next(tmp_path: Path) -> None:
    app = BackscrollApp(
        Library.open(put(tmp_path / "s.db", some(1)), "s.db"), Config(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        assert pane.selection.id is not None
        app.main.opener.open(pane.selection.id)
        await settled(app, pilot)
        assert app.main.transcript is not None
        fork = app.commands.by_id["transcript.fork"]
        assert fork.available(app.main.transcript) == "This session has no messages"
        assert "This session has no messages" in status(app)


def status(app: BackscrollApp) -> str:
    """Return the line below the transcript."""
    pane = app.main.transcript
    assert pane is not None
    line = pane.headings.status
    return "\n".join(strip.text for strip in line.render_lines(line.size.region))


def test_a_sync_says_that_it_lists_before_it_reads() -> None:
    assert progress_words(Progress(files_listed=40, files_total=2000)) == (
        "listing 40 of 2,000 files"
    )
    reading = Progress(files_listed=2000, files_done=3, files_total=2000)
    assert progress_words(reading) == "syncing 3 of 2,000 files"
    # Helpers read already; how long that takes is not known from those few.
    listing = replace(reading, files_listed=400, listing=True, eta_s=3281.0)
    assert progress_words(listing) == "listing 400 of 2,000 files"


@pytest.mark.parametrize(("seconds", "words"), [
    (0.4, ""), (12.4, ", 12 s left"), (89.0, ", 89 s left"), (3281.0, ", 55 min left")])
def test_a_sync_says_how_long_it_takes(seconds: float, words: str) -> None:
    reading = Progress(files_done=3, files_total=2000, eta_s=seconds)
    assert progress_words(reading) == f"syncing 3 of 2,000 files{words}"
