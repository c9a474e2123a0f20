from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.app import App

from store.errors import Refused
from tests.tui.terminals import on_a_terminal
from tui.dialogs.save import SaveScreen, file_name
from tui.keys.dispatch import CommandApp
from tui.keys.registry import COMMANDS
from tui.keys.table import CommandTable
from tui.kit import external
from tui.state.limits import NO_LIMITS


class SavingApp(CommandApp):
    library = SimpleNamespace(limits=NO_LIMITS)

    @property
    def commands(self) -> CommandTable:
        return CommandTable(COMMANDS, {})


def program(folder: Path, name: str, body: str = "") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_pager_is_the_user_s_then_less_then_more(tmp_path: Path) -> None:
    for name in ("less", "more", "mine"):
        program(tmp_path, name)
    path = {"PATH": str(tmp_path)}
    assert external.pager_command({**path, "PAGER": "mine --flag 'a b'"}) == [
        "mine", "--flag", "a b",
    ]
    assert external.pager_command({**path, "PAGER": " "}) == ["less", "-R"]
    (tmp_path / "less").unlink()
    assert external.pager_command(path) == ["more"]
    (tmp_path / "more").unlink()
    with pytest.raises(Refused, match="no pager is installed; set \\$PAGER"):
        external.pager_command(path)


def test_a_pager_that_is_missing_or_no_command_is_named(tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path)}
    with pytest.raises(Refused, match="the pager gone \\(from \\$PAGER\\) is not installed"):
        external.pager_command({**path, "PAGER": "gone -x"})
    with pytest.raises(Refused, match="cannot be read as a command"):
        external.pager_command({**path, "PAGER": "a 'b"})


def test_editor_is_visual_then_editor(tmp_path: Path) -> None:
    program(tmp_path, "one")
    program(tmp_path, "two")
    path = {"PATH": str(tmp_path)}
    assert external.editor_command({**path, "VISUAL": "one", "EDITOR": "two"}) == ["one"]
    assert external.editor_command({**path, "EDITOR": "two -w"}) == ["two", "-w"]


def test_a_copy_is_private_and_goes_away() -> None:
    with external.private_copy("ä\ud800", ".json") as path:
        assert path.read_bytes() == "ä\ufffd".encode()
        assert stat.S_IMODE(path.stat().st_mode) == 0o400
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert path.suffix == ".json"
    assert not path.parent.exists()


def test_a_terminal_that_cannot_be_handed_over_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "mine")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PAGER", "mine")

    class Headless(App[None]):
        def on_mount(self) -> None:
            with pytest.raises(Refused, match="cannot be handed"):
                external.open_in_pager(self, "x")
            self.exit(return_code=7)

    app = Headless()
    app.run(headless=True)
    assert app.return_code == 7


APP = """
from textual.app import App
from tui.kit import external
class Opening(App):
    def on_ready(self):
        external.open_in_pager(self, "evil\\x1b]0;title\\x07 text", ".txt")
        self.exit()
Opening().run()
"""


def test_the_pager_gets_harmless_text_and_a_safe_less(tmp_path: Path) -> None:
    pager = program(tmp_path, "pager", 'echo "GOT $LESSSECURE"; cat "$1"; echo "<END>"')
    environment = {**os.environ, "PAGER": str(pager), "TERM": "xterm-256color"}
    with on_a_terminal([sys.executable, "-c", APP], environment) as terminal:
        got = terminal.wait_for(b"<END>").split(b"GOT ")[1]
    assert got.startswith(b"1")
    assert "evil␛]0;title␇ text".encode() in got
    assert b"\x1b]0;title" not in got


def test_saving_never_replaces_a_file_unasked(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    assert external.save_text(path, "a\x1b[1m") == 7
    assert path.read_text() == "a␛[1m"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(Refused, match="exists already"):
        external.save_text(path, "b")
    assert path.read_text() == "a␛[1m"
    external.save_text(path, "a\x1b[1m", overwrite=True, raw=True)
    assert path.read_bytes() == b"a\x1b[1m"


def test_saving_says_why_it_cannot(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is a folder"):
        external.save_text(tmp_path, "x")
    with pytest.raises(Refused, match="does not exist"):
        external.save_text(tmp_path / "none" / "x", "x")


def test_file_names_suit_any_file_system() -> None:
    assert file_name("Bash-$.input/command x", ".txt") == "Bash-.input-command-x.txt"
    assert file_name("../../x", ".txt") == "x.txt"
    assert file_name("///", ".md") == "value.md"


async def test_the_dialog_asks_again_before_it_replaces(tmp_path: Path) -> None:
    target = tmp_path / "value-1.txt"
    target.write_text("old")
    app = SavingApp()
    async with app.run_test(size=(100, 20)) as pilot:
        screen = SaveScreen("new\x1b", "value-1", ".txt", tmp_path)
        await app.push_screen(screen)
        await pilot.pause()
        await pilot.press("enter")
        assert app.screen is screen and target.read_text() == "old"
        await pilot.press("ctrl+t", "enter")
        await pilot.pause()
        assert app.screen is not screen
    assert target.read_bytes() == b"new\x1b"


async def test_the_dialog_leaves_on_escape(tmp_path: Path) -> None:
    app = SavingApp()
    async with app.run_test() as pilot:
        await app.push_screen(SaveScreen("x", "v", ".txt", tmp_path))
        await pilot.pause()
        assert isinstance(app.screen, SaveScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, SaveScreen)
    assert list(tmp_path.iterdir()) == []
