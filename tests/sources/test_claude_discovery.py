"""Roots of every form, units, side files, and what is never opened."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from store.errors import NotFound
from store.sources import registry
from store.sources.base.protocol import Problem
from store.sources.claude_code import ClaudeCodeSource
from store.sources.claude_code.discovery import claimed_id
from tests.sources.claude_rows import SESSION, File, call, extra, read, tool


def config(folder: Path) -> Path:
    """Make a config folder with one session, an agent of it, and side files."""
    root = folder / ".claude"
    project = root / "projects" / "-w"
    file = File()
    file.user("go")
    file.assistant(tool("t1", "Agent", prompt="p"), id="msg_1")
    file.write(project)
    agents = project / SESSION / "subagents"
    agent = File()
    agent.user("p", isSidechain=True, agentId="abc")
    agent.write(agents, "agent-abc")
    (agents / "agent-abc.meta.json").write_text('{"agentType":"Plan","toolUseId":"t1"}')
    results = project / SESSION / "tool-results"
    results.mkdir()
    (results / "out.txt").write_text("whole output")
    return root


def test_every_form_of_root_gives_the_same_session(tmp_path: Path) -> None:
    root = config(tmp_path)
    source = ClaudeCodeSource()
    project = root / "projects" / "-w"
    forms = [root, root / "projects", project, project / f"{SESSION}.jsonl"]
    renamed = tmp_path / "elsewhere"
    root.rename(renamed)
    renamed.rename(root)
    found = []
    for form in forms:
        assert source.recognise(form) == form
        drafts, problems = read(form)
        assert problems == []
        keys = [unit.key for unit in source.units(form, [])]
        found.append((sorted(drafts), keys))
    assert found == [([SESSION, f"agent-abc:{SESSION}"], [f"-w/{SESSION}"])] * 4
    agent_file = project / SESSION / "subagents" / "agent-abc.jsonl"
    assert source.recognise(agent_file) == agent_file
    drafts, _ = read(agent_file)
    assert list(drafts) == [f"agent-abc:{SESSION}"]
    lineage = drafts[f"agent-abc:{SESSION}"].lineage
    assert lineage is not None
    assert (lineage.parent_source_id, lineage.tool_call_id) == (SESSION, "t1")


def test_what_is_no_source(tmp_path: Path) -> None:
    source = ClaudeCodeSource()
    (tmp_path / "data.jsonl").write_text('{"text":"hello"}\n')
    (tmp_path / "chat.jsonl").write_text('{"type":"user","message":"hi"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "notes.txt").write_text("x")
    for name in ("data.jsonl", "chat.jsonl", "empty.jsonl", "notes.txt", "missing"):
        assert source.recognise(tmp_path / name) is None
    assert source.recognise(tmp_path) is None
    (tmp_path / "projects").mkdir()
    assert source.recognise(tmp_path) is None
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    assert source.recognise(tmp_path / ".claude") == tmp_path / ".claude"


@pytest.mark.parametrize("quoted", [False, True])
def test_a_first_line_longer_than_what_is_looked_at_is_recognised(
    tmp_path: Path, quoted: bool
) -> None:
    file = File()
    file.user('"x" ' * 200_000)
    path = file.write(tmp_path)
    if quoted:
        row = json.dumps(path.read_text())
        path.write_text(f'{{"type":"user","uuid":"1","message":{row}}}\n')
    assert ClaudeCodeSource().recognise(path) == (None if quoted else path)


def test_old_session_that_begins_with_summaries_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"type":"summary","summary":"s","leafUuid":"l"}\n')
    assert ClaudeCodeSource().recognise(path) == path


def test_default_roots(tmp_path: Path) -> None:
    source = ClaudeCodeSource()
    usual = [tmp_path / ".claude", tmp_path / ".config" / "claude"]
    assert source.default_roots({}, tmp_path) == usual
    named = source.default_roots({"CLAUDE_CONFIG_DIR": "/a, /b ,,"}, tmp_path)
    assert named == [Path("/a"), Path("/b"), *usual]
    assert source.default_roots({"CLAUDE_CONFIG_DIR": str(usual[0])}, tmp_path) == usual
    moved = source.default_roots({"XDG_CONFIG_HOME": "/x"}, tmp_path)
    assert moved == [tmp_path / ".claude", Path("/x/claude")]


def test_unit_stamps_cover_all_files_and_tell_changes(tmp_path: Path) -> None:
    root = config(tmp_path)
    source = ClaudeCodeSource()
    (before,) = source.units(root, [])
    names = [Path(stamp.path).name for stamp in before.stamps]
    assert names == [
        f"{SESSION}.jsonl",
        "agent-abc.jsonl",
        "agent-abc.meta.json",
        "out.txt",
    ]
    (again,) = source.units(root, [])
    assert again == before
    reading = source.read(root, before)
    assert reading.stamps == before.stamps
    newest = Path(before.stamps[1].path)
    os.utime(newest, ns=(10**18 * 2, 10**18 * 2))
    (after,) = source.units(root, [])
    assert after.changed_at == 2 * 10**12
    assert after.stamps != before.stamps


def test_projects_that_share_a_folder_name_stay_apart_by_cwd(tmp_path: Path) -> None:
    folder = tmp_path / "-home-a-b-c"
    for number, cwd in enumerate(("/home/a/b_c", "/home/a/b.c")):
        file = File(session=f"s{number}", cwd=cwd)
        file.user("go")
        file.write(folder)
    drafts, _ = read(folder)
    assert {draft.workspace_root for draft in drafts.values()} == {"/home/a/b_c", "/home/a/b.c"}


def test_each_file_of_a_session_is_read(tmp_path: Path) -> None:
    """Sync finds out which of them tells more."""
    file = File()
    file.user("go")
    file.write(tmp_path / "projects" / "-a")
    file.write(tmp_path / "projects" / "-b")
    file.write(tmp_path / "projects" / "-b", f"{SESSION} (1)")
    source, problems = ClaudeCodeSource(), list[Problem]()
    units = list(source.units(tmp_path, problems))
    assert problems == []
    assert [unit.key for unit in units] == [
        f"-a/{SESSION}", f"-b/{SESSION}", f"-b/{SESSION} (1)"
    ]  # fmt: skip
    drafts = [draft for unit in units for draft in source.read(tmp_path, unit).sessions]
    assert [draft.source_id for draft in drafts] == [SESSION] * 3


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        (SESSION, SESSION), (f"{SESSION} (2)", SESSION), (f"{SESSION} copy", SESSION),
        ("foo conflicted copy 2026-11-28", "foo"),
        ("foo-conflict-2026", "foo"),
        ("conflicted views", "conflicted views"),
        (f"{SESSION}-conflicted", SESSION),
        (f"{SESSION} (mira's conflicted copy 2026-11-20)", SESSION),
        (f"{SESSION}.sync-conflict-20261120-101010-ABCDEF", SESSION),
        (f"{SESSION}~", SESSION), ("notes (1)", "notes"), ("notes - Copy (2)", "notes"),
        ("notes", "notes"), ("copy", "copy"), (f"{SESSION}f", f"{SESSION}f"),
    ],
)  # fmt: skip
def test_the_id_that_a_copy_claims(name: str, claimed: str) -> None:
    assert claimed_id(name) == claimed


def test_empty_session_is_kept_for_its_agents(tmp_path: Path) -> None:
    (tmp_path / f"{SESSION}.jsonl").touch()
    agent = File(version="2.0.77")
    agent.user("Warmup", isSidechain=True, agentId="abc")
    agent.write(tmp_path, "agent-abc")
    drafts, problems = read(tmp_path)
    assert problems == []
    parent, child = drafts[SESSION], drafts[f"agent-abc:{SESSION}"]
    assert parent.messages == []
    assert (parent.created_at, parent.updated_at) == (child.created_at, child.updated_at)
    assert parent.workspace_root == "/w"


def test_agents_without_their_session_are_kept(tmp_path: Path) -> None:
    agent = File(version="2.0.77")
    agent.user("p", isSidechain=True, agentId="abc")
    agent.write(tmp_path, "agent-abc")
    drafts, _ = read(tmp_path)
    assert list(drafts) == [f"agent-abc:{SESSION}"]


def test_only_known_files_are_opened_and_none_is_changed(tmp_path: Path) -> None:
    root = config(tmp_path)
    (root / "sessions").mkdir()
    for place in (root, root / "sessions", root / "projects" / "-w", root / "projects"):
        (place / "1234.key").write_text("secret")
    (root / "projects" / "-w" / SESSION / "x.key").write_text("secret")
    (root / "projects" / "-w" / SESSION / "subagents" / "agent-x.key").write_text("secret")
    (root / "projects" / "-w" / "memory").mkdir()
    (root / "projects" / "-w" / "memory" / "MEMORY.md").write_text("private")
    before = {path: path.stat() for path in sorted(tmp_path.rglob("*"))}
    opened: dict[str, int] = {}
    watching = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open" and str(arguments[0]).startswith(str(tmp_path)):
            opened[str(arguments[0])] = arguments[2]

    sys.addaudithook(hook)
    read(root)
    watching = False
    assert {flags & os.O_ACCMODE for flags in opened.values()} == {os.O_RDONLY}
    assert sorted({Path(path).name for path in opened}) == [
        f"{SESSION}.jsonl",
        "agent-abc.jsonl",
        "agent-abc.meta.json",
        "out.txt",
    ]
    after = {path: path.stat() for path in sorted(tmp_path.rglob("*"))}
    assert list(after) == list(before)
    for path, stat in before.items():
        assert (after[path].st_mtime_ns, after[path].st_size) == (stat.st_mtime_ns, stat.st_size)


def test_side_files_of_any_kind_are_named_by_the_output(tmp_path: Path) -> None:
    file = File()
    file.user("go")
    file.assistant(tool("t1", "mcp__x__y"), tool("t2"), id="msg_1")
    file.result("t1", [{"type": "text", "text": "saved to /p/tool-results/mcp-x-blob-1.png now"}])
    file.result("t2", "no file")
    path = file.write(tmp_path)
    results = tmp_path / SESSION / "tool-results"
    results.mkdir(parents=True)
    (results / "mcp-x-blob-1.png").write_bytes(b"\x89PNG\0")
    (results / "raw.bin").write_bytes(b"\0\1")
    (results / "note").write_text("words")
    drafts, _ = read(path)
    draft = drafts[SESSION]
    assert extra(call(draft, "t1"))["attachment"] == "mcp-x-blob-1.png"
    assert "attachment" not in extra(call(draft, "t2"))
    assert {a.name: a.media_type for a in draft.attachments} == {
        "mcp-x-blob-1.png": "image/png",
        "note": "text/plain",
        "raw.bin": "application/octet-stream",
    }


def test_secret_files_in_tool_results_are_left_out(tmp_path: Path) -> None:
    root = config(tmp_path)
    results = root / "projects" / "-w" / SESSION / "tool-results"
    (results / "1.key").write_text("secret")
    (tmp_path / "outside.txt").write_text("outside")
    (results / "link.txt").symlink_to(tmp_path / "outside.txt")
    drafts, _ = read(root)
    assert [a.name for a in drafts[SESSION].attachments] == ["out.txt"]


def test_stray_session_file_beside_the_projects_hides_none(tmp_path: Path) -> None:
    root = config(tmp_path)
    stray = File(session="stray")
    stray.user("go")
    stray.write(root / "projects")
    drafts, problems = read(root)
    assert problems == []
    assert sorted(drafts) == [SESSION, f"agent-abc:{SESSION}", "stray"]


def test_watch_paths(tmp_path: Path) -> None:
    root = config(tmp_path)
    source = ClaudeCodeSource()
    project = root / "projects" / "-w"
    assert list(source.watch_paths(root)) == [root / "projects"]
    assert list(source.watch_paths(project)) == [project]
    assert list(source.watch_paths(project / f"{SESSION}.jsonl")) == [project]


def test_registry() -> None:
    sources = registry.all_sources()
    assert "claude-code" in [source.kind for source in sources]
    assert registry.source("claude-code").label == "Claude Code"
    with pytest.raises(NotFound, match="claude-code"):
        registry.source("nothing")


def test_what_lies_beside_a_file_that_is_named_is_not_its_trouble(tmp_path: Path) -> None:
    project = config(tmp_path) / "projects" / "-w"
    os.mkfifo(project / "pipe.jsonl")
    (project / "dir.jsonl").mkdir()
    problems: list[Problem] = []
    (unit,) = ClaudeCodeSource().units(project / f"{SESSION}.jsonl", problems)
    assert (len(unit.stamps), problems) == (4, [])
    list(ClaudeCodeSource().units(project, problems))
    assert sorted((problem.path, problem.reason) for problem in problems) == [
        (str(project / name), "not a regular file") for name in ("dir.jsonl", "pipe.jsonl")
    ]


@pytest.mark.parametrize("kind", ["attachment", "system"])
def test_a_long_first_line_of_any_row_is_recognised(tmp_path: Path, kind: str) -> None:
    file = File()
    file.row(kind, attachment={"type": "file", "content": "x" * 600_000}, content="y")
    file.user("hello")
    path = file.write(tmp_path)
    assert ClaudeCodeSource().recognise(path) == path
