"""Jump mode: letters on what is on the screen, in every pane and screen that has rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual import events

from tests.tui.seeded import SESSION, Said, long_talk, make_store, text
from tests.tui.stores import put, some
from tests.tui.test_key_after_key import typed
from tests.tui.test_typed_ahead import two_talks
from tests.tui.verbs_app import Running, drawn, running, written
from tui.keys.footer import BottomLine
from tui.keys.jump import JumpMode
from tui.kit.jumping import LETTERS, codes


@pytest.mark.parametrize("count", [0, 1, 9, 26, 27, 51, 52, 60, 300, 676])
def test_no_code_begins_another_and_the_home_row_comes_first(count: int) -> None:
    made = codes(count)
    assert len(made) == len(set(made)) == count
    assert all(1 <= len(code) <= 2 and set(code) <= set(LETTERS) for code in made)
    assert not any(a != b and b.startswith(a) for a in made for b in made)
    assert made[:9] == list("asdfghjkl")[:count] or count > 400
    # As few of two letters as can be.
    assert sum(len(code) == 2 for code in made) == 0 or count > len(LETTERS)


def test_what_is_beyond_two_letters_has_no_code() -> None:
    assert len(codes(1000)) == 676


class View:
    def __init__(self, stops: int) -> None:
        self.stops = [f"row {n}" for n in range(stops)]
        self.shown: dict[str, str] = {}

    def jump_stops(self) -> list[str]:
        return self.stops

    def show_codes(self, codes: Any) -> None:
        self.shown = dict(codes)


async def test_the_second_letter_is_shown_once_the_first_is_typed() -> None:
    view, went = View(60), list[str]()
    mode = JumpMode(view, went.append)
    assert len(view.shown) == 60 and view.shown["row 59"] == codes(60)[59]
    first, second = tuple(codes(60)[59])
    assert await mode.take(first)
    assert view.shown["row 59"] == second and len(view.shown) < 27
    assert await mode.take("backspace") and len(view.shown) == 60
    assert await mode.take(first.upper()) and not await mode.take(second)
    assert went == ["row 59"] and not view.shown
    few = JumpMode(View(3), went.append)
    assert not await few.take("q") and went == ["row 59"]


def asked(run: Running) -> str:
    return run.app.screen.query_one(BottomLine).asks


async def test_a_letter_goes_to_a_session_of_the_list(tmp_path: Path) -> None:
    async with running(put(tmp_path / "s.db", some(12))) as run:
        await run.press("semicolon")
        rows = drawn(run.app.screen).splitlines()
        assert sum(row.startswith(tuple(f"{letter} " for letter in LETTERS)) for row in rows) == 12
        assert asked(run) == "Jump to a letter" and "esc leave" in rows[-1]
        await run.press("f")
        assert run.sessions.view.cursor == 3 and not asked(run)
        await run.press("semicolon", "escape", "j")
        assert run.sessions.view.cursor == 4


async def test_a_letter_goes_to_a_part_of_the_transcript(tmp_path: Path) -> None:
    async with running(make_store(tmp_path / "s.db", long_talk(20))) as run:
        await run.press("2", "g", "semicolon")
        rows = drawn(run.app.screen).splitlines()
        assert any(" a  You" in row for row in rows), rows
        stops = run.transcript.view.jump_stops()
        await run.press("d")
        document = run.transcript.document
        assert document.skeleton.key(run.transcript.cursor) == stops[2]
        top = run.transcript.view.position[:2]
        await run.press("semicolon", "a")
        assert run.transcript.cursor == 0 and run.transcript.view.position[:2] == top


async def test_many_rows_have_two_letters(tmp_path: Path) -> None:
    said = [Said("user", [text(f"line {n}") for n in range(60)])]
    async with running(make_store(tmp_path / "s.db", said), (160, 60)) as run:
        await run.press("2", "g", "semicolon")
        stops = run.transcript.view.jump_stops()
        assert len(stops) > 26
        await run.press(*codes(len(stops))[-1])
        assert run.transcript.document.skeleton.key(run.transcript.cursor) == stops[-1]


@pytest.mark.parametrize("keys", [
    ["3"], ["1", "d"], ["1", "T"], ["1", "d", "right_square_bracket"],
])
@pytest.mark.one_in(2)
async def test_every_view_of_lines_can_be_jumped_in(keys: list[str], tmp_path: Path) -> None:
    async with running(make_store(tmp_path / "s.db", long_talk(9))) as run:
        await run.press("2", "G", *keys)
        owner: Any = run.app.screen if run.app.screen is not run.app.main else (
            run.app.main.inspector)
        stops = owner.view.jump_stops()
        assert stops
        await run.press("semicolon")
        await run.press(codes(len(stops))[-1][0])
        assert owner.view.cursor == stops[-1]


async def test_other_keys_leave_it_and_are_run(tmp_path: Path) -> None:
    async with running(put(tmp_path / "s.db", some(12))) as run:
        await run.press("semicolon", "down")
        assert run.sessions.view.cursor == 1 and not asked(run)
        await run.press("semicolon")
        run.app.post_message(events.MouseDown(
            None, 60, 5, 0, 0, 1, False, False, False, screen_x=60, screen_y=5))
        await run.quiet()
        assert not asked(run) and not run.sessions.view._codes
        await run.press("1", "semicolon", "question_mark")
        assert run.app.screen is not run.app.main
        await run.press("escape")
        assert not asked(run) and not run.sessions.view._codes


@pytest.mark.parametrize("pace", [0, 1, 5])
@pytest.mark.one_in(3)
async def test_letters_typed_ahead_are_for_the_codes(tmp_path: Path, pace: int) -> None:
    async with running(put(tmp_path / "s.db", some(12))) as run:
        await typed(run, pace, "semicolon", "g", "j", "semicolon", "a", "j", "j")
        assert run.sessions.view.cursor == 2
        # On a Greek layout, by position.
        await typed(run, pace, "semicolon", "δ")
        assert run.sessions.view.cursor == 2


async def test_codes_stay_with_their_rows_while_the_session_grows(tmp_path: Path) -> None:
    path = two_talks(tmp_path / "s.db")
    async with running(path) as run:
        await run.press("2", "G", "semicolon")
        view = run.transcript.view
        stops = view.jump_stops()
        before = {view.document.skeleton.key(part): code for part, code in (
            (part, view._codes[view.document.skeleton.key(part)]) for part in view._heads())}
        count = len(view.document)
        async with written(path) as database:
            database.connection.execute(
                "INSERT INTO chat_messages SELECT 'msg_zz', session_id, role, metadata_json,"
                " created_at + 99000, updated_at + 99000 FROM chat_messages"
                " WHERE session_id = ? LIMIT 1", (SESSION,))
            database.connection.execute("UPDATE chat_sessions SET updated_at = updated_at + 1")
        await run.app.show_written()
        await run.quiet()
        assert len(view.document) == count + 1 and dict(view._codes) == before
        await run.press("s")
        assert view.document.skeleton.key(view.cursor) == stops[1]
