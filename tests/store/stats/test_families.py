"""A session with its subagents and forks: each answer counted once, each member's share."""

from __future__ import annotations

import json

import pytest

from store.engine.database import in_transaction
from store.prices.table import Price, PriceTable
from store.stats.families import family
from store.stats.keeping import Counter
from store.verbs.fork import fork
from tests.store.talks import Talk
from tui.words.costs import family_words

PRICES = PriceTable([[Price(input=1.0, output=10.0, pattern="m")]])


def test_a_family_is_the_session_and_all_below_it(talk: Talk) -> None:
    first = talk.session("First")
    last = talk.message(first, "assistant", usage={"input": 600_000})
    told = {"title": "Helper", "lineage": {"kind": "subagent"}}
    helper = talk.session("Helper", parent_id=first, metadata_json=json.dumps(told))
    talk.message(helper, "assistant", usage={"input": 300_000})
    below = talk.session("Below", parent_id=helper, metadata_json=json.dumps(told))
    talk.message(below, "assistant", usage={"output": 10_000})
    talk.message(talk.session("Other"), "assistant", usage={"input": 7})
    talk.now += 100_000
    made = in_transaction(talk.db, fork, first, last, ids=talk.ids, now=talk.now)
    found = family(talk.db, first, PRICES)
    assert found is not None
    assert [member.session_id for member in found.members] == [
        first, helper, below, made.session_id]
    assert [member.kind for member in found.members] == ["", "subagent", "subagent", "fork"]
    shares = [found.share(member) for member in found.members]
    assert shares == pytest.approx([0.6, 0.3, 0.1, 0.0])
    assert (found.whole.total, found.own.total, found.children) == (910_000, 600_000, 3)
    assert found.members[3].own.copies == 1
    assert family(talk.db, below, PRICES) is None
    # Without time, less than all is counted, and that is said.
    hurried = family(talk.db, first, PRICES, seconds=-1)
    assert hurried is not None and not hurried.counted and hurried.children == 3
    assert family_words(hurried).startswith("at least ") and found.counted
    # The same from the file of statistics.
    counter = Counter(talk.db.path)
    while counter.step() or not counter.idle:
        counter.resume()
    counter.close()
    again = family(talk.db, first, PRICES)
    assert again is not None and again.whole.total == found.whole.total
    assert [each.own for each in again.members] == [each.own for each in found.members]


def test_a_circle_of_parents_ends(own_talk: Talk) -> None:
    talk = own_talk
    one, two = talk.session(), talk.session()
    write = talk.db.connection.execute
    write("UPDATE chat_sessions SET parent_id = ? WHERE id = ?", (two, one))
    write("UPDATE chat_sessions SET parent_id = ? WHERE id = ?", (one, two))
    talk.message(two, "assistant", usage={"input": 7})
    found = family(talk.db, one)
    assert found is not None
    assert (found.whole.total, found.children) == (7, 1)
