from __future__ import annotations

import pytest

from store.queries.context import context_ids, visible_ids
from tests.store.talks import Talk


def test_without_a_compaction_it_is_what_is_visible(talk: Talk) -> None:
    session = talk.session()
    ids = [talk.message(session), talk.call(session)]
    talk.message(session, queued_at=1)
    talk.message(session, hidden_at=1)
    assert context_ids(talk.db, session) == visible_ids(talk.db, session) == ids


def test_after_a_compaction_summary_tail_and_what_came_later(talk: Talk) -> None:
    session = talk.session()
    talk.message(session)
    tail = [talk.message(session), talk.message(session, "assistant")]
    marker = talk.compaction(session, tail[0])
    later = talk.message(session)
    assert context_ids(talk.db, session) == [marker, *tail, later]
    assert len(visible_ids(talk.db, session)) == 5


def test_an_unknown_or_later_tail_is_no_tail(talk: Talk) -> None:
    for make_tail in (lambda s: None, lambda s: "msg_elsewhere"):
        session = talk.session()
        talk.message(session)
        marker = talk.compaction(session, make_tail(session))
        assert context_ids(talk.db, session) == [marker]


def test_only_the_newest_marker_counts_and_a_hidden_one_does_not(talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.compaction(session, first)
    second = talk.compaction(session, None)
    assert context_ids(talk.db, session) == [second]
    hidden = talk.compaction(session, None)
    talk.db.connection.execute(
        "UPDATE chat_messages SET metadata_json = '{\"hidden_at\":5}' WHERE id = ?", [hidden]
    )
    assert context_ids(talk.db, session) == [second]


@pytest.mark.parametrize(("most", "count"), [("all", 2), (1, 1), (0, 0)])
def test_kept_prompts_are_the_newest_without_earlier_compactions(
    talk: Talk, most: object, count: int
) -> None:
    session = talk.session()
    data = {"type": "data-compaction", "data": {"summary": "s", "kept_prompts": most}}
    asked = [talk.message(session)]
    talk.message(session, "assistant")
    talk.message(session, parts=[data])
    asked.append(talk.message(session))
    talk.message(session, origin="injected")
    marker, later = talk.message(session, parts=[data]), talk.message(session)
    kept = asked[len(asked) - count :]
    assert context_ids(talk.db, session) == [*kept, marker, later]
    assert context_ids(talk.db, session, marker_first=True) == [marker, *kept, later]


@pytest.mark.file
def test_metadata_that_is_no_json_is_a_visible_message(talk: Talk) -> None:
    session = talk.session()
    message = talk.message(session)
    talk.db.connection.execute("UPDATE chat_messages SET metadata_json = 'oops'")
    assert context_ids(talk.db, session) == [message]


def test_kept_names_of_any_kind_keep_what_is_there(talk: Talk) -> None:
    session = talk.session()
    first, second = talk.message(session), talk.message(session)
    names = [second, [first], {"id": first}, None, 1, "msg_elsewhere", first]
    marker = talk.message(
        session, parts=[{"type": "data-compaction", "data": {"summary": "s", "kept_ids": names}}])
    assert context_ids(talk.db, session) == [marker, second, first]
