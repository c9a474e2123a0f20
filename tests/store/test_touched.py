"""What tool calls of each agent touched: files with their lines, commands with their ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.conversation.touched import (
    DELETERS,
    EDITORS,
    MOVERS,
    PATHS,
    READERS,
    SHELLS,
    WRITERS,
    Touched,
    edit_blocks,
    resolved,
    touched,
)
from store.text.diffs import as_text, between, files_in, from_unified, tally

Facts = list[tuple[str, str, tuple[int, int] | None]]


def part(
    name: str, given: Any, output: Any = "ok", *, state: str = "output-available",
    structured: Any = None, **details: Any,
) -> dict[str, Any]:
    """A tool part as the sources make it."""
    own = {"status": "ok", **details}
    if structured is not None:
        own["structured"] = structured
    return {
        "type": f"tool-{name}", "toolCallId": "t", "state": state, "input": given,
        "output": output, "resultProviderMetadata": {"backscroll": own},
    }  # fmt: skip


def found(data: dict[str, Any]) -> Touched:
    touch = touched(data)
    assert touch is not None
    return touch


def facts(data: dict[str, Any]) -> Facts:
    return [(file.path, file.kind, file.counts()) for file in found(data).files]


PATCH = """*** Begin Patch
*** Add File: new.py
+def f():
+    return 42
*** Update File: src/a.sql
*** Move to: src/b.sql
@@ create
 context
