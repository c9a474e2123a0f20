"""The event log has every change, whoever makes it, and the three tables can be made of it."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.engine.opening import open_target
from store.engine.server.connection import ServerConnection
from store.engine.server_url import server_url
from store.errors import Refused
from store.events.checking import with_gaps
from store.events.log import (
    log_state,
    switch_off,
    switch_on,
    tables_of,
)
from store.events.reading import changes_of, events_of, events_of_all, newest_event
from store.events.rebuilding import differing, rebuild
from store.recorder.policy import SavePolicy
from store.recorder.procedures import drive
from store.recorder.recording import Recording
from store.replay.log import log_page
from store.system.files import AlreadyThere
from store.upkeep.doctor import examine
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store, opened_again
from tests.store.events.tables import Changes

TABLES = ("chat_sessions", "chat_messages", "chat_parts")


def assert_same(db: Database, other: Path) -> None:
    """Fail unless two stores have the same three tables, files compared by SQLite itself."""
    do = db.connection.execute
    if db.server is not None:
        with contextlib.closing(open_database(other, write=False)) as made:
            for table in TABLES:
                select = f"SELECT * FROM {table} ORDER BY id"
                assert do(select).fetchall() == made.connection.execute(select).fetchall()
        return
    do("ATTACH ? AS other", (str(other),))
    for table in TABLES:
        for one, two in (("main", "other"), ("other", "main")):
            sql = f"SELECT * FROM {one}.{table} EXCEPT SELECT * FROM {two}.{table}"
            assert do(sql).fetchall() == []
    do("DETACH other")


def session(db: Database, name: str = "ses_1") -> None:
    db.connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
        " VALUES (?, 'a', '{}', 1, 1)", (name,))


def message(db: Database, name: str = "msg_1", of: str = "ses_1") -> None:
    db.connection.execute(
        "INSERT INTO chat_messages VALUES (?, ?, 'user', '{}', 5, 5)", (name, of))


def part(db: Database, text: str, name: str = "prt_1", state: str | None = None) -> None:
    db.connection.execute(
        "INSERT INTO chat_parts VALUES (?, 'msg_1', 'ses_1', 3, 'text', ?, NULL, ?, 6, 6)",
        (name, text, state))


def _raw(db: Database) -> str:
    return "convert_to(CAST(data_json AS text), 'UTF8')" if db.server else (
        "CAST(data_json AS BLOB)")


def kinds(db: Database, session_id: str = "ses_1") -> list[str]:
    return [event.kind for event in events_of(db, session_id)]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_rebuilt_equals_the_tables_after_any_changes(
    db: Database, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    changes = Changes(db, rng)
    steps = rng.choice([20, 150])
    for step in range(steps):
        if step in (3, steps // 2 + 5):
            switch_on(db)
        if step == steps // 2 and seed % 3 == 0:
            switch_off(db, drop=seed % 2 == 0)
        changes.change()
    switch_on(db)
    made = rebuild(db, tmp_path / "made.db")
    assert made.differing == []
    assert_same(db, tmp_path / "made.db")
    gaps = ("SELECT stream_id FROM events GROUP BY stream_id"
            " HAVING min(seq) <> 1 OR max(seq) <> count(*)")
    assert db.connection.execute(gaps).fetchall() == []
    texts = {event.part_id: event.payload["data_json"]
             for event in events_of_all(db) if "data_json" in event.payload}
    for name, data in db.connection.execute(f"SELECT id, {_raw(db)} FROM chat_parts"):
        assert texts[name] == data.decode("utf-8", "replace")


def test_reading_from_any_event_gives_the_same(db: Database) -> None:
    switch_on(db)
    changes = Changes(db, random.Random(5))
    changes.new_session()
    for _ in range(120):
        changes.change()
    name = db.connection.execute(
        "SELECT stream_id FROM events GROUP BY 1 ORDER BY count(*) DESC").fetchone()[0]
    whole = list(events_of(db, name))
    for after in range(0, len(whole), 5):
        assert list(events_of(db, name, after)) == whole[after:]
    times = [(event.at, event.seq, event.kind, event.part_index) for event in whole]
    assert [(e.at, e.seq, e.kind, e.part_index) for e in changes_of(db, name)] == times


def test_text_that_grows_is_stored_once(db: Database) -> None:
    switch_on(db)
    session(db)
    message(db)
    part(db, '""')
    for words in range(300):
        text = f'{{"type":"text","text":"{"word " * words}","state":"streaming"}}'
        db.connection.execute(
            "UPDATE chat_parts SET data_json = ?, updated_at = ?", (text, 10 + words))
    (size,) = db.connection.execute(
        f"SELECT sum({db.sql.bytes_of('data_json')}) FROM events").fetchone()
    assert size < 300 * 75
    *_, last = events_of(db, "ses_1")
    assert last.payload["data_json"] == text and (last.at, last.part_index) == (309, 3)
    assert differing(db) == []


def test_input_of_a_tool_that_streams_is_stored_once(db: Database) -> None:
    switch_on(db)
    session(db)
    message(db)
    part(db, '""', state="input-streaming")
    for words in range(300):
        raw = "line\\n" * words
        text = (f'{{"type":"tool-write","state":"input-streaming","rawInput":"{{\\"a\\":\\"{raw}",'
                f'"input":{{"a":"{raw}"}}}}')
        db.connection.execute("UPDATE chat_parts SET data_json = ?", (text,))
    (size,) = db.connection.execute(
        f"SELECT sum({db.sql.bytes_of('data_json')}) FROM events").fetchone()
    assert size < 300 * 90
    assert differing(db) == []


def test_kinds_are_the_words_of_the_contract(db: Database) -> None:
    switch_on(db)
    session(db)
    message(db)
    part(db, "{}")
    do = db.connection.execute
    for metadata in ('{"hidden_at": 1}', "{}", '{"queued_at": 1}', '{"queue_canceled_at": 1}',
                     '{"backscroll": {"aborted_at": 1}}'):
        do("UPDATE chat_messages SET metadata_json = ?", (metadata,))
    do("UPDATE chat_sessions SET archived_at = 1")
    do("UPDATE chat_sessions SET archived_at = NULL, updated_at = 2")
    do("UPDATE chat_parts SET updated_at = updated_at")
    do("DELETE FROM chat_parts")
    do("DELETE FROM chat_messages")
    do("DELETE FROM chat_sessions")
    assert kinds(db) == [
        "session.created", "message.created", "part.created", "message.hidden", "message.shown",
        "message.queued", "message.cancelled", "run.aborted", "session.archived",
        "session.unarchived", "part.deleted", "message.deleted", "session.deleted"]  # fmt: skip
    archived = list(events_of(db, "ses_1"))[9]
    assert archived.payload == {"archived_at": None, "updated_at": 2} and archived.at == 2


def test_a_deleted_session_is_one_event(db: Database) -> None:
    session(db)
    message(db)
    part(db, "{}")
    switch_on(db)
    db.connection.execute("DELETE FROM chat_sessions")
    assert kinds(db) == [
        "session.snapshot", "message.snapshot", "part.snapshot", "session.deleted"]  # fmt: skip
    assert differing(db) == []


def test_an_event_is_in_the_transaction_of_its_change(db: Database) -> None:
    switch_on(db)
    do = db.connection.execute
    do("BEGIN")
    session(db)
    do("ROLLBACK")
    assert kinds(db) == []


def test_a_program_that_knows_nothing_of_the_log_writes_it(db: Database) -> None:
    switch_on(db)
    insert = ("INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
              " VALUES ('ses_1', 'a', '{}', 1, 1)")
    if db.server is None:
        with contextlib.closing(sqlite3.connect(db.path, isolation_level=None)) as other:
            other.execute(insert)
    else:
        with contextlib.closing(ServerConnection(db.server)) as program:
            program.script(insert)
    assert kinds(db) == ["session.created"]


def test_switching_on_goes_on_where_it_was_interrupted(db: Database) -> None:
    for number in range(5):
        session(db, f"ses_{number}")

    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("store.events.log.AT_ONCE_S", -1)
        with pytest.raises(KeyboardInterrupt):
            switch_on(db, progress=interrupt)
    state = log_state(db)
    assert state and state.is_on and not state.complete and not state.tells_all
    with pytest.raises(Refused, match="every session"):
        rebuild(db, db.path.with_name("made.db"))
    db.connection.execute("UPDATE chat_sessions SET updated_at = 7")
    assert switch_on(db) is False
    state = log_state(db)
    assert state and state.tells_all
    assert kinds(db, "ses_0") == ["session.snapshot", "session.updated"]
    assert kinds(db, "ses_4") == ["session.updated", "session.snapshot"]
    assert differing(db) == []


@pytest.mark.parametrize("seed", range(8))
def test_others_write_while_it_is_switched_on(
    db: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("store.events.log.AT_ONCE_S", -1)
    monkeypatch.setattr("store.events.log._PAGE", 2)
    changes = Changes(db, random.Random(seed))
    for _ in range(80):
        changes.change()
    switch_on(db, progress=lambda done, total: changes.change())
    assert differing(db) == []
    for name in db.connection.execute("SELECT DISTINCT stream_id FROM events").fetchall():
        assert list(events_of(db, *name))


@pytest.mark.file
def test_a_text_that_grows_before_its_snapshot_is_read_as_it_is(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.events.log.AT_ONCE_S", -1)
    session(db)
    message(db)
    part(db, "old " * 50)
    switch_on(db)
    switch_off(db)
    do, grown = db.connection.execute, "new " * 60

    def grow(done: int, total: int) -> None:
        do("UPDATE chat_parts SET data_json = data_json || 'more'")

    do("UPDATE chat_parts SET data_json = ?", (grown,))
    grow(0, 0)
    switch_on(db, progress=grow)
    for event in events_of(db, "ses_1"):
        text = str(event.payload.get("data_json", grown))
        assert text == "old " * 50 or (text.startswith(grown) and text.strip("more") == grown)
    grow(0, 0)
    *_, last = events_of(db, "ses_1")
    assert do("SELECT data_json FROM chat_parts").fetchone() == (last.payload["data_json"],)
    assert do("SELECT kept FROM events ORDER BY id DESC LIMIT 1").fetchone() != (None,)


def test_off_and_on_again(db: Database) -> None:
    session(db)
    session(db, "ses_2")
    assert switch_on(db) is True
    assert switch_off(db) is True and switch_off(db) is False
    db.connection.execute("DELETE FROM chat_sessions WHERE id = 'ses_2'")
    db.connection.execute("UPDATE chat_sessions SET agent = 'b'")
    assert kinds(db) == ["session.snapshot"]
    assert switch_on(db) is True
    assert kinds(db) == ["session.snapshot", "session.snapshot"]
    assert kinds(db, "ses_2") == ["session.snapshot", "session.deleted"]
    assert differing(db) == []
    switch_off(db, drop=True)
    assert log_state(db) is None and kinds(db) == []
    assert not any(map(tables_of(db).has, ("events", "event_log")))
    assert len(tables_of(db).missing()) in (6, 12)


def test_a_trigger_that_is_missing_comes_back_with_new_snapshots(db: Database) -> None:
    switch_on(db)
    name = "event_log_session_created"
    if isinstance(db.connection, ServerConnection):
        name = "event_log_session"
        db.connection.script("ALTER TABLE chat_sessions DISABLE TRIGGER event_log_session")
    else:
        db.connection.execute(f"DROP TRIGGER {name}")
    session(db)
    assert tables_of(db).missing() == [name] and tables_of(db).renew() is False
    assert differing(db) == ["ses_1"]
    switch_on(db)
    assert kinds(db) == ["session.snapshot"] and differing(db) == []


@pytest.mark.file
def test_a_log_without_its_table_begins_again(db: Database) -> None:
    switch_on(db)
    session(db)
    db.connection.execute("DROP TABLE events")
    assert [one.check for one in examine(db).findings if not one.is_note] == ["event log"]
    assert examine(db, fix=True).is_well
    assert kinds(db) == ["session.snapshot"] and differing(db) == []


@pytest.mark.file
def test_metadata_of_any_kind_can_be_written(db: Database) -> None:
    switch_on(db)
    session(db)
    message(db)
    deep = "[" * 3000 + "]" * 3000
    for metadata in (b"{}", b"\xff", "", "{", deep, '{"hidden_at":1}', b'{"hidden_at":1}', 5, "{}"):
        db.connection.execute("UPDATE chat_messages SET metadata_json = ?", (metadata,))
    assert set(kinds(db)[2:]) == {"message.updated"}
    assert differing(db) == []


@pytest.mark.file
def test_only_a_library_has_a_log(tmp_path: Path, db: Database) -> None:
    from store.engine import schema

    path = tmp_path / "host.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as host:
        host.executescript(schema.CONTRACT_TABLES)
    before = path.read_bytes()
    with contextlib.closing(open_database(path)) as opened:
        for call in (switch_on, switch_off):
            with pytest.raises(Refused, match="belongs to another program"):
                call(opened)
        with pytest.raises(Refused, match="belongs to another program"):
            rebuild(opened, tmp_path / "made.db")
        assert list(events_of(opened, "ses_1")) == []
    assert path.read_bytes() == before
    with contextlib.closing(open_database(db.path, write=False)) as reader:
        with pytest.raises(Refused, match="read only"):
            switch_on(reader)
        with pytest.raises(Refused, match="has no event log"):
            rebuild(reader, tmp_path / "made.db")


def test_a_rebuilt_store_is_private_and_never_replaces_a_file(db: Database, tmp_path: Path) -> None:
    session(db)
    switch_on(db)
    made = rebuild(db, tmp_path / "made.db")
    assert made.rows == {"chat_sessions": 1, "chat_messages": 0, "chat_parts": 0}
    assert made.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(AlreadyThere):
        rebuild(db, tmp_path / "made.db")
    assert sorted(path.name for path in tmp_path.iterdir() if "made" in path.name) == ["made.db"]


def test_triggers_of_another_text_are_renewed_by_the_next_writer(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_on(db)
    session(db)
    older = "trigger text of another version"
    do = db.connection.execute
    if isinstance(db.connection, ServerConnection):
        side = db.connection.schemas["events"].rpartition(".")[0]
        db.connection.script(
            f"CREATE OR REPLACE FUNCTION {side}.event_log_session() RETURNS trigger LANGUAGE"
            f" plpgsql AS $$BEGIN /* {older} */ RETURN NULL; END$$")
    else:
        ((text,),) = do("SELECT sql FROM sqlite_master WHERE name = 'event_log_session_updated'")
        do("DROP TRIGGER event_log_session_updated")
        do(text.replace("BEGIN", f"BEGIN /* {older} */"))
    assert len(tables_of(db).missing()) > 0
    with contextlib.closing(opened_again(db)) as writer:
        assert tables_of(writer).missing() == [] and tables_of(writer).renew() is False
        writer.connection.execute("UPDATE chat_sessions SET agent = 'b'")
        state = log_state(writer)
        assert state is not None and state.tells_all
    assert kinds(db) == ["session.created", "session.updated"] and differing(db) == []


def test_a_newer_log_keeps_its_triggers(db: Database) -> None:
    switch_on(db)
    db.connection.execute("UPDATE event_log SET version = version + 1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(tables_of(db)), "_there", lambda self: {})
        assert tables_of(db).renew() is False


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_log_makes_a_store_on_a_server(db: Database, postgres: Server, seed: int) -> None:
    changes = Changes(db, random.Random(seed), plain=True)
    switch_on(db)
    for _ in range(100):
        changes.change()
    url = server_url(postgres.database().url)
    assert url is not None
    made = rebuild(db, url)
    assert made.differing == [] and made.name == str(url)
    with contextlib.closing(open_target(url.dsn)) as other:
        for table in TABLES:
            select = f"SELECT * FROM {table} ORDER BY id"
            assert (db.connection.execute(select).fetchall()
                    == other.connection.execute(select).fetchall())
    with pytest.raises(AlreadyThere, match="has sessions"):
        rebuild(db, url)


def test_what_a_server_cannot_hold_is_named(tmp_path: Path, postgres: Server) -> None:
    url = server_url(postgres.database().url)
    assert url is not None
    with contextlib.closing(open_database(tmp_path / "library.db", create=True)) as db:
        session(db)
        db.connection.execute(
            "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
            " VALUES ('ses_2', ?, '{}', 1, 1)", ("a\0b",))
        switch_on(db)
        made = rebuild(db, url)
        assert made.rows["chat_sessions"] == 2 and made.differing == ["ses_2"]


@pytest.mark.long
def test_a_replay_sees_the_same_in_a_file_and_on_a_server(
    tmp_path: Path, postgres: Server
) -> None:
    seen: list[list[tuple[object, ...]]] = []
    for target in (str(tmp_path / "library.db"), new_server_store(postgres)):
        with contextlib.closing(open_target(target, create=True, write=True)) as db:
            switch_on(db)
            recording = Recording(policy=SavePolicy(save_buffer_ms=0),
                                  clock=partial(next, count(1_800_000_000_000)))
            drive(db, recording.start(None, agent="test"))
            for number in range(40):
                for chunk in (
                    {"type": "start"}, {"type": "text-start", "id": "t"},
                    {"type": "text-delta", "id": "t", "delta": "w\u00f6rd " * number},
                    {"type": "text-delta", "id": "t", "delta": "\U0001f600 end"},
                    {"type": "tool-input-start", "toolCallId": f"c{number}", "toolName": "write"},
                    {"type": "tool-input-delta", "toolCallId": f"c{number}",
                     "inputTextDelta": '{"text":"' + "ab" * 60},
                    {"type": "tool-input-delta", "toolCallId": f"c{number}",
                     "inputTextDelta": 'more"}'},
                    {"type": "finish"},
                ):
                    drive(db, recording.receive(dict(chunk)))
                    drive(db, recording.save(exact=True))
            found = []
            for event in events_of(db, recording.session_id):
                payload = dict(event.payload)
                for moment in ("created_at", "updated_at", "metadata_json"):
                    payload.pop(moment, None)
                found.append((event.seq, event.kind, event.part_index, payload))
            pages, _ = log_page(db, recording.session_id, 0, 10_000)
            assert [one.seq for one in pages] == [one[0] for one in found]
            assert differing(db) == []
            seen.append([*found, *((one.what, one.position, one.type, one.state, one.role)
                                   for one in pages)])
    assert len(seen[0]) > 500 and seen[0] == seen[1]


@pytest.mark.long
def test_programs_that_write_at_once_leave_no_gap_and_no_deadlock(postgres: Server) -> None:
    url = server_url(new_server_store(postgres))
    assert url is not None
    failed: list[BaseException] = []
    with contextlib.closing(open_target(url.dsn, write=True)) as db:
        switch_on(db)
        for number in range(4):
            session(db, f"ses_{number}")

        def write(seed: int) -> None:
            rng = random.Random(seed)
            try:
                with contextlib.closing(ServerConnection(url)) as program:
                    for number in range(30):
                        program.script("BEGIN")
                        for _ in range(3):
                            program.script(
                                f"UPDATE chat_sessions SET updated_at = {seed * 1000 + number}"
                                f" WHERE id = 'ses_{rng.randrange(4)}'")
                        program.script(rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        seen, after = [], 0
        while any(thread.is_alive() for thread in threads) or newest_event(db) > after:
            for event in events_of_all(db, after):
                seen.append(event.id)
                after = event.id
        for thread in threads:
            thread.join()
        assert failed == []
        assert seen == [event.id for event in events_of_all(db)] and len(seen) > 100
        assert with_gaps(db) == [] and differing(db) == []
