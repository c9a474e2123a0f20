"""What a part was, event by event."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.events.log import switch_on
from store.replay.log import PartVersions, changes_page
from store.rows import PartRow
from store.system.clock import system_clock


def part(data: object, kind: str = "text") -> PartRow:
    return PartRow("prt_1", "msg_1", "ses_1", 0, kind, json.dumps(data), "c", "output-available",
                   1, 900)


def test_a_text_is_kept_as_its_length() -> None:
    versions = PartVersions(part({"type": "text", "text": "one two three"}))
    for at, text in ((100, "one"), (300, "one two"), (200, "one two three"), (400, "another")):
        versions.add(at, json.dumps({"type": "text", "text": text}), None)
    shown = [json.loads(versions.at(moment).data_json)["text"]
             for moment in (0, 100, 299, 300, 399, 400, 999)]
    # The clock went back once: that version is as late as the one before it.
    assert shown == ["one", "one", "one", "one two three", "one two three", "another", "another"]
    assert [versions.at(moment).updated_at for moment in (100, 400)] == [100, 400]


def test_without_versions_it_is_as_it_became() -> None:
    row = part({"type": "text", "text": "done"})
    assert PartVersions(row).at(5) == row


def test_versions_of_a_large_part_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.replay.log.MOST_BYTES", 250)
    versions = PartVersions(part({"output": "x"}, "tool-Bash"))
    for at in range(1, 9):
        versions.add(at, json.dumps({"output": f"{at}" + "-" * 84}), "input-available")
    assert json.loads(versions.at(99).data_json)["output"].startswith("2-")
    assert versions.at(1).tool_state == "input-available"


def test_what_an_import_writes_later_is_not_as_it_happened(tmp_path: Path) -> None:
    now = system_clock()
    with contextlib.closing(open_database(tmp_path / "library.db", create=True)) as db:
        switch_on(db)
        do = db.connection.execute
        do("INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
           " VALUES ('ses_1', 'a', '{}', 1, 1)")
        do("INSERT INTO chat_messages VALUES ('msg_1', 'ses_1', 'user', '{}', 1, 1)")
        for number, at in enumerate((now, now - 3_600_000)):
            do("INSERT INTO chat_parts VALUES (?, 'msg_1', 'ses_1', ?, 'text', '{}', NULL, NULL,"
               " ?, ?)", (f"prt_{number}", number, at, at))
        changes, last = changes_page(db, "ses_1", 0, 99)
        assert [(change.position, change.is_own) for change in changes] == [(0, True), (1, False)]
        assert last == 4 and changes_page(db, "ses_1", 4, 99) == ([], None)
        assert changes_page(db, "ses_1", 0, 3)[1] == 3
