"""The rules of permission of a session: edited in a line, shown in the inspector."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from tests.tui.seeded import SESSION, Said, make_store, text
from tests.tui.verbs_app import running
from tui.words.permissions import permission_lines, permission_rules


def rules_in(path: Path) -> list[dict[str, object]]:
    with sqlite3.connect(path) as connection:
        ((found,),) = connection.execute(
            "SELECT permissions_json FROM chat_sessions WHERE id = ?", (SESSION,)).fetchall()
    rules: list[dict[str, object]] = json.loads(found)
    return rules


async def test_rules_are_edited_and_undone(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [Said("user", [text("Hello")])])
    async with running(path) as run:
        await run.press("&")
        await run.pilot.press(*"deny Web;allow Bash a b")
        await run.press("enter")
        assert [(one["action"], one["permission"], one["pattern"], one["source"])
                for one in rules_in(path)] == [
            ("deny", "Web", "*", "session"), ("allow", "Bash", "a b", "session")]
        assert "2 rules" in run.told[-1]
        await run.press("&", "end")
        await run.pilot.press(*";oops")
        await run.press("enter")
        assert "A rule begins with" in run.told[-1] and len(rules_in(path)) == 2
        await run.press("U")
        assert rules_in(path) == []


def test_lines_of_rules() -> None:
    stored = json.dumps([{"action": "deny", "permission": "Web\x1b[0m", "pattern": "*"}, "odd"])
    shown = [line.text for line in permission_lines(stored, 60)]
    assert "2 rules" in shown[0] and shown[1].startswith("deny   Web") and "\x1b" not in shown[1]
    assert permission_rules("{") == [] and permission_rules("{}") == []
    assert "none" in permission_lines("[]", 60)[0].text
