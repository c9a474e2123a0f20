from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.strip import Strip

from store.engine.database import open_database
from store.queries.listing import ListQuery
from store.system.records import replaced
from tests.tui.stores import NOW, Told, browser, put, settled, some
from tui.kit import clipboard
from tui.sessions.header import ListLimit, ListTitle
from tui.sessions.model import ListModel
from tui.sessions.pane import SessionsPane
from tui.sessions.view import SessionList

THREADS = [
    Told("ses_a", "Retry loop", "/w/api", age=5, branch="fix/retry", tokens=500),
    Told("ses_b", "fork of it", "/w/api", age=2, parent="ses_a", tokens=10),
    Told("ses_c", "explore", "/w/api", age=3, parent="ses_a", lineage="subagent"),
    Told("ses_d", "Dark theme", "/w/site", age=4, model="gpt-5.2", source="codex", tokens=900),
    Told("ses_e", "Old notes", "/w/notes", age=9000, archived=True),
    Told("ses_f", None, None, age=8000),
]


def lines(pane: SessionsPane, count: int = 30) -> list[str]:
    return [pane.view.render_line(y).text.rstrip() for y in range(count)]


def titles(pane: SessionsPane) -> list[str]:
    rows = [pane.view.rows[rowid] for rowid in pane.view.model.rowids]
    return [row.title or row.id for row in rows]


