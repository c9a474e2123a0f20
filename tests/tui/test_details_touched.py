"""The tabs Files and Commands of the details."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.engine.database import open_database
from store.files.disk import Standing
from store.queries.touches import touches
from tests.store.test_touches import call, edit
from tests.tui.inspected import START, Talk, bash, text
from tests.tui.test_details import details_of
from tests.tui.workers import workers_done
from tui.details.touched_tables import FileTable
from tui.keys.registry import BY_ID
from tui.kit.lines import width_of


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    talk = Talk(open_database(tmp_path / "store.db", create=True))
    talk.message("user", text("Fix it"))
    talk.message("assistant", call("Read", {"file_path": "/home/x/api/a.py"}),
                 edit("/home/x/api/a.py", "one", "two\nthree"), bash("make check", "", 2))
    talk.message("user", text("And the rest"))
    talk.message("assistant", call("Write", {"file_path": "b/new.py", "content": "1\n2\n3\n"}),
                 edit("a.py", "two", "four"), call("Read", {"file_path": "/etc/hosts"}),
                 edit("a.py", state="output-denied", output=None),
                 bash("cd src &&\nls\npwd", "", exit_code=0))
    talk.message("user", text("Hidden"), hidden_at=START)
    talk.message("assistant", edit("c.py"), hidden_at=START)
    return talk


LIST_COMMANDS = [BY_ID[f"details.{name}"] for name in ("filter", "sort", "edits")]
TO_FILES, TO_COMMANDS = ["["] * 2, ["["]


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(3)
async def test_files_show_edits_and_lines_at_every_size(talk: Talk, size: tuple[int, int]) -> None:
    async with details_of(talk, size) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        await pilot.pause()
        lines = app.lines
    assert screen.tab == "Files"
    head = next(line for line in lines if "4 files" in line)
    assert "1 edited, 1 written, 2 read" in head and "by last touch" in head
    rows = [next(line for line in lines if line.lstrip().startswith(name))
            for name in ("c.py", "a.py", "b/new.py", "/etc/hosts")]  # fmt: skip
    assert "1 hidden" in rows[0]
    assert "2 edits" in rows[1] and "+3" in rows[1] and "-2" in rows[1] and "1 denied" in rows[1]
    assert "written" in rows[2] and "+3" in rows[2] and "1 read" in rows[3]
    preview = "\n".join(lines)
    assert ("+ two" in preview or "turn 2 " in preview) if size[0] >= 150 else True


def test_columns_of_files_stay_whatever_is_on_disk(tmp_path: Path) -> None:
    talk = Talk(open_database(tmp_path / "store.db", create=True))
    names = [f"/home/x/{name}{'/long' * 30}" for name in "abcd"]
    talk.message("assistant", *[edit(name) for name in names])
    rows = list(touches(talk.db, talk.session_id).files.values())
    standings: dict[str, Standing] = {
        names[0]: "gone", names[1]: "changed", names[2]: "unknown"}
    for width in (78, 118):
        table = FileTable(talk.session_id, rows, standings)
        lines = [table.line(number, width) for number in range(4)]
        assert len({width_of(line.runs) for line in lines}) == 1
        assert len({width_of(line.right) for line in lines}) == 1
    talk.db.close()


async def test_enter_goes_to_the_call_and_y_copies_the_path(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    async def copy(_terminal: object, body: str, name: str = "") -> None:
        copied.append(body)

    monkeypatch.setattr("tui.kit.clipboard.copy", copy)
    async with details_of(talk) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        await pilot.press("j", "j", "y", "enter")
        await pilot.pause()
        assert app.screen is not screen
    assert copied == ["/home/x/api/a.py"]
    assert app.opened[0].message_id == "msg_inspected_00004"
    assert app.opened_parts == ["prt_inspected_00004_3"]


async def test_all_edits_of_a_file_are_one_diff(talk: Talk) -> None:
    async with details_of(talk, (100, 40)) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        await pilot.press("j", "j", "D")
        await workers_done(app)
        await pilot.pause()
        lines = [line.strip() for line in app.lines]
        shown = "\n".join(lines)
        assert shown.index("turn 1") < shown.index("- one") < shown.index("+ three")
        assert shown.index("+ three") < shown.index("turn 2") < shown.index("+ four")
        assert "edit, denied" in shown
        assert screen.text_to_copy().startswith("# a.py, turn 1")
        await pilot.press("G", "k", "enter")
        await pilot.pause()
        assert app.opened_parts == ["prt_inspected_00004_3"]


async def test_edits_that_were_read_later_come_into_the_diff(talk: Talk) -> None:
    async with details_of(talk, (160, 40)) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        assert screen.lists.found is not None
        row = screen.lists.found.files["/home/x/api/a.py"]
        screen.lists.diff = row, []
        await screen.renew_edits()
        await pilot.pause()
        assert screen.lists.diff is not None and len(screen.lists.diff[1]) == 3
        assert "- one" in "\n".join(line.strip() for line in app.lines)


async def test_escape_leads_from_the_diff_to_the_list_and_out(talk: Talk) -> None:
    async with details_of(talk) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        await pilot.press("j", "j", "D")
        await pilot.press("escape")
        assert screen.lists.diff is None and screen.view.cursor == 2
        await pilot.press("escape")
        assert app.screen is not screen


@pytest.mark.parametrize("inside", [
    ["D"], pytest.param(["/", *"py", "enter"], marks=pytest.mark.long)])
async def test_q_closes_from_a_diff_and_a_filter_and_escape_steps_back(
    talk: Talk, inside: list[str]
) -> None:
    for key in ("q", "d", "escape"):
        async with details_of(talk) as (app, screen, pilot):
            await pilot.press(*TO_FILES)
            await workers_done(app)
            await pilot.press("j", "j", *inside)
            await workers_done(app)
            assert screen.lists.diff is not None or screen.lists.filter_of(screen.tab)
            await pilot.press(key)
            await workers_done(app)
            assert (app.screen is screen) is (key == "escape")
            assert screen.lists.diff is None or key != "escape"
            assert not screen.lists.filter_of(screen.tab) or key != "escape"


async def test_a_filter_and_a_sort(talk: Talk) -> None:
    async with details_of(talk) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        await pilot.press("s")
        await pilot.pause()
        names = [line.split()[0] for line in app.lines if line.strip()[:5] in
                 ("a.py ", "b/new", "c.py ", "/etc/")]  # fmt: skip
        assert names == ["/etc/hosts", "a.py", "b/new.py", "c.py"]
        await pilot.press("/", *"PY", "space", *"edits", "enter")
        await pilot.pause()
        shown = "\n".join(app.lines)
        assert "1 file of 4" in shown and "b/new.py" not in shown and "filter “PY edits”" in shown
        await pilot.press("/", *"zzz", "enter")
        await pilot.pause()
        assert any("No files match “zzz”" in line for line in app.lines)
        await pilot.press("escape")
        await pilot.pause()
        assert any("4 files" in line for line in app.lines) and app.screen is screen


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(3)
async def test_commands_show_how_they_ended(talk: Talk, size: tuple[int, int]) -> None:
    async with details_of(talk, size) as (app, screen, pilot):
        await pilot.press(*TO_COMMANDS)
        await workers_done(app)
        await pilot.pause()
        assert screen.tab == "Commands"
        lines = app.lines
        first = next(line for line in lines if "$ cd src &&" in line)
        assert "+2 lines" in first and "✔ ok" in first and "3.2 s" in first and "turn 2" in first
        second = next(line for line in lines if "$ make check" in line)
        assert "✗ exit 2" in second
        assert screen.text_to_copy() == "cd src &&\nls\npwd"
        await pilot.press("j", "enter")
        await pilot.pause()
        assert app.opened_parts == ["prt_inspected_00002_2"]


async def test_hostile_paths_and_long_commands(tmp_path: Path) -> None:
    talk = Talk(open_database(tmp_path / "store.db", create=True))
    path = "x\x1b]52;c;aGk=\x07\n[bold]/" + "y" * 1_000_000
    talk.message("assistant", call("Write", {"file_path": path, "content": "a\x1b[2J" * 1000}),
                 edit("世" * 300_000), bash("echo " + "z" * 1_000_000, ""),
                 call("Edit", {"file_path": "[/red]", "edits": [{"old_string": 3}]}))
    async with details_of(talk, (80, 24)) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        await pilot.pause()
        assert any("3 files" in line for line in app.lines)
        assert "\x1b" not in "".join(app.lines)
        await pilot.press("D")
        await workers_done(app)
        await pilot.pause()
        assert "\x1b" not in "".join(app.lines)
        await pilot.press("escape", "]")
        await workers_done(app)
        await pilot.pause()
        assert len(screen.text_to_copy()) == 2_000
        await pilot.press("y")


async def test_a_session_without_calls_says_so(tmp_path: Path) -> None:
    talk = Talk(open_database(tmp_path / "store.db", create=True))
    talk.message("user", text("Hello"))
    async with details_of(talk, (80, 24)) as (app, screen, pilot):
        await pilot.press(*TO_FILES)
        await workers_done(app)
        await pilot.pause()
        assert any("No call of this session names a file." in line for line in app.lines)
        assert any(line.endswith("known.") for line in app.lines)
        assert [command.available(screen) for command in LIST_COMMANDS] == [
            "No files were found", "No files were found", "No file is selected"]
        await pilot.press("]")
        await pilot.pause()
        assert any("This session ran no commands." in line for line in app.lines)
