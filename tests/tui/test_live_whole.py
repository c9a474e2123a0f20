"""A session that is read whole anew while it is written to; hidden runs that were opened."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from store.engine.changes import Moved
from store.errors import StoreError
from tests.tui.seeded import SESSION, Said, message_id, text
from tests.tui.test_transcript_pane import NOW, lines, press, running, settled
from tui.kit.selection import offset_y
from tui.transcript import rereading
from tui.transcript.pane import TranscriptPane
from tui.transcript.reader import SessionReader
from tui.transcript.snapshot import ViewportSnapshot
from tui.transcript.view import TranscriptView

NEW = "msg_zz0000000000000000000001"


def write(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    connection = sqlite3.connect(path, timeout=30)
    with connection:
        for sql, values in statements:
            connection.execute(sql, values)
    connection.close()


def new_message(path: Path, name: str, at: int, words: str) -> None:
    write(path, (
        "INSERT INTO chat_messages VALUES (?,?,'user','{}',?,?)", (name, SESSION, at, at)), (
        "INSERT INTO chat_parts VALUES (?,?,?,0,'text',?,NULL,NULL,?,?)",
        ("prt" + name[3:], name, SESSION, json.dumps(text(words)), at, at)))


def hide(path: Path, *numbers: int, hidden: bool = True) -> Moved:
    ids = [message_id(number) for number in numbers]
    write(path, *(("UPDATE chat_messages SET metadata_json = ? WHERE id = ?",
                   (json.dumps({"hidden_at": NOW} if hidden else {}), name)) for name in ids))
    return Moved(sessions={SESSION: set(ids)})


def talk(count: int, hidden: range = range(0)) -> list[Said]:
    return [Said("user", [text(f"words {n}")], {"hidden_at": NOW} if n in hidden else {})
            for n in range(count)]


class Gate:
    """Holds back a skeleton that was read, once for each time that it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened, self.readings = asyncio.Event(), asyncio.Event(), 0
        read = SessionReader.skeleton

        async def held(reader: SessionReader, *args: Any) -> Any:
            found = await read(reader, *args)
            self.readings += 1
            self.reached.set()
            await self.opened.wait()
            return found

        monkeypatch.setattr(SessionReader, "skeleton", held)


