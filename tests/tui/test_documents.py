from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from store.sources.registry import all_sources
from tui.documents import TABLES, filled
from tui.keys.registry import COMMANDS as APP_COMMANDS
from tui.words.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
}
README = PAGES["README.md"]
SETUP = "python3 -m venv .venv && .venv/bin/pip install --quiet --editable "


@pytest.mark.parametrize("marker", TABLES)
def test_the_tables_are_those_of_the_declarations(marker: str) -> None:
    name, table = TABLES[marker]
    assert filled(PAGES[name], marker, table()) == PAGES[name], "run: python -m tui.documents"


def test_every_key_command_and_source_is_named() -> None:
    for command in APP_COMMANDS:
        assert f"`{command.id}`" in PAGES["docs/keys.md"]
    for name in COMMANDS:
        assert f"`backscroll {name}`" in PAGES["docs/command-line.md"]
    for source in all_sources():
        assert f"| `{source.kind}` |" in PAGES["docs/sources.md"]


def test_missing_markers_are_an_error() -> None:
    with pytest.raises(ValueError, match="no markers for keys"):
        filled("# Nothing", "keys", "")


def test_it_installs_in_one_line() -> None:
    blocks = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert blocks[:3] == [
        f"{SETUP}. && .venv/bin/backscroll",
        "pipx install . && backscroll",
        "uv tool install . && backscroll",
    ]
    assert f"{SETUP}'.[dev]' && .venv/bin/python -m pytest" in blocks


def test_the_pictures_it_shows_are_there_and_all_are_shown() -> None:
    pages = "\n".join(PAGES.values())
    shown = set(re.findall(r"\]\((?:\.\./)?(screenshots/[^)]+)\)", pages))
    there = {f"screenshots/{path.name}" for path in (ROOT / "screenshots").glob("*.*g")}
    assert shown == there


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files_that_are_there(name: str) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGES[name]):
        assert ((ROOT / name).parent / link).exists(), link


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[str] = set()
    waiting = ["README.md"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            links = re.findall(r"\]\(([^)#:]+\.md)\)", PAGES[name])
            found = [((ROOT / name).parent / link).resolve() for link in links]
            waiting += [str(path.relative_to(ROOT)) for path in found]
    assert reached >= {name for name in PAGES if name.startswith("docs/")}


def test_the_settings_it_shows_are_real(tmp_path: Path) -> None:
    from store.config import load_config

    (block,) = re.findall(r"```toml\n(.*?)```", PAGES["docs/settings.md"], re.DOTALL)
    tomllib.loads(block)
    file = tmp_path / "config.toml"
    file.write_text(block)
    config = load_config(file)
    assert [str(mistake) for mistake in config.mistakes] == []
    assert set(config.keys) <= {command.id for command in APP_COMMANDS}


def test_the_ci_script_runs_the_very_test_command() -> None:
    script = ROOT / ".ci" / "run"
    shown = subprocess.run(
        ["bash", str(script), "--print-test-command"], capture_output=True, text=True, check=True,
        stdin=subprocess.DEVNULL,
    ).stdout  # fmt: skip
    blocks = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert shown.removesuffix("\n") in blocks and shown.startswith(SETUP)
