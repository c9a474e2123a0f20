from __future__ import annotations

import json

from store.engine.database import Database
from tests.exports.exporting import exported


def test_one_line_for_each_row_the_session_first(demo: Database) -> None:
    lines = [json.loads(line) for line in exported(demo, "retry-loop", "jsonl").splitlines()]
    assert [line["type"] for line in lines[:4]] == ["session", "message", "part", "message"]
    assert all(set(line) == {"type", "data"} for line in lines)
    document = json.loads(exported(demo, "retry-loop", "json"))
    rows = [document["session"]]
    for item in document["messages"]:
        rows += [item["message"], *item["parts"]]
    assert [line["data"] for line in lines] == rows


def test_nothing_that_a_terminal_obeys_comes_out(demo: Database) -> None:
    text = exported(demo, "odd-text", "jsonl")
    assert "\u202e" not in text and "\x1b" not in text and "\x07" not in text
    values = [json.loads(line)["data"].get("data", {}) for line in text.splitlines()]
    assert any("\u202e" in str(value.get("text")) for value in values)
