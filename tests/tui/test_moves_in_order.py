"""Keys and the mouse do the same, whatever arrives while one of them waits for its rows.

Each reading of the store is held back for a random while, and so is the count of the whole
session. The screen must end as it does where everything is done one after the other, with
the change from outside at some place between the keys.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import pytest
from textual import events
from textual.pilot import Pilot

from store.engine.changes import Moved
from store.queries.sessions import get
from store.store import Store
from tests.tui.seeded import (
    SESSION,
    START,
    Said,
    long_talk,
    make_store,
    message_id,
    text,
)
from tests.tui.test_transcript_pane import NOW, Harness, lines, quick_pilot, settled
from tui.transcript import reader as reading
from tui.transcript.pane import TranscriptPane

assert quick_pilot
OTHER = "ses_000000000000000000000000bb"
TURNS = 60
SIZE = (100, 30)
MOVES = ("up", "down", "pageup", "pagedown", "home", "end", "g", "G", "ctrl+u", "ctrl+d", "[", "]",
         "J", "K", ".", ",", "}", "{", "e", "E", "wheel up", "wheel down")
FOLDS = ("o", "t", "i", "H")
CLICKS = ("click 4", "click 12", "click 20")
"""Done first: a click is meant for what stands on the screen, which keys before it move."""
SEARCH = ("n", "N")
CHARACTERS = {"]": "right_square_bracket", "[": "left_square_bracket", ".": "full_stop",
              ",": "comma"}


class Seen(NamedTuple):
    """What the screen shows in the end."""

    lines: list[str]
    cursor: tuple[str, int]
    at_end: bool
    hit: tuple[int, int] | None
    told: list[str]


@dataclass
class Played:
    """The app that is played on."""

    app: Harness
    pane: TranscriptPane
    pilot: Pilot[None]
    store: Store
    path: Path


Change: TypeAlias = Callable[[Played], Any]
Action: TypeAlias = str | Change


# What comes from outside


async def written(played: Played, *ids: str) -> None:
    await played.pane.follower.refresh(Moved(sessions={SESSION: set(ids)}))


def _write(path: Path, sql: str, *values: Any) -> None:
    connection = sqlite3.connect(path, timeout=30)
    with connection:
        connection.execute(sql, values)
    connection.close()


def _put(path: Path, name: str, at: int, words: str) -> None:
    _write(path, "INSERT INTO chat_messages VALUES (?,?,'user','{}',?,?)", name, SESSION, at, at)
    data = json.dumps(text(words))
    _write(path, "INSERT INTO chat_parts VALUES (?,?,?,0,'text',?,NULL,NULL,?,?)",
           "prt" + name[3:], name, SESSION, data, at, at)


async def more_comes(played: Played) -> None:
    name = "msg_zz0000000000000000000001"
    _put(played.path, name, START + 10_000_000, "One more.\n\nWith some lines.\n\nAnd an end.")
    await written(played, name)


async def one_comes_above(played: Played) -> None:
    name = "msg_zz0000000000000000000002"
    _put(played.path, name, START + (2 * TURNS - 12) * 1000 + 1, "Above.\n\n" * 9)
    await written(played, name)


async def some_are_hidden(played: Played) -> None:
    ids = [message_id(number) for number in range(2 * TURNS - 9, 2 * TURNS - 5)]
    for name in ids:
        _write(played.path, "UPDATE chat_messages SET metadata_json = ? WHERE id = ?",
               json.dumps({"hidden_at": START + 20_000_000}), name)
    await written(played, *ids)


async def one_grows(played: Played) -> None:
    name = message_id(2 * TURNS - 3)
    _write(played.path, "UPDATE chat_parts SET data_json = ?, updated_at = updated_at + 1"
           " WHERE message_id = ? AND \"index\" = 1",
           json.dumps(text("Now it is longer.\n\n" * 12)), name)
    await written(played, name)


async def one_goes(played: Played) -> None:
    name = message_id(2 * TURNS - 4)
    _write(played.path, "DELETE FROM chat_parts WHERE message_id = ?", name)
    _write(played.path, "DELETE FROM chat_messages WHERE id = ?", name)
    await written(played, name)


async def all_is_read_again(played: Played) -> None:
    await played.pane.follower.refresh(Moved(vague=True))
    played.pane.follower.check_whole_now()


async def wider(played: Played) -> None:
    await played.pilot.resize_terminal(124, 44)


async def lower(played: Played) -> None:
    await played.pilot.resize_terminal(70, 14)


async def another_session(played: Played) -> None:
    row = await played.store.read(get, OTHER)
    assert row is not None
    await played.pane.open_session(played.store, row)


CHANGES: tuple[Change, ...] = (
    more_comes, one_comes_above, some_are_hidden, one_grows, one_goes, all_is_read_again,
    wider, lower, another_session,
)


# Playing


def _mouse(kind: type[events.MouseEvent], y: int, button: int = 0) -> events.MouseEvent:
    return kind(None, 20, y, 0, 0, button, False, False, False, 20, y, None)


def do(played: Played, action: str) -> None:
    """Give a key or the mouse to the app as a terminal does."""
    app = played.app
    if action.startswith("wheel"):
        down = action.endswith("down")
        app.post_message(_mouse(events.MouseScrollDown if down else events.MouseScrollUp, 9))
    elif action.startswith("click"):
        y = int(action.split()[1])
        app.post_message(_mouse(events.MouseDown, y, 1))
        app.post_message(_mouse(events.MouseUp, y, 1))
    else:
        character = action if len(action) == 1 else None
        app.post_message(events.Key(CHARACTERS.get(action, action), character))


async def play(
    path: Path, actions: list[Action], dice: Random | None, opened: dict[str, Any], needle: str
) -> Seen:
    """Do some things, one after the other, or, with dice, all in a heap."""
    store = await Store.open(path, clock=lambda: NOW)
    app = Harness(store, opened)
    tasks: list[asyncio.Task[None]] = []
    try:
        async with asyncio.timeout(60), app.run_test(size=SIZE) as pilot:
            pane = app.query_one(TranscriptPane)
            while app.focused is not pane.view:
                await pilot.pause()
            played = Played(app, pane, pilot, store, path)
            if dice is None:
                await settled(app)
            if needle:
                pane.finder.start(needle)
            for action in actions:
                if dice is None:
                    await settled(app)
                else:
                    await turns(dice.choice((0, 0, 1, 5, 30)))
                if isinstance(action, str):
                    do(played, action)
                elif dice is None:
                    await action(played)
                else:
                    tasks.append(asyncio.create_task(action(played)))
            await turns(100)
            await asyncio.gather(*tasks)
            await settled(app)
            if pane.follower.whole_is_due:
                pane.follower.check_whole_now()
            await settled(app)
            assert pane.document.complete
            return seen(app, pane)
    finally:
        await store.close()


def seen(app: Harness, pane: TranscriptPane) -> Seen:
    told = sorted({notice.message for notice in app._notifications})
    if pane.session is not None and pane.session.id == OTHER:
        # What the session before could not do, where it was still to do it, matters no more.
        told = []
    return Seen(lines(pane), pane.document.skeleton.key(pane.cursor), pane.view.at_end,
                pane.view.hit, told)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def hold_back(monkeypatch: pytest.MonkeyPatch, dice: Random) -> None:
    """Let each reading wait for a while; a page of the skeleton longer."""
    read = Store.read

    async def held(self: Store, query: Any, *args: Any, **kwargs: Any) -> Any:
        counted = query is reading._extend
        await turns(dice.choice((0, 0, 2, 9, 40)) * (9 if counted else 1))
        return await read(self, query, *args, **kwargs)

    monkeypatch.setattr(Store, "read", held)


def talk(path: Path) -> Path:
    make_store(path, long_talk(TURNS))
    said = [Said(role, [text(f"{role} {n}. " * 9)]) for n in range(9)
            for role in ("user", "assistant")]
    return make_store(path, said, session_id=OTHER,
                      session={"metadata_json": '{"title":"Other"}'})


def some_keys(dice: Random) -> list[str]:
    kinds = dice.choice((MOVES, MOVES, MOVES + FOLDS, FOLDS))
    keys = [dice.choice(CLICKS)] if not dice.randrange(3) else []
    while len(keys) < dice.randint(2, 6):
        keys += [dice.choice(kinds)] * dice.choice((1, 1, 1, 2, 4))
    return keys[:8]


async def placings(
    tmp_path: Path, origin: Path, keys: list[str], change: Change, first: int
) -> AsyncIterator[Seen]:
    """Do everything in order, with the change at each place between the keys.

    Args:
        tmp_path: Where the copies of the store go.
        origin: The store.
        keys: Done one after the other.
        change: Comes from outside.
        first: The place that is tried first; those that are near it come next.
    """
    for at in sorted(range(len(keys) + 1), key=lambda at: abs(at - first)):
        yield await in_order(tmp_path / f"{at}.db", origin, [*keys[:at], change, *keys[at:]])


async def in_order(
    path: Path, origin: Path, order: list[Action], needle: str = "",
    opened: dict[str, Any] | None = None,
) -> Seen:
    shutil.copyfile(origin, path)
    return await play(path, order, None, opened or {}, needle)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.one_in(4)
async def test_the_count_may_come_whenever_it_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = Random(seed)
    keys, needle = some_keys(dice), dice.choice(("", "", "case 4", "pytest"))
    if needle:
        keys = [dice.choice(SEARCH) if key in CLICKS or not dice.randrange(3) else key
                for key in keys]
    opened = dice.choice(({}, {"message_id": message_id(40)}))
    origin = talk(tmp_path / "origin.db")
    wanted = await in_order(tmp_path / "0.db", origin, list(keys), needle, opened)
    hold_back(monkeypatch, dice)
    assert await play(origin, list(keys), dice, opened, needle) == wanted, keys


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.one_in(4)
async def test_keys_and_changes_from_outside_come_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, seed: int
) -> None:
    dice = Random(f"{change.__name__} {seed}")
    keys = some_keys(dice)[:5]
    origin = talk(tmp_path / "origin.db")
    heaped = tmp_path / "heaped.db"
    shutil.copyfile(origin, heaped)
    with monkeypatch.context() as patched:
        hold_back(patched, dice)
        at = dice.randint(0, len(keys))
        heap: list[Action] = [*keys[:at], change, *keys[at:]]
        found = await play(heaped, heap, dice, {}, "")
    tried = []
    async for allowed in placings(tmp_path, origin, keys, change, at):
        if found == allowed:
            return
        tried.append(allowed)
    assert found in tried, keys
