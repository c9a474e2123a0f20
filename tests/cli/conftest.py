from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from store.demo import make_demo
from tui.cli import main

NOW = 1_790_000_000_000


@dataclass
class Result:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, so that no test sees or touches the user's own."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
                 "BACKSCROLL_STORE", "CLAUDE_CONFIG_DIR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    return folder


def configure(home: Path, text: str) -> Path:
    """Write the config file of a home folder, and return its path."""
    path = home / ".config" / "backscroll" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str | Path) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def unindexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sync starts the process that builds the search index."""

    async def nothing(path: Path) -> None:
        return None

    monkeypatch.setattr("tui.cli.sync._index", nothing)


@pytest.fixture(scope="session")
def pristine_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_demo(tmp_path_factory.mktemp("demo") / "demo.db", lambda: NOW)


@pytest.fixture
def demo(pristine_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo store of its own, named by the environment."""
    path = tmp_path / "demo.db"
    shutil.copy(pristine_demo, path)
    monkeypatch.setenv("BACKSCROLL_STORE", str(path))
    return path


@pytest.fixture
def claude_home(home: Path) -> Path:
    """A folder of Claude Code with one session of two messages and a torn line."""
    folder = home / ".claude" / "projects" / "-home-mira-code"
    folder.mkdir(parents=True)
    common = {"sessionId": "11111111-2222-4333-8444-555555555555", "cwd": "/home/mira/code",
              "version": "2.1.332", "isSidechain": False, "userType": "external"}
    rows = [
        {**common, "type": "user", "uuid": "u1", "parentUuid": None,
         "timestamp": "2026-09-01T10:00:00.000Z",
         "message": {"role": "user", "content": "What is in this folder?"}},
        {**common, "type": "assistant", "uuid": "a1", "parentUuid": "u1",
         "timestamp": "2026-09-01T10:00:02.000Z",
         "message": {"id": "msg_1", "type": "message", "role": "assistant",
                     "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
                     "content": [{"type": "text", "text": "Nothing but a readme."}],
                     "usage": {"input_tokens": 10, "output_tokens": 6}}},
    ]
    lines = [json.dumps(row) for row in rows]
    text = "\n".join([lines[0], '{"type":"user","torn', lines[1]]) + "\n"
    (folder / f"{common['sessionId']}.jsonl").write_text(text)
    return home / ".claude"
