"""Keys that come faster than the app answers: none is lost, none acts on what was before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual import events

from store.queries import listing
from tests.tui.seeded import SESSION, Said, make_store, text
from tests.tui.stores import put, some
from tests.tui.verbs_app import Running, query, running
from tui.dialogs.frame import Dialog
from tui.messages import SessionOpened

OTHER = "ses_other_zz"
NAMED = {"escape", "enter", "down", "end"}


async def burst(run: Running, *keys: str) -> None:
    """Give keys to the app without waiting for what the ones before do."""
    for key in keys:
        run.app.post_message(events.Key(key, None if key in NAMED else key))
    await run.quiet()


def two_talks(path: Path) -> Path:
    said = [Said(role, [text(f"{role} {n}")]) for n in range(6) for role in ("user", "assistant")]
    make_store(path, said)
    return make_store(path, said, session_id=OTHER, session={
        "metadata_json": '{"title":"Other"}', "updated_at": 1, "created_at": 1})


async def test_keys_typed_while_a_session_opens_act_on_it(tmp_path: Path) -> None:
    path = two_talks(tmp_path / "s.db")
    async with running(path) as run:
        assert run.app.main.opener.shown == SESSION
        await burst(run, "G", "enter", "K", "K", "f")
        assert run.app.main.opener.shown == OTHER
        assert "Other (2)" in run.dialog()
        assert "10 messages" in run.dialog()
        assert not any("No session is shown" in told for told in run.told)
        await burst(run, "enter")
        assert query(path, "SELECT parent_id FROM chat_sessions WHERE parent_id IS NOT NULL") \
            == [(OTHER,)]


@pytest.mark.parametrize("into", ["2", "tab"])
async def test_keys_in_the_transcript_act_on_the_session_the_list_came_to(
    tmp_path: Path, into: str
) -> None:
    path = two_talks(tmp_path / "s.db")
    async with running(path) as run:
        assert run.app.main.opener.shown == SESSION
        await burst(run, "G", into, "f")
        assert run.app.main.opener.shown == OTHER
        assert "Other (2)" in run.dialog()


async def test_a_key_typed_after_a_verb_answers_its_dialog(tmp_path: Path) -> None:
    path = two_talks(tmp_path / "s.db")
    async with running(path) as run:
        await burst(run, "G", "enter", "f", "enter")
        assert not isinstance(run.app.screen, Dialog)
        assert run.app.main.panes.focused == "transcript"
        assert query(path, "SELECT count(*) FROM chat_sessions WHERE parent_id = ?", OTHER) \
            == [(1,)]


async def test_a_verb_acts_on_the_session_the_cursor_came_to(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(9_000))
    last = f"ses_{8999:026d}"
    async with running(path) as run:
        view = run.sessions.view
        assert view.model.rowids[-1] not in view.rows
        await burst(run, "G", "a")
        assert query(path, "SELECT id FROM chat_sessions WHERE archived_at IS NOT NULL") \
            == [(last,)]


async def test_enter_opens_the_session_the_cursor_came_to(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(9_000))
    async with running(path) as run:
        await burst(run, "G", "enter")
        assert run.app.main.opener.shown == f"ses_{8999:026d}"
        assert run.app.main.panes.focused == "transcript"


async def test_what_is_asked_for_by_message_opens_too(tmp_path: Path) -> None:
    path = two_talks(tmp_path / "s.db")
    async with running(path) as run:
        run.sessions.post_message(SessionOpened(OTHER))
        await run.quiet()
        assert run.app.main.opener.shown == OTHER
        assert run.app.main.panes.focused == "transcript"


async def test_a_list_that_is_read_again_still_goes_where_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "s.db", some(300))
    async with running(path) as run:
        pane, library = run.sessions, run.app.library
        read, again = library.read, [True, True, True]

        async def broken_off(*args: Any) -> Any:
            if args[0] is listing.rowid_of and again:
                again.pop()
                pane.contents.reload()
            return await read(*args)

        monkeypatch.setattr(type(library), "read", staticmethod(broken_off))
        pane.go_to(f"ses_{250:026d}")
        await run.quiet()
        monkeypatch.undo()
        assert pane.selected_id == f"ses_{250:026d}"


@pytest.mark.long
async def test_a_cursor_whose_row_is_on_the_way_stays_where_it_is(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(9_000))
    async with running(path) as run:
        pane, view = run.sessions, run.sessions.view
        last = view.model.rowids[-1]
        view.select(len(view.model) - 1)
        assert last not in view.rows
        assert await pane.contents._wanted_rowid(view.model, None) == last


async def test_keys_typed_behind_a_line_of_text_are_none_of_it(tmp_path: Path) -> None:
    path = two_talks(tmp_path / "s.db")
    async with running(path) as run:
        await burst(run, "G", "enter")
        await burst(run, "slash", "u", "s", "e", "r", "enter", "n", "n")
        search = run.transcript.shown.search
        assert search is not None
        assert (search.needle, search.number, run.transcript.cursor) == ("user", 3, 4)
        await burst(run, "colon", "5", "enter", "K")
        assert run.transcript.cursor == 7
        await burst(run, "slash", "x", "escape", "G")
        assert run.transcript.cursor == 11 and not run.transcript.prompt.is_open
        assert not run.told


async def test_the_wheel_and_keys_act_in_the_order_they_came_in(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [
        Said("user", [text("\n\n".join(f"line {n}" for n in range(200)))])])
    async with running(path) as run:
        await run.open(SESSION)
        view = run.transcript.view
        x, y = view.region.offset + (5, 5)
        for down in (True, False):
            run.app.post_message(events.Key("home", None))
            wheel = events.MouseScrollDown if down else events.MouseScrollUp
            for _ in range(3):
                run.app.post_message(
                    wheel(None, x, y, 0, 0, 0, False, False, False, x, y, None))
            run.app.post_message(events.Key("down", None))
            await run.quiet()
            assert view.scroller.position == (10 if down else 1)
        run.app.post_message(wheel(None, x, y, 0, 0, 0, False, False, False, x, y, None))
        run.app.post_message(events.Key("end", None))
        await run.quiet()
        assert view.at_end


async def test_text_typed_with_the_key_before_it_is_text(tmp_path: Path) -> None:
    path = two_talks(tmp_path / "s.db")
    async with running(path) as run:
        await burst(run, "slash", "o", "t", "h", "e", "r")
        assert run.sessions.filter_text == "other"
        assert run.sessions.view.model.matched == 1
        await burst(run, "enter")
        await burst(run, "enter")
        assert run.app.main.opener.shown == OTHER
        await burst(run, "slash", "u", "s", "e", "r", "enter")
        assert run.transcript.shown.search is not None
        search = run.transcript.shown.search
        assert (search.needle, search.total) == ("user", 6)
        await burst(run, "3")
        await burst(run, "slash", "a", "s", "enter")
        inspector = run.app.main.inspector
        assert inspector is not None and inspector.view.needle == "as"
        assert not run.told