--- a comment
+++ two pluses
+third
*** Delete File: old.py
*** End Patch
"""
PATCHED: Facts = [
    ("new.py", "write", (2, 0)), ("src/a.sql", "move", (2, 1)), ("old.py", "delete", None),
]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # Claude Code
        (part("Read", {"file_path": "/p/a.py", "offset": 3}), [("/p/a.py", "read", None)]),
        (part("Edit", {"file_path": "/p/a.py", "old_string": "a\nb", "new_string": "a\nc\nd"}),
         [("/p/a.py", "edit", (2, 1))]),
        (part("Edit", {"file_path": "/p/a.py", "old_string": "x", "new_string": "y"},
              structured={"structuredPatch": [
                  {"oldStart": 1, "newStart": 1, "lines": ["-x", "+y"]},
                  {"oldStart": 9, "newStart": 9, "lines": [" c", "-x", "+y"]}]}),
         [("/p/a.py", "edit", (2, 2))]),
        (part("MultiEdit", {"file_path": "/p/a.py", "edits": [
            {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]}),
         [("/p/a.py", "edit", (2, 2))]),
        (part("Write", {"file_path": "/p/a.py", "content": "a\nb\n"},
              structured={"type": "create", "structuredPatch": []}),
         [("/p/a.py", "write", (2, 0))]),
        (part("Write", {"file_path": "/p/a.py", "content": "a\nb\n"},
              structured={"type": "update", "structuredPatch": []}),
         [("/p/a.py", "write", (0, 0))]),
        (part("NotebookEdit", {"notebook_path": "/p/n.ipynb", "new_source": "a\nb"}),
         [("/p/n.ipynb", "edit", (2, 0))]),
        (part("Grep", {"pattern": "x", "path": "/p/src"}), [("/p/src", "search", None)]),
        (part("mcp__files__write_file", {"path": "/p/a", "content": "1"}),
         [("/p/a", "write", (1, 0))]),
        # Codex
        (part("apply_patch", {"input": PATCH}), PATCHED),
        (part("apply_patch", PATCH), PATCHED),
        (part("shell", {"command": ["apply_patch", PATCH]}), PATCHED),
        (part("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF\n"]}),
         PATCHED),
        (part("exec_command", {"cmd": f"cd 'my dir' && apply_patch <<EOF\n{PATCH}EOF"}),
         [("my dir/new.py", "write", (2, 0)), ("my dir/src/a.sql", "move", (2, 1)),
          ("my dir/old.py", "delete", None)]),
        (part("apply_patch", {"input": PATCH}, structured={
            "filePath": "/p/new.py",
            "files": [{"path": "/p/new.py", "change": "add"},
                      {"path": "/p/a", "change": "update", "moved_to": "/p/b"},
                      {"path": "/p/old.py", "change": "delete"}],
            "structuredPatch": [
                {"file": "/p/new.py", "oldStart": 0, "newStart": 1, "lines": ["+1", "+2"]},
                {"file": "/p/a", "oldStart": 1, "newStart": 1, "lines": ["-1", "+2"]},
                {"file": "/p/old.py", "oldStart": 1, "newStart": 0, "lines": ["-1", "-2", "-3"]},
            ]}),
         [("/p/new.py", "write", (2, 0)), ("/p/a", "move", (1, 1)),
          ("/p/old.py", "delete", (0, 3))]),
        (part("view_image", {"path": "/p/p.png"}), [("/p/p.png", "read", None)]),
        # opencode and hub
        (part("edit", {"filePath": "a.txt", "oldString": "x", "newString": "y"},
              structured={"filediff": {"file": "/p/a.txt", "additions": 4, "deletions": 3}}),
         [("a.txt", "edit", (4, 3))]),
        (part("apply_patch", {"patchText": PATCH}, structured={"files": [
            {"filePath": "/p/new.py", "type": "add", "additions": 2, "deletions": 0},
            {"filePath": "/p/a", "type": "move", "movePath": "/p/b", "additions": 1,
             "deletions": 1}]}),
         [("/p/new.py", "write", (2, 0)), ("/p/a", "move", (1, 1))]),
        (part("edit", {"filePath": "s.csv", "oldString": "1", "newString": "2"},
              structured={"diff": "-1\n+2\n"}), [("s.csv", "edit", (1, 1))]),
        # Gemini CLI
        (part("replace", {"file_path": "a.txt", "old_string": "x", "new_string": "y"},
              structured={"diffStat": {"model_added_lines": 5, "model_removed_lines": 2,
                                       "user_added_lines": 0, "user_removed_lines": 0}}),
         [("a.txt", "edit", (5, 2))]),
        (part("read_many_files", {"paths": ["a.py", "b.py"]}),
         [("a.py", "read", None), ("b.py", "read", None)]),
        # Copilot CLI and editors of one tool
        (part("create", {"path": "n.txt", "file_text": "a\nb\nc\n"}),
         [("n.txt", "write", (3, 0))]),
        (part("edit", {"path": "a.txt", "old_str": "a", "new_str": "b"}),
         [("a.txt", "edit", (1, 1))]),
        (part("str_replace_editor", {"command": "view", "path": "a"}), [("a", "read", None)]),
        (part("str_replace_editor", {"command": "create", "path": "a", "file_text": "1\n2"}),
         [("a", "write", (2, 0))]),
        (part("str_replace_editor", {"command": "insert", "path": "a", "insert_text": "1\n2\n"}),
         [("a", "edit", (2, 0))]),
        # pi
        (part("edit", {"path": "a.txt", "oldText": "a", "newText": "b",
                       "edits": [{"oldText": "a", "newText": "b"}]}),
         [("a.txt", "edit", (1, 1))]),
        # y-agent, which keeps no text of what it wrote
        (part("FileWrite", {"path": "a.py"}), [("a.py", "write", None)]),
        (part("FileRead", {"path": "a.py"}), [("a.py", "read", None)]),
        # lionagi, viben, MCP servers
        (part("write_file", {"path": "N.md", "content": "1"}), [("N.md", "write", (1, 0))]),
        (part("move_file", {"source": "a", "destination": "b"}), [("a", "move", None)]),
        (part("delete_file", {"path": "a"}), [("a", "delete", None)]),
    ],
)  # fmt: skip
def test_files_of_a_call(data: dict[str, Any], expected: Facts) -> None:
    assert facts(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (part("Bash", {"command": "make check"}, exit_code=0, duration_ms=120),
         ("make check", "ok", 0, 120, "")),
        (part("Bash", {"command": "false"}, "Exit code 3\nno", state="output-error",
              status="error"), ("false", "failed", 3, None, "")),
        (part("exec_command", {"cmd": "ls", "workdir": "/w"}, exit_code=4, status="error"),
         ("ls", "failed", 4, None, "/w")),
        (part("exec_command", {"cmd": "ls"}, structured={"cwd": "file:///home/u"}),
         ("ls", "ok", None, None, "/home/u")),
        (part("shell", {"command": ["git", "log"], "workdir": "/w"}),
         ("git log", "ok", None, None, "/w")),
        (part("exec_command", {"cmd": "serve"},
              "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\n"),
         ("serve", "ended", None, None, "")),
        (part("Bash", {"command": "serve", "run_in_background": True}),
         ("serve", "ended", None, None, "")),
        (part("Bash", {"command": "serve"}, structured={"backgroundTaskId": "b1"}),
         ("serve", "ended", None, None, "")),
        (part("ShellExec", {"cmd": "pytest"}, state="output-error", status="error"),
         ("pytest", "failed", None, None, "")),
        (part("run_shell_command", {"command": "x"}, None, state="output-error", status="denied"),
         ("x", "denied", None, None, "")),
        (part("bash", {"command": "x"}, None, state="input-available"),
         ("x", "pending", None, None, "")),
        (part("bash", {"command": "x"}, None, state="approval-requested"),
         ("x", "waiting", None, None, "")),
    ],
)  # fmt: skip
def test_command_of_a_call(
    data: dict[str, Any], expected: tuple[str, str, int | None, int | None, str]
) -> None:
    touch = found(data)
    ended = touch.outcome
    assert expected == (
        touch.command, ended.status, ended.exit_code, ended.milliseconds, touch.folder
    )


def test_aider_says_what_it_edited_and_read() -> None:
    event = {"type": "data-event", "data": {
        "name": "committed", "details": "Applied edit to a.txt", "files": ["a.txt"]}}
    assert facts(event) == [("a.txt", "edit", None)]
    event["data"] = {"name": "info", "details": "Aider v0.86\nAdded src/a b.py to the chat."}
    assert facts(event) == [("src/a b.py", "read", None)]
    answer = (
        "I will.\n\na.txt\n```\n<<<<<<< SEARCH\nalpha\n=======\nALPHA\nbeta\n>>>>>>> REPLACE\n"
        "<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n```\nnew.py\n```python\n"
        "<<<<<<< SEARCH\n=======\nx\ny\n>>>>>>> REPLACE\n```\n"
    )
    assert [(file.path, file.counts()) for file in edit_blocks(answer)] == [
        ("a.txt", (2, 1)), ("a.txt", (1, 0)), ("new.py", (2, 0)),
    ]  # fmt: skip


def test_opencode_lists_what_differs_after_a_step() -> None:
    listed = {"type": "data-patch", "data": {"hash": "1", "files": ["/p/a", 3, "", "/p/b"]}}
    assert facts(listed) == [("/p/a", "change", None), ("/p/b", "change", None)]


@pytest.mark.parametrize(
    "data",
    [
        {}, {"type": 3}, {"type": "text", "text": "x"}, part("Task", {"path": "/p"}),
        part("Read", None), part("Read", 7), part("Read", ["a"]), part("Read", {"file_path": 3}),
        part("Edit", {"file_path": ""}), part("Bash", {"command": 3}),
        part("Bash", {"command": []}),
        part("apply_patch", {"input": "*** Begin"}), part("Bash", {"command": " "}),
        {"type": "data-event", "data": {"name": "edited", "files": [3, None, ""]}},
        {"type": "data-event", "data": [1]},
        {"type": "tool-Bash", "input": None, "resultProviderMetadata": {"backscroll": 3}},
    ],
)  # fmt: skip
def test_what_touches_nothing(data: dict[str, Any]) -> None:
    assert touched(data) is None


def test_broken_patches_give_what_can_be_read() -> None:
    broken = (
        "*** Begin Patch\n*** Update File: a\n@@ -1,9 +x @@\ngarbage\n+one\n"
        "*** Update File: \n-two"
    )
    assert [(file.path, tally(file.lines)) for file in files_in(broken)] == [("a", (1, 1))]
    unified = (
        "--- a/x\n+++ b/x\n@@ -1,99 +1,99 @@\n-one\n+two\n"
        "diff --git a/y b/y\n--- a/y\n+++ b/y"
    )
    assert [(file.path, tally(file.lines)) for file in files_in(unified)] == [
        ("x", (1, 1)), ("y", (0, 0)),
    ]  # fmt: skip
    hostile = part("Edit", {"file_path": "a\x1b[2J\nb", "edits": [1, None, {"old_string": 4}]},
                   structured={"structuredPatch": [3, {"lines": "x", "oldStart": "y"}],
                               "filediff": {"additions": -1, "deletions": "x"},
                               "files": [1, {"path": 4}]})  # fmt: skip
    assert facts(hostile) == [("a\x1b[2J\nb", "edit", None)]


def test_a_unified_diff_keeps_lines_that_look_like_headings() -> None:
    text = "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n top\n--- old\n+++ new\n end\n"
    assert as_text(from_unified(text)) == " top\n--- old\n+++ new\n end"
    git = (
        "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n"
        "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+2"
    )
    (file,) = files_in(git)
    assert (file.path, file.change, file.moved_to, tally(file.lines)) == ("x", "move", "y", (1, 1))
    (file,) = files_in("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1")
    assert (file.path, file.change) == ("x", "write")
    (file,) = files_in("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1")
    assert (file.path, file.change) == ("x", "delete")


def test_long_texts_are_compared_between_their_equal_ends() -> None:
    lines = [f"line {number}" for number in range(3_000)]
    changed = [*lines[:1_500], "other", *lines[1_501:]]
    assert tally(between("\n".join(lines), "\n".join(changed))) == (1, 1)
    assert between("\n".join(lines), "\n".join(lines)) == []
    halves = ["x" * 5] * 2_000, ["y" * 5] * 1_000
    assert tally(between(*("\n".join(half) for half in halves))) == (1_000, 2_000)


@pytest.mark.parametrize(
    ("path", "folders", "expected"),
    [
        ("a.py", ("", "/p"), "/p/a.py"),
        ("./src/../a.py", (None, "/p"), "/p/a.py"),
        ("a.py", ("sub", "/p"), "/p/sub/a.py"),
        ("/p//x/./a.py", ("/q",), "/p/x/a.py"),
        ("~/a", ("/p",), "~/a"),
        ("C:\\p\\.\\a.py", ("/p",), "C:\\p\\a.py"),
        ("a.py", ("", None), "a.py"),
        ("//a", (), "/a"),
    ],
)  # fmt: skip
def test_two_spellings_of_a_file_are_one(
    path: str, folders: tuple[str | None, ...], expected: str
) -> None:
    assert resolved(path, *folders) == expected


def test_a_megabyte_is_read_in_no_time_that_grows() -> None:
    body = "x" * 1_000_000
    assert facts(part("Write", {"file_path": "a", "content": body})) == [("a", "write", (1, 0))]
    lines = "y\n" * 300_000
    assert facts(part("Edit", {"file_path": "a", "old_string": lines, "new_string": lines + "z"})
                 ) == [("a", "edit", (1, 1))]  # fmt: skip
    assert found(part("Bash", {"command": body})).command == body
    assert facts(part("Read", {"file_path": body})) == [(body, "read", None)]
    assert list(edit_blocks("<<<<<<< SEARCH\n" * 20_000)) == []


TOOLS = sorted(SHELLS | READERS | EDITORS | WRITERS | MOVERS | DELETERS | {"Task", "data"})
NAMES = st.sampled_from([
    *PATHS, "command", "cmd", "input", "patch", "edits", "old_string", "new_string", "content",
    "structuredPatch", "lines", "oldStart", "files", "fileEdits", "diff", "filediff", "additions",
    "deletions", "diffStat", "workdir", "cwd", "source", "type", "moved_to", "paths", "change",
])  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from([PATCH, "@@ -1,2 +1,2 @@\n-a\n+b", "--- a/x\n+++ b/y\n@@ -9 @@\n+", "cd '", "/",
                     "*** Begin Patch\n*** Update File: a\n@@ -99999999999 +1\n", "\ud800", "~"]),
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=12,
)


@given(tool=st.sampled_from(TOOLS), given_=VALUES, structured=VALUES, output=VALUES, own=VALUES)
@settings(max_examples=100, deadline=None)
def test_any_values_are_read(
    tool: str, given_: object, structured: object, output: object, own: object
) -> None:
    details = {"structured": structured, "duration_ms": own, "exit_code": own, "status": own}
    data = {
        "type": f"tool-{tool}", "input": given_, "output": output,
        "resultProviderMetadata": {"backscroll": details},
    }  # fmt: skip
    for each in (data, {"type": "data-event", "data": given_}, {"type": "data-patch", "data": own}):
        found = touched(each)
        for file in found.files if found is not None else ():
            plus, minus = file.counts() or (0, 0)
            assert file.path and plus >= 0 and minus >= 0
            assert file.told is not None or (plus, minus) == tally(file.diff())
            assert isinstance(resolved(file.path, "", "/p"), str)
    assert all(file.path for file in edit_blocks(str(given_)))
