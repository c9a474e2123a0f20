"""Values of fields that are offered while a query is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.queries.known_values import known_values
from tests.store import making


def test_the_values_of_the_newest_sessions(
    of_any_form: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = of_any_form
    monkeypatch.setenv("HOME", "/home/mira")
    for number in range(3):
        id = making.add_session(
            db.connection, f"ses_{number}", number, agent="codex" if number else "pi",
            workspace_root="/home/mira/code/api", model_json='{"model_id": "gpt-5"}',
            metadata_json=json.dumps({
                "git_branch": "main", "source": {"kind": "codex"},
                "user": {"tags": ["work"], "labels": {"msg_1": "to do"}},
            }))
        making.add_message(db.connection, id, f"msg_{number}", at=1)
        making.add_part(db.connection, id, f"msg_{number}", f"prt_{number}", 0, type="tool-Bash")
    making.add_part(db.connection, "ses_0", "msg_0", "prt_x", 1, type="dynamic-tool",
                    data={"type": "dynamic-tool", "toolName": "mcp__look"})
    making.add_part(db.connection, "ses_0", "msg_0", "prt_y", 2, type="dynamic-tool",
                    data_json="{" if db.server is None else "[]")
    found = known_values(db)
    assert [tuple(each) for each in found["agent"]] == [
        ("codex", "2 sessions"), ("pi", "1 session")]
    assert [each.value for each in found["tool"]] == ["Bash", "mcp__look"]
    assert {name: found[name][0].value for name in found} == {
        "agent": "codex", "workspace": "~/code/api", "model": "gpt-5", "branch": "main",
        "source": "codex", "tag": "work", "label": "to do", "tool": "Bash",
    }


def test_a_host_may_have_anything(tmp_path: Path) -> None:
    db = open_database(making.loose(tmp_path / "s.db"))
    assert known_values(db) == {}
    for number, value in enumerate((None, b"\xff", 7, "[", "x" * 5_000, '{"user": {"labels": 3}}')):
        making.add_session(db.connection, f"ses_{number}", 1, agent=value, workspace_root=value,
                           model_json=value, metadata_json=value)
    assert all(len(each.value) < 500 for values in known_values(db).values() for each in values)
