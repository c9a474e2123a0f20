"""Places where agents' files should lie, with other things in them, end and hang no command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
@pytest.mark.one_in(2)
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
@pytest.mark.one_in(2)
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
    (".cursor/projects", "gone", "is a link to gone, which is not there"),
    (".cline/data/tasks", "gone", "is a link to gone, which is not there"),
])  # fmt: skip
@pytest.mark.one_in(4)
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


def test_a_link_to_nothing_beside_folders_of_sessions_is_a_problem(run: Run, home: Path) -> None:
    shutil.copytree(DATA / "claude-code" / "home" / ".claude", home / ".claude")
    (home / ".claude" / "projects" / "-away").symlink_to("/nowhere")
    (home / ".codex").mkdir()
    (home / ".codex" / "sessions").write_text("")
    found = run("sync", "--json")
    assert found.code == 1 and found.json["new"] > 1
    assert found.json["unreadable"] == [
        f"{home}/.claude/projects/-away is a link to /nowhere, which is not there",
        f"{home}/.codex/sessions is a file, where a folder of sessions belongs",
    ]
    assert run("sync", "--json").json["problems"] == 2


DENIED = {
    "gemini": (".gemini", ".gemini/tmp/project"), "cline": (".cline/data", ".cline/data/sessions"),
    "claude-code": (".claude", ".claude/projects/-home-user-project"),
    "openhands": (".openhands", ".openhands/conversations"),
}  # fmt: skip
LIST = """
import sys
from pathlib import Path
from store.sources.registry import source
from store.sync.roots import units_of
for kind, root in zip(sys.argv[1::2], sys.argv[2::2]):
    problems = []
    list(units_of(source(kind), Path(root), problems))
    print(*{f"{one.path} {one.reason}" for one in problems})
"""
NEEDS_SETPRIV = pytest.mark.skipif(
    shutil.which("setpriv") is None, reason="needs a way to leave rights behind"
)


def without_rights(*arguments: str) -> str:
    """Run Python as a user who may not read everything, and return what it prints."""
    rights = "-dac_override,-dac_read_search"
    leave = ["setpriv", f"--bounding-set={rights}"] if os.geteuid() == 0 else []
    return subprocess.run([*leave, sys.executable, *arguments],
                          capture_output=True, text=True, check=True).stdout  # fmt: skip


@NEEDS_SETPRIV
def test_folders_that_may_not_be_read_are_problems(home: Path) -> None:
    samples = {"gemini": "gemini", "cline": "cline/sdk", "claude-code": "claude-code/home/.claude",
               "openhands": "openhands"}  # fmt: skip
    arguments: list[str] = []
    for kind, (root, denied) in DENIED.items():
        shutil.copytree(DATA / samples[kind], home / root)
        (home / denied).chmod(0)
        arguments += [kind, str(home / root)]
    found = without_rights("-c", LIST, *arguments)
    assert found.splitlines() == [
        f"{home / denied} {reason}" for (_, denied), reason in zip(
            DENIED.values(),
            ["cannot be read: Permission denied", "Permission denied", "Permission denied",
             "cannot be read: Permission denied"],
            strict=True)
    ]  # fmt: skip
    for _, denied in DENIED.values():
        (home / denied).chmod(0o755)


WATCHED = """
import sys
from pathlib import Path
from store.sources.registry import source
from store.sync.roots import watched_paths
print(*watched_paths(source("opencode"), Path(sys.argv[1])))
"""


@NEEDS_SETPRIV
@pytest.mark.parametrize("denied", [".", "storage", "storage/session"])
def test_a_store_with_a_denied_folder_is_watched_from_its_root(home: Path, denied: str) -> None:
    root = home / "opencode"
    shutil.copytree(DATA / "opencode/legacy", root)
    (root / denied).chmod(0)
    assert without_rights("-c", WATCHED, str(root)) == f"{root}\n"
    (root / denied).chmod(0o755)


@NEEDS_SETPRIV
def test_a_denied_root_of_any_source_is_a_problem_and_no_error(tmp_path: Path) -> None:
    assert without_rights("-m", "tests.sources.denied", str(tmp_path), "roots") == ""


@pytest.mark.long
@NEEDS_SETPRIV
def test_no_folder_of_any_source_is_denied_in_silence(tmp_path: Path) -> None:
    assert without_rights("-m", "tests.sources.denied", str(tmp_path), "all") == ""
