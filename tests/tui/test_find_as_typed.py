"""Find in a session while it is typed: the first hit, the way back, keys in a heap."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.pilot import Pilot

from store.engine.database import open_database
from store.queries import transcript as queries
from tests.tui.seeded import SESSION, Said, long_talk, make_store, text, tool
from tests.tui.test_transcript_pane import lines, press, running, settled
from tests.tui.verbs_app import running as whole_app
from tui.keys.footer import BottomLine
from tui.keys.names import key_name
from tui.transcript import search as search_text
from tui.transcript.pane import TranscriptPane
from tui.transcript.search import Search, compiled, find
from tui.transcript.skeleton import Skeleton

Place = tuple[list[str], int, bool]


def place(pane: TranscriptPane) -> Place:
    return lines(pane), pane.cursor, pane.view.at_end


async def typing(app: App[None], pilot: Pilot[None], words: str) -> None:
    for letter in words:
        await press(app, pilot, "space" if letter == " " else letter)


async def test_the_first_hit_from_the_reading_place_on_is_shown_at_each_key(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, long_talk(60)) as (pilot, pane, app):
        await pane.finder.go_to("31")
        assert pane.cursor == 150
        await typing(app, pilot, "/case 3")
        assert pane.prompt.is_open and pane.cursor == 150
        await typing(app, pilot, "5")
        assert pane.cursor == 175
        await press(app, pilot, "backspace")
        assert pane.cursor == 150
        # The only hit above the reading place comes after all below it.
        await press(app, pilot, "backspace")
        await typing(app, pilot, "12")
        assert pane.cursor == 60
        await press(app, pilot, "enter")
        search = pane.shown.search
        assert not pane.prompt.is_open and pane.cursor == 60 and search is not None
        assert (search.number, search.total) == (1, 7)


async def test_escape_leads_back_to_the_very_lines(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(60)) as (pilot, pane, app):
        for before in ("end", "middle"):
            if before == "middle":
                await pane.finder.go_to("31")
                await press(app, pilot, "j", "j", "j")
            was = place(pane)
            await typing(app, pilot, "/prompt 7")
            assert pane.cursor == 35
            await press(app, pilot, "escape")
            assert place(pane) == was and pane.shown.search is None
            assert app.focused is pane.view and not pane.prompt.is_open


async def test_what_is_not_there_leaves_one_where_one_was(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(60)) as (pilot, pane, app):
        was = place(pane)
        await typing(app, pilot, "/prompt 7")
        assert place(pane) != was
        await typing(app, pilot, "xyz")
        # The line takes a row while it is open.
        assert place(pane)[1:] == was[1:] and lines(pane)[-1] == was[0][-1]
        await press(app, pilot, "enter")
        assert place(pane) == was
        assert pane.shown.search is not None and pane.shown.search.done
        await typing(app, pilot, "/prompt 7")
        assert pane.cursor == 35
        await press(app, pilot, *["backspace"] * len("prompt 7"))
        assert place(pane)[1:] == was[1:]


FOLDED = [
    Said("user", [text("look")]),
    Said("assistant", [
        tool("Bash", {"command": "a"}, "\n".join(f"row {n}" for n in range(30)), call="a"),
        tool("Bash", {"command": "b"}, "\n".join(f"rower {n}" for n in range(30)), call="b"),
    ]),
    Said("user", [text("and then")]),
    Said("user", [text("the end")]),
]


async def test_a_hit_opens_what_hides_it_and_it_folds_again_when_one_types_on(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, FOLDED) as (pilot, pane, app):
        await press(app, pilot, "g")
        heights = [pane.document.height(part) for part in range(5)]
        await typing(app, pilot, "/row 2")
        assert pane.cursor == 1 and pane.document.height(1) > heights[1]
        await press(app, pilot, "backspace", "backspace")
        await typing(app, pilot, "er 29")
        assert pane.cursor == 2 and pane.document.height(2) > heights[2]
        assert pane.document.height(1) == heights[1]
        await press(app, pilot, "escape")
        assert [pane.document.height(part) for part in range(5)] == heights


async def test_a_hit_in_a_hidden_turn_shows_it_while_it_is_the_hit(tmp_path: Path) -> None:
    said = [Said("user", [text(f"Prompt {n}")]) for n in range(6)]
    for one in said[2:4]:
        one.metadata = {"hidden_at": 1_795_000_009_000}
    async with running(tmp_path, said) as (pilot, pane, app):
        await press(app, pilot, "g")
        was = lines(pane)
        assert "Prompt 3" not in "\n".join(was)
        await typing(app, pilot, "/prompt 3")
        assert pane.cursor == 3 and "Prompt 3" in "\n".join(lines(pane))
        await press(app, pilot, "backspace")
        await typing(app, pilot, "5")
        assert pane.cursor == 5 and "Prompt 3" not in "\n".join(lines(pane))
        await press(app, pilot, "escape")
        assert lines(pane) == was


async def test_escape_brings_the_search_of_before_back(tmp_path: Path) -> None:
    async with running(tmp_path, FOLDED) as (pilot, pane, app):
        await press(app, pilot, "g")
        await typing(app, pilot, "/row 29")
        await press(app, pilot, "enter")
        was, before = place(pane), pane.shown.search
        assert before is not None and before.part == 1
        await typing(app, pilot, "/the end")
        assert pane.cursor == 4
        await press(app, pilot, "escape")
        assert place(pane) == was and pane.shown.search is before and before.done
        assert (before.part, before.total, before.needle) == (1, 1, "row 29")


async def test_enter_on_the_needle_of_before_goes_to_the_next_hit(tmp_path: Path) -> None:
    async with running(tmp_path, long_talk(9)) as (pilot, pane, app):
        await press(app, pilot, "g")
        await typing(app, pilot, "/prompt")
        await press(app, pilot, "enter")
        await press(app, pilot, "slash", "enter")
        assert pane.shown.search is not None and pane.shown.search.number == 2


@pytest.mark.parametrize("pause", [0, 1, 7])
@pytest.mark.one_in(3)
async def test_keys_in_a_heap_are_all_typed_and_found(tmp_path: Path, pause: int) -> None:
    async with running(tmp_path, long_talk(60)) as (pilot, pane, app):
        await pane.finder.go_to("31")
        keys = ["slash", *"prompt 40", "enter", "n", "N", "j", "slash", *"xy", "escape"]
        for key in keys:
            name = "space" if key == " " else key
            app.post_message(events.Key(name, key if len(key) == 1 else None))
            for _ in range(pause):
                await asyncio.sleep(0)
        for _ in range(200):
            await asyncio.sleep(0)
        await app.inputs.drained()
        await settled(app)
        search = pane.shown.search
        assert search is not None and search.needle == "prompt 40" and search.done
        assert pane.document.skeleton.key(search.part or 0) == pane.document.skeleton.key(200)


async def test_the_first_hit_needs_one_reading_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_text, "PARTS_AT_ONCE", 20)
    readings: list[str] = []
    known = queries.matches

    def counted(db: Any, ids: Any, containing: Any) -> Any:
        readings.append(ids[0])
        return known(db, ids, containing)

    monkeypatch.setattr(search_text, "matches", counted)
    async with running(tmp_path, long_talk(300)) as (_pilot, pane, app):
        assert len(pane.document) == 1500
        hits: list[int] = []
        to_hit = pane.finder._to_hit

        async def noted(*args: Any) -> None:
            hits.append(len(readings))
            await to_hit(*args)

        monkeypatch.setattr(pane.finder, "_to_hit", noted)
        for turn in ("290", "3", "150"):
            await pane.finder.go_to(turn)
            readings.clear()
            hits.clear()
            pane.finder.start("prompt")
            await settled(app)
            assert hits == [1] and pane.cursor == (int(turn) - 1) * 5
            assert pane.shown.search is not None and pane.shown.search.total == 300


def skeleton_of(path: Path) -> tuple[Any, Skeleton]:
    database, skeleton = open_database(path, write=False), Skeleton()
    for outline in queries.outline_page(database, SESSION, None, 10_000):
        skeleton.add(outline)
    return database, skeleton


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.one_in(3)
def test_wherever_a_search_begins_it_finds_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = Random(seed)
    monkeypatch.setattr(search_text, "PARTS_AT_ONCE", dice.choice((1, 7, 40)))
    database, skeleton = skeleton_of(make_store(tmp_path / "s.db", long_talk(40)))
    needle = dice.choice(("case 1", "out 3", "prompt", "absent"))
    pattern, count = compiled(needle), len(skeleton.message_ids)

    def found(messages: range) -> list[tuple[str, int, int]]:
        ids = skeleton.message_ids[messages.start: messages.stop]
        return find(database, ids, needle, pattern)

    whole = Search(needle, pattern)
    whole.add(skeleton, range(count), found(range(count)))
    search = Search(needle, pattern)
    search.begin_at(dice.randrange(count))
    search.scan = object()
    while (messages := search.next_chunk(skeleton)) is not None:
        search.add(skeleton, messages, found(messages))
        _check_known(search, whole, skeleton, dice)
        if dice.random() < 0.1:
            search.written(skeleton, dice.randrange(1, count))
            assert not search.knows(skeleton, 0, 1)
    assert (search.parts, search.counts, search.total) == (
        whole.parts, whole.counts, whole.total)
    assert search.scanned == count
    database.close()


def _check_known(search: Search, whole: Search, skeleton: Skeleton, dice: Random) -> None:
    """What the search says that it knows is what the whole search finds."""
    part = dice.randrange(len(skeleton))
    for step in (1, -1):
        if search.knows(skeleton, part, step):
            assert search.next_part(part, step) == whole.next_part(part, step)
    start = skeleton.first[search.begin]
    first = search.first_from(skeleton, start)
    assert first is None or first == whole.next_part(start - 1, 1)


@pytest.mark.parametrize("key", ["slash", "colon"])
async def test_the_keys_of_the_transcript_are_not_shown_while_a_line_is_typed(
    key: str, tmp_path: Path
) -> None:
    path = make_store(tmp_path / "s.db", long_talk(2))
    async with whole_app(path) as run:
        await run.open(SESSION)
        bottom = run.app.screen.query_one(BottomLine)
        shown = [hint.command for hint in bottom.hints]
        assert "transcript.fold" in shown
        await run.press(key, "x")
        typing = [hint.command for hint in bottom.hints]
        assert typing[:2] == ["prompt.accept", "prompt.leave"]
        assert not [one for one in typing if one.startswith("transcript.")]
        # What is shown works: an input line keeps its own keys for itself.
        for hint in bottom.hints:
            assert not run.app._types(key_name(hint.key)), hint
        await run.press("escape")
        assert [hint.command for hint in bottom.hints] == shown
