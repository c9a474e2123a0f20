"""What a part was, event by event."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.events.log import switch_on
from store.replay.log import Lives, PartVersions, log_page
from store.rows import PartRow
from store.system.clock import system_clock


def part(data: object, kind: str = "text") -> PartRow:
    return PartRow("prt_1", "msg_1", "ses_1", 0, kind, json.dumps(data), "c", "output-available",
                   1, 900)


def test_a_text_is_kept_as_its_length() -> None:
    versions = PartVersions()
    for at, text in ((100, "one"), (300, "one two"), (300, "one two three"), (400, "another")):
        versions.add(at, part({"type": "text", "text": text, "state": at}))
    shown = [versions.at(moment) for moment in (0, 100, 299, 300, 399, 400, 999)]
    assert [found and json.loads(found[0].data_json)["text"] for found in shown] == [
        "one", "one", "one", "one two three", "one two three", "another", "another"]
    assert [found and found[1] for found in shown] == [True, *[False] * 6]
    assert versions.weight < 250


def test_without_versions_nothing_is_known() -> None:
    assert PartVersions().at(5) is None


def test_versions_of_a_large_part_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.replay.log.MOST_BYTES", 250)
    versions = PartVersions()
    for at in range(1, 9):
        versions.add(at, part({"output": f"{at}" + "-" * 84}, "tool-Bash"))
    last, first = versions.at(99), versions.at(1)
    assert last is not None and json.loads(last[0].data_json)["output"].startswith("2-")
    assert first is not None and first[0].tool_state == "output-available"


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
        events, last = log_page(db, "ses_1", 0, 99)
        lives = Lives()
        lives.take(events)
        assert [lives.parts[f"prt_{number}"][0].is_own for number in (0, 1)] == [True, False]
        assert last == 4 and log_page(db, "ses_1", 4, 99) == ([], None)
        assert log_page(db, "ses_1", 0, 3)[1] == 3
