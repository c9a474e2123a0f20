"""What a source no longer has, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, home, run

__all__ = ["home", "run"]


def row(number: int, text: str) -> str:
    parent = f"u{number - 1}" if number else None
    return json.dumps({
        "type": "user", "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s1",
        "timestamp": f"2026-11-01T10:00:0{number}.000Z", "version": "2.1.332", "cwd": "/work",
        "message": {"role": "user", "content": text},
    }) + "\n"  # fmt: skip


def test_show_says_what_is_no_longer_in_the_file(home: Path, run: Run) -> None:
    path = home / ".claude" / "projects" / "-work" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(row(n, f"prompt {n}") for n in range(3)))
    assert run("sync").code == 0
    before = run("export", "s1", "--to", "claude-code", "--out", str(home / "before.jsonl"))
    assert before.code == 0
    path.write_text(row(0, "prompt 0"))
    assert run("sync").code == 0
    out = run("show", "s1").out
    assert [f"prompt {n}" in out for n in range(3)] == [True] * 3
    assert out.count("no longer in the source's file") == 2
    assert run("sessions", "--json").json[0]["message_count"] == 3
    exported = run("export", "s1", "--to", "claude-code", "--out", str(home / "out.jsonl"))
    assert exported.code == 0
    whole = (home / "before.jsonl").read_text()
    after = (home / "out.jsonl").read_text()
    assert [f"prompt {n}" in after for n in range(3)] == [f"prompt {n}" in whole for n in range(3)]
