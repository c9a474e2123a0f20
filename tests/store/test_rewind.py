from __future__ import annotations

import pytest

from store.engine.database import in_transaction
from store.errors import NotFound, Refused
from store.queries.context import visible_ids
from store.verbs.rewind import Batch, RewindPreview, batches, message_before, preview_rewind, rewind
from tests.store.talks import Talk


def test_hides_the_later_visible_messages_as_one_batch(talk: Talk) -> None:
    session = talk.session()
    chosen = talk.message(session)
    later = [talk.message(session, "assistant"), talk.call(session)]
    queued = talk.message(session, "user", "next", queued_at=talk.now)
    batch = in_transaction(talk.db, rewind, session, chosen, now=talk.now + 90_000)
    assert batch == Batch(talk.now + 90_000, 2, True)
    assert visible_ids(talk.db, session) == [chosen]
    assert batches(talk.db, session) == [batch]
    assert "hidden_at" not in talk.metadata(queued)
    stored = talk.db.connection.execute(
        f"SELECT {talk.db.form.hidden_at('m')} FROM chat_messages m WHERE id IN (?, ?)", later
    ).fetchall()
    assert stored == [(batch.hidden_at,)] * 2


def test_preview_counts_messages_calls_and_tokens(talk: Talk) -> None:
    session = talk.session()
    chosen = talk.message(session)
    talk.call(session, input=5, output=2, cache_read=100)
    talk.message(session, "assistant", usage={"input": 1, "output": 1, "reasoning": 3})
    assert preview_rewind(talk.db, session, chosen) == RewindPreview(2, 1, 112)


def test_an_older_batch_never_comes_back(talk: Talk) -> None:
    """The reference's rewind resurrects dead turns: A1 a1 A2 a2, to a1, B2 b2 B3, to b2."""
    session = talk.session()
    a1 = [talk.message(session, role) for role in ("user", "assistant")]
    for role in ("user", "assistant", "user", "assistant"):
        talk.message(session, role)
    in_transaction(talk.db, rewind, session, a1[1], now=talk.now)
    b2 = [talk.message(session, role) for role in ("user", "assistant")]
    for role in ("user", "assistant"):
        talk.message(session, role)
    in_transaction(talk.db, rewind, session, b2[1], now=talk.now)
    assert visible_ids(talk.db, session) == a1 + b2
    assert [b.messages for b in batches(talk.db, session)] == [2, 4]


def test_batches_stay_apart_when_the_clock_steps_back(talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.message(session)
    one = in_transaction(talk.db, rewind, session, first, now=9_000_000_000_000)
    talk.message(session)
    two = in_transaction(talk.db, rewind, session, first, now=talk.now)
    assert two.hidden_at == one.hidden_at + 1


def test_nothing_after_the_message_is_refused(talk: Talk) -> None:
    session = talk.session()
    last = talk.message(session)
    talk.message(session, queued_at=1)
    with pytest.raises(Refused, match="nothing to hide"):
        in_transaction(talk.db, rewind, session, last, now=talk.now)


def test_the_latest_turn_alone_can_be_rewound(talk: Talk) -> None:
    session = talk.session()
    first, last = talk.message(session), talk.message(session)
    assert message_before(talk.db, session, last) == first
    assert message_before(talk.db, session, first) is None


def test_refusals(talk: Talk) -> None:
    session, other = talk.session(), talk.session()
    first = talk.message(session)
    foreign = talk.message(other)
    hidden = talk.message(session, hidden_at=7)
    talk.call(session, state="approval-requested")
    cases = [
        (foreign, Refused, "belongs to session"),
        (hidden, Refused, "hidden by a rewind"),
        ("msg_none", NotFound, "msg_none"),
        (first, Refused, "is running"),
    ]
    before = talk.dump()
    for message, error, words in cases:
        with pytest.raises(error, match=words):
            in_transaction(talk.db, rewind, session, message, now=talk.now)
    assert talk.dump() == before


def test_rollups_follow_the_form(talk: Talk) -> None:
    session = talk.session(prompt_tokens=15, total_tokens=15)
    first = talk.message(session, "assistant", usage={"input": 5})
    talk.message(session, "assistant", usage={"input": 10})
    in_transaction(talk.db, rewind, session, first, now=talk.now)
    expected = 5 if talk.db.form.name == "grida" else 15
    assert talk.session_row(session)["total_tokens"] == expected


def test_own_files_keep_their_times_and_hosts_are_told(talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.message(session)
    before = talk.session_row(session)["updated_at"]
    in_transaction(talk.db, rewind, session, first, now=talk.now + 5)
    after = talk.session_row(session)["updated_at"]
    assert after == (before if talk.db.form.name == "own" else talk.now + 5)
