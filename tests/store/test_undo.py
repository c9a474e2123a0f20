from __future__ import annotations

import sqlite3

import pytest

from store.engine.database import in_transaction
from store.errors import Refused
from store.verbs.log import beside_path
from store.verbs.marks import rename, star
from store.verbs.rewind import rewind
from store.verbs.shelf import archive
from store.verbs.undo import Step, redo, undo
from tests.store.engines import opened_again
from tests.store.talks import Talk


def test_nothing_to_undo_or_redo(talk: Talk) -> None:
    with pytest.raises(Refused, match="nothing to undo"):
        in_transaction(talk.db, undo, now=1)
    with pytest.raises(Refused, match="nothing to redo"):
        in_transaction(talk.db, redo, now=1)


def test_goes_back_and_forth_through_all_verbs(talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.message(session)
    states = [talk.dump()]
    for verb in (
        lambda: in_transaction(talk.db, rewind, session, first, now=talk.now + 1),
        lambda: in_transaction(talk.db, archive, [session], now=talk.now + 2),
        lambda: in_transaction(talk.db, rename, session, "New", now=talk.now + 3),
    ):
        verb()
        states.append(talk.dump())
    for state in reversed(states[:-1]):
        in_transaction(talk.db, undo, now=talk.now + 9)
        assert talk.dump() == state
    for state in states[1:]:
        in_transaction(talk.db, redo, now=talk.now + 10)
        assert talk.dump() == state


def test_names_what_was_undone(talk: Talk) -> None:
    session = talk.session()
    in_transaction(talk.db, archive, [session], now=1)
    assert in_transaction(talk.db, undo, now=2) == Step("archive", "archived 1 session", session)


def test_a_new_verb_ends_redo(talk: Talk) -> None:
    session = talk.session()
    in_transaction(talk.db, archive, [session], now=1)
    in_transaction(talk.db, undo, now=2)
    in_transaction(talk.db, star, session, now=3)
    with pytest.raises(Refused, match="nothing to redo"):
        in_transaction(talk.db, redo, now=4)


def test_survives_a_restart(talk: Talk) -> None:
    session = talk.session()
    in_transaction(talk.db, archive, [session], now=1)
    again = opened_again(talk.db)
    in_transaction(again, undo, now=2)
    again.close()
    assert talk.session_row(session)["archived_at"] is None


@pytest.mark.parametrize("talk", ["contract", "grida"], indirect=True)
def test_a_hosts_file_gets_no_table_of_ours(talk: Talk) -> None:
    session = talk.session()
    query = "SELECT name FROM main.sqlite_master ORDER BY name"
    before = talk.db.connection.execute(query).fetchall()
    in_transaction(talk.db, archive, [session], now=1)
    assert talk.db.connection.execute(query).fetchall() == before
    path = beside_path(talk.db.path)
    assert path.stat().st_mode & 0o777 == 0o600
    log = sqlite3.connect(path)
    assert log.execute("SELECT verb, session_id FROM verb_log").fetchall() == [("archive", session)]
    log.close()
