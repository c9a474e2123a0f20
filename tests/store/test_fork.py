from __future__ import annotations

import json
from typing import Any

import pytest

from store.engine.database import in_transaction
from store.errors import NotFound, Refused
from store.queries.context import visible_ids
from store.queries.lineage import family
from store.verbs.fork import Forked, fork, preview_fork
from store.verbs.marks import rename
from store.verbs.rewind import rewind
from store.verbs.titles import base_title
from store.verbs.undo import redo, undo
from tests.store.talks import Talk


def make(talk: Talk, session: str, message: str, *, before: bool = False) -> Forked:
    return in_transaction(
        talk.db, fork, session, message, before=before, ids=talk.ids, now=talk.now + 500_000
    )


def rows(talk: Talk, table: str, session: str) -> list[dict[str, object]]:
    order = "created_at, id" if table == "chat_messages" else '"index", id'
    cursor = talk.db.connection.execute(
        f"SELECT * FROM {table} WHERE session_id = ? ORDER BY {order}", [session]
    )
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def test_copies_up_to_and_including_the_chosen_message(talk: Talk) -> None:
    parent = talk.session("Fix the worker")
    first = talk.message(parent, "user", "one")
    talk.call(parent, input=10, output=3)
    chosen = talk.message(parent, "assistant", "two", usage={"input": 7, "output": 2})
    talk.message(parent, "user", "three")
    forked = make(talk, parent, chosen)
    copies, originals = rows(talk, "chat_messages", forked.session_id), visible_ids(talk.db, parent)
    assert [talk.metadata(str(c["id"]))["inherited_from"] for c in copies] == originals[:3]
    assert [c["created_at"] for c in copies] == [
        m["created_at"] for m in rows(talk, "chat_messages", parent)[:3]
    ]
    row = talk.session_row(forked.session_id)
    assert (row["parent_id"], row["parent_message_id"]) == (parent, chosen)
    assert (row["prompt_tokens"], row["completion_tokens"], row["total_tokens"]) == (17, 5, 22)
    assert json.loads(row["metadata_json"])["lineage"] == {"kind": "fork"}
    assert json.loads(row["metadata_json"])["kept"] == {"as": ["it", 1.5]}
    assert first not in {c["id"] for c in copies}


def test_the_user_message_of_a_fork_is_the_newest_up_to_its_parent_message(
    own_talk: Talk,
) -> None:
    talk = own_talk
    parent = talk.session()
    asked = talk.message(parent, "user", "one")
    answer = talk.message(parent, "assistant", "two")
    talk.message(parent, "user", "three")
    for chosen in (asked, answer):
        forked = make(talk, parent, chosen)
        assert talk.session_row(forked.session_id)["parent_message_id"] == chosen
        found = talk.db.connection.execute(
            "SELECT m.id FROM chat_sessions s JOIN chat_messages at ON at.id = s.parent_message_id"
            " JOIN chat_messages m ON m.session_id = s.parent_id AND m.role = 'user'"
            " WHERE s.id = ? AND (m.created_at, m.id) <= (at.created_at, at.id)"
            " ORDER BY m.created_at DESC, m.id DESC LIMIT 1", (forked.session_id,)).fetchall()
        assert found == [(asked,)]


def test_forks_of_forks_have_any_depth(own_talk: Talk) -> None:
    talk = own_talk
    made = [talk.session()]
    talk.message(made[0], "user", "one")
    for _ in range(15):
        made.append(make(talk, made[-1], visible_ids(talk.db, made[-1])[-1]).session_id)
    nodes = family(talk.db, made[7])
    assert [(one.id, one.depth) for one in nodes] == [
        (name, depth) for depth, name in enumerate(made)]


def test_part_data_is_copied_as_text(talk: Talk) -> None:
    parent = talk.session()
    message = talk.message(parent)
    odd = '{ "type":"text",  "text":"caf\\u00e9 1e3", "n": 1e3, "n": 2 }'
    talk.db.connection.execute("UPDATE chat_parts SET data_json = ?", [odd])
    forked = make(talk, parent, message)
    assert [p["data_json"] for p in rows(talk, "chat_parts", forked.session_id)] == [odd]


def test_before_a_user_message_hands_its_text_over(talk: Talk) -> None:
    parent = talk.session()
    talk.message(parent, "user", "one")
    answer = talk.message(parent, "assistant", "answer")
    chosen = talk.message(parent, "user", "try it again")
    forked = make(talk, parent, chosen, before=True)
    assert forked.preview.prompt == "try it again"
    assert talk.session_row(forked.session_id)["parent_message_id"] == answer
    assert len(rows(talk, "chat_messages", forked.session_id)) == 2


