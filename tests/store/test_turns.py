"""Turns are counted by one rule, wherever they are counted."""

from __future__ import annotations

from typing import Any

import pytest

from store.conversation.turns import starts_turn
from store.queries import details, transcript
from store.queries.counting import counts
from store.queries.lineage import turn_counts, turn_number
from tests.store.talks import Talk
from tui.transcript.skeleton import Skeleton

MESSAGES: list[tuple[str, dict[str, Any], bool]] = [
    ("user", {}, True),
    ("user", {"origin": "human"}, True),
    ("user", {"origin": "meta"}, False),
    ("user", {"origin": "command"}, False),
    ("user", {"origin": "shell"}, False),
    ("user", {"origin": "notification"}, False),
    ("user", {"origin": "webhook"}, True),
    ("user", {"origin": {"kind": "human"}}, True),
    ("user", {"origin": None}, True),
    ("user", {"hidden_at": 5}, False),
    ("user", {"queued_at": 5}, False),
    ("user", {"queue_canceled_at": 5}, False),
    ("assistant", {"origin": "human"}, False),
    ("system", {}, False),
]


@pytest.mark.parametrize("chosen", [[*range(14)], [2, 3, 4], [0], [9, 10, 11]])
def test_all_counts_agree(chosen: list[int], talk: Talk) -> None:
    session = talk.session()
    talk.message(session, "assistant")
    for place in chosen:
        role, metadata, _ = MESSAGES[place]
        talk.message(session, role, **metadata)
    last = talk.message(session, "assistant")
    wanted = sum(MESSAGES[place][2] for place in chosen)
    skeleton = Skeleton()
    for outline in transcript.outline_page(talk.db, session, None, 100):
        skeleton.add(outline)
    assert counts(talk.db, [session])[session].turns == wanted
    assert turn_counts(talk.db, [session])[session] == wanted
    assert (turn_number(talk.db, session, last) or 0) == wanted
    assert len(skeleton.turns) == wanted
    assert details.timeline(talk.db, session).turns[-1].number == wanted


@pytest.mark.parametrize(("role", "metadata", "counts_as_one"), MESSAGES)
def test_the_rule(role: str, metadata: dict[str, Any], counts_as_one: bool) -> None:
    hidden = "hidden_at" in metadata
    assert starts_turn(role, metadata) is (counts_as_one or hidden)
