"""Nothing of a forgotten session stays, neither in the log nor in rows that undo keeps."""

from __future__ import annotations

import pytest

from store.engine.database import Database, in_transaction
from store.errors import NotFound, Refused
from store.events.log import switch_on
from store.events.reading import events_of, events_of_all, newest_event
from store.events.rebuilding import differing
from store.ids import IdMinter
from store.sync.forget import forget
from store.verbs.delete import delete
from store.verbs.fork import fork
from store.verbs.undo import redo, undo

SECRET = "xyzzy-the-secret-word"
NOW = 1_790_000_000_000


@pytest.fixture(autouse=True)
def _rows(db: Database) -> None:
    for name in ("ses_1", "ses_2"):
        db.connection.execute(
            "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
            " VALUES (?, 'a', '{}', 1, 1)", (name,))
    db.connection.execute(
        "INSERT INTO chat_messages VALUES ('msg_1', 'ses_1', 'user', '{}', 5, 5)")
    db.connection.execute(
        "INSERT INTO chat_parts VALUES ('prt_1', 'msg_1', 'ses_1', 0, 'text', ?, NULL, NULL,"
        " 6, 6)", (f'{{"type":"text","text":"{SECRET}"}}',))


def assert_nothing_left(db: Database) -> None:
    if db.server is not None:
        assert list(events_of(db, "ses_1")) == []
        for table in ("deleted_chat_parts", "undone_chat_parts", "chat_parts"):
            assert not db.connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone(), table
        return
    files = [path for path in db.path.parent.iterdir() if path.name.startswith("library.db")]
    assert len(files) >= 2
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path


def test_its_events_go_and_their_numbers_do_not_come_again(db: Database) -> None:
    switch_on(db)
    db.connection.execute("UPDATE chat_parts SET type = 'data-x'")
    newest = newest_event(db)
    assert forget(db, ["ses_1"], clock=lambda: NOW) == ["ses_1"]
    assert list(events_of(db, "ses_1")) == []
    assert_nothing_left(db)
    assert newest_event(db) >= newest and differing(db) == []
    db.connection.execute("UPDATE chat_sessions SET agent = 'b'")
    assert [event.kind for event in events_of_all(db, newest)][-1:] == ["session.updated"]


def test_a_deleted_session_can_be_forgotten(db: Database) -> None:
    switch_on(db)
    in_transaction(db, delete, "ses_1", now=NOW)
    assert forget(db, ["ses_1"], clock=lambda: NOW) == ["ses_1"]
    assert_nothing_left(db)
    with pytest.raises(Refused, match="nothing to undo"):
        in_transaction(db, undo, now=NOW)
    with pytest.raises(NotFound):
        forget(db, ["ses_1"])


def test_a_deletion_is_one_event_and_its_undo_has_every_row(db: Database) -> None:
    switch_on(db)
    in_transaction(db, delete, "ses_1", now=NOW)
    in_transaction(db, undo, now=NOW)
    assert [event.kind for event in events_of(db, "ses_1")][3:] == [
        "session.deleted", "session.created", "message.created", "part.created"]
    assert differing(db) == []


def test_rows_of_an_undone_fork_go_with_the_session_that_it_copied(db: Database) -> None:
    in_transaction(db, fork, "ses_1", "msg_1", ids=IdMinter(lambda: NOW), now=NOW)
    in_transaction(db, undo, now=NOW)
    forget(db, ["ses_1"], clock=lambda: NOW)
    assert_nothing_left(db)
    with pytest.raises(Refused, match="nothing to redo"):
        in_transaction(db, redo, now=NOW)


def test_what_is_kept_of_another_session_stays(db: Database) -> None:
    in_transaction(db, delete, "ses_1", now=NOW)
    forget(db, ["ses_2"], clock=lambda: NOW)
    in_transaction(db, undo, now=NOW)
    (count,) = db.connection.execute("SELECT count(*) FROM chat_parts").fetchone()
    assert count == 1


def test_a_deleted_session_that_came_back_stays_as_it_is(db: Database) -> None:
    in_transaction(db, delete, "ses_2", now=NOW)
    db.connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
        " VALUES ('ses_2', 'other', '{}', 1, 1)")
    step = in_transaction(db, undo, now=NOW)
    assert step.kept is not None and "in the store again" in step.kept
    rows = db.connection.execute("SELECT agent FROM chat_sessions WHERE id = 'ses_2'").fetchall()
    assert rows == [("other",)]
    with pytest.raises(Refused, match="nothing to undo"):
        in_transaction(db, undo, now=NOW)