def test_before_needs_a_user_message_with_something_before_it(talk: Talk) -> None:
    parent = talk.session()
    first = talk.message(parent, "user", "one")
    answer = talk.message(parent, "assistant", "answer")
    with pytest.raises(Refused, match="choose a user message"):
        preview_fork(talk.db, parent, answer, before=True)
    with pytest.raises(Refused, match="nothing comes before the first message"):
        preview_fork(talk.db, parent, first, before=True)


def test_queued_cancelled_and_hidden_messages_stay_behind(talk: Talk) -> None:
    parent = talk.session()
    first = talk.message(parent, "user", "one")
    talk.message(parent, "assistant", "gone")
    in_transaction(talk.db, rewind, parent, first, now=talk.now + 500_000)
    talk.message(parent, "user", "queued", queued_at=talk.now)
    talk.message(parent, "user", "cancelled", queue_canceled_at=talk.now, hidden_at=talk.now)
    last = talk.message(parent, "assistant", "kept")
    forked = make(talk, parent, last)
    copies = rows(talk, "chat_messages", forked.session_id)
    assert [talk.metadata(str(c["id"]))["inherited_from"] for c in copies] == [first, last]


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"hidden_at": 5}, "hidden by a rewind"),
        ({"queued_at": 5}, "queued"),
        ({"queue_canceled_at": 5}, "cancelled"),
    ],
)
def test_refuses_messages_that_are_not_transcript(
    talk: Talk, metadata: dict[str, Any], reason: str
) -> None:
    parent = talk.session()
    message = talk.message(parent, **metadata)
    with pytest.raises(Refused, match=reason):
        make(talk, parent, message)


def test_refuses_unknown_and_foreign_messages(talk: Talk) -> None:
    parent, other = talk.session(), talk.session()
    foreign = talk.message(other)
    with pytest.raises(NotFound, match="msg_nothing"):
        make(talk, parent, "msg_nothing")
    with pytest.raises(Refused, match=f"belongs to session {other}"):
        make(talk, parent, foreign)
    with pytest.raises(NotFound, match="ses_nothing"):
        make(talk, "ses_nothing", foreign)


def test_refuses_a_running_session_for_a_minute(talk: Talk) -> None:
    parent = talk.session()
    message = talk.call(parent, state="input-available")
    with pytest.raises(Refused, match="the session is running \\(Bash has no result yet\\)"):
        in_transaction(talk.db, fork, parent, message, ids=talk.ids, now=talk.now + 59_999)
    in_transaction(talk.db, fork, parent, message, ids=talk.ids, now=talk.now + 60_000)


def test_compaction_tail_is_remapped_to_the_copy(talk: Talk) -> None:
    parent = talk.session()
    talk.message(parent, "user", "old")
    tail = talk.message(parent, "assistant", "tail")
    marker = talk.compaction(parent, tail)
    forked = make(talk, parent, marker)
    copies = {
        talk.metadata(str(m["id"]))["inherited_from"]: m["id"]
        for m in rows(talk, "chat_messages", forked.session_id)
    }
    (data,) = [
        json.loads(str(p["data_json"]))
        for p in rows(talk, "chat_parts", forked.session_id)
        if p["type"] == "data-compaction"
    ]
    assert data["data"]["tail_start_id"] == copies[tail]
    assert data["data"]["summary"] == "so far"


def test_titles_are_numbered_once(talk: Talk) -> None:
    parent = talk.session("Retry loop")
    message = talk.message(parent)
    first, second = make(talk, parent, message), make(talk, parent, message)
    copy = visible_ids(talk.db, first.session_id)[0]
    third = make(talk, first.session_id, copy)
    titles = [f.preview.title for f in (first, second, third)]
    assert titles == ["Retry loop (2)", "Retry loop (3)", "Retry loop (4)"]
    shown = talk.db.connection.execute(
        f"SELECT {talk.db.form.title('s')} FROM chat_sessions s WHERE id = ?", [third.session_id]
    ).fetchone()
    assert shown == ("Retry loop (4)",)


@pytest.mark.parametrize(
    ("title", "base"),
    [
        ("A (2)", "A"),
        ("A (1)", "A (1)"),
        ("A (x)", "A (x)"),
        ("(2)", "(2)"),
        ("A (2) (3)", "A (2)"),
    ],
)
def test_base_title(title: str, base: str) -> None:
    assert base_title(title) == base


def test_permissions_are_not_copied(talk: Talk) -> None:
    parent = talk.session(permissions_json='[{"permission":"*","pattern":"*","action":"allow"}]')
    forked = make(talk, parent, talk.message(parent))
    assert talk.session_row(forked.session_id)["permissions_json"] == "[]"


def test_undo_removes_the_fork_and_redo_brings_the_same_rows(talk: Talk) -> None:
    parent = talk.session()
    message = talk.call(parent, input=4)
    before = talk.dump()
    forked = make(talk, parent, message)
    after = talk.dump()
    assert in_transaction(talk.db, undo, now=talk.now).session_id == parent
    assert talk.dump() == before
    assert in_transaction(talk.db, redo, now=talk.now).session_id == forked.session_id
    assert talk.dump() == after


