from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from store.engine import transactions
from store.engine.database import open_database
from store.errors import Refused
from store.store import Store
from tests.tui.stores import Told, put, some
from tests.tui.verbs_app import Running, query, running
from tui.sessions.header import ListTitle
from tui.verbs import doing

FIVE = [Told(f"ses_{name}", f"Session {name}", "/w/p", age=n) for n, name in enumerate("abcde")]


def order(run: Running) -> list[str]:
    view = run.sessions.view
    return [view.rows[rowid].id[-1] for rowid in view.model.rowids]


def archived(path: Path) -> str:
    rows = query(path, "SELECT id FROM chat_sessions WHERE archived_at IS NOT NULL ORDER BY id")
    return "".join(row[0][-1] for row in rows)


async def test_archive_goes_to_the_neighbour_and_undo_comes_back(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", FIVE)
    updated = query(path, "SELECT id, updated_at FROM chat_sessions ORDER BY id")
    async with running(path) as run:
        await run.press("j", "j", "a")
        assert run.last == "Archived “Session c” · U undoes"
        assert order(run) == list("abde")
        assert run.sessions.selected_id == "ses_d"
        await run.press("G", "a")
        assert order(run) == list("abd")
        assert run.sessions.selected_id == "ses_d"
        assert archived(path) == "ce"
        await run.press("U")
        assert run.last == "Undone: archived 1 session · ctrl+r redoes"
        assert run.sessions.selected_id == "ses_e"
        await run.press("U")
        assert order(run) == list("abcde")
        assert run.sessions.selected_id == "ses_c"
        await run.press("U")
        assert run.last == "There is nothing to undo"
    assert query(path, "SELECT id, updated_at FROM chat_sessions ORDER BY id") == updated


def held_back() -> tuple[asyncio.Event, Callable[..., Awaitable[Any]]]:
    """Return what lets writes go on, and a ``Store.write`` that waits for it."""
    free, real = asyncio.Event(), Store.write

    async def write(store: Store, *args: Any, **kwargs: Any) -> Any:
        await free.wait()
        return await real(store, *args, **kwargs)

    return free, write


async def test_a_verb_that_waits_for_the_store_says_so_and_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "s.db", FIVE)
    free, write = held_back()
    monkeypatch.setattr(doing, "BUSY_AFTER_S", 0.001)
    async with running(path) as run:
        monkeypatch.setattr(Store, "write", write)
        told = asyncio.Event()
        notify = run.app.notify

        def heard(message: str, **more: Any) -> None:
            notify(message, **more)
            told.set()

        monkeypatch.setattr(run.app, "notify", heard)
        pressed = asyncio.create_task(run.pilot.press("a"))
        await told.wait()
        assert run.told == [doing.BUSY] and archived(path) == ""
        free.set()
        await pressed
        await run.quiet()
        assert run.told == [doing.BUSY, "Archived “Session a” · U undoes"]
    assert archived(path) == "a"


async def test_a_verb_waits_longer_than_the_store_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "s.db", FIVE)
    real, tries = Store.write, list[str]()

    async def write(store: Store, *args: Any, **kwargs: Any) -> Any:
        tries.append("")
        if len(tries) > 2:
            return await real(store, *args, **kwargs)
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise Refused("it is locked") from busy

    async with running(path) as run:
        monkeypatch.setattr(Store, "write", write)
        await run.press("a")
        assert run.last == "Archived “Session a” · U undoes" and len(tries) == 3
        tries.clear()
        monkeypatch.setattr(transactions, "VERB_PATIENCE_S", -1)
        await run.press("a")
        assert run.last == "It is locked" and len(tries) == 1
    assert archived(path) == "a"


async def test_keys_go_on_while_a_verb_waits_for_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "s.db", FIVE)
    free, write = held_back()
    monkeypatch.setattr(doing, "BUSY_AFTER_S", 0.001)
    async with running(path) as run:
        monkeypatch.setattr(Store, "write", write)
        await run.pilot.press("a", "j", "j")
        assert run.sessions.view.cursor == 2 and archived(path) == ""
        free.set()
        await run.quiet()
        while archived(path) == "":
            await run.quiet()
        assert run.told == [doing.BUSY, "Archived “Session a” · U undoes"]
    assert archived(path) == "a"


async def test_the_cursor_stays_where_it_was_moved_while_a_verb_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "s.db", FIVE)
    free, write = held_back()
    monkeypatch.setattr(doing, "BUSY_AFTER_S", 0.001)
    async with running(path) as run:
        monkeypatch.setattr(Store, "write", write)
        await run.pilot.press("a", "j", "j", "j")
        # The list is read again meanwhile, as it is while other programs write.
        await run.sessions.contents.read()
        assert run.sessions.selected_id == "ses_d" and archived(path) == ""
        free.set()
        while archived(path) == "":
            await run.quiet()
        await run.quiet()
        assert run.sessions.selected_id == "ses_d" and order(run) == list("bcde")


PARENT = [
    Told("ses_a", "Parent", "/w/p", age=1), Told("ses_b", "Other", "/w/p", age=2),
    *(Told(f"ses_{name}", "Sub", "/w/p", age=3, parent="ses_a", lineage="subagent")
      for name in "xy"),
    Told("ses_z", "Fork", "/w/p", age=4, parent="ses_a"),
]


