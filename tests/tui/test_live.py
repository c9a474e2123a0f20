"""Each kind of write by another process, in each form of a store; following and its end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from store.config import NotifySettings
from store.engine.changes import Moved, newest, since
from store.engine.database import open_database
from store.queries import activities
from store.queries.listing import ListQuery
from store.system import processes
from tests.store.talks import Talk, make_store
from tests.tui.live import FORMS, check, live
from tests.tui.live_writer import CHANGES
from tui.kit.glyphs import glyphs
from tui.live.notifying import Notifier, sequence
from tui.sessions.order import REPORTED_AFTER
from tui.start import problems
from tui.transcript.pane import TranscriptPane


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.one_in(3)
async def test_every_kind_of_write_shows(form: str, tmp_path: Path) -> None:
    async with live(tmp_path / "s.db", form) as shown:
        shown.app.main.panes.focus("transcript")
        for number, change in enumerate(CHANGES, start=11):
            shown.write((change.__name__, number))
            await shown.see()
            check(shown, tmp_path / "s.db")


async def test_what_stands_first_moves_when_it_turns_out_to_be_older(tmp_path: Path) -> None:
    """As when its file was cut off, and is read again."""
    path = tmp_path / "s.db"
    async with live(path) as shown:
        shown.app.main.panes.focus("transcript")
        connection = sqlite3.connect(path)
        ids = [row[0] for row in connection.execute("SELECT id FROM chat_sessions ORDER BY id")]
        connection.close()
        first = shown.sessions.view.model.rowids[0]
        shown.write(("step_back", 10_000 + ids.index(shown.session) - 10_000 % len(ids)))
        await shown.see()
        check(shown, path)
        assert shown.sessions.view.model.rowids[-1] == first


async def test_the_end_is_followed_until_the_user_moves_up(tmp_path: Path) -> None:
    async with live(tmp_path / "s.db", turns=12) as shown:
        pane = shown.transcript
        shown.app.main.panes.focus("transcript")
        shown.write(("activity", 3), ("new_message", 31))
        await shown.see()
        assert pane.view.at_end
        assert shown.lines()[-1].strip()
        await shown.pilot.press(*"kkkkkk")
        await shown.quiet()
        assert not pane.view.at_end
        before = shown.lines()
        shown.write(("new_message", 34), ("new_message", 37), ("late_message", 30))
        await shown.see()
        assert shown.lines() == before
        assert pane.new_below.count() > 0
        (line,) = pane.headings.status._lines
        assert f"{pane.new_below.count()} new below" in line.text
        await shown.pilot.press("G")
        await shown.quiet()
        assert pane.view.at_end and pane.new_below.count() == 0


def said_beside(pane: TranscriptPane, part: int) -> list[str]:
    block = pane.document.block(part)
    assert block is not None
    return [words.strip() for line in block.lines for text, _ink in line.right
            for words in [text.lstrip("○ " + "".join(glyphs().spinner))] if words.strip()]


async def test_a_process_that_died_stops_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = {1: True}
    monkeypatch.setattr(processes, "is_alive", lambda stored: lives.get(stored.get("pid")))
    async with live(tmp_path / "s.db") as shown:
        shown.app.main.panes.focus("transcript")
        shown.write(("run", 1))
        await shown.see()
        pane = shown.transcript
        assert "● running" in pane.headings.header._lines[0].right[0][0]
        assert "following" in pane.headings.status._lines[0].text
        (part,) = pane.running.parts()
        assert "running" in said_beside(pane, part)
        inspector = shown.app.main.inspector
        assert inspector is not None

        async def inspected() -> str:
            await shown.quiet()
            await shown.app.main.feed.show()
            await inspector.settled()
            assert inspector.subject is not None and inspector.subject.call is not None
            return inspector.subject.call.word

        pane.selected.select(part, force=True)
        assert await inspected() == "running"
        lives[1] = False
        shown.app.main.look_at_open()
        await shown.quiet()
        # A guess is marked, as in the list.
        assert "~interrupted" in pane.headings.header._lines[0].right[0][0]
        assert "interrupted" in {row.activity for row in shown.sessions.view.rows.values()}
        assert said_beside(pane, part) == ["no result"]
        pane.running.tick()
        assert not pane.running.parts() and not pane.running.is_ticking
        assert await inspected() == "no result"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.one_in(3)
async def test_a_search_goes_on_in_what_is_written(form: str, tmp_path: Path) -> None:
    async with live(tmp_path / "s.db", form) as shown:
        pane = shown.transcript
        shown.app.main.panes.focus("transcript")
        pane.finder.start("Answer 4")
        await shown.quiet()
        assert pane.shown.search is not None and pane.shown.search.total == 5
        await shown.pilot.press("n")
        await shown.quiet()
        assert pane.shown.search.number == 2
        key = pane.shown.search.key
        shown.write(("late_message", 0))
        await shown.see()
        assert (pane.shown.search.number, pane.shown.search.key) == (2, key)
        assert pane.shown.search.part is not None and (
            pane.document.skeleton.key(pane.shown.search.part) == key)
        pane.finder.start("Words")
        await shown.quiet()
        assert pane.shown.search.part is None and pane.shown.search.done
        before, seen = pane.shown.search.total, list[int]()
        for change in (("new_message", 31), ("new_message", 32), ("late_message", 4),
                       ("delete_message", 0), ("hide", 2), ("rewrite_message", 5),
                       ("change_part", 3), ("new_message", 37)):
            shown.write(change)
            await shown.see()
            check(shown, tmp_path / "s.db")
            seen.append(pane.shown.search.total)
        assert max(seen) > before
        assert pane.shown.search.part is None


async def test_nothing_above_moves_what_is_read(tmp_path: Path) -> None:
    async with live(tmp_path / "s.db", turns=30) as shown:
        shown.app.main.panes.focus("transcript")
        await shown.pilot.press("pageup", "pageup")
        await shown.quiet()
        before = shown.lines()
        shown.write(("late_message", 3), ("delete_message", 0), ("late_message", 6))
        await shown.see()
        assert shown.lines() == before
        check(shown, tmp_path / "s.db")


async def test_the_selected_part_is_inspected_again_when_it_grows(tmp_path: Path) -> None:
    async with live(tmp_path / "s.db") as shown:
        inspector = shown.app.main.inspector
        assert inspector is not None
        shown.write(("new_message", 4))
        await shown.see()
        shown.write(("new_part", 4))
        await shown.see()
        shown.transcript.selected.announce_now()
        await shown.quiet()
        await shown.app.main.feed.show()
        await inspector.settled()
        assert inspector.subject is not None
        row = shown.transcript.document.row(shown.transcript.cursor)
        assert row is not None and inspector.subject.detail.part.id == row.id


async def test_a_replaced_store_and_one_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with live(path) as shown:
        path.rename(tmp_path / "away.db")
        await shown.poll()
        line = shown.app.main.counter.summary(shown.app.main.watcher.poller.health)
        assert line.trouble.startswith("store is gone, shown as of")
        (tmp_path / "away.db").rename(path)
        await shown.see()
        line = shown.app.main.counter.summary(shown.app.main.watcher.poller.health)
        assert line.trouble == ""
        check(shown, path)


async def test_an_order_that_a_store_cannot_give_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, told = tmp_path / "s.db", []
    monkeypatch.setattr(problems, "keep", lambda summary, error: told.append(summary))
    async with live(path) as shown:
        path.rename(tmp_path / "away.db")
        for _ in range(REPORTED_AFTER + 1):
            shown.sessions.order.read_now()
            await shown.quiet()
        assert shown.sessions.order.is_due
        assert told == []
        (tmp_path / "away.db").rename(path)
        shown.write(("new_session", 1))
        await shown.see()
        check(shown, path)
        path.rename(tmp_path / "away.db")
        path.write_text("notes")
        for _ in range(REPORTED_AFTER + 1):
            shown.sessions.order.read_now()
            await shown.quiet()
        assert told == ["The session list could not be read"]
        path.unlink()


def talk_that(tmp_path: Path, state: str) -> tuple[Talk, str]:
    talk = Talk(make_store(tmp_path / "s.db", "own"))
    session = talk.session("Asks")
    talk.message(session)
    talk.call(session, state=state)
    talk.session("Rests")
    return talk, session


@pytest.mark.parametrize(
    ("state", "expected"),
    [("approval-requested", "waiting-approval"), ("input-available", "running"),
     ("output-available", "running"), ("output-denied", "running"), ("rests", "idle")],
)
def test_the_list_guesses_what_nobody_stored(
    state: str, expected: str | None, tmp_path: Path
) -> None:
    talk, session = talk_that(tmp_path, state)
    rows = {row.id: row for row in activities.rows(
        talk.db, [1, 2], (), talk.now + 1000).values()}
    assert rows[session].activity == expected
    assert rows[session].activity_from == "guessed"
    keys = activities.keys(talk.db, ListQuery(sort="activity", group="none"), talk.now + 1000)
    assert len(keys.rowids) == 2
    if expected != "idle":
        assert keys.rowids[0] == rows[session].rowid
    assert activities.keys(
        talk.db, ListQuery(sort="activity"), talk.now + 10**9).rowids[0] == 2


def test_what_the_log_of_changes_tells(tmp_path: Path) -> None:
    db = open_database(tmp_path / "s.db", create=True)

    def log(session: str, message: str | None = None) -> None:
        db.connection.execute(
            "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?,?,0)",
            (session, message))

    assert (newest(db), since(db, 0)) == (0, (0, Moved(vague=True)))
    log("a", "1")
    log("a", "2")
    log("b", "3")
    log("b")
    assert since(db, 0) == (4, Moved(sessions={"a": {"1", "2"}, "b": None}))
    assert since(db, 4) == (4, Moved(vague=True))
    db.connection.execute("DELETE FROM changes WHERE seq < 4")
    assert since(db, 1) == (4, Moved(vague=True))
    assert since(db, 9) == (4, Moved(vague=True))


async def test_a_watched_session_that_ends_is_told_once(tmp_path: Path) -> None:
    talk, session = talk_that(tmp_path, "input-available")
    active = activities.recently_active(talk.db, talk.now)
    notifier = Notifier(None)  # type: ignore[arg-type]
    notifier.settings = NotifySettings()
    assert [row.id for row in active] == [session]
    assert notifier.look(active, session) == []
    assert notifier.look([], None) == ["Asks has finished"]
    assert notifier.look([], None) == []
    assert notifier.look(active, None) == []
    active[0].activity = "waiting-approval"
    assert notifier.look(active, None) == ["Asks needs your approval"]


async def test_a_watched_session_that_waits_at_once_is_told(tmp_path: Path) -> None:
    """Between two looks it may have begun and come to wait."""
    talk, session = talk_that(tmp_path, "approval-requested")
    active = activities.recently_active(talk.db, talk.now)
    notifier = Notifier(None)  # type: ignore[arg-type]
    notifier.settings = NotifySettings()
    assert notifier.look([], session) == []
    assert notifier.look(active, None) == ["Asks needs your approval"]
    active[0].activity = "waiting-input"
    assert notifier.look(active, None) == []
    assert notifier.look([], None) == []


def test_sequences_of_notifications() -> None:
    assert sequence("osc9", "a;b", tmux=False) == "\x1b]9;a,b\x07"
    assert sequence("osc777", "x", tmux=False) == "\x1b]777;notify;backscroll;x\x07"
    assert sequence("osc9", "x", tmux=True) == "\x1bPtmux;\x1b\x1b]9;x\x07\x1b\\"
