from __future__ import annotations

import json

import pytest

from store.engine.database import in_transaction
from store.errors import NotFound, Refused
from store.queries.user_marks import starred_by_source, user_marks
from store.verbs.marks import label, rename, star, star_all, tag, tag_all
from store.verbs.undo import undo
from tests.store.talks import Talk


def title(talk: Talk, session: str) -> str:
    (text,) = talk.db.connection.execute(
        f"SELECT {talk.db.form.title('s')} FROM chat_sessions s WHERE s.id = ?", [session]
    ).fetchone()
    return str(text)


def test_rename_wins_over_the_source(talk: Talk) -> None:
    session = talk.session("From the source")
    assert in_transaction(talk.db, rename, session, "  Mine\nnow\x1b ", now=1) == "Mine now"
    assert title(talk, session) == "Mine now"
    in_transaction(talk.db, undo, now=2)
    assert title(talk, session) == "From the source"


def test_rename_refuses_empty_and_equal(talk: Talk) -> None:
    session = talk.session("Same")
    with pytest.raises(Refused, match="title is empty"):
        in_transaction(talk.db, rename, session, " \n ", now=1)
    with pytest.raises(Refused, match="already called “Same”"):
        in_transaction(talk.db, rename, session, "Same", now=1)


def test_star_turns_round(talk: Talk) -> None:
    session = talk.session()
    before = talk.dump()
    assert in_transaction(talk.db, star, session, now=1) is True
    assert user_marks(talk.db, session) == {"star": True}
    with pytest.raises(Refused, match="already"):
        in_transaction(talk.db, star, session, on=True, now=1)
    in_transaction(talk.db, undo, now=1)
    assert talk.dump() == before
    with pytest.raises(Refused, match="not starred"):
        in_transaction(talk.db, star, session, on=False, now=1)


def test_a_star_of_the_agent_is_overruled_and_comes_back(talk: Talk) -> None:
    session = talk.session(metadata_json='{"backscroll": {"is_starred": true}}')
    with pytest.raises(Refused, match="already"):
        in_transaction(talk.db, star, session, on=True, now=1)
    assert in_transaction(talk.db, star, session, now=1) is False
    assert user_marks(talk.db, session) == {"star": False}
    assert in_transaction(talk.db, star_all, [session], now=1) == (True, [session])
    in_transaction(talk.db, undo, now=1)
    in_transaction(talk.db, undo, now=1)
    assert user_marks(talk.db, session) == {} and starred_by_source(talk.db, session)[0]


def test_tags_keep_their_order(talk: Talk) -> None:
    session = talk.session()
    assert in_transaction(talk.db, tag, session, add=["b", "a", "b"], now=1) == ["b", "a"]
    assert in_transaction(talk.db, tag, session, add=["c"], remove=["b"], now=1) == ["a", "c"]
    with pytest.raises(Refused, match="these tags already"):
        in_transaction(talk.db, tag, session, add=["a"], now=1)
    assert in_transaction(talk.db, tag, session, remove=["a", "c"], now=1) == []
    assert "tags" not in user_marks(talk.db, session)


def test_labels_on_messages(talk: Talk) -> None:
    session = talk.session()
    message = talk.message(session)
    in_transaction(talk.db, label, session, message, "here it broke", now=1)
    assert user_marks(talk.db, session)["labels"] == {message: "here it broke"}
    with pytest.raises(Refused, match="already labelled “here it broke”"):
        in_transaction(talk.db, label, session, message, "here it broke", now=1)
    in_transaction(talk.db, label, session, message, None, now=1)
    assert "labels" not in user_marks(talk.db, session)
    with pytest.raises(Refused, match="has no label"):
        in_transaction(talk.db, label, session, message, None, now=1)


def test_everything_else_in_the_metadata_stays(talk: Talk) -> None:
    session = talk.session()
    odd = '{ "a" : 1e3, "b": "\\u00e9", "b": 2 }'
    talk.db.connection.execute("UPDATE chat_sessions SET metadata_json = ?", [odd])
    in_transaction(talk.db, star, session, now=1)
    in_transaction(talk.db, undo, now=1)
    assert talk.session_row(session)["metadata_json"] == odd


@pytest.mark.file
def test_metadata_that_is_no_json_is_left_alone(talk: Talk) -> None:
    session = talk.session()
    talk.db.connection.execute("UPDATE chat_sessions SET metadata_json = 'not json'")
    with pytest.raises(Refused, match="not valid JSON"):
        in_transaction(talk.db, star, session, now=1)
    assert talk.session_row(session)["metadata_json"] == "not json"


def test_undo_keeps_what_someone_else_wrote_since(talk: Talk) -> None:
    session = talk.session()
    in_transaction(talk.db, star, session, now=1)
    talk.set_json("chat_sessions", session, "metadata_json", "new", 5)
    in_transaction(talk.db, undo, now=1)
    bag = json.loads(talk.session_row(session)["metadata_json"])
    assert bag["new"] == 5
    assert "star" not in bag.get("user", {})


def test_many_are_starred_and_tagged_as_one_step(talk: Talk) -> None:
    one, two, three = talk.session("1"), talk.session("2"), talk.session("3")
    in_transaction(talk.db, star, two, now=1)
    before = [talk.session_row(name) for name in (one, two, three)]
    assert in_transaction(talk.db, star_all, [one, two, three, one], now=2) == (True, [one, three])
    assert [user_marks(talk.db, name).get("star") for name in (one, two, three)] == [True] * 3
    with pytest.raises(Refused, match="all of these sessions are already starred"):
        in_transaction(talk.db, star_all, [one, two], on=True, now=3)
    assert in_transaction(talk.db, undo, now=4).summary == "starred: 2 sessions"
    assert [talk.session_row(name) for name in (one, two, three)] == before
    in_transaction(talk.db, tag, two, add=["b"], now=5)
    assert in_transaction(talk.db, tag_all, [one, two], add=["a"], remove=["b"], now=6) \
        == [one, two]
    assert [user_marks(talk.db, name).get("tags") for name in (one, two, three)] \
        == [["a"], ["a"], None]
    with pytest.raises(Refused):
        in_transaction(talk.db, tag_all, [one, two], add=["a"], now=7)
    in_transaction(talk.db, undo, now=8)
    assert user_marks(talk.db, one).get("tags") is None
    assert user_marks(talk.db, two)["tags"] == ["b"]


def test_none_is_starred_where_one_is_not_there(talk: Talk) -> None:
    one = talk.session("1")
    with pytest.raises(NotFound):
        in_transaction(talk.db, star_all, [one, "ses_gone"], now=1)
    with pytest.raises(Refused, match="no session given"):
        in_transaction(talk.db, star_all, [], now=1)
    assert user_marks(talk.db, one) == {}