async def test_subagents_are_archived_with_their_parent(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", PARENT)
    async with running(path) as run:
        await run.press("a")
        assert run.last == "Archived “Parent” with 2 subagents · U undoes"
        assert archived(path) == "axy" and run.sessions.selected_id in ("ses_b", "ses_z")
        await run.press("U")
        assert run.last == "Undone: archived 1 session with 2 subagents · ctrl+r redoes"
        assert archived(path) == "" and run.sessions.selected_id == "ses_a"
        await run.press("ctrl+r", "V", "g", "a")
        assert run.last == "Unarchived “Parent” with 2 subagents · U undoes"
        assert archived(path) == ""


async def test_marks_that_the_filter_leaves_out_are_named(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", PARENT)
    async with running(path) as run:
        await run.press("space", "G", "space", "slash", *"other", "enter")
        title = run.sessions.query_one(ListTitle)
        assert "2 marked, 1 not listed" in title.tally.words()
        await run.press("number_sign")
        assert "Tags of 2 sessions (1 not in this list)" in run.dialog()
        await run.press("escape", "asterisk")
        assert run.last == "Starred 2 sessions (1 not in this list) · U undoes"


async def test_undo_and_redo_go_on_after_a_restart(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", FIVE)
    async with running(path) as run:
        await run.press("a")
        await run.press("asterisk")
    async with running(path) as run:
        await run.press("U")
        assert run.last == "Undone: starred · ctrl+r redoes"
        await run.press("U")
        assert archived(path) == ""
    async with running(path) as run:
        await run.press("ctrl+r")
        assert run.last == "Redone: archived 1 session · U undoes"
        assert archived(path) == "a"
        await run.press("ctrl+r", "ctrl+r")
        assert run.last == "There is nothing to redo"


async def test_marked_ones_go_together_and_come_back_together(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", FIVE)
    async with running(path) as run:
        await run.press("j", "j", "M", "a")
        assert run.last == "Archived 3 sessions · U undoes"
        assert order(run) == list("ab")
        assert run.sessions.selected_id == "ses_b"
        assert not run.sessions.view.marked
        await run.press("V", "A", "a")
        assert run.last == "Unarchived 3 sessions · U undoes"
        assert archived(path) == ""
        await run.press("U", "U")
        assert archived(path) == ""


@pytest.mark.long
async def test_only_what_the_filter_matches_is_marked(tmp_path: Path) -> None:
    told = [*FIVE, Told("ses_x", "Other thing", "/w/p", age=9),
            Told("ses_y", "Session of it", "/w/p", age=8, parent="ses_x")]
    path = put(tmp_path / "s.db", told)
    async with running(path) as run:
        await run.press("slash", *"session", "enter")
        await run.press("A")
        assert len(run.sessions.view.marked) == 6
        await run.press("a")
        assert archived(path) == "abcdey"


async def test_rename_star_and_tags(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", FIVE)
    async with running(path) as run:
        await run.press("R")
        assert "Session a" in run.dialog()
        await run.press("ctrl+u", *"New", "enter")
        assert run.last == "Renamed to “New” · U undoes"
        assert run.sessions.view.rows[run.sessions.view.selected or 0].title == "New"
        await run.press("asterisk")
        assert run.last == "Starred “New” · U undoes"
        await run.press("asterisk")
        assert run.last == "Unstarred “New” · U undoes"
        await run.press("number_sign", *"fix,later", "enter")
        assert run.last == "Tagged fix, later · U undoes"
        await run.press("number_sign")
        assert "fix, later" in run.dialog()
        await run.press("ctrl+u", *"later", "enter")
        assert run.sessions.view.rows[run.sessions.view.selected or 0].tags == ("later",)
        told = len(run.told)
        await run.press("R", "enter")
        await run.press("R", "escape")
        assert len(run.told) == told
        await run.press("U", "U", "U", "U", "U")
        assert run.sessions.view.rows[run.sessions.view.selected or 0].title == "Session a"


@pytest.mark.parametrize("key", ["a", "R", "asterisk", "number_sign", "U", "ctrl+r"])
@pytest.mark.one_in(3)
async def test_a_store_that_is_read_only_says_so(key: str, tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(3))
    database = open_database(path)
    database.connection.execute("PRAGMA user_version = 999")
    database.close()
    async with running(path) as run:
        await run.press(key)
        assert "newer" in run.last
        assert run.app.screen is run.app.main


async def test_star_and_tags_act_on_the_marked_sessions(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", FIVE)
    async with running(path) as run:
        await run.press("space", "j", "space", "asterisk")
        assert run.last == "Starred 2 sessions · U undoes"
        starred = "SELECT id FROM chat_sessions WHERE metadata_json ->> '$.user.star' ORDER BY id"
        assert query(path, starred) == [("ses_a",), ("ses_c",)]
        assert not run.sessions.view.marked
        await run.press("U")
        assert run.last == "Undone: starred: 2 sessions · ctrl+r redoes"
        assert query(path, starred) == []
        await run.press("g", "space", "space", "number_sign")
        assert "Tags of 2 sessions" in run.dialog()
        await run.press("f", "i", "x", "enter")
        tagged = "SELECT id, metadata_json -> '$.user.tags' FROM chat_sessions" \
            " WHERE metadata_json ->> '$.user.tags' IS NOT NULL ORDER BY id"
        assert query(path, tagged) == [("ses_a", '["fix"]'), ("ses_b", '["fix"]')]
