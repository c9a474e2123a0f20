from __future__ import annotations

import json

import pytest

from store.engine.database import in_transaction
from store.errors import NotFound
from store.queries.context import visible_ids
from store.queries.lineage import families, family, root_of, siblings, turn_counts, turn_number
from store.verbs.fork import fork
from store.verbs.marks import label
from tests.store.talks import Talk


def branch(talk: Talk, session: str, message: str) -> str:
    talk.now += 100_000
    made = in_transaction(talk.db, fork, session, message, ids=talk.ids, now=talk.now)
    return made.session_id


def test_a_family_is_the_same_from_each_of_its_members(talk: Talk) -> None:
    root = talk.session("Root")
    message = talk.message(root)
    one, two = branch(talk, root, message), branch(talk, root, message)
    below = branch(talk, one, visible_ids(talk.db, one)[0])
    stranger = talk.session()
    expected = [(root, 0, "root"), (one, 1, "fork"), (below, 2, "fork"), (two, 1, "fork")]
    for member in (root, one, two, below):
        assert [(n.id, n.depth, n.kind) for n in family(talk.db, member)] == expected
    assert [n.last_of_parent for n in family(talk.db, root)] == [True, False, True, True]
    assert [n.id for n in family(talk.db, stranger)] == [stranger]


def test_subagents_are_told_from_forks(own_talk: Talk) -> None:
    talk = own_talk
    root = talk.session("Root")
    child = talk.session(
        parent_id=root, metadata_json=json.dumps({"lineage": {"kind": "subagent"}})
    )
    made = branch(talk, root, talk.message(root))
    assert {n.id: n.kind for n in family(talk.db, root)} == {
        root: "root", child: "subagent", made: "fork",
    }  # fmt: skip
    assert siblings(talk.db, root) == [root, made]
    assert siblings(talk.db, made) == [root, made]
    assert siblings(talk.db, child) == [child]


def test_a_hosts_fork_is_known_by_its_copies() -> None:
    from pathlib import Path

    from store.engine.database import open_database

    sample = Path(__file__).parent.parent / "data" / "grida" / "sessions.db"
    db = open_database(sample, write=False)
    kinds = [(n.depth, n.kind) for n in family(db, "ses_fffedc38e000APJg8zbjzvA4De")]
    db.close()
    assert kinds == [(0, "root"), (1, "fork"), (2, "fork")]


def test_a_missing_parent_and_a_loop_end_the_climb(talk: Talk) -> None:
    orphan = talk.session(parent_id="ses_gone")
    assert root_of(talk.db, orphan) == orphan
    assert [(n.id, n.kind) for n in family(talk.db, orphan)] == [(orphan, "root")]
    a, b = talk.session(), talk.session()
    talk.db.connection.execute("UPDATE chat_sessions SET parent_id = ? WHERE id = ?", [a, b])
    talk.db.connection.execute("UPDATE chat_sessions SET parent_id = ? WHERE id = ?", [b, a])
    assert {n.id for n in family(talk.db, a)} == {a, b}


def test_no_session_is_left_out_of_the_tree(talk: Talk) -> None:
    """Loops of parents, sessions below them, and one that names itself."""
    one, two, three, below, own = (talk.session() for _ in range(5))
    for child, parent in ((one, two), (two, three), (three, one), (below, two), (own, own)):
        talk.db.connection.execute(
            "UPDATE chat_sessions SET parent_id = ? WHERE id = ?", [parent, child]
        )
    trees = [[node.id for node in family(talk.db, root)] for root in families(talk.db)]
    assert sorted(name for tree in trees for name in tree) == sorted([one, two, three, below, own])
    assert len(trees) == 2
    for name in (one, two, three, below):
        assert {node.id for node in family(talk.db, name)} == {one, two, three, below}
    assert [node.id for node in family(talk.db, own)] == [own]


def test_turns_and_labels(talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    answer = talk.message(session, "assistant")
    talk.message(session, origin="meta")
    talk.message(session, queued_at=1)
    second = talk.message(session)
    assert turn_counts(talk.db, [session]) == {session: 2}
    numbers = [turn_number(talk.db, session, m) for m in (first, answer, second, "msg_none")]
    assert numbers == [1, 1, 2, None]
    in_transaction(talk.db, label, session, first, "start", now=1)
    assert [n.labels for n in family(talk.db, session)] == [1]


@pytest.mark.file
def test_branches_are_the_parent_and_its_children_not_the_family(talk: Talk) -> None:
    root = talk.session("Root")
    message = talk.message(root)
    one, two = branch(talk, root, message), branch(talk, root, message)
    below = branch(talk, one, visible_ids(talk.db, one)[0])
    assert siblings(talk.db, two) == [root, one, two]
    assert siblings(talk.db, one) == [root, one, two]
    assert siblings(talk.db, below) == [one, below]
    read: list[str] = []
    talk.db.file.set_trace_callback(read.append)
    siblings(talk.db, below)
    talk.db.file.set_trace_callback(None)
    assert not any("RECURSIVE" in sql for sql in read)


def test_branches_of_a_loop_of_parents_and_of_an_orphan(talk: Talk) -> None:
    one, two = talk.session("One"), talk.session("Two")
    orphan, own = talk.session("Orphan", parent_id="ses_gone"), talk.session("Own")
    for child, parent in ((one, two), (two, one), (own, own)):
        talk.db.connection.execute(
            "UPDATE chat_sessions SET parent_id = ? WHERE id = ?", (parent, child)
        )
    assert siblings(talk.db, one) == [two, one]
    assert siblings(talk.db, two) == [one, two]
    assert siblings(talk.db, own) == [own]
    assert siblings(talk.db, orphan) == [orphan]
    with pytest.raises(NotFound):
        siblings(talk.db, "ses_gone")
