"""What `y` copies of a call, and what `Y` offers, for the tools of every agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tui.seeded import tool
from tui.words.copying import copyables

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.py\n*** End Patch"

PASTED: list[tuple[str, Any, str, str]] = [
    # Claude Code
    ("Bash", {"command": "cd /x &&\nmake", "description": "Build"}, "command", "cd /x &&\nmake"),
    ("Read", {"file_path": "/srv/api/a.py", "offset": 7}, "path", "/srv/api/a.py"),
    ("Grep", {"pattern": "def \\w+", "path": "/srv", "glob": "*.py"}, "pattern", "def \\w+"),
    ("Glob", {"pattern": "**/*.ts"}, "pattern", "**/*.ts"),
    ("LS", {"path": "/srv/api"}, "path", "/srv/api"),
    ("WebFetch", {"url": "https://a.b/c", "prompt": "Sum it up"}, "address", "https://a.b/c"),
    ("WebSearch", {"query": "sqlite fts5 trigram"}, "query", "sqlite fts5 trigram"),
    ("Write", {"file_path": "/a.py", "content": "x = 1\n"}, "new text", "x = 1\n"),
    ("Edit", {"file_path": "/a.py", "old_string": "1", "new_string": "2"}, "path", "/a.py"),
    ("MultiEdit", {"file_path": "/a.py", "edits": [{"old_string": "1"}]}, "path", "/a.py"),
    ("Task", {"description": "Look", "prompt": "Read all of it", "subagent_type": "x"},
     "prompt", "Read all of it"),
    ("ExitPlanMode", {"plan": "# Plan\n1. go"}, "plan", "# Plan\n1. go"),
    ("TodoWrite", {"todos": [{"content": "a", "status": "completed"}, {"content": "b"}]},
     "check list", "- [x] a\n- [ ] b"),
    # Codex
    ("shell", {"command": ["bash", "-lc", "rg -n x | head"], "workdir": "/w"},
     "command", "rg -n x | head"),
    ("shell", {"command": ["grep", "-n", "two words", "a b.txt"]},
     "command", "grep -n 'two words' 'a b.txt'"),
    ("exec_command", {"cmd": "ls -la"}, "command", "ls -la"),
    ("apply_patch", {"input": PATCH}, "patch", PATCH),
    ("apply_patch", PATCH, "patch", PATCH),
    # Gemini, Qwen
    ("run_shell_command", {"command": "npm test", "description": "d"}, "command", "npm test"),
    ("search_file_content", {"pattern": "TODO", "path": "src"}, "pattern", "TODO"),
    ("list_directory", {"path": "/w"}, "path", "/w"),
    ("read_many_files", {"paths": ["a.py", "b.py"]}, "path", "a.py\nb.py"),
    ("replace", {"file_path": "/a", "old_string": "a", "new_string": "b"}, "path", "/a"),
    # opencode, pi, Copilot, Cursor, Kimi, Zed, goose, OpenHands, Kiro
    ("read", {"filePath": "/w/a.go", "limit": 5}, "path", "/w/a.go"),
    ("grep", {"pattern": "x", "include": "*.go"}, "pattern", "x"),
    ("webfetch", {"url": "https://a.b", "format": "markdown"}, "address", "https://a.b"),
    ("fetch_webpage", {"urls": ["https://a", "https://b"], "query": "q"},
     "address", "https://a\nhttps://b"),
    ("grep_search", {"query": "foo|bar", "includePattern": "**/*.ts"}, "query", "foo|bar"),
    ("codebase_search", {"query": "where is x", "target_directories": ["src"]},
     "query", "where is x"),
    ("find_path", {"glob": "**/x*"}, "glob", "**/x*"),
    ("list_dir", {"relative_workspace_path": "src"}, "path", "src"),
    ("developer__text_editor", {"command": "view", "path": "/a"}, "path", "/a"),
    ("developer__text_editor", {"command": "write", "path": "/a", "file_text": "b"},
     "new text", "b"),
    ("developer__shell", {"command": "view"}, "command", "view"),
    # A tool that nobody knows
    ("mcp__db__run", {"statement": "SELECT 1"}, "statement", "SELECT 1"),
]


@pytest.mark.parametrize(("name", "given", "what", "text"), PASTED)
def test_what_one_would_paste_comes_first(name: str, given: Any, what: str, text: str) -> None:
    first = copyables(tool(name, given))[0]
    assert (first.name, first.text) == (what, text)


def names(name: str, given: Any) -> dict[str, str]:
    return {f"{piece.key} {piece.name}".strip(): piece.text
            for piece in copyables(tool(name, given))}


def test_a_search_offers_its_pattern_its_path_and_its_glob() -> None:
    assert names("Grep", {"pattern": "x", "path": "/srv", "glob": "*.py", "-n": True}) == {
        "g pattern": "x", "f path": "/srv", "l glob": "*.py",
    }


def test_an_edit_offers_path_new_and_old_text() -> None:
    given = {"file_path": "/a", "old_string": "1", "new_string": "2"}
    assert names("Edit", given) == {"f path": "/a", "n new text": "2", "e old text": "1"}


def test_a_patch_offers_the_files_that_it_changes() -> None:
    found = copyables(tool("apply_patch", {"input": PATCH}))
    assert [piece.text for piece in found if piece.name == "path"] == ["src/a.py", "b.py"]


def test_a_letter_is_given_once() -> None:
    found = copyables(tool("x", {"path": "/a", "file": "/b", "content": "c", "new_string": "d"}))
    letters = [piece.key for piece in found if piece.key]
    assert len(letters) == len(set(letters))


def test_a_call_without_arguments_has_nothing() -> None:
    assert copyables(tool("x", {})) == [] and copyables(tool("x", None)) == []


def test_every_call_of_the_demo_has_something_to_paste() -> None:
    demo = next(Path(__file__).parents[2].glob("store/**/demo.jsonl"))
    parts = [part for line in demo.read_text().splitlines() for part in _tools(json.loads(line))]
    assert len(parts) > 40
    for part in parts:
        found = copyables(part)
        assert bool(found) == bool(part.get("input")), part
        assert all(piece.text.strip() for piece in found)


def _tools(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [part for item in value for part in _tools(item)]
    if not isinstance(value, dict):
        return []
    own = [value] if str(value.get("type", "")).startswith("tool-") and "state" in value else []
    return own + [part for item in value.values() for part in _tools(item)]
