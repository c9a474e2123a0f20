from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tui.cli import COMMANDS
from tui.keys.registry import COMMANDS as APP_COMMANDS
from tui.readme import filled

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_tables_are_those_of_the_declarations() -> None:
    assert filled(TEXT) == TEXT, "run: python -m tui.readme"
    for command in APP_COMMANDS:
        assert f"`{command.id}`" in TEXT
    for name in COMMANDS:
        assert f"`backscroll {name}`" in TEXT


def test_missing_markers_are_an_error() -> None:
    with pytest.raises(ValueError, match="no markers for keys"):
        filled("# Nothing")


def test_it_leads_with_the_two_commands() -> None:
    blocks = re.findall(r"```sh\n(.*?)\n```", TEXT, re.DOTALL)
    setup = "python3 -m venv .venv && .venv/bin/pip install --quiet --editable "
    assert blocks[0] == f"{setup}. && .venv/bin/backscroll"
    assert blocks[1] == f"{setup}'.[dev]' && .venv/bin/python -m pytest"


def test_the_pictures_it_shows_are_there_and_all_are_shown() -> None:
    shown = set(re.findall(r"\]\((screenshots/[^)]+)\)", TEXT))
    there = {f"screenshots/{path.name}" for path in (ROOT / "screenshots").glob("*.svg")}
    assert shown == there


def test_its_settings_are_real(tmp_path: Path) -> None:
    from store.config import load_config

    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
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
    blocks = re.findall(r"```sh\n(.*?)\n```", TEXT, re.DOTALL)
    assert shown == blocks[1] + "\n"
    assert sys.version_info >= (3, 11)
