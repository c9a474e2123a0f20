from __future__ import annotations

import pytest

from store.engine.database import in_transaction
from store.errors import NotFound, Refused
from store.verbs.shelf import archive, unarchive
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