def watched(pane: TranscriptPane, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note, each time that the document has changed, whether the new message is there."""
    seen: list[bool] = []
    restore = ViewportSnapshot.restore

    def noted(self: ViewportSnapshot, view: TranscriptView) -> None:
        seen.append(view.document.skeleton.locate(NEW) is not None)
        restore(self, view)

    monkeypatch.setattr(ViewportSnapshot, "restore", noted)
    return seen


async def read_while_it_comes(
    path: Path, pane: TranscriptPane, monkeypatch: pytest.MonkeyPatch
) -> Gate:
    """Have all read again, and a message written after that and before it is shown."""
    gate = Gate(monkeypatch)
    pane.follower.check_whole_now(differs=True)
    await gate.reached.wait()
    new_message(path, NEW, NOW, "it came")
    return gate


@pytest.mark.parametrize("vague", [False, True])
async def test_what_came_while_all_was_read_again_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vague: bool
) -> None:
    async with running(tmp_path, talk(40)) as (pilot, pane, app):
        gate = await read_while_it_comes(tmp_path / "s.db", pane, monkeypatch)
        await pane.follower.refresh(Moved(vague) if vague else Moved(sessions={SESSION: {NEW}}))
        await pilot.press("g", "G")
        await pilot.pause()
        assert pane.document.skeleton.key(pane.cursor) == (NEW, 0)
        seen = watched(pane, monkeypatch)
        gate.opened.set()
        await settled(app)
        assert seen and all(seen)
        assert pane.document.skeleton.key(pane.cursor) == (NEW, 0)
        assert "it came" in lines(pane)
        assert gate.readings == 1


async def test_where_much_came_all_is_read_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, talk(400)) as (pilot, pane, app):
        gate = await read_while_it_comes(tmp_path / "s.db", pane, monkeypatch)
        await pane.follower.refresh(Moved(sessions={SESSION: {NEW}}))
        await pilot.press("g", "G")
        await pilot.pause()
        await pane.follower.refresh(hide(tmp_path / "s.db", 3))
        seen = watched(pane, monkeypatch)
        gate.opened.set()
        await settled(app)
        assert seen and all(seen) and gate.readings == 2
        assert pane.document.skeleton.key(pane.cursor) == (NEW, 0)
        assert pane.document.run_of(3) == (3, 3)


Write = Callable[[Path], Moved]


def another_first(path: Path) -> Moved:
    """The first hidden message is written anew, under another id."""
    old, new = message_id(2), message_id(1) + "b"
    write(path, *((f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, old))
                  for table, column in (("chat_parts", "message_id"), ("chat_messages", "id"))))
    return Moved(sessions={SESSION: {old, new}})


@pytest.mark.parametrize(("change", "opened", "closed"), [
    (lambda path: hide(path, 1), {1, 2, 3, 4}, set()),
    (lambda path: hide(path, 5), {2, 3, 4, 5}, set()),
    (lambda path: hide(path, 0, 1, 5, 6), {0, 1, 2, 3, 4, 5, 6}, set()),
    (lambda path: hide(path, 2, hidden=False), {3, 4}, set()),
    (lambda path: hide(path, 3, hidden=False), {2, 4}, set()),
    (lambda path: hide(path, 7, 8), {2, 3, 4}, {7, 8}),
    (another_first, {2, 3, 4}, set()),
], ids=["above", "below", "around", "first shown", "middle shown", "another run", "rewritten"])
@pytest.mark.parametrize("vague", [False, True])
@pytest.mark.one_in(3)
async def test_an_opened_run_stays_open(
    tmp_path: Path, change: Write, opened: set[int], closed: set[int], vague: bool
) -> None:
    async with running(tmp_path, talk(10, range(2, 5)), size=(80, 60)) as (pilot, pane, app):
        await press(app, pilot, "g", "J", "J", "o")
        assert "words 3" in lines(pane)
        moved = change(tmp_path / "s.db")
        await pane.follower.refresh(Moved(True) if vague else moved)
        if vague:
            pane.follower.check_whole_now(differs=True)
        await settled(app)
        document = pane.document
        found: dict[bool, set[int]] = {True: set(), False: set()}
        for part in range(len(document)):
            run = document.run_of(part)
            if run is not None:
                found[document.run_opened(run)].add(part)
        assert (found[True], found[False]) == (opened, closed)
        shown = lines(pane)
        assert [n for n in range(10) if f"words {n}" in shown] == [
            n for n in range(10) if n not in closed]
        await press(app, pilot, "H", "H")
        shown = lines(pane)
        assert not [n for n in opened | closed if f"words {n}" in shown]


async def test_what_a_busy_store_could_not_give_is_read_with_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: Any) -> None:
        raise StoreError("busy")

    async with running(tmp_path, talk(10)) as (_pilot, pane, app):
        new_message(tmp_path / "s.db", NEW, NOW, "it came")
        with monkeypatch.context() as patched:
            patched.setattr(rereading, "facts", busy)
            with pytest.raises(StoreError):
                await pane.follower.refresh(Moved(sessions={SESSION: {NEW}}))
        await pane.follower.refresh(Moved())
        await settled(app)
        assert "it came" in lines(pane)


async def test_a_whole_reading_that_failed_is_done_with_the_next_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    skeleton = SessionReader.skeleton

    async def busy_at_first(reader: SessionReader, *args: Any) -> Any:
        tried.append(len(tried))
        if len(tried) == 1:
            raise StoreError("busy")
        return await skeleton(reader, *args)

    async with running(tmp_path, talk(10)) as (_pilot, pane, app):
        monkeypatch.setattr(SessionReader, "skeleton", busy_at_first)
        pane.follower.check_whole_now(differs=True)
        await settled(app)
        pane.follower.check_whole_now()
        await settled(app)
        assert tried == [0, 1]


@pytest.mark.parametrize("part", [6, 7])
async def test_selected_text_moves_with_its_part_and_goes_with_it(
    tmp_path: Path, part: int
) -> None:
    async with running(tmp_path, talk(10), size=(80, 60)) as (_pilot, pane, app):
        line = next(n for n, each in enumerate(pane.document.block(part).lines)  # type: ignore[union-attr]
                    if f"words {part}" in each.text)
        pane.view.select_text(Selection(
            Offset(0, offset_y(part, line)), Offset(99, offset_y(part, line))))
        write(tmp_path / "s.db", *(
            (f"DELETE FROM {table} WHERE {column} IN (?, ?)", (message_id(0), message_id(7)))
            for table, column in (("chat_parts", "message_id"), ("chat_messages", "id"))))
        pane.follower.check_whole_now(differs=True)
        await settled(app)
        assert len(pane.document) == 8
        selection = pane.view.text_selection
        found = pane.view.get_selection(selection) if selection is not None else None
        assert found == (("words 6", "\n") if part == 6 else None)
