"""List and transcript are on one session, whatever opened it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.containers import Vertical

from tests.tui.seeded import Said, make_store, text
from tests.tui.stores import NOW, Told, put
from tests.tui.verbs_app import Running, running, written
from tui.dialogs.frame import Dialog
from tui.host import WayBack

FAMILY = [
    Told("ses_root", "Root", "/w/api", age=1),
    Told("ses_fork", "Fork", "/w/api", age=2, parent="ses_root"),
    *(Told(f"ses_sub{n}", f"Sub {n}", "/w/api", age=3 + n, parent="ses_root", lineage="subagent")
      for n in range(6)),
    Told("ses_web", "Web page", "/w/web", age=10),
    Told("ses_old", "Old one", "/w/web", age=3 * 1440, archived=True),
]


def listed(run: Running) -> str | None:
    """The session under the list's cursor, as it is drawn."""
    row = run.sessions.view.rows.get(run.sessions.view.selected or -1)
    assert row is None or row.id == run.sessions.selected_id
    return run.sessions.selected_id


def agrees(run: Running, session_id: str) -> bool:
    shown = run.transcript.session
    return shown is not None and shown.id == session_id == listed(run) == run.app.shown_session


@pytest.mark.parametrize(
    ("commands", "filter_text"),
    [("", "web"), ("list.view list.folder", ""),
     pytest.param("list.sort list.group", "zz", marks=pytest.mark.long),
     pytest.param("list.view list.folder", "zz", marks=pytest.mark.long)],
)
@pytest.mark.one_in(2)
async def test_the_list_goes_to_whatever_is_opened(
    commands: str, filter_text: str, tmp_path: Path
) -> None:
    async with running(put(tmp_path / "s.db", FAMILY)) as run:
        for told in (FAMILY[3], FAMILY[-1], FAMILY[0], FAMILY[-2]):
            for command in commands.split():
                run.app.main.run_by_id(command)
                await run.quiet()
            if filter_text:
                await run.press("slash", *filter_text, "enter")
            run.app.open_session(told.id)
            await run.quiet()
            assert agrees(run, told.id)
            assert run.app.main.panes.focused == "transcript"
            await run.press("1")
            assert agrees(run, told.id)


async def test_what_is_lifted_is_named(tmp_path: Path) -> None:
    async with running(put(tmp_path / "s.db", FAMILY)) as run:
        await run.press("slash", *"root", "enter")
        run.app.open_session("ses_old")
        await run.quiet()
        assert run.last == "Archived sessions listed, filter cleared to show “Old one”"
        assert (run.sessions.list_query.shelf, run.sessions.filter_text) == ("all", "")
        await run.press("1", "V", "V")
        assert run.sessions.list_query.shelf == "archived"
        run.app.open_session("ses_root")
        await run.quiet()
        assert run.last == "Active sessions listed to show “Root”"
        run.app.open_session("ses_fork")
        await run.quiet()
        assert run.last == "Active sessions listed to show “Root”"
        assert len(run.told) == 2


async def test_escape_leads_back_where_a_way_is_given(tmp_path: Path) -> None:
    went: list[str] = []
    async with running(put(tmp_path / "s.db", FAMILY)) as run:
        run.app.open_session("ses_web", back=WayBack("search", lambda: went.append("search")))
        await run.quiet()
        assert "esc back to search" in run.transcript.headings.header.render_line(1).text
        await run.press("escape")
        assert went == ["search"] and agrees(run, "ses_web")
        run.app.open_session("ses_fork")
        await run.quiet()
        assert "esc back" not in run.transcript.headings.header.render_line(1).text
        await run.press("escape")
        assert run.app.main.panes.focused == "sessions" and agrees(run, "ses_fork")


async def test_the_ways_that_open_a_session_keep_both_on_it(tmp_path: Path) -> None:
    async with running(put(tmp_path / "s.db", FAMILY)) as run:
        await run.press("slash", *"root", "enter", "T", "j", "enter")
        assert agrees(run, "ses_sub5") and not run.sessions.filter_text
        run.app.open_session("ses_fork")
        await run.quiet()
        await run.press("left_parenthesis")
        assert agrees(run, "ses_root")
        await run.press("right_parenthesis")
        assert agrees(run, "ses_fork")


async def test_undo_in_the_transcript_keeps_both_on_what_is_read(tmp_path: Path) -> None:
    async with running(put(tmp_path / "s.db", FAMILY)) as run:
        await run.press("G", "asterisk", "g", "2")
        assert agrees(run, "ses_root")
        await run.press("U")
        assert run.last.startswith("Undone: starred") and agrees(run, "ses_root")


async def test_the_list_shows_its_own_selection_once_it_has_the_focus(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", FAMILY)
    async with running(path) as run:
        await run.open("ses_web")
        async with written(path) as database:
            database.connection.execute(
                "UPDATE chat_sessions SET archived_at = 5 WHERE id = 'ses_web'")
        await run.app.main.sessions.contents.read()
        await run.quiet()
        assert run.app.shown_session == "ses_web" != run.sessions.selected_id
        await run.press("1")
        run.app.main.opener.open_preview()
        await run.quiet()
        assert agrees(run, run.sessions.selected_id or "")


@pytest.mark.parametrize("key", ["2", "3", "tab", "enter"])
@pytest.mark.one_in(2)
async def test_a_pane_alone_shows_the_session_that_is_selected(key: str, tmp_path: Path) -> None:
    async with running(put(tmp_path / "s.db", FAMILY), size=(80, 24)) as run:
        await run.press("G", key)
        assert agrees(run, "ses_web")
        await run.press("1", "g", key)
        assert agrees(run, "ses_root")


@pytest.mark.parametrize(
    ("pane", "key"),
    [("1", "R"), ("1", "number_sign"), ("1", "C"), ("2", "B"), ("2", "r"), ("2", "f"), ("2", "F"),
     ("2", "x"), ("2", "C")],
)
@pytest.mark.one_in(3)
async def test_a_dialog_that_changes_a_session_names_it(
    pane: str, key: str, tmp_path: Path
) -> None:
    said = [Said("user", [text("one")]), Said("assistant", [text("two")]),
            *(Said(role, [text("gone")], {"hidden_at": at})
              for at in (NOW - 2, NOW - 1) for role in ("user", "assistant")),
            Said("user", [text("three")]), Said("assistant", [text("four")])]
    path = make_store(tmp_path / "s.db", said)
    async with running(path) as run:
        await run.press(pane, *(("j",) if key == "F" else ("g",) if pane == "2" else ()), key)
        dialog = run.app.screen
        assert isinstance(dialog, Dialog), (run.told, dialog)
        frame = dialog.query_one(Vertical).region
        rows = run.dialog().splitlines()[frame.y:frame.bottom]
        assert "A session" in "\n".join(row[frame.x:frame.right] for row in rows)


async def test_a_session_that_no_list_shows_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", FAMILY)
    async with written(path) as database:
        database.connection.execute(
            "INSERT INTO session_links (session_id, kind, parent_id, pending)"
                " VALUES ('ses_sub1', 'helper', 'ses_root', 0)")
    async with running(path) as run:
        await run.press("G")
        run.app.open_session("ses_sub1")
        await run.quiet()
        assert run.last == "The list leaves “Sub 1” out: its agent started it for itself"
        assert run.app.shown_session == "ses_sub1"
