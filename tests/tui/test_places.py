"""The places that one was at: the list of them alone, and in the whole browser."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from store.engine.database import open_database
from store.queries.places import place_facts
from tests.tui.seeded import SESSION, long_talk, make_store, message_id
from tests.tui.test_key_after_key import typed
from tests.tui.test_typed_ahead import OTHER
from tests.tui.verbs_app import Running, drawn, query, running, written
from tui.state.places import MOST_VISITS, Places, Visit


def visit(number: int, session: str = "s") -> Visit:
    return Visit(session, f"m{number}", 0)


def numbers(places: Places) -> list[int]:
    return [int(each.message_id[1:]) for each in places.visits]


# The list of places, without a screen


def test_back_keeps_where_one_is_and_forward_comes_back_to_it() -> None:
    places = Places()
    for number in (1, 2):
        places.leave(visit(number))
    assert places.step(-1, visit(3)) == visit(2)
    assert (places.number, len(places)) == (2, 3)
    assert places.step(-1, visit(2)) == visit(1)
    assert places.step(-1, visit(1)) is None and places.number == 1
    assert places.step(1, visit(1)) == visit(2)
    assert places.step(1, visit(2)) == visit(3)
    assert places.step(1, visit(3)) is None and numbers(places) == [1, 2, 3]


def test_a_place_is_there_once_and_at_its_newest_end() -> None:
    places = Places()
    for number in (1, 2, 3, 1):
        places.leave(visit(number))
    assert numbers(places) == [2, 3, 1]
    # A jump from the middle keeps what is after it, as in Vim.
    assert places.step(-1, visit(9)) == visit(1) and places.step(-1, visit(1)) == visit(3)
    places.leave(visit(3))
    assert numbers(places) == [2, 1, 9, 3] and places.number == 5


def test_a_place_where_one_is_already_is_passed() -> None:
    places = Places()
    for number in (1, 2):
        places.leave(visit(number))
    assert places.step(-1, visit(2)) == visit(1) and numbers(places) == [1, 2]
    # By other keys one came to the place that is next.
    places.leave(visit(3))
    places.leave(visit(4))
    assert places.step(-1, visit(5)) == visit(4)
    assert places.step(-1, visit(3)) == visit(2)


def test_the_oldest_are_dropped() -> None:
    places = Places()
    for number in range(MOST_VISITS + 30):
        places.leave(visit(number))
    assert len(places) == MOST_VISITS and numbers(places)[0] == 30


@pytest.mark.parametrize("seed", range(40))
def test_whatever_goes_what_is_left_is_passed_through_in_order(seed: int) -> None:
    dice = Random(seed)
    places, gone = Places(), set[int]()

    def step(by: int, here: int | None) -> int | None:
        """What the browser does: what is gone is dropped, and the step goes on."""
        at = visit(here) if here is not None else None
        while (found := places.step(by, at)) is not None:
            number = int(found.message_id[1:])
            if number not in gone:
                return number
            places.drop(by)
        return None

    here = 0
    for _ in range(120):
        act = dice.random()
        if act < 0.4:
            places.leave(visit(here))
            here = dice.choice([number for number in range(20) if number not in gone])
        elif act < 0.55:
            gone.add(dice.randrange(12))
            gone.discard(here)
        else:
            by = dice.choice((-1, 1))
            kept, before = {*numbers(places), here}, here
            found = step(by, here)
            assert found is None or (found not in gone and found != here)
            here = here if found is None else found
            assert kept - gone - {before} <= set(numbers(places)) <= kept
        assert len(set(numbers(places))) == len(places)
        assert 0 <= places.number - 1 <= len(places)
    # From the newest end all that is left is passed, each once, and forward again.
    places.leave(visit(here))
    expected = [n for n in numbers(places) if n not in gone and n != here]
    back: list[int] = []
    while (found := step(-1, back[-1] if back else here)) is not None:
        back.append(found)
    assert back == expected[::-1]
    forward: list[int] = []
    while (found := step(1, forward[-1] if forward else back[-1] if back else here)) is not None:
        forward.append(found)
    assert forward == ([*expected[1:], here] if expected else [])


# What is at a place


def test_facts_of_a_place_and_of_what_is_gone(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", long_talk(3))
    database = open_database(path, write=False)
    found = place_facts(database, [
        (SESSION, message_id(2), 0), (SESSION, message_id(3), 3), (SESSION, "", 0),
        (SESSION, message_id(2), 99), (SESSION, "msg_none", 0), ("ses_none", message_id(2), 0),
    ])
    database.close()
    first, call, session, partless, *gone = found
    assert first is not None and (first.title, first.turn) == ("A session", 2)
    assert first.part is not None and "Prompt 1" in first.part[1]
    assert call is not None and call.part is not None and call.part[0] == "tool-Bash"
    assert session is not None and session.part is None
    assert partless is not None and partless.turn == 2 and partless.part is None
    assert gone == [None, None]


# In the browser


def two(tmp_path: Path) -> Path:
    path = make_store(tmp_path / "s.db", long_talk(40))
    return make_store(path, long_talk(40), session_id=OTHER, session={
        "metadata_json": '{"title":"Other"}', "updated_at": 1, "created_at": 1})


def at(run: Running) -> tuple[str, str, int]:
    document = run.transcript.document
    return run.transcript.shown.session_id, *document.skeleton.key(run.transcript.cursor)


async def go_to(run: Running, where: str) -> None:
    await run.press("colon", *["number_sign" if key == "#" else key for key in where], "enter")


async def test_back_and_forward_through_parts_and_sessions(tmp_path: Path) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("enter", "g")
        places = [at(run)]
        for where in ("20", "5"):
            await go_to(run, where)
            places.append(at(run))
        await run.press("1", "G", "enter")
        assert run.app.main.opener.shown == OTHER
        await go_to(run, "9")
        places.append(at(run))
        lines = drawn(run.app.screen)
        await run.press("ctrl+o")
        assert at(run)[0] == OTHER and at(run) != places[3]
        for expected in (places[2], places[1], places[0]):
            await run.press("ctrl+o")
            assert at(run) == expected, run.told
        assert run.app.main.opener.shown == SESSION == run.sessions.selected_id
        assert run.last == "Place 2 of 6: turn 1"
        assert "Place 4 of 6: “A session” turn 5" in run.told
        for expected in (places[1], places[2]):
            await run.press("alt+i")
            assert at(run) == expected
        await run.press("ctrl+i", "alt+i")
        assert at(run) == places[3] and run.last == "Place 6 of 6: turn 9"
        assert _transcript(drawn(run.app.screen)) == _transcript(lines)
        await run.press("alt+i")
        assert run.last == "No later place" and at(run) == places[3]


def _transcript(shown: str) -> list[str]:
    """The rows of the transcript: what is right of the list, without the toasts and the map."""
    return [row[45:110].rstrip() for row in shown.splitlines()[2:20]]


async def test_what_leaves_a_place(tmp_path: Path) -> None:
    async with running(two(tmp_path)) as run:
        places = run.app.places

        async def leaves(*keys: str) -> bool:
            """Whether the place where one was is kept, as the newest one."""
            here, before = at(run), places.visits
            await run.press(*keys)
            assert places.visits == before or places.visits[-1].key == here
            return places.visits != before

        await run.press("enter", "g")
        assert not await leaves("j", "j", "pagedown", "full_stop", "J", "semicolon", "d")
        assert await leaves("G")
        assert await leaves("slash", *"prompt", "enter")
        # Hits and errors on the screen are no jumps, nor is what is not there.
        assert not await leaves("n", "N") and not await leaves("escape")
        assert await leaves("G")
        assert not await leaves("E") and run.last == "No error before this"
        assert not await leaves("slash", *"absent", "enter")
        assert not await leaves("escape", "slash", *"case 3", "escape")
        assert await leaves("colon", "number_sign", "3", "enter")
        # The next turn is on the screen; what is further away is a jump.
        assert not await leaves("right_square_bracket")
        assert await leaves("slash", *"case 33", "enter")


async def test_after_escape_of_a_search_there_is_no_place_of_it(tmp_path: Path) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("enter", "g", "slash", *"case 30", "enter")
        found = at(run)
        await run.press("ctrl+o")
        assert at(run) == (SESSION, message_id(0), 0)
        await run.press("alt+i")
        assert at(run) == found


async def test_places_that_are_gone_are_passed(tmp_path: Path) -> None:
    path = two(tmp_path)
    async with running(path) as run:
        await run.press("enter", "g")
        first = at(run)
        for where in ("10", "20", "30"):
            await go_to(run, where)
        await run.press("1", "G", "enter")
        async with written(path) as database:
            for number in (18, 38):
                database.connection.execute(
                    "DELETE FROM chat_messages WHERE id = ?", (message_id(number),))
                database.connection.execute(
                    "DELETE FROM chat_parts WHERE message_id = ?", (message_id(number),))
        await run.app.show_written()
        await run.press("ctrl+o")
        assert at(run)[1] == message_id(58)
        await run.press("ctrl+o")
        assert at(run) == first and run.last.startswith("Place 2 of 4")
        async with written(path) as database:
            database.connection.execute("DELETE FROM chat_sessions WHERE id = ?", (OTHER,))
        await run.app.show_written()
        await run.press("alt+i", "alt+i")
        assert at(run)[1] == message_id(58) and run.last == "No later place"


async def test_a_place_is_found_when_the_session_has_grown(tmp_path: Path) -> None:
    path = two(tmp_path)
    async with running(path) as run:
        await run.press("enter")
        await go_to(run, "10")
        was = at(run)
        await run.press("G")
        async with written(path) as database:
            # Before all others: all numbers of parts change.
            database.connection.execute(
                "INSERT INTO chat_messages SELECT 'msg_0', session_id, role, metadata_json,"
                " created_at - 99000, updated_at FROM chat_messages WHERE session_id = ? LIMIT 1",
                (SESSION,))
            database.connection.execute(
                "INSERT INTO chat_parts SELECT 'prt_0', 'msg_0', session_id, 0, type, data_json,"
                " NULL, NULL, created_at, updated_at FROM chat_parts WHERE session_id = ?"
                " AND type = 'text' LIMIT 1", (SESSION,))
            database.connection.execute("UPDATE chat_sessions SET updated_at = updated_at + 9")
        await run.app.show_written()
        await run.quiet()
        await run.press("ctrl+o")
        assert at(run) == was


async def test_a_place_among_messages_hidden_since_is_shown(tmp_path: Path) -> None:
    path = two(tmp_path)
    async with running(path) as run:
        await run.press("enter")
        await go_to(run, "10")
        was = at(run)
        await run.press("g")
        async with written(path) as database:
            database.connection.execute(
                "UPDATE chat_messages SET metadata_json = ? WHERE session_id = ? AND id >= ?",
                (json.dumps({"hidden_at": 5}), SESSION, message_id(14)))
            database.connection.execute("UPDATE chat_sessions SET updated_at = updated_at + 9")
        await run.app.show_written()
        # The end of a session is read again first, and some time later all of it.
        document = run.transcript.shown.document
        while (part := document.skeleton.locate(*was[1:])) is None or document.run_of(part) is None:
            await run.pilot.pause(0.01)
        await run.quiet()
        await run.press("ctrl+o")
        assert at(run) == was and "Prompt 9:" in drawn(run.app.screen)


async def test_from_the_list_one_comes_back_to_what_was_read(tmp_path: Path) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("enter")
        await go_to(run, "10")
        was = at(run)
        await run.press("1", "G")
        run.app.main.opener.open_preview()
        await run.quiet()
        assert run.app.main.opener.shown == OTHER
        await run.press("ctrl+o")
        assert at(run) == was and run.app.main.panes.focused == "transcript"


@pytest.mark.parametrize("pace", [0, 1, 5])
@pytest.mark.one_in(3)
async def test_keys_typed_ahead_act_at_the_place(tmp_path: Path, pace: int) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("enter")
        await go_to(run, "10")
        await run.press("1", "G", "enter")
        await typed(run, pace, "ctrl+o", "full_stop", "full_stop")
        assert at(run) == (SESSION, message_id(19), 1)
        assert query(tmp_path / "s.db", "SELECT count(*) FROM chat_sessions") == [(2,)]