async def test_groups_threads_and_facts(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        drawn = lines(pane)
        assert drawn[1].split() == ["/w/api", "3", "sessions"]
        assert drawn[2].split() == ["▌○", "Retry", "loop", "5m"]
        assert drawn[3].split()[:2] == ["▌", "claude"] and "…" not in drawn[3]
        assert drawn[4].split() == ["├─↱", "fork", "of", "it", "2m"]
        assert drawn[6].split() == ["└─↳", "explore", "3m"]
        assert drawn[7].split()[0] == "subagent"
        assert drawn[9].split() == ["/w/site", "1", "session"]
        assert drawn[13].split() == ["no", "workspace", "1", "session"]
        assert drawn[14].split() == ["○", "untitled", "5d"]
        assert titles(pane) == ["Retry loop", "fork of it", "explore", "Dark theme", "ses_f"]


async def test_only_lines_that_look_different_are_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        view = (await settled(app, pilot)).view
        drawn: list[int] = []
        monkeypatch.setattr(view, "refresh_lines", drawn.append)
        monkeypatch.setattr(view, "refresh", lambda *regions: drawn.append(-1))
        # As of a session that grows: the row is another one, and tells the same.
        view.add_rows([replaced(row, updated_at=row.updated_at - 1) for row in view.rows.values()])
        view.show(replaced(view.model), view.list_query, view.selected)
        view.rows_changed(view.rows)
        assert drawn == []
        rowid = view.model.rowids[1]
        view.add_rows([replaced(view.rows[rowid], title="Another", tokens=20_000)])
        assert drawn == [4, 5]
        await pilot.pause()
        drawn.clear()
        view.render_lines(view.size.region)
        view.rows[rowid].turns = 12
        view.rows_changed([rowid])
        assert drawn == [5]
        assert [view.render_line(y).text.split()[-1] for y in (4, 5)] == ["2m", "20k"]


async def test_the_selection_is_held_by_id(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", THREADS)
    app = browser(path)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("j", "j", "j")
        assert pane.selected_id == "ses_d"
        for key in ("s", "s", "b", "b", "b", "V", "V", "V"):
            await pilot.press(key)
            await settled(app, pilot)
            if pane.list_query.shelf != "archived":
                assert pane.selected_id == "ses_d", key
                assert pane.view.rows[pane.view.selected or 0].id == "ses_d"
            else:
                assert pane.selected_id == "ses_e"
                await pilot.press("V")
                await settled(app, pilot)
                await pilot.press("g")
                break
        put(path, [Told("ses_new", "Newest", "/w/zzz", age=0)])
        before = pane.selected_id
        pane.store_changed()
        await settled(app, pilot)
        assert pane.selected_id == before
        assert "Newest" in titles(pane)


async def test_sorts_and_groups(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", [t for t in THREADS if t.parent is None]))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("s", "s")
        await settled(app, pilot)
        assert pane.list_query.sort == "tokens"
        assert titles(pane)[:2] == ["Dark theme", "Retry loop"]
        await pilot.press("b", "b")
        await settled(app, pilot)
        assert [group.name for group in pane.view.model.groups] == ["codex", "claude-code"]
        await pilot.press("b", "b")
        await settled(app, pilot)
        assert pane.view.model.lines(2) == 2 * len(pane.view.model)


async def test_another_grouping_while_the_list_is_arranged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        shown: list[tuple[str, list[str]]] = []
        show, wanted = pane.view.show, pane.contents._wanted_rowid

        def watched(model: ListModel, query: ListQuery, selected: int | None) -> None:
            shown.append((query.group, [group.name for group in model.groups]))
            show(model, query, selected)

        async def changed(model: ListModel, session_id: str | None) -> int | None:
            if pane.list_query.group == "workspace":
                pane.contents.change(pane.list_query._replace(group="day"))
            return await wanted(model, session_id)

        monkeypatch.setattr(pane.view, "show", watched)
        monkeypatch.setattr(pane.contents, "_wanted_rowid", changed)
        await pane.contents.arrange(None)
        await settled(app, pilot)
        assert shown[0] == ("workspace", ["/w/api", "/w/site", ""])
        assert shown[-1][0] == "day"
        assert all(name.count("-") == 2 for name in shown[-1][1])


async def test_a_session_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    async def keep(app: object, text: str, name: str = "") -> None:
        copied.append(text)

    monkeypatch.setattr(clipboard, "copy", keep)
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("y")
        for key in ("t", "s", "f", "p", "S"):
            await pilot.press("Y")
            await settled(app, pilot)
            await pilot.press(key)
            await settled(app, pilot)
    assert copied[:5] == ["ses_a", "Retry loop", "ses_a", "/w/api", "/x"]
    assert copied[5].startswith("---\n") and "\n---\n\n# Retry loop" in copied[5]


async def test_archived_ones_are_marked(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("V")
        await settled(app, pilot)
        assert titles(pane) == ["Old notes"]
        assert "archived" in lines(pane)[3]
        assert pane.query_one(ListTitle).render_line(0).text.split()[:2] == ["Archived", "1"]


async def test_the_filter_says_how_many_and_clears(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("/", "d", "r", "k", "t", "h")
        await settled(app, pilot)
        assert titles(pane) == ["Dark theme"]
        assert "1 of 5" in pane.query_one(ListTitle).render_line(0).text
        assert pane.selected_id == "ses_d"
        await pilot.press("q", "q", "q")
        await settled(app, pilot)
        drawn = lines(pane, 6)
        assert "No session matches" in drawn[1]
        words = " ".join(line.strip() for line in drawn[2:]).strip()
        assert words == "5 are hidden by the filter; esc clears it"
        await pilot.press("escape")
        await settled(app, pilot)
        assert pane.filter_text == ""
        assert len(titles(pane)) == 5
        assert pane.view.has_focus


async def test_typed_text_never_becomes_a_command(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("/")
        app.post_message(events.AppBlur())
        await pilot.pause()
        app.main.set_focus(None)
        await pilot.press("q", "d", "z")
        await settled(app, pilot)
        assert pane.filter_text == "qdz"
        assert app.is_running
        await pilot.press("enter", "z")
        assert pane.filter_text == "qdz"


@pytest.mark.parametrize(
    ("typed", "found"),
    [("fix/retry", ["Retry loop"]), ("gpt-5", ["Dark theme"]), ("/w/site", ["Dark theme"]),
     ("CODEX", ["Dark theme"]), ("rtry loop", ["Retry loop"]), ("dark retry", [])],
)
@pytest.mark.one_in(3)
async def test_what_the_filter_looks_at(typed: str, found: list[str], tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("/", *("space" if key == " " else key for key in typed))
        await settled(app, pilot)
        assert titles(pane) == found


async def test_an_empty_store_says_so(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", []))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        assert "There are no sessions in this store" in lines(pane, 3)[1]
        await pilot.press("j", "G", "space", "L", "left")
        assert pane.view.cursor is None


async def test_folds_and_marks(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.press("j", "left")
        await settled(app, pilot)
        assert titles(pane) == ["Retry loop", "Dark theme", "ses_f"]
        assert pane.selected_id == "ses_a"
        assert "▸2" in lines(pane)[2]
        assert app.view_state.folds == {"ses_a": True}
        await pilot.press("right")
        await settled(app, pilot)
        assert len(titles(pane)) == 5
        await pilot.press("space", "space")
        assert "2 marked" in pane.query_one(ListTitle).render_line(0).text
        assert lines(pane)[2].split()[0] == "✓"


async def test_hostile_titles_are_harmless(tmp_path: Path) -> None:
    told = Told("ses_x", "\x1b]52;c;aGk=\x07 [/nope] [bold \u202egnp\ud800\n two", "/w/\x1b[2J")
    app = browser(put(tmp_path / "s.db", [told]))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        drawn = "\n".join(lines(pane))
        assert "[/nope] [bold" in drawn
        assert not set(drawn) & {"\x1b", "\x07", "\u202e", "\ud800"}


async def test_thousands_are_read_by_windows(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(9_000)))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.main.sessions
        first = [pane.view.render_line(y).text for y in range(30)]
        pane = await settled(app, pilot)
        assert len(pane.view.model) == 9_000
        assert [pane.view.render_line(y).text[:20] for y in range(30)] == [t[:20] for t in first]
        await pilot.press("G")
        await settled(app, pilot)
        assert pane.selected_id == f"ses_{8999:026d}"
        await pilot.press("g", "pagedown")
        await settled(app, pilot)
        assert pane.view.cursor == pane.view.page()
        assert len(pane.view.rows) < 1_000


async def test_the_mouse_selects_and_opens(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        await pilot.click("#session-list", offset=(8, 10))
        await settled(app, pilot)
        assert pane.selected_id == "ses_d"
        await pilot.click("#session-list", offset=(8, 11))
        await settled(app, pilot)
        assert app.main.panes.focused == "transcript"
        assert app.main.opener.shown == "ses_d"
        await pilot.click("ListTitle", offset=(33, 0))
        await settled(app, pilot)
        assert pane.list_query.group == "day"
        sort = pane.list_query.sort
        await pilot.click("ListOrder", offset=(30, 0))
        await settled(app, pilot)
        assert pane.list_query.sort != sort
        for _ in range(2):  # The second one is on the filter itself.
            await pilot.click("ListOrder", offset=(6, 0))
            await settled(app, pilot)
            assert pane.filter_has_focus


async def test_running_ones_are_counted_and_found(tmp_path: Path) -> None:
    told = [*THREADS, Told("ses_r", "Live", "/w/zz", age=0.5, activity="running"),
            Told("ses_w", "Asks", "/w/zz", age=1, activity="waiting-approval")]
    app = browser(put(tmp_path / "s.db", told))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        top = app.main.query_one("TopLine").render_line(0).text
        assert "● 1 running" in top
        assert "◐ 1 waiting (24 h)" in top
        await pilot.press("G", "L")
        await settled(app, pilot)
        assert pane.selected_id == "ses_r"
        assert any("needs approval" in line for line in lines(pane))
        # What keeps it out of the list is taken away.
        pane.contents.change(pane.list_query._replace(workspace="/w/api"))
        await pilot.press("slash", *"Asks", "enter")
        await settled(app, pilot)
        assert pane.selected_id != "ses_r"
        await pilot.press("L")
        await settled(app, pilot)
        assert pane.selected_id == "ses_r"
        assert pane.list_query.workspace is None and not pane.filter_text


async def test_the_list_of_one_folder_says_so_and_has_a_key_that_leaves_it(
    tmp_path: Path,
) -> None:
    app = browser(put(tmp_path / "s.db", THREADS))
    app.library.workspace = "/w/api"
    async with app.run_test(size=(120, 40)) as pilot:
        contents = app.main.sessions.contents
        contents.change(contents.query._replace(workspace="/w/api"))
        pane = await settled(app, pilot)
        limit = pane.query_one(ListLimit)
        assert limit.display
        assert limit.render_line(0).text.split() == ["only", "/w/api", "W", "all", "folders"]
        assert pane.view.model.matched == 3
        await pilot.press("j", "W")
        await settled(app, pilot)
        assert not limit.display and pane.view.model.matched == 5
        assert pane.selected_id == "ses_b"
        await pilot.press("g", "G", "k", "W")
        await settled(app, pilot)
        assert limit.display and pane.list_query.workspace == "/w/site"
        await pilot.click("ListLimit", offset=(30, 0))
        await settled(app, pilot)
        assert pane.view.model.matched == 5
        await pilot.press("G")
        await settled(app, pilot)
        assert pane.selected_id == "ses_f"
        await pilot.press("W")
        await settled(app, pilot)
        assert pane.list_query.workspace is None
        assert list(app._notifications)[-1].message == (
            "This session has no folder to filter by")


def with_messages(path: Path, session_id: str, prompts: int, answers: int) -> None:
    database = open_database(path)
    for number in range(prompts + answers):
        role = "user" if number < prompts else "assistant"
        database.connection.execute(
            "INSERT INTO chat_messages(id, session_id, role, created_at, updated_at)"
            " VALUES (?, ?, ?, 1, 1)", (f"msg_{session_id}_{number}", session_id, role))
    database.close()


async def test_length_is_in_one_unit_from_the_first_paint_on(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", [Told("ses_a", "Alpha"), Told("ses_b", "Beta", age=2)])
    with_messages(path, "ses_a", 2, 14)
    app = browser(path)
    seen: list[tuple[int, str]] = []
    draw = SessionList.render_line

    def watch(self: SessionList, y: int) -> Strip:
        strip = draw(self, y)
        seen.append((y, strip.text))
        return strip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionList, "render_line", watch)
        async with app.run_test(size=(120, 40)) as pilot:
            pane = await settled(app, pilot)
            assert "2 turns" in lines(pane)[3]
            assert not any("msg" in line for _, line in seen)
            seen.clear()
            pane.store_changed()
            await settled(app, pilot)
            facts = [line for y, line in seen if y == 3]
            assert all("2 turns" in line for line in facts)
            while pane.list_query.sort != "length":
                await pilot.press("s")
            await settled(app, pilot)
            assert any("16 msgs" in line for line in lines(pane))
            assert any(" 0 msgs" in line for line in lines(pane))


async def test_a_filter_by_state_looks_at_old_sessions_too(tmp_path: Path) -> None:
    days = 24 * 60.0
    told = [*THREADS, Told("ses_w", "Asks", "/w/zz", age=90 * days, activity="waiting-approval"),
            Told("ses_x", "Broke", "/w/zz", age=200 * days, activity="error"),
            Told("ses_y", "Crashed", "/w/zz", age=300 * days, activity="running")]
    app = browser(put(tmp_path / "s.db", told))
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        for words, found in (("is:waiting", "ses_w"), ("is:error", "ses_x"),
                             ("is:interrupted", "ses_y")):
            await pilot.press("slash", *words, "enter")
            await settled(app, pilot)
            assert [row.id for rowid in pane.view.model.rowids
                    if (row := pane.view.rows.get(rowid))] == [found]
            await pilot.press("backspace")
            await settled(app, pilot)


async def test_what_was_left_comes_back(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", THREADS)
    app = browser(path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("j", "j", "j", "s", "<")
        await settled(app, pilot)
    again = browser(path)
    async with again.run_test(size=(120, 40)) as pilot:
        pane = await settled(again, pilot)
        assert pane.selected_id == "ses_d"
        assert pane.list_query.sort == "created"
        assert again.view_state.layout.sessions_width == 32
        assert again.library.clock() == NOW
