"""A file of a session at each of its points."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from store.engine.database import open_database
from store.files.disk import present, standing
from store.files.history import Content
from store.store import Store
from tests.store.files.test_effects import beside, call
from tests.tui.inspected import Talk, text
from tests.tui.seeded import SESSION, Said, make_store
from tests.tui.test_details import DetailsApp, details_of
from tests.tui.verbs_app import running
from tests.tui.workers import workers_done
from tui.files.reading import standing_run
from tui.files.screen import FileScreen, SaveCopyScreen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work" / "a.py"


@pytest.fixture
def talk(tmp_path: Path, path: Path) -> Talk:
    talk = Talk(open_database(tmp_path / "store.db", create=True))
    talk.message("user", text("Fix it"), backscroll={"checkpoint": {"checkpoint_id": "check-0"}})
    talk.message("assistant", call("Write", {"file_path": str(path), "content": "one\ntwo\n"}))
    edit = {"file_path": str(path), "old_string": "two", "new_string": "2"}
    talk.message("user", text("More"), backscroll={"checkpoint": {"checkpoint_id": "check-1"}})
    talk.message("assistant", call("Edit", edit, **beside(originalFile="one\ntwo\n")))
    return talk


@asynccontextmanager
async def file_of(
    talk: Talk, path: Path, size: tuple[int, int] = (120, 40), part_id: str | None = None
) -> AsyncIterator[tuple[DetailsApp, FileScreen, Pilot[None]]]:
    store = await Store.open(talk.db.path)
    app = DetailsApp()
    try:
        async with app.run_test(size=size) as pilot:
            screen = FileScreen(store, talk.session_id, None if part_id else str(path), part_id)
            await app.push_screen(screen)
            await workers_done(app)
            await pilot.pause()
            yield app, screen, pilot
    finally:
        await store.close()


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(3)
async def test_points_and_views_at_every_size(
    talk: Talk, path: Path, size: tuple[int, int]
) -> None:
    async with file_of(talk, path, size) as (app, screen, pilot):
        shown = "\n".join(app.lines)
        assert "a.py" in shown and "3 of 3" in shown and "turn 2" in shown
        assert "✗ not on disk" in shown and "The file is not on disk any more." in shown
        assert "2 - two" in shown and "2 + 2" in shown and "check-1" in shown
        await pilot.press("V")
        await pilot.pause()
        assert "1   one" in "\n".join(app.lines) and "- two" not in "\n".join(app.lines)
        await pilot.press("V", "h")
        await pilot.pause()
        shown = "\n".join(app.lines)
        assert "2 of 3" in shown and "1 - one" in shown
        await pilot.press("h", "h")
        await pilot.pause()
        assert screen.number == 0 and "1 of 3" in "\n".join(app.lines)


@pytest.fixture
def two(talk: Talk, tmp_path: Path) -> Talk:
    """The same talk with another file, written between and read at the end."""
    other = {"file_path": str(tmp_path / "work" / "other.md"), "content": "# Notes\n"}
    talk.message("user", text("And notes"), snapshot_id="snap-1")
    talk.message("assistant", call("Write", other), call("Read", {"file_path": "/etc/seen"}))
    return talk


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(3)
async def test_the_list_of_files_is_beside_the_file(
    two: Talk, path: Path, size: tuple[int, int]
) -> None:
    async with file_of(two, path, size) as (app, screen, pilot):
        shown = "\n".join(app.lines)
        assert ("other.md" in shown) is (size[0] >= 110)
        await pilot.press("[")
        await workers_done(app)
        await pilot.pause()
        assert screen.file is not None and screen.file.shown.endswith("other.md")
        assert "# Notes" in "\n".join(app.lines)
        await pilot.press("[")
        await pilot.pause()
        assert screen.file.shown.endswith("other.md")
        await pilot.press("]", "]")
        await workers_done(app)
        await pilot.pause()
        assert screen.file.key == "/etc/seen"
        if size[0] >= 110:
            assert "written  ✗" in "\n".join(app.lines)
            files = screen.query_one("#file-list")
            await pilot.click(files, offset=(3, 1))
            await workers_done(app)
            await pilot.pause()
            assert screen.file.key == str(path) and screen.view.has_focus


async def test_any_two_points_are_compared(talk: Talk, path: Path) -> None:
    edit = {"file_path": str(path), "old_string": "one", "new_string": "1"}
    talk.message("assistant", call("Edit", edit, **beside(originalFile="one\n2\n")))
    async with file_of(talk, path) as (app, screen, pilot):
        assert "1 + 1" in "\n".join(app.lines) and "+ 2" not in "\n".join(app.lines)
        await pilot.press("D")
        await pilot.pause()
        assert screen.base == 3 and "You compare from here" in "\n".join(app.lines)
        await pilot.press("h", "h")
        await pilot.pause()
        shown = "\n".join(app.lines)
        assert "2 of 4" in shown and "compared with 4" in shown
        assert all(words in shown for words in ("1 - one", "2 - two", "1 + 1", "2 + 2"))
        await pilot.press("h")
        await pilot.pause()
        assert "No difference can be shown" in "\n".join(app.lines)
        await pilot.press("l", "D", "l")
        await pilot.pause()
        shown = "\n".join(app.lines)
        assert screen.base is None and "what it changed" in shown
        assert "2 - two" in shown and "- one" not in shown


async def test_a_snapshot_opens_the_files_as_they_were(two: Talk, path: Path) -> None:
    store = await Store.open(two.db.path)
    app = DetailsApp()
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            screen = FileScreen(store, two.session_id, message_id="msg_inspected_00003")
            await app.push_screen(screen)
            await workers_done(app)
            assert screen.file is not None and screen.file.shown.endswith("other.md")
            assert screen.number == 0 and "1 of 2" in "\n".join(app.lines)
            await pilot.press("]")
            await workers_done(app)
            await pilot.pause()
            assert screen.file.key == str(path) and screen.number == 1
    finally:
        await store.close()


async def test_a_call_opens_its_file_at_its_point(talk: Talk, path: Path) -> None:
    async with file_of(talk, path, part_id="prt_inspected_00002_0") as (app, screen, pilot):
        assert screen.number == 1
        await pilot.press("enter")
        await pilot.pause()
        assert app.opened_parts == ["prt_inspected_00002_0"]


async def test_a_fork_keeps_what_is_before_a_checkpoint(talk: Talk, path: Path) -> None:
    async with file_of(talk, path) as (_app, screen, pilot):
        await pilot.press("G")
        assert screen.no_fork() is None and screen.fork_message() == "msg_inspected_00003"
        await pilot.press("k")
        assert screen.fork_message() == "msg_inspected_00001"
        assert screen.no_fork() == "Nothing comes before the first message"


async def test_a_copy_is_saved_and_never_over_a_file_without_asking(
    talk: Talk, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("mine\n")
    async with file_of(talk, path) as (app, screen, pilot):
        assert screen.file is not None and screen.point is not None
        dialog = SaveCopyScreen(screen.file, screen.point.content)
        await app.push_screen(dialog)
        await pilot.pause()
        await dialog.take("take")
        assert (tmp_path / "a.py").read_text() == "mine\n"
        assert "has changed since: 6 B, sha256" in dialog.replacing(tmp_path / "a.py")
        await dialog.take("take")
        await pilot.pause()
    assert (tmp_path / "a.py").read_text() == "one\n2\n"


async def test_the_details_open_a_file_and_the_call_closes_both(talk: Talk) -> None:
    async with details_of(talk) as (app, details, pilot):
        await pilot.press("[", "[")
        await workers_done(app)
        await pilot.press("-")
        await workers_done(app)
        await pilot.pause()
        assert type(app.screen).__name__ == "FileScreen"
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is details
        await pilot.press("-")
        await workers_done(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen is not details and type(app.screen).__name__ != "FileScreen"
        assert app.opened_parts == ["prt_inspected_00004_0"]


async def test_the_list_says_how_files_are_on_disk(talk: Talk, path: Path) -> None:
    path.parent.mkdir()
    path.write_text("one\n2\n")
    async with details_of(talk) as (app, _, pilot):
        await pilot.press("[", "[")
        await workers_done(app)
        await pilot.pause()
        assert any("a.py" in line and "✔ as on disk" in line for line in app.lines)
    path.unlink()
    path.mkdir()
    assert standing_run(standing(Content("written", b"1"), present(str(path))))[0].endswith(
        "no file today")


async def test_a_message_with_a_snapshot_leads_to_its_files(tmp_path: Path) -> None:
    edit = call("Write", {"file_path": "/nowhere/a.py", "content": "one\n"})
    said = [Said("user", [text("Fix it")], {"snapshot_id": "snap-1"}),
            Said("assistant", [edit, text("Done"), call("Grep", {"path": "src", "pattern": "x"})])]
    async with running(make_store(tmp_path / "s.db", said)) as run:
        await run.open(SESSION)
        await run.press("g", "-")
        await workers_done(run.app)
        screen = run.app.screen
        assert isinstance(screen, FileScreen) and screen.number == 0
        assert screen.file is not None and len(screen.file.points) == 2
        await run.press("escape", "G", "-")  # A search opens no file.
        assert run.app.screen is run.app.main
        await run.press(",", "-")
        assert run.app.screen is run.app.main


async def test_a_key_leads_from_an_edit_in_the_transcript_to_its_file(tmp_path: Path) -> None:
    edit = call("Write", {"file_path": "/nowhere/a.py", "content": "one\n"})
    said = [Said("user", [text("Fix it")]), Said("assistant", [text("I will"), edit, text("Done")])]
    async with running(make_store(tmp_path / "s.db", said)) as run:
        await run.open(SESSION)
        await run.press("{", "-")
        await workers_done(run.app)
        screen = run.app.screen
        assert isinstance(screen, FileScreen) and screen.file is not None
        assert screen.file.key == "/nowhere/a.py"
        await run.press("f")
        assert run.app.screen is not screen
        await run.press("enter")
        await workers_done(run.app)
        assert run.app.screen is run.app.main
        assert run.told[-1].startswith("Forked")
