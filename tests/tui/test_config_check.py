from __future__ import annotations

from pathlib import Path

import pytest

from store.config import load_config
from tests.tui.stores import browser, put, settled, some
from tui.keys.declaration import AnyCommand
from tui.keys.pane import CommandPane
from tui.start.config_check import mistakes_of

TEXT = """[ui]
theme = "mauve"
colour = 1

[keys]
"list.details" = ["i"]
"list.detials" = ["i"]
"""


def told(path: Path) -> list[str]:
    found = mistakes_of(load_config(path), ["backscroll-dark"])
    return [str(mistake).removeprefix(f"{path}:") for mistake in found]


def test_names_that_do_not_exist_are_told_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    assert told(path) == [
        "3: there is no setting ui.colour",
        "7: keys: there is no command list.detials",
        "2: ui.theme: there is no theme mauve",
    ]
    for text in ('[ui]\ntheme = "light"\n[keys]\n"app.quit" = []\n', ""):
        path.write_text(text)
        assert told(path) == []


def test_sources_that_do_not_exist_are_told_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('''[sources]
disabled = ["pi", "gemni"]
enabled = ["codex"]
[sources.paths]
codex = ["/a"]
clade-code = ["/b"]
''')
    assert told(path) == ["2: there is no source gemni", "6: there is no source clade-code"]


def test_a_key_of_two_commands_is_told_with_the_one_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("""[keys]
"list.open" = ["i", "Q"]
list.details = "i"
"app.zoom" = ["Z", "ctrl+w"]
"transcript.fold" = "ctrl+w"
"list.sort" = ["b"]
"list.fold" = ["x"]
""")
    assert told(path) == [
        "3: keys: i is given to list.open and list.details; list.open has it",
        "6: keys: b is list.sort now; list.group, which had it, has no key left",
        "4: keys: ctrl+w is given to app.zoom and transcript.fold; transcript.fold has it in the"
        " transcript pane",
    ]


@pytest.mark.parametrize(
    ("keys", "open_key", "does"),
    [({"list.open": ["i"], "list.details": ["i"]}, "i", "list.open"),
     ({"list.details": ["i"], "list.open": ["i"]}, "i", "list.open"),
     ({"list.sort": ["b"]}, "b", "list.sort"),
     ({"app.zoom": ["b"]}, "b", "list.group")],
)  # fmt: skip
@pytest.mark.one_in(2)
async def test_the_key_does_what_is_told(
    tmp_path: Path, keys: dict[str, list[str]], open_key: str, does: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = browser(put(tmp_path / "s.db", some(2)), keys=keys)
    ran: list[str] = []

    async def run_command(self: CommandPane, command: AnyCommand) -> None:
        ran.append(command.id)

    monkeypatch.setattr(CommandPane, "run_command", run_command)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press(open_key)
        assert ran == [does]


async def test_the_app_says_so(tmp_path: Path) -> None:
    from store.system.locations import config_path

    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(TEXT + '"x.y" = "q"\n')
    app = browser(put(tmp_path / "s.db", some(2)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        (note,) = app._notifications
        said = note.message.split("\n")
        assert len(said) == 4
        assert said[1].endswith("config.toml:7: keys: there is no command list.detials")
        assert said[3].startswith("… and 1 more in")
