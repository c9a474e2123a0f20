"""Sessions of every source go on from the app: in their own agent, else in Claude Code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.resume.registry import AGENTS
from store.sync.engine import Sync
from store.sync.settings import Settings
from tests.exports.claude_checker import check
from tests.sources.samples import FIRST, Sample
from tests.tui.verbs_app import running

COMMANDS = {
    "claude-code": "claude --resume ", "codex": "codex resume ", "gemini": "gemini --resume ",
    "opencode": "opencode import /", "pi": "pi --session ",
    "qwen": "qwen --resume ", "kimi": "kimi --session ",
    "continue": "cn --fork ",
    "cline": "cline -i --id ", "openhands": "openhands --resume ",
}  # fmt: skip


OTHERS = [kind for kind in FIRST if kind not in AGENTS][1:]
"""They all go on in the same agent: one of them is tried each time."""


@pytest.fixture(params=[
    pytest.param(kind, marks=pytest.mark.long) if kind in OTHERS else kind for kind in FIRST
])
def sample(request: pytest.FixtureRequest) -> Sample:
    return FIRST[request.param]


@pytest.fixture
def library(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of one source's sessions, in a folder of their own, and no agent on PATH."""
    target = sample.copied(tmp_path / "samples")
    path, work = tmp_path / "library.db", tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    for name in ("CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR", "QWEN_HOME",
                 "QWEN_RUNTIME_DIR", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    database = open_database(path, create=True)
    Sync(database, Settings(helpers=0)).run([target])
    database.connection.execute("UPDATE chat_sessions SET workspace_root = ?", (str(work),))
    database.close()
    return path


def longest(path: Path) -> str:
    """Return the session with the most answers."""
    database = open_database(path, write=False)
    (found,) = database.connection.execute(
        "SELECT session_id FROM chat_messages WHERE role = 'assistant'"
        " GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
    ).fetchone()
    database.close()
    return str(found)


@pytest.mark.one_in(3)
async def test_it_says_in_which_agent_it_goes_on(
    sample: Sample, library: Path, tmp_path: Path
) -> None:
    async with running(library) as run:
        await run.open(longest(library))
        await run.press("C")
        agent = AGENTS.get(sample.kind, AGENTS["claude-code"])
        shown = run.dialog()
        assert f"Continue in {agent.label}" in shown
        assert "is not on PATH; " in shown
        assert re.search(r"to run it\s(.*\s)?yourself\.", shown, re.S)  # It may be cut in two.
        await run.press("enter")
        folder, _, command = run.app.clipboard.partition(" && ")
        assert folder == f"cd {tmp_path / 'work'}"
        assert command.startswith(COMMANDS[agent.kind])
    made = list((tmp_path / "claude" / "projects").rglob("*.jsonl"))
    assert len(made) == (0 if sample.kind in AGENTS else 1)
    if made:
        named = command.split()
        check(made[0].read_text(), made[0].stem)
        assert made[0].stem in named
