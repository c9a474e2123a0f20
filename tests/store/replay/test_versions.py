"""What a part was, event by event."""

from __future__ import annotations

import json

import pytest

from store.engine.database import Database
from store.events.log import switch_on
from store.replay.log import Lives, PartVersions, Writes, log_page, part_versions
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
    taken = [versions.add(at, part({"output": f"{at}" + "-" * 84}, "tool-Bash"))
             for at in range(1, 4)]
    assert taken == [True, True, False] and versions.covers(2) and not versions.covers(3)
    last, first = versions.at(2), versions.at(1)
    assert last is not None and json.loads(last[0].data_json)["output"].startswith("2-")
    assert first is not None and first[0].tool_state == "output-available"


@pytest.mark.parametrize("grows", [True, False])
def test_any_version_of_a_large_part_is_read(
    db: Database, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    monkeypatch.setattr("store.replay.log.MOST_BYTES", 250)

    def data(at: int) -> str:
        words = "".join(f"{number}{'-' * 84}" for number in range(1, at + 1)) if grows else (
            f"{at}{'-' * 84}")
        return json.dumps({"type": "text", "text": words} if grows else {"output": words})

    switch_on(db)
    do = db.connection.execute
    do("INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
       " VALUES ('ses_1', 'a', '{}', 1, 1)")
    do("INSERT INTO chat_messages VALUES ('msg_1', 'ses_1', 'assistant', '{}', 1, 1)")
    do("INSERT INTO chat_parts VALUES ('p', 'msg_1', 'ses_1', 0, ?, ?, NULL, NULL, 1, 1)",
       ("text" if grows else "tool-Bash", data(1)))
    for at in range(2, 10):
        do("UPDATE chat_parts SET data_json = ?, updated_at = ?", (data(at), at))
    do("UPDATE events SET at = coalesce(updated_at, created_at)")
    lives = Lives()
    lives.take(log_page(db, "ses_1", 0, 99)[0])
    (life,) = lives.parts["p"]
    writes = Writes(life.times, life.seqs, is_own=True, is_past=False)
    assert list(writes.times) == list(range(1, 10))
    for moment in (*range(1, 10), 5, 99):
        versions = part_versions(db, "ses_1", writes, moment)
        found = versions.at(moment)
        assert versions.covers(moment) and found is not None
        assert json.loads(found[0].data_json) == json.loads(data(min(moment, 9)))


def test_what_an_import_writes_later_is_not_as_it_happened(db: Database) -> None:
    now = system_clock()
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