def test_a_fork_that_has_grown_stays_and_undo_goes_past_it(talk: Talk) -> None:
    parent = talk.session()
    message = talk.message(parent)
    in_transaction(talk.db, rename, parent, "Other", now=talk.now)
    forked = make(talk, parent, message)
    talk.message(forked.session_id, "user", "more")
    grown = talk.dump()
    step = in_transaction(talk.db, undo, now=talk.now)
    assert (step.verb, step.session_id) == ("fork", forked.session_id)
    assert step.kept == (
        "the fork has grown since it was made, so it stays; it can be archived instead"
    )
    assert talk.dump() == grown
    step = in_transaction(talk.db, undo, now=talk.now)
    assert (step.verb, step.kept) == ("rename", None)
    after = in_transaction(talk.db, redo, now=talk.now)
    assert (after.verb, talk.dump()) == ("rename", grown)
    with pytest.raises(Refused, match="nothing to redo"):
        in_transaction(talk.db, redo, now=talk.now)


def test_a_fork_that_has_a_fork_of_its_own_stays(talk: Talk) -> None:
    parent = talk.session()
    one = make(talk, parent, talk.message(parent))
    two = make(talk, one.session_id, visible_ids(talk.db, one.session_id)[0])
    talk.message(two.session_id, "user", "more")
    assert in_transaction(talk.db, undo, now=talk.now).session_id == two.session_id
    step = in_transaction(talk.db, undo, now=talk.now)
    assert step.session_id == one.session_id
    assert step.kept is not None and "has sessions of its own now" in step.kept


def test_a_fork_that_is_gone_is_gone_past(talk: Talk) -> None:
    parent = talk.session()
    forked = make(talk, parent, talk.message(parent))
    talk.db.connection.execute("DELETE FROM chat_sessions WHERE id = ?", [forked.session_id])
    step = in_transaction(talk.db, undo, now=talk.now)
    assert (step.session_id, step.kept) == (parent, "the fork is no longer there")
    with pytest.raises(Refused, match="nothing to undo"):
        in_transaction(talk.db, undo, now=talk.now)


def test_attachments_go_with_the_fork_and_come_back(own_talk: Talk) -> None:
    talk = own_talk
    parent = talk.session()
    message = talk.message(parent)
    talk.db.connection.execute(
        "INSERT INTO attachments VALUES (?, 'out.txt', 'text/plain', 3, ?)", [parent, b"abc"]
    )
    forked = make(talk, parent, message)
    query = "SELECT name, body FROM attachments WHERE session_id = ?"
    in_transaction(talk.db, undo, now=talk.now)
    assert talk.db.connection.execute(query, [forked.session_id]).fetchall() == []
    in_transaction(talk.db, redo, now=talk.now)
    assert talk.db.connection.execute(query, [forked.session_id]).fetchall() == [
        ("out.txt", b"abc")
    ]


def test_copies_of_one_millisecond_keep_their_order_across_the_wrap(own_talk: Talk) -> None:
    talk = own_talk
    talk.now = 26 * 2**36 - 1001
    parent = talk.session()
    for number in range(3):
        message = talk.message(parent, text=str(number))
        talk.now -= 1000
    talk.now = 26 * 2**36 - 1
    order = visible_ids(talk.db, parent)
    forked = in_transaction(talk.db, fork, parent, message, ids=talk.ids, now=talk.now)
    copies = visible_ids(talk.db, forked.session_id)
    assert [talk.metadata(c)["inherited_from"] for c in copies] == order


def test_before_names_the_files_that_no_prompt_can_hold(talk: Talk) -> None:
    parent = talk.session()
    talk.message(parent, "user", "one")
    talk.message(parent, "assistant", "answer")
    chosen = talk.message(parent, "user", parts=[
        {"type": "text", "text": "look at this"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA",
         "filename": "shot.png"},
        {"type": "file", "mediaType": "text/plain", "url": "file:///tmp/notes.txt"},
        {"type": "file", "url": "data:,x"},
    ])  # fmt: skip
    preview = make(talk, parent, chosen, before=True).preview
    assert preview.prompt == "look at this"
    assert preview.files == ("image/png shot.png", "text/plain file:///tmp/notes.txt", "file")


@pytest.mark.parametrize("origin", ["meta", "notification"])
def test_before_what_a_program_said_is_refused(talk: Talk, origin: str) -> None:
    """Its words would be handed over as the user's own."""
    parent = talk.session()
    talk.message(parent, "user", "one")
    talk.message(parent, "assistant", "answer")
    chosen = talk.message(parent, "user", "<task-notification>done</task-notification>",
                          origin=origin)  # fmt: skip
    with pytest.raises(Refused, match="a program wrote it"):
        make(talk, parent, chosen, before=True)
