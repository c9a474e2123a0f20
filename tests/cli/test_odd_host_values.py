"""A host's file may hold anything: every command reads it, and leaves its bytes alone."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

TABLES = """
CREATE TABLE chat_sessions (id TEXT PRIMARY KEY, agent TEXT, workspace_root TEXT, model_json TEXT,
 parent_id TEXT, parent_message_id TEXT, permissions_json TEXT, metadata_json TEXT, prompt_tokens,
 completion_tokens, reasoning_tokens, cache_read, cache_write, total_tokens, cost_usd, created_at,
 updated_at, archived_at, further TEXT);
CREATE TABLE chat_messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, metadata_json TEXT,
 created_at, updated_at, further);
CREATE TABLE chat_parts (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, "index" INTEGER,
 type TEXT, data_json TEXT, tool_call_id TEXT, tool_state TEXT, created_at, updated_at);
"""
SESSIONS: list[tuple[Any, ...]] = [
    ("none", None, None, None, None, None, None),
    ("words", "not json", "{}", "[]", "abc", "def", "words"),
    ("loop", "5", "null", '"text"', None, 1.5, "other"),
    ("other", '{"provider_id": 5}', "[5]", '{"title": 5, "source": 7, "lineage": []}', 2**62,
     2**62, "loop"),
    ("blob", "{}", "[]", "{bad", 1.5, 1e18, "missing"),
]
MESSAGES: list[tuple[Any, ...]] = [
    ("user", None, 1), ("tool", "nope", 2), (None, "[]", None),
    ("assistant", '{"usage": 5, "model": "x", "queued_at": "text", "hidden_at": "text"}', "abc"),
    ("assistant", '{"usage": {"input": "a"}, "hidden_at": 5}', 2**62),
    ("user", '{"queued_at": 5}', -5), ("data", b"\xff", 1.5),
]
PARTS: list[tuple[Any, Any]] = [
    ("text", None), ("text", '{"type": "text", "text": 5}'), (None, "[]"), ("odd", '{"a": 1}'),
    ("tool-x", '{"type": "tool-x"}'), ("tool-y", '"text"'),
    ("dynamic-tool", '{"type": "dynamic-tool", "toolName": 5, "input": 5, "state": "odd"}'),
    ("file", '{"url": 5}'), ("data-compaction", '{"data": 5}'), ("reasoning", "nope"),
    ("data-compaction", '{"type": "data-compaction", "data": {"summary": 5}}'),
    ("source-url", '{"type": "source-url", "url": null}'), ("text", b"\xff\xfe"),
    ("text", '{"type": "text", "text": "\\ud800"}'),
    ("text", '{"type": "text", "text": ' + "[" * 2000 + "]" * 2000 + "}"),
]  # fmt: skip
NAMES = [row[0] for row in SESSIONS]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    path = tmp_path / "host.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES)
        for number, (name, *values) in enumerate(SESSIONS):
            connection.execute(
                "INSERT INTO chat_sessions (id, model_json, permissions_json, metadata_json,"
                " created_at, updated_at, parent_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (name, *values),
            )
            for place, (role, metadata, at) in enumerate(MESSAGES):
                message = f"m{number}-{place}"
                connection.execute(
                    "INSERT INTO chat_messages VALUES (?, ?, ?, ?, ?, ?, NULL)",
                    (message, name, role, metadata, at, at),
                )
                connection.executemany(
                    "INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, ?, 'odd', ?, NULL)",
                    [
                        (f"p-{message}-{k}", message, name, k if k % 3 else None, kind, data,
                         None if k % 2 else 5, at)
                        for k, (kind, data) in enumerate(PARTS)
                    ],
                )
    connection.close()
    return path


@pytest.mark.parametrize("name", NAMES)
def test_reading_commands(run: Run, host: Path, name: str) -> None:
    content = host.read_bytes()
    listed = run("sessions", "--json", "--store", host)
    assert (listed.code, sorted(each["id"] for each in listed.json)) == (0, sorted(NAMES))
    for words in (["show"], ["show", "--hidden"], ["show", "--context"], ["tree"],
                  ["export", "--to", "markdown"], ["export", "--to", "jsonl"],
                  ["export", "--to", "claude-code"]):
        result = run(words[0], name, *words[1:], "--store", host)
        assert result.code == 0 and result.out, (words, result.err)
    assert run("show", name, "--json", "--store", host).json
    document = run("export", name, "--to", "json", "--store", host).json
    assert len(document["messages"]) == len(MESSAGES)
    assert {len(each["parts"]) for each in document["messages"]} == {len(PARTS)}
    assert host.read_bytes() == content
    assert [path.name for path in host.parent.iterdir()] == ["home", "host.db"]


def test_a_rewind_passes_marks_that_are_no_times(run: Run, host: Path) -> None:
    with sqlite3.connect(host) as connection:
        connection.execute("UPDATE chat_messages SET metadata_json = '{}' WHERE id LIKE 'm0-6'")
    connection.close()
    result = run("rewind", "none", "m0-0", "--store", host)
    assert result.code == 1 and result.err.startswith("backscroll: the metadata of m0-")
    with sqlite3.connect(host) as connection:
        connection.execute(
            "UPDATE chat_messages SET metadata_json = '{}' WHERE NOT json_valid(metadata_json)"
            " OR metadata_json = '[]'"
        )
    connection.close()
    assert run("rewind", "none", "m0-0", "--store", host).code == 0
    with sqlite3.connect(host) as connection:
        marks = [
            json.loads(row[0])["hidden_at"]
            for row in connection.execute(
                "SELECT metadata_json FROM chat_messages WHERE id IN ('m0-3', 'm0-4')"
            )
        ]
    connection.close()
    assert marks == ["text", 5]


def test_a_list_of_empty_sessions_says_so(run: Run, host: Path) -> None:
    with sqlite3.connect(host) as connection:
        connection.execute("DELETE FROM chat_messages")
        connection.execute("UPDATE chat_sessions SET parent_id = NULL")
    connection.close()
    result = run("sessions", "--store", host)
    assert (result.code, result.out) == (0, "")
    assert result.err == "No matching sessions with messages (5 are empty)\n"
    result = run("sessions", "--store", host, "--agent", "nobody")
    assert "No matching sessions (5 in the store)" in result.err


def test_what_nobody_thought_of_is_one_line_and_in_the_log(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr("tui.cli.tree.run", fail)
    result = run("tree")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(
        "backscroll: this should not happen: ZeroDivisionError: surprise. Details are in "
    )
    log = Path(result.err.strip().rsplit("Details are in ", 1)[1])
    assert "in fail" in log.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", ["files", "commands"])
def test_files_and_commands_of_odd_values(run: Run, host: Path, name: str, what: str) -> None:
    number = NAMES.index(name)
    odd = ['{"input": {"command": 5}}', '{"input": {"command": "ls", "path": "a"}}', b"\xff", "[",
           '{"input": {"path": "\\ud800", "content": "x", "edits": 5}, "state": 7}']  # fmt: skip
    with sqlite3.connect(host) as connection:
        connection.executemany(
            "INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?, ?)",
            [
                (f"q{place}-{kind}", f"m{number}-0", name, place, f"tool-{kind}", data, "abc", 1e18)
                for place, data in enumerate(odd) for kind in ("Bash", "Write", "Edit", "Read")
            ],
        )
    connection.close()
    before = host.read_bytes()
    result = run("show", name, f"--{what}", "--json", "--store", host)
    found = json.loads(result.out)[what]
    assert result.code == 0 and host.read_bytes() == before
    if what == "commands":
        assert [use["command"] for use in found] == ["ls"]
    else:
        assert [len(file["calls"]) for file in found] == [3, 3]
    assert run("show", name, f"--{what}", "--store", host).code == 0
