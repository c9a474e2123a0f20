from __future__ import annotations

import pytest

from store.engine.database import in_transaction
from store.errors import Refused
from store.queries.context import visible_ids
from store.verbs.rewind import batches, restore, rewind
from tests.store.talks import Talk


@pytest.fixture
def rewound(talk: Talk) -> tuple[Talk, str, list[str], list[str]]:
    """A session with two batches: four messages hidden first, two later."""
    session = talk.session()
    first = talk.message(session)
    old = [talk.message(session) for _ in range(4)]
    in_transaction(talk.db, rewind, session, first, now=talk.now)
    new = [talk.message(session) for _ in range(2)]
    in_transaction(talk.db, rewind, session, first, now=talk.now)
    return talk, session, old, new


def test_shows_the_newest_batch_and_no_other(
    rewound: tuple[Talk, str, list[str], list[str]],
) -> None:
    talk, session, old, new = rewound
    restored = in_transaction(talk.db, restore, session, now=talk.now)
    assert restored.messages == 2
    assert visible_ids(talk.db, session)[1:] == new
    assert [b.messages for b in batches(talk.db, session)] == [len(old)]


def test_shows_a_chosen_batch(rewound: tuple[Talk, str, list[str], list[str]]) -> None:
    talk, session, old, _ = rewound
    older = batches(talk.db, session)[1]
    in_transaction(talk.db, restore, session, batch=older.hidden_at, now=talk.now)
    assert visible_ids(talk.db, session)[1:] == old


def test_refuses_what_is_no_batch(rewound: tuple[Talk, str, list[str], list[str]]) -> None:
    talk, session, _, _ = rewound
    with pytest.raises(Refused, match="no rewind at 1"):
        in_transaction(talk.db, restore, session, batch=1, now=talk.now)
    empty = talk.session()
    with pytest.raises(Refused, match="nothing is hidden"):
        in_transaction(talk.db, restore, empty, now=talk.now)


def test_cancelled_queue_rows_are_no_batch(talk: Talk) -> None:
    session = talk.session()
    talk.message(session, hidden_at=talk.now, queue_canceled_at=talk.now)
    assert batches(talk.db, session) == []
    with pytest.raises(Refused, match="nothing is hidden"):
        in_transaction(talk.db, restore, session, now=talk.now)


def test_what_a_source_hid_can_be_shown(own_talk: Talk) -> None:
    session = own_talk.session()
    message = own_talk.message(session, hidden_at=77)
    assert [b.by_user for b in batches(own_talk.db, session)] == [False]
    in_transaction(own_talk.db, restore, session, now=own_talk.now)
    assert own_talk.metadata(message) == {"backscroll": {"hidden_by": "shown"}}
