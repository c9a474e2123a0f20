"""Places where agents' files should lie, with other things in them, end and hang no command."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from store.sources.codex import CodexSource
from tests.cli.conftest import Run, configure
from tests.sources.grown import read_all
from tests.sources.samples import DATA

NAMED = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR",
         "PI_CODING_AGENT_SESSION_DIR", "COPILOT_HOME", "AIDER_CHAT_HISTORY_FILE",
         "OPENCODE_DB")  # fmt: skip
pytestmark = pytest.mark.usefixtures("unindexed")
UUID = "11111111-1111-4111-8111-111111111111"
PLACES = (
    f".claude/projects/-x/{UUID}.jsonl", ".claude/history.jsonl", ".claude/sessions/123.json",
    f".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{UUID}.jsonl",
    ".codex/history.jsonl", ".codex/session_index.jsonl", ".codex/state_9.sqlite",
    ".codex/config.toml", ".gemini/projects.json", ".gemini/tmp/zz/.project_root",
    ".gemini/tmp/zz/chats/session-2026-11-27T10-00-aaaaaaaa.jsonl", ".gemini/tmp/zz/logs.json",
    f".pi/agent/sessions/--x--/2026-11-27T10-00-00-000Z_{UUID}.jsonl",
    f".copilot/session-state/{UUID}/events.jsonl", f".copilot/session-state/{UUID}/workspace.yaml",
    ".local/share/opencode/storage/session/x/ses_x.json", ".config/backscroll/config.toml",
)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _ring(path: Path) -> None:
    path.symlink_to(path.name)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sessions_in(folder: Path) -> int:
    """Return how many sessions a folder of Codex has."""
    return len(read_all(CodexSource(), folder)[0])


@pytest.mark.parametrize("make", [_pipe, _ring, _device, Path.mkdir])
def test_the_rest_is_read(run: Run, home: Path, make: object) -> None:
    assert callable(make)
    shutil.copytree(DATA / "codex" / "home", home / ".codex")
    wanted = sessions_in(home / ".codex")
    for place in PLACES:
        path = home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)
    found = run("sync", "--json").json
    assert found["new"] == wanted
    assert [one for one in found["unreadable"] if ".codex" in one] == []
    assert run("sources").code == 0


def test_the_home_of_nobody(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DATA / "codex" / "home", home / ".codex")
    for name in NAMED:
        monkeypatch.setenv(name, "~no such user/x")
    assert run("sync").code == 0
    assert run("sessions", "--json").json
    assert run("sessions", "--store", "~no such user/x").code == 1


@pytest.mark.parametrize("text", [
    f"sqlite_home = {'[' * 5000}{']' * 5000}", f"sqlite_home = {'9' * 5000}",
    'sqlite_home = "\\u0000"', 'sqlite_home = "~no such user"',
])  # fmt: skip
def test_a_configuration_of_an_agent(run: Run, home: Path, text: str) -> None:
    shutil.copytree(DATA / "codex" / "home" / "sessions", home / ".codex" / "sessions")
    wanted = sessions_in(home / ".codex")
    (home / ".codex" / "config.toml").write_text(text)
    found = run("sync", "--json")
    assert found.code == 0 and found.json["new"] == wanted > 0
    assert run("sources").code == 0


def test_settings_with_a_nul(run: Run, home: Path) -> None:
    configure(home, '[sources]\nexcluded_workspaces = ["\\u0000"]\n'
                    '[sources.paths]\nclaude-code = ["\\u0000"]\n')  # fmt: skip
    assert run("sources").code == run("sync").code == run("sessions").code == 0


@pytest.mark.parametrize(("folder", "target", "reason"), [
    (".claude/projects", "projects", "Too many levels"),
    (".claude/projects", "/nowhere/projects", "is a link to /nowhere/projects, which is not there"),
    (".codex/sessions", "/nowhere/sessions", "is a link to /nowhere/sessions, which is not there"),
    (".gemini/tmp", "../gone", "is a link to ../gone, which is not there"),
    (".copilot/session-state", "gone", "is a link to gone, which is not there"),
    (".qwen/projects", "gone", "is a link to gone, which is not there"),
])  # fmt: skip
def test_a_folder_of_sessions_that_leads_nowhere_is_a_problem(
    run: Run, home: Path, folder: str, target: str, reason: str
) -> None:
    path = home / folder
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    assert run("sync").code == 1
    (found,) = [one for place in run("sources", "--problems", "--json").json
                for one in place["problem_list"]]
    assert reason in found["reason"]
