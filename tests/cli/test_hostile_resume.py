"""No value of a session is an option, a program or a folder's command when it goes on.

Fake agents write down how they were called. Each agent's own rules are modelled by
``_taken``, which knows the few options that may be there and refuses any other.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.hostile import AGENTS, PROMPTS, VALUES, session, write
from tests.cli.stdin import answering
from tests.exports.kimi_checker import have_used_kimi

DATA = Path(__file__).parents[1] / "data" / "hostile"
TAKE_NONE = ("kimi", "cline")
"""Agents that take no prompt together with a session."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FAKE = """#!/bin/sh
printf '%s\\0' "$0" "$@" >> "$CALLS.argv"
printf '\\1' >> "$CALLS.argv"
printf '%s\\0' "$PWD" "$(pwd)" > "$CALLS.cwd"
env -0 > "$CALLS.env"
"""


class Called:
    """What the fake agents were called with."""

    def __init__(self, calls: Path) -> None:
        self._calls = calls

    def __call__(self) -> list[list[str]]:
        """Return the calls since the last time: program and arguments of each."""
        path = self._calls.with_suffix(".argv")
        raw = path.read_bytes() if path.exists() else b""
        path.unlink(missing_ok=True)
        calls = [os.fsdecode(one).split("\0")[:-1] for one in raw.split(b"\1") if one]
        return [[os.path.basename(call[0]), *call[1:]] for call in calls]

    @property
    def folder(self) -> list[str]:
        return self._calls.with_suffix(".cwd").read_text().split("\0")[:-1]

    @property
    def environment(self) -> dict[str, str]:
        pairs = self._calls.with_suffix(".env").read_text().split("\0")
        return dict(pair.split("=", 1) for pair in pairs if pair)


@pytest.fixture
def called(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in AGENTS.values():
        (folder / program).write_text(FAKE)
        (folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    for name in ("CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    have_used_kimi(home)
    monkeypatch.chdir(tmp_path)
    return Called(tmp_path / "calls")


Imported = Callable[..., list[str]]
QUICK = ("claude-code", "codex", "cline")
"""Agents with which each run of the tests tries all prompts and values."""
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in AGENTS]


@pytest.fixture
def imported(run: Run, tmp_path: Path) -> Imported:
    """Import sessions into the library and return their ids."""

    def bring(*sessions: list[dict[str, object]]) -> list[str]:
        ids = write(tmp_path / "in.jsonl", *sessions)
        done = run("import", tmp_path / "in.jsonl")
        assert done.code == 0, done.err
        return ids

    return bring


def _taken(call: list[str]) -> str | None:
    """Return the prompt that an agent takes from its arguments; fail on any other option."""
    program, *rest = call
    if program == "opencode" and rest[:1] == ["import"]:
        assert len(rest) == 2 and os.path.isabs(rest[1])
        return None
    pairs = {"claude": "--resume", "gemini": "--resume", "opencode": "--session", "pi": "--session",
             "qwen": "--resume", "kimi": "--session", "cn": "--fork",
             "cline": "--id", "openhands": "--resume"}  # fmt: skip
    prompts = {"gemini": "--prompt-interactive=", "opencode": "--prompt=",
               "qwen": "--prompt-interactive=", "kimi": "\0", "cline": "\0",
               "openhands": "--task="}  # fmt: skip
    if program == "cline":
        assert rest.pop(0) == "-i"
    if program == "codex" and rest[:1] == ["resume"]:
        assert UUID.fullmatch(rest[1])
        rest = rest[2:]
    elif rest[:1] == [pairs.get(program, "")]:
        shape = {"opencode": r"ses_\w+", "pi": r"/[^\0]+\.jsonl",
                 "kimi": f"session_{UUID.pattern}",
                 "cline": r"\d{13}_\w{5}"}.get(program, UUID.pattern)  # fmt: skip
        assert re.fullmatch(shape, rest[1])
        rest = rest[2:]
    elif program == "gemini" and rest and rest[0].startswith("--session-file="):
        assert os.path.isabs(rest[0].partition("=")[2])
        rest = rest[1:]
    if program in ("claude", "codex", "cn"):
        assert rest == [] or (rest[0] == "--" and len(rest) == 2)
        return rest[1] if rest else None
    if program == "pi":
        assert len(rest) < 2 and not "".join(rest).startswith(("-", "@"))
        return rest[0] if rest else None
    assert len(rest) < 2 and all(one.startswith(prompts[program]) for one in rest)
    return rest[0].partition("=")[2] if rest else None


@pytest.mark.parametrize("agent", EACH)
@pytest.mark.one_in(3)
def test_no_prompt_is_obeyed(
    run: Run, imported: Imported, called: Called, agent: str, home: Path, tmp_path: Path
) -> None:
    ids = imported(*(session(prompt=prompt) for prompt in PROMPTS),
                   *(session(prompt=prompt, answered=False) for prompt in PROMPTS))  # fmt: skip
    for number, name in enumerate(ids):
        prompt = PROMPTS[number % len(PROMPTS)]
        done = run("resume", name, "--in", agent, "--yes")
        calls = called()
        if done.code != 0:
            assert calls == [] and done.code == 1 and done.err.startswith("backscroll: ")
            assert "Traceback" not in done.err
            if "--no-prompt" in done.err:
                again = run("resume", name, "--in", agent, "--yes", "--no-prompt")
                assert again.code == 0, again.err
                assert [_taken(call) for call in called()] in ([], [None], [None, None])
            continue
        said = _taken(calls[-1])
        assert calls[-1][0] == AGENTS[agent]
        # What takes no prompt with a session has it in the session's file.
        expected = "" if agent in TAKE_NONE else prompt.strip()
        assert (said or "").strip() == expected, (prompt, calls)
        assert called.folder == [str(home), str(home)]
        there, given = called.environment, {**os.environ, "PWD": str(home)}
        by_the_shell = {"SHLVL", "OLDPWD", "_"}
        assert there.keys() - by_the_shell == given.keys() - by_the_shell
        assert all(there[key] == given[key] for key in there.keys() - by_the_shell)
    assert not [*tmp_path.rglob("pwned*")]


@pytest.mark.parametrize("agent", EACH)
@pytest.mark.one_in(3)
def test_no_other_value_is_obeyed(
    run: Run, imported: Imported, called: Called, agent: str, tmp_path: Path, home: Path
) -> None:
    """Ids, paths, titles and models of sessions that say that the agent itself wrote them."""
    real = tmp_path / "notes.txt"
    real.write_text("mine\n")
    ids = imported(*(
        session(kind=agent, source_id=value, title=value, model=value,
                path=("/etc/passwd", str(real), value)[number % 3])
        for number, value in enumerate(VALUES)
    ))  # fmt: skip
    for name in ids:
        done = run("resume", name, "--yes")
        assert done.code == 0, done.err
        assert _taken(called()[-1]) == (None if agent in TAKE_NONE else "go on")
        assert called.folder == [str(home), str(home)]
    assert real.read_text() == "mine\n"
    assert not [*tmp_path.rglob("pwned*")]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.one_in(3)
def test_no_folder_is_obeyed(
    run: Run, imported: Imported, called: Called, agent: str, tmp_path: Path
) -> None:
    work = tmp_path / "it's a $(touch pwned) folder"
    work.mkdir()
    bad = [value for value in VALUES if value not in ("", "/etc/passwd", "\udc80")]
    ids = imported(*(session(workspace=value) for value in [*bad, "/etc/passwd", str(work)]))
    for name in ids[:-1]:
        done = run("resume", name, "--in", agent, "--yes")
        assert (done.code, called()) == (1, []), done.err
        assert "folder" in done.err
    done = run("resume", ids[-1], "--in", agent, "--yes")
    said = _taken(called()[-1])
    assert done.code == 0 and said == (None if agent in TAKE_NONE else "go on")
    assert called.folder == [str(work), str(work)]
    assert not [*tmp_path.rglob("pwned*")]


def test_the_sessions_that_once_started_something(run: Run, called: Called, home: Path) -> None:
    assert run("import", DATA / "hostile-resume.jsonl").code == 0
    for number in range(1, 5):
        name = f"ses_{number:012x}AAAAAAAAAAAAAA"
        asked = run("resume", name)
        assert asked.code == 1 and called() == []
        run("resume", name, "--yes")
        for call in called():
            _taken(call)


def test_an_import_is_shown_and_asked_for(
    run: Run, imported: Imported, called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    (name,) = imported(session(workspace=str(work), prompt="and 'now'?"))
    asked = run("resume", name)
    assert asked.code == 1 and called() == []
    assert "imported or recorded" in asked.err
    assert re.search(r"command +claude --resume \S+ -- 'and '\"'\"'now'\"'\"'\?'\n", asked.err)
    assert f"folder       {work}\n" in asked.err
    assert f"environment  yours, CLAUDE_CONFIG_DIR={tmp_path / 'claude'}\n" in asked.err
    assert f"new file     {tmp_path / 'claude' / 'projects'}" in asked.err
    assert "--yes" in asked.err and not (tmp_path / "claude").exists()
    with answering("n"):
        refused = run("resume", name)
    assert (refused.code, called()) == (1, []) and "nothing was started" in refused.err
    with answering("y"):
        done = run("resume", name)
    assert done.code == 0 and _taken(called()[0]) == "and 'now'?"


def test_what_a_terminal_does_not_show_is_shown_as_escapes(
    run: Run, imported: Imported, called: Called, tmp_path: Path
) -> None:
    work = tmp_path / "a\u202eb"
    work.mkdir()
    (name,) = imported(session(workspace=str(work), prompt="say \u2066this\u2069"))
    asked = run("resume", name)
    assert asked.code == 1 and called() == []
    assert f"folder       $'{tmp_path}/a\\xe2\\x80\\xaeb'" in asked.err
    assert "-- $'say \\xe2\\x81\\xa6this\\xe2\\x81\\xa9'" in asked.err
    assert run("resume", name, "--yes").code == 0
    assert _taken(called()[0]) == "say \u2066this\u2069" and called.folder[0] == str(work)


def test_a_session_of_this_machine_starts_at_once(
    run: Run, called: Called, claude_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read from the agent's own folder: nothing to ask, in the library or another store."""
    work = tmp_path / "code"
    work.mkdir()
    (file,) = claude_home.rglob("*.jsonl")
    file.write_text(file.read_text().replace("/home/mira/code", str(work)))
    store = tmp_path / "other.db"
    for where in ([], ["--store", store]):
        run("sync", *where)
        done = run("resume", *where, "11111111")
        assert done.code == 0, done.err
        assert called() == [["claude", "--resume", "11111111-2222-4333-8444-555555555555"]]
        made = run("fork", *where, "11111111", "u1")
        assert run("resume", *where, made.out.split()[0]).code == 0
        assert len(called()) == 1


def test_a_session_whose_file_the_agent_deleted_is_still_its_own(
    run: Run, called: Called, claude_home: Path, tmp_path: Path
) -> None:
    work = tmp_path / "code"
    work.mkdir()
    (file,) = claude_home.rglob("*.jsonl")
    file.write_text(file.read_text().replace("/home/mira/code", str(work)))
    run("sync")
    file.unlink()
    assert run("resume", "11111111").code == 0
    (call,) = called()
    assert call[1] == "--resume" and call[2] != file.stem


def test_another_machines_store_is_asked_for(
    run: Run, called: Called, claude_home: Path, tmp_path: Path
) -> None:
    """The same store, once its agent's files are not there: it may come from anywhere."""
    store = tmp_path / "theirs.db"
    run("sync", "--store", store)
    shutil.rmtree(claude_home)
    done = run("resume", "--store", store, "11111111")
    assert done.code == 1 and called() == []
