from __future__ import annotations

from pathlib import Path

from store.config import load_config
from tests.tui.stores import browser, put, settled, some
from tui.config_check import mistakes_of

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


async def test_the_app_says_so(tmp_path: Path) -> None:
    from store.locations import config_path

    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(TEXT + '"x.y" = "q"\n')
    app = browser(put(tmp_path / "s.db", some(2)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        said = [note.message for note in app._notifications]
        assert len(said) == 4
        assert said[1].endswith("config.toml:7: keys: there is no command list.detials")
        assert said[3].startswith("… and 1 more in")
