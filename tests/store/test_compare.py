from __future__ import annotations

import pytest

from store.engine.database import in_transaction
from store.errors import Refused
from store.queries.compare import BranchTurn, compare
from store.queries.context import visible_ids
from store.verbs.fork import fork
from tests.store.talks import Talk


def branch(talk: Talk, session: str, message: str) -> str:
    talk.now += 100_000
    made = in_transaction(talk.db, fork, session, message, ids=talk.ids, now=talk.now)
    return made.session_id


def test_turns_after_the_common_beginning(talk: Talk) -> None:
    left = talk.session()
    talk.message(left, "user", "one")
    answer = talk.message(left, "assistant", "first")
    right = branch(talk, left, answer)
    two = talk.message(left, "user", "two")
    talk.call(left, "Read", input=5, output=1)
    talk.call(left, "Bash", state="output-error")
    other = talk.message(right, "user", "instead")
    talk.message(right, "assistant", "done", usage={"cache_read": 9})
    more = talk.message(right, "user", "and more")
    found = compare(talk.db, left, right)
    assert (found.common_messages, found.common_turns) == (2, 1)
    assert found.rows == [
        (
            BranchTurn(two, "two", "", ["Read", "Bash"], 1, 6),
            BranchTurn(other, "instead", "done", [], 0, 9),
        ),
        (None, BranchTurn(more, "and more")),
    ]
    mine = found.rows[0][0]
    assert mine is not None
    assert [(part["type"], part["state"]) for part in mine.parts] == [
        ("tool-Read", "output-available"), ("tool-Bash", "output-error"),
    ]
    assert all("output" not in part for part in mine.parts)


def test_what_failed_is_counted_by_what_really_happened(talk: Talk) -> None:
    left = talk.session()
    talk.message(left, "user", "one")
    right = branch(talk, left, talk.message(left, "assistant", "first"))
    talk.message(right, "user", "two")
    for own in ({"status": "error", "exit_code": 3}, {"exit_code": 1}, {"status": "ok"}):
        answer = talk.call(right, "bash", input=1)
        (part,) = talk.db.connection.execute(
            "SELECT id FROM chat_parts WHERE message_id = $1 AND type = 'tool-bash'",
            {"1": answer}).fetchone()
        talk.set_json("chat_parts", part, "data_json", "resultProviderMetadata",
                      {"backscroll": own | {"structured": {"long": 1}}})
    ((_, turn),) = compare(talk.db, left, right).rows
    assert turn is not None and turn.failed == 2
    assert [part["resultProviderMetadata"] for part in turn.parts] == [
        {"backscroll": {"status": "error", "exit_code": 3}}, {"backscroll": {"exit_code": 1}},
        {"backscroll": {"status": "ok"}},
    ]


def test_a_recorders_own_sum_goes_before_the_last_steps_usage(talk: Talk) -> None:
    left = talk.session()
    talk.message(left, "user", "one")
    right = branch(talk, left, talk.message(left, "assistant", "first"))
    talk.message(right, "user", "two", usage={"input": 1_000})
    talk.message(
        right, "assistant", "done", usage={"input": 5, "output": 1, "cache_read": 2},
        backscroll={"usage": {"input": 50, "output": 10}},
    )  # fmt: skip
    ((_, turn),) = compare(talk.db, left, right).rows
    assert turn is not None and turn.tokens == 62


def test_copies_of_copies_are_the_same_message(talk: Talk) -> None:
    root = talk.session()
    talk.message(root)
    last = talk.message(root, "assistant")
    one, two = branch(talk, root, last), branch(talk, root, last)
    below = branch(talk, one, visible_ids(talk.db, one)[1])
    assert compare(talk.db, below, two).common_messages == 2
    assert compare(talk.db, below, two).rows == []


def test_strangers_have_nothing_to_compare(talk: Talk) -> None:
    one, two = talk.session(), talk.session()
    talk.message(one)
    talk.message(two)
    with pytest.raises(Refused, match="no message in common"):
        compare(talk.db, one, two)
