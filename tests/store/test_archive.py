from __future__ import annotations

import json

import pytest

from store.engine.database import in_transaction
from store.errors import NotFound, Refused
from store.verbs.shelf import archive, unarchive
from store.verbs.undo import redo, undo
from tests.store.talks import Talk


def test_archives_many_without_moving_the_order(talk: Talk) -> None:
    sessions = [talk.session(str(n)) for n in range(3)]
    before = [talk.session_row(s)["updated_at"] for s in sessions]
    assert in_transaction(talk.db, archive, sessions[:2], now=123) == sessions[:2]
    assert [talk.session_row(s)["archived_at"] for s in sessions] == [123, 123, None]
    assert [talk.session_row(s)["updated_at"] for s in sessions] == before


def test_takes_only_those_that_are_not_archived_yet(talk: Talk) -> None:
    one, two = talk.session(), talk.session(archived_at=5)
    assert in_transaction(talk.db, archive, [one, two, one], now=9) == [one]
    assert talk.session_row(two)["archived_at"] == 5


def test_unarchive(talk: Talk) -> None:
    one = talk.session(archived_at=5)
    assert in_transaction(talk.db, unarchive, [one], now=9) == [one]
    assert talk.session_row(one)["archived_at"] is None


def test_refusals_change_nothing(talk: Talk) -> None:
    one, two = talk.session(), talk.session(archived_at=5)
    with pytest.raises(Refused, match="already archived"):
        in_transaction(talk.db, archive, [two], now=9)
    with pytest.raises(Refused, match="already not archived"):
        in_transaction(talk.db, unarchive, [one], now=9)
    with pytest.raises(Refused, match="no session given"):
        in_transaction(talk.db, archive, [], now=9)
    with pytest.raises(NotFound, match="ses_none"):
        in_transaction(talk.db, archive, [one, "ses_none"], now=9)
    assert talk.session_row(one)["archived_at"] is None


def child(talk: Talk, parent: str, kind: str = "subagent", at: int | None = None) -> str:
    return talk.session(
        kind, parent_id=parent, archived_at=at,
        metadata_json=json.dumps({"lineage": {"kind": kind}}))


def archived(talk: Talk, *sessions: str) -> list[int | None]:
    return [talk.session_row(session)["archived_at"] for session in sessions]


def test_subagents_go_with_their_session_and_come_back_with_it(talk: Talk) -> None:
    parent = talk.session("parent")
    sub, fork, before = child(talk, parent), child(talk, parent, "fork"), child(talk, parent, at=5)
    deep, of_fork = child(talk, sub), child(talk, fork)
    family = [parent, sub, deep, fork, of_fork, before]
    assert in_transaction(talk.db, archive, [parent], now=9) == [parent, sub, deep]
    assert archived(talk, *family) == [9, 9, 9, None, None, 5]
    assert in_transaction(talk.db, undo, now=10).summary == "archived 1 session with 2 subagents"
    assert archived(talk, *family) == [None, None, None, None, None, 5]
    in_transaction(talk.db, redo, now=11)
    assert archived(talk, *family) == [9, 9, 9, None, None, 5]
    # What was archived before, and what is archived later, does not come back with it.
    in_transaction(talk.db, archive, [fork], now=12)
    assert archived(talk, *family) == [9, 9, 9, 12, 12, 5]
    assert in_transaction(talk.db, unarchive, [parent], now=13) == [parent, sub, deep]
    assert archived(talk, *family) == [None, None, None, 12, 12, 5]
    in_transaction(talk.db, undo, now=14)
    assert archived(talk, *family) == [9, 9, 9, 12, 12, 5]


def test_a_subagent_that_is_chosen_too_is_a_session(talk: Talk) -> None:
    parent = talk.session("parent")
    sub, other = child(talk, parent), child(talk, parent)
    assert in_transaction(talk.db, archive, [sub, parent], now=9) == [sub, parent, other]
    step = in_transaction(talk.db, undo, now=10)
    assert step.summary == "archived 2 sessions with 1 subagent"
    assert in_transaction(talk.db, archive, [sub], now=11) == [sub]
    assert archived(talk, parent, other) == [None, None]
