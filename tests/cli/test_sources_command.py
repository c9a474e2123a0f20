from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run, configure


def test_says_where_was_looked(run: Run, home: Path) -> None:
    found = run("sources", "--all", "--json").json
    place = next(each for each in found if each["path"] == str(home / ".claude"))
    assert place == {
        "kind": "claude-code", "label": "Claude Code", "path": str(home / ".claude"),
        "found": False, "enabled": True, "files": 0, "sessions": 0, "size_bytes": 0,
        "changed_at": None, "problems": 0,
    }
    assert "nothing there" in run("sources", "--all").out
    assert run("sources", "--problems").out.endswith("\nno problems found\n")


def test_what_was_found_is_in_one_column(run: Run) -> None:
    lines = run("sources", "--all").out.splitlines()
    assert len({line.index("  nothing there") for line in lines if ".aider" not in line}) == 1


def test_counts_what_lies_there_and_lists_problems(run: Run, claude_home: Path) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    before = next(p for p in run("sources", "--json").json if p["found"])
    assert (before["files"], before["sessions"]) == (1, 0)
    assert before["size_bytes"] == file.stat().st_size
    run("sync")
    place = next(p for p in run("sources", "--json", "--problems").json if p["found"])
    assert (place["files"], place["sessions"], place["problems"]) == (1, 1, 1)
    (problem,) = place["problem_list"]
    assert (problem["path"], problem["line"]) == (str(file), 2)
    out = run("sources", "--problems").out
    assert "1 session, 1 file, 811 B" in out and "✗ 1 problem\n" in out and f"{file.name}:2" in out


def test_a_place_that_sync_was_given(run: Run, claude_home: Path, tmp_path: Path) -> None:
    moved = claude_home.rename(tmp_path / "elsewhere")
    run("sync", moved)
    assert str(moved) in [place["path"] for place in run("sources", "--json").json]


def test_lists_the_rest_under_all(run: Run, claude_home: Path) -> None:
    rest = len(run("sources", "--all", "--json").json) - 1
    (place,) = run("sources", "--json").json
    assert place["path"] == str(claude_home)
    first, last = run("sources").out.splitlines()
    assert "Claude Code" in first and last == f"nothing in {rest} other places; --all lists them"
    assert len(run("sources", "--all").out.splitlines()) == rest + 1


def test_lists_what_was_named_or_was_there(run: Run, claude_home: Path, home: Path) -> None:
    run("sync")
    claude_home.rename(home / "moved")
    configure(home, f'[sources.paths]\nopenai-agents = ["{home / "named"}"]\n')
    listed = {place["path"]: place for place in run("sources", "--json").json}
    assert listed.keys() == {str(claude_home), str(home / "named")}
    assert listed[str(claude_home)]["sessions"] == 1 and not listed[str(home / "named")]["found"]
    lines = run("sources").out.splitlines()
    assert "Agents SDK ~/named" in lines[1] and lines[0].index("~") == lines[1].index("~")
