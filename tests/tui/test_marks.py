"""Marks by letter and labels: where they are kept, how they are set and gone to, their signs."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from store.engine.database import open_database
from tests.tui.seeded import SESSION, Said, make_store, message_id, text, tool
from tests.tui.seeded import long_talk as talk
from tests.tui.test_key_after_key import typed
from tests.tui.test_places import at, go_to, two
from tests.tui.test_typed_ahead import OTHER
from tests.tui.verbs_app import Running, drawn, query, running
from tui.dialogs.choose import ChooseDialog
from tui.state.marks import Mark, Marks, marks_paths
from tui.transcript.headings import minimap
from tui.transcript.heights import Heights

# Where they are kept


def test_a_library_has_its_marks_beside_it_and_others_in_the_state_folder(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", talk(1))
    database = open_database(path, write=False)
    own, apart = marks_paths(database)
    assert own == tmp_path / "s.db.marks.json"
    assert apart.parent == Path(os.environ["XDG_STATE_HOME"]) / "backscroll"
    database.file_read_only = "a test"
    assert marks_paths(database) == [apart, own]
    database.close()


def test_marks_are_private_are_read_again_and_taken_away(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    marks = Marks(paths)
    assert marks.by_letter == {}
    marks.set("b", Mark("s", "m", 2, 5))
    marks.set("a", Mark("s", "n", 0, 6))
    assert stat.S_IMODE(paths[0].stat().st_mode) == 0o600 and not paths[1].exists()
    other = Marks(paths)
    assert list(other.by_letter) == ["a", "b"]
    assert other.of_session("s") == {("m", 2): "b", ("n", 0): "a"} and not other.of_session("t")
    # Another browser sets one: neither loses what the other has set.
    other.set("c", Mark("s", "o", 1, 7))
    marks.remove("a")
    assert list(marks.by_letter) == ["b", "c"]
    marks.remove("z")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json"]


def test_where_the_first_place_cannot_be_written_the_second_is(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    marks = Marks([blocked / "a.json", tmp_path / "b.json"])
    marks.set("a", Mark("s", "m", 0, 1))
    assert Marks([blocked / "a.json", tmp_path / "b.json"]).by_letter == {
        "a": Mark("s", "m", 0, 1)}
    with pytest.raises(OSError):
        Marks([blocked / "a.json"]).set("a", Mark("s"))


@pytest.mark.parametrize("content", [
    "", "[]", "{", '{"a": 1}', '{"a": ["s", "m", "x", 1]}', '{"ab": ["s", "m", 0, 1]}',
    '{"\\u001b": ["s", "m", 0, 1]}', '{"a": ["s", "m", 0]}', '{"a": ["s", "m", true, 1]}',
])
def test_a_damaged_file_has_no_marks(tmp_path: Path, content: str) -> None:
    file = tmp_path / "m.json"
    file.write_text(content)
    assert Marks([file]).by_letter == {}


# In the browser


async def test_a_mark_is_set_gone_to_and_taken_away(tmp_path: Path) -> None:
    path = two(tmp_path)
    async with running(path) as run:
        await run.press("enter")
        await go_to(run, "10")
        marked = at(run)
        await run.press("m", "x")
        assert run.last.startswith("Mark x set")
        await run.press("1", "G", "enter", "G")
        assert run.app.main.opener.shown == OTHER
        await run.press("apostrophe")
        shown = run.dialog()
        assert "x  Prompt 9: please look at case 9." in shown and "“A session” turn 10" in shown
        await run.press("escape")
        # In the session itself its title is left out.
        await run.press("1", "g", "enter", "apostrophe")
        assert "turn 10" in run.dialog() and "“A session” turn 10" not in run.dialog()
        await run.press("escape", "1", "G", "enter", "apostrophe")
        await run.press("x")
        assert at(run) == marked and run.app.main.panes.focused == "transcript"
        # The way back is kept.
        await run.press("ctrl+o")
        assert run.app.main.opener.shown == OTHER
    async with running(path) as run:
        await run.press("2", "apostrophe", "x")
        assert at(run) == marked
        await run.press("m", "x")
        assert run.last == "Mark x removed"
        await run.press("apostrophe")
        assert run.last.startswith("No marks, and no labels in this session")


async def test_a_session_of_the_list_is_marked_as_a_whole(tmp_path: Path) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("G", "m", "o", "g", "apostrophe")
        assert "o  the session" in run.dialog() and "“Other”" in run.dialog()
        await run.press("o")
        assert run.app.main.opener.shown == OTHER == run.sessions.selected_id


async def test_a_digit_goes_to_a_label_whose_message_begins_without_a_line(
    tmp_path: Path,
) -> None:
    said = [*talk(20), Said("assistant", [{"type": "step-start"}, text("The answer")]), *talk(20)]
    async with running(make_store(tmp_path / "s.db", said)) as run:
        await run.press("enter", "slash", *"the answer", "enter", "B", *"it", "enter", "G")
        await run.press("apostrophe")
        assert "1  “it” The answer" in run.dialog()
        await run.press("1")
        assert at(run) == (SESSION, message_id(40), 1)
        assert "The answer" in drawn(run.app.screen)


async def test_escape_and_other_keys_set_no_mark(tmp_path: Path) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("enter", "g", "m", "escape", "j", "m", "down", "m", "1")
        assert run.app.main.panes.focused == "sessions"
        assert not run.app.main.keeper.marks.by_letter
        assert not any("Mark" in told for told in run.told)


async def test_what_a_mark_was_on_may_be_gone(tmp_path: Path) -> None:
    path = two(tmp_path)
    async with running(path) as run:
        await run.press("enter", "g", "m", "a")
        where = at(run)
        run.app.main.keeper.put("g", Mark(SESSION, "msg_none", 0, 1))
        run.app.main.keeper.put("h", Mark("ses_none", "m", 0, 1))
        await run.press("G", "apostrophe")
        assert run.dialog().count("It is no longer in the store") == 2
        await run.press("g")
        assert isinstance(run.app.screen, ChooseDialog)
        assert run.last == "It is no longer in the store"
        await run.press("a")
        assert at(run) == where


async def test_checkpoints_are_in_the_list(tmp_path: Path) -> None:
    call = tool("Edit", {"file_path": "a"}, "ok", restore_point="point-2")
    path = make_store(tmp_path / "s.db", [
        Said("user", [text("One")]), Said("assistant", [text("I will"), call]),
        Said("user", [text("Two")], {"backscroll": {"checkpoint": {"checkpoint_id": "cp-1"}}}),
        Said("assistant", [text("Done")])])
    async with running(path) as run:
        await run.open(SESSION)
        await run.press("apostrophe")
        assert "Gemini's checkpoint point-2" in run.dialog()
        assert "y-agent's checkpoint cp-1" in run.dialog()
        await run.press("1")
        assert at(run) == (SESSION, message_id(1), 1)
        await run.press("apostrophe", "2")
        assert at(run)[1] == message_id(2)
        await run.press("F", "enter")
        assert run.told[-1].startswith("Forked")


@pytest.mark.parametrize("pace", [0, 1, 5])
@pytest.mark.one_in(3)
async def test_keys_typed_ahead_are_for_the_mark_and_what_it_is_on(
    tmp_path: Path, pace: int
) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("enter")
        await go_to(run, "10")
        await typed(run, pace, "m", "j", "G", "m", "k", "apostrophe", "j", "full_stop")
        assert at(run) == (SESSION, message_id(19), 0)
        assert set(run.app.main.keeper.marks.by_letter) == {"j", "k"}


async def test_a_host_file_and_its_folder_are_left_as_they_are(tmp_path: Path) -> None:
    path = two(tmp_path)
    folder = tmp_path / "host"
    folder.mkdir()
    database = open_database(path)
    database.connection.execute("PRAGMA application_id = 0")
    database.connection.execute("PRAGMA journal_mode = DELETE")
    database.close()
    moved = path.rename(folder / "host.db")
    before = moved.read_bytes()
    async with running(moved) as run:
        await run.press("2", "g", "m", "q")
        assert run.last.startswith("Mark q set")
    assert moved.read_bytes() == before and not list(folder.glob("*marks*"))
    async with running(moved) as run:
        assert list(run.app.main.keeper.marks.by_letter) == ["q"]


# Signs in the gutter and the map


def gutter(run: Running, words: str) -> str:
    """What is left of the line with some words in the transcript."""
    view = run.transcript.view
    for y in range(view.size.height):
        text = view.render_line(y).text
        if words in text:
            return text[:3]
    raise AssertionError(words)


async def test_labels_and_marks_are_in_the_gutter_and_the_map(tmp_path: Path) -> None:
    path = two(tmp_path)
    async with running(path) as run:
        await run.press("enter")
        await go_to(run, "10")
        await run.press("B", *"here", "enter", "full_stop", "full_stop", "m", "x")
        assert gutter(run, "“here”")[0] == "◆" and gutter(run, "Assistant")[0] == "x"
        assert gutter(run, "Prompt 9:")[0] == " "
        line = drawn(run.app.screen).splitlines()[-2]
        assert "◆" in line or "x" in line.rpartition("part ")[2]
        # In another session there is none of them.
        await run.press("1", "G", "enter", "g")
        assert "◆" not in drawn(run.app.screen)
        labels = query(path, "SELECT metadata_json FROM chat_sessions WHERE id = ?", SESSION)
        assert "here" in json.loads(labels[0][0])["user"]["labels"].values()


async def test_the_sign_of_a_mark_goes_with_the_mark(tmp_path: Path) -> None:
    async with running(two(tmp_path)) as run:
        await run.press("enter", "g", "m", "x")
        assert gutter(run, "You")[0] == "x"
        await run.press("m", "x")
        assert gutter(run, "You")[0] != "x"


def test_the_map_draws_the_first_sign_of_a_cell() -> None:
    heights = Heights([3] * 40)
    runs = minimap(heights, 20, 0, (), (), {5: "◆", 20: "a", 21: "◆", 39: "z"})
    assert [(cell, text) for cell, (text, _ink) in enumerate(runs) if text in "◆az"] == [
        (2, "◆"), (10, "a"), (19, "z")]
    assert {ink for text, ink in runs if text in "◆az"} == {"fork"}
