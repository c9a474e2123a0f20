"""``P`` saves what the screen shows, harmless and over no other file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from store.errors import Refused
from tests.hostile import ALL, NEVER, controls, hostile_store
from tests.tui.stores import browser, put, settled, some
from tests.tui.verbs_app import drawn, running
from tui.dialogs.frame import Dialog
from tui.kit.picture import save_picture, text_of, without_remote_fonts


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "here"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


async def test_a_key_saves_the_screen_as_picture_and_text(tmp_path: Path, folder: Path) -> None:
    async with running(put(tmp_path / "s.db", some(4)), (100, 30)) as run:
        shown = drawn(run.app.screen)
        await run.press("P")
        (picture,) = folder.glob("*.svg")
        assert re.fullmatch(r"backscroll-\d{8}-\d{6}\.svg", picture.name)
        assert picture.with_suffix(".txt").read_text("utf-8").rstrip() == shown.rstrip()
        assert "Session 3" in shown and run.last.startswith("Saved ") and picture.name in run.last
        ElementTree.fromstring(picture.read_text("utf-8"))
        loads = re.findall(r"url\(([^)]*)\)", picture.read_text("utf-8"))
        assert [place for place in loads if not place.startswith("#")] == []


async def test_it_works_in_dialogs_and_while_typing(tmp_path: Path, folder: Path) -> None:
    async with running(put(tmp_path / "s.db", some(4))) as run:
        await run.press("Y", "P")
        assert isinstance(run.app.screen, Dialog) and len(list(folder.glob("*.svg"))) == 1
        await run.press("escape", "escape", "slash", "f12")
        assert len(list(folder.glob("*.svg"))) == 2 and run.sessions.filter_text == ""


async def test_hostile_text_is_harmless_in_it(tmp_path: Path, folder: Path) -> None:
    async with running(hostile_store(tmp_path / "s.db")) as run:
        await run.open(ALL)
        await run.press("P")
        for path in folder.iterdir():
            words = path.read_text("utf-8")
            assert not controls(words) and not NEVER.search(words)


async def test_a_folder_that_cannot_be_written_is_reported(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(svg: str, at: float) -> Path:
        raise Refused("no room is left")

    monkeypatch.setattr("tui.kit.picture.save_picture", refused)
    async with running(put(tmp_path / "s.db", some(2))) as run:
        await run.press("P")
        assert run.last == "The picture was not saved: no room is left"
        assert os.listdir(folder) == []


def test_no_file_is_replaced(folder: Path) -> None:
    first = save_picture("<svg/>", 1_790_000_000_000)
    first.with_name(f"{first.stem}-2.txt").write_text("mine")
    paths = [first, *(save_picture("<svg></svg>", 1_790_000_000_000) for _ in range(2))]
    assert [path.stem.removeprefix(first.stem) for path in paths] == ["", "-3", "-4"]
    assert first.read_text() == "<svg/>"
    assert first.with_name(f"{first.stem}-2.txt").read_text() == "mine"


async def test_the_text_has_wide_characters_in_their_columns(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(1)))
    async with app.run_test(size=(60, 10), notifications=True) as pilot:
        await settled(app, pilot)
        app.notify("漢字 a  b & <c>")
        await settled(app, pilot)
        svg = app.export_screenshot()
        assert "漢字 a  b & <c>" in text_of(svg)
        assert [row.rstrip() for row in text_of(svg).splitlines()] == [
            row.rstrip() for row in drawn(app.screen).splitlines()][: text_of(svg).count("\n")]
    assert "http" in svg.replace("www.w3.org", "") and "cdnjs" not in without_remote_fonts(svg)
