"""The whole app on a store that another process writes to; the poll is driven by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from store.config import Settings
from store.engine.database import Database, open_database
from store.queries import activities, transcript
from store.queries.counting import counts
from store.queries.listing import ListRow
from store.system.records import fields
from tests.store.talks import Talk, make_store
from tests.tui.workers import workers_done
from tui.app import BackscrollApp
from tui.sessions.model import build_model
from tui.sessions.pane import SessionsPane
from tui.state.library import Library
from tui.transcript import search as search_text
from tui.transcript.document import Document
from tui.transcript.measures import estimates
from tui.transcript.pane import TranscriptPane
from tui.transcript.skeleton import Skeleton, build

NOW = 1_800_000_000_000
FORMS = ("own", "contract", "grida")


def talked(path: Path, form: str, turns: int = 6) -> str:
    """Make a store with some sessions; return the id of the newest, which has turns."""
    talk = Talk(make_store(path, form))
    for number in range(3):
        other = talk.session(f"Other {number}", workspace_root=f"/w/{number}")
        talk.message(other, text="hello")
        talk.now += 1000
    session = talk.session("Open", workspace_root="/w/0")
    for turn in range(turns):
        talk.message(session, text=f"Question {turn}")
        talk.message(session, "assistant", parts=[
            {"type": "reasoning", "text": "hm " * turn},
            {"type": "text", "text": f"Answer {turn}. " * (turn + 1)},
            {"type": "tool-Bash", "toolCallId": f"t{turn}", "state": "output-available",
             "input": {"command": f"run {turn}"}, "output": "out\n" * turn},
        ])
    talk.db.connection.execute(
        "UPDATE chat_sessions SET updated_at = ? WHERE id = ?", (talk.now, session))
    talk.db.close()
    return session


@dataclass
class Live:
    app: BackscrollApp
    pilot: Pilot[None]
    writer: subprocess.Popen[str]
    session: str

    @property
    def transcript(self) -> TranscriptPane:
        assert self.app.main.transcript is not None
        return self.app.main.transcript

    @property
    def sessions(self) -> SessionsPane:
        return self.app.main.sessions

    def write(self, *changes: tuple[str, int]) -> None:
        """Let the other process write; returns when it has."""
        assert self.writer.stdin is not None and self.writer.stdout is not None
        self.writer.stdin.write(json.dumps(changes) + "\n")
        self.writer.stdin.flush()
        assert self.writer.stdout.readline() == "done\n"

    async def quiet(self) -> None:
        await self.pilot.pause()
        await workers_done(self.app)
        await self.pilot.pause()

    async def poll(self) -> None:
        """Poll once, and let what it noticed be shown; the slow readings stay due."""
        self.app.main.watcher.poller.poll(file=True)
        await self.quiet()
        await self.app.main.watcher.follow()
        await self.quiet()

    async def see(self) -> None:
        """Poll, and have all slower readings done at once too."""
        await self.poll()
        while (self.transcript.follower.whole_is_due or self.sessions.order.is_due
               or self.sessions.turns.is_due):
            if self.sessions.turns.is_due:
                self.sessions.turns.count_now()
            if self.transcript.follower.whole_is_due:
                self.transcript.follower.check_whole_now()
            if self.sessions.order.is_due:
                self.sessions.order.read_now()
            await self.quiet()
        view = self.sessions.view
        for _ in range(MOST_PAUSES):
            # Rows are asked for when they are drawn.
            if set(view.seen_rowids()) <= set(view.rows):
                break
            await self.quiet()

    def lines(self) -> list[str]:
        """The text of the transcript on the screen."""
        return painted(self.transcript.document, self.transcript)


MOST_PAUSES = 1_000
"""Turns of the loop after which what is not read will not be."""


@asynccontextmanager
async def live(
    path: Path, form: str = "own", *, turns: int = 6, size: tuple[int, int] = (150, 40)
) -> AsyncIterator[Live]:
    session = talked(path, form, turns)
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.tui.live_writer", str(path), session],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2])
    library = Library.open(path, "test", clock=lambda: NOW)
    app = BackscrollApp(library, Settings(), poll_ms=0)
    try:
        async with app.run_test(size=size) as pilot:
            shown = Live(app, pilot, writer, session)
            await shown.quiet()
            await shown.quiet()
            app.main.opener.open(session)
            await shown.quiet()
            await shown.quiet()
            assert shown.transcript.session is not None
            yield shown
    finally:
        assert writer.stdin is not None and writer.stdout is not None
        writer.stdin.close()
        writer.stdout.close()
        writer.wait(120)


def painted(document: Document, pane: TranscriptPane) -> list[str]:
    found = []
    for row in pane.view.rows():
        block = document.block(row.part)
        assert block is not None, "a row on the screen is not there"
        found.append(block.lines[row.line].text if row.line < len(block.lines) else "?")
    return found


def facts_of(skeleton: Skeleton) -> dict[str, object]:
    names = ("message_ids", "roles", "origins", "flags", "created", "hidden_at", "first",
             "message", "index", "sizes", "states", "turns", "errors")
    facts: dict[str, object] = {name: list(getattr(skeleton, name)) for name in names}
    return facts | {"types": [skeleton.type_of(part) for part in range(len(skeleton))]}


def fresh_document(db: Database, session: str, like: Document) -> Document:
    """Read a session from its file as if it had just been opened."""
    outlines = transcript.outline_page(db, session, None, 100_000)
    skeleton = build(outlines)
    document = Document(like.setting)
    document.folds, document.show_hidden = like.folds, like.show_hidden
    document.turned_runs = like.turned_runs
    document.use(skeleton, estimates(skeleton, like.setting), complete=True, at_start=True)
    spans = [(name, -1, 10_000) for name in skeleton.message_ids]
    document.put(*transcript.rows_of(db, spans))
    return document


def check(shown: Live, path: Path) -> None:
    """Compare what the panes hold with a fresh read of the file."""
    db = open_database(path, write=False)
    try:
        _check_transcript(shown, db)
        _check_list(shown, db)
    finally:
        db.close()


def _check_transcript(shown: Live, db: Database) -> None:
    pane = shown.transcript
    held = pane.document
    fresh = fresh_document(db, shown.session, held)
    assert facts_of(held.skeleton) == facts_of(fresh.skeleton)
    assert len(held.heights) == len(held)
    assert held.heights.total == sum(held.heights[part] for part in range(len(held)))
    for part in range(len(held)):
        row, message = held.row(part), held.message_row(part)
        assert row is None or row == fresh.row(part)
        assert message is None or message == fresh.message_row(part)
        if held.has(part):
            one, other = held.block(part), fresh.block(part)
            assert one is not None and other is not None
            assert [line.text for line in one.lines] == [line.text for line in other.lines], (
                part, held.around(part), fresh.around(part), [line.text for line in one.lines],
                [line.text for line in other.lines])
    assert painted(held, pane) == painted(fresh, pane)
    assert 0 <= pane.cursor < max(1, len(held))
    _check_search(shown, db, fresh)
    session = pane.session
    assert session is not None
    (title,) = db.connection.execute(
        f"SELECT {db.form.title('s')} FROM chat_sessions s WHERE s.id = ?",
        (shown.session,)).fetchall()[0]
    assert session.title == title


def _check_search(shown: Live, db: Database, fresh: Document) -> None:
    search = shown.transcript.shown.search
    if search is None:
        return
    found = search_text.find(db, fresh.skeleton.message_ids, search.needle, search.pattern)
    again = search_text.Search(search.needle, search.pattern)
    again.add(fresh.skeleton, range(len(fresh.skeleton.message_ids)), found)
    assert search.done
    assert (list(search.parts), list(search.counts), search.total) == (
        list(again.parts), list(again.counts), again.total)
    if search.part is not None:
        assert search.part in search.parts or fresh.skeleton.key(search.part) == search.key


def _check_list(shown: Live, db: Database) -> None:
    pane = shown.sessions
    keys = activities.keys(db, pane.list_query, NOW)
    fresh = build_model(keys, pane.contents.folds, headed=pane.list_query.group != "none")
    assert list(pane.view.model.rowids) == list(fresh.rowids)
    assert pane.view.model.groups == fresh.groups
    rows = activities.rows(db, list(fresh.rowids), (), NOW)
    held = {rowid: row for rowid, row in pane.view.rows.items() if rowid in rows}
    assert {rowid: _without_turns(row) for rowid, row in held.items()} == {
        rowid: _without_turns(rows[rowid]) for rowid in held}
    assert set(pane.view.seen_rowids()) <= set(held)
    turns = {row.id: row.turns for row in held.values() if row.turns is not None}
    counted = counts(db, list(turns))
    assert turns == {name: counted[name].turns for name in turns}


def _without_turns(row: ListRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in fields(ListRow) if name != "turns"}
