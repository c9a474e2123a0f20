"""What a user writes on sessions: title, star, tags, labels on messages.

All of it lives in ``metadata_json.user`` of the session, which wins over what a source
says and survives every sync. A title in a file of Grida's form goes to its own column.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from store.engine.database import Database
from store.engine.transactions import beside_others
from store.engine.values import tag_names
from store.errors import Refused
from store.queries.user_marks import starred_by_source, user_marks
from store.verbs.cells import CellEdit, dump_edits, set_column, set_metadata, touch_host
from store.verbs.guards import require_session, require_visible_message
from store.verbs.log import note_change, record


def _one_line(text: str, what: str) -> str:
    line = " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())
    if not line:
        raise Refused(f"the {what} is empty")
    return line


def _finish(
    db: Database, verb: str, session_id: str, summary: str, edits: Sequence[CellEdit], now: int
) -> None:
    note_change(db, session_id, now)
    record(db, verb, session_id, summary, dump_edits(list(edits)), now)


@beside_others
def rename(db: Database, session_id: str, title: str, *, now: int) -> str:
    """Give a session a title; returns it as it was stored, on one line.

    Args:
        db: The store.
        session_id: The session's id.
        title: The new title.
        now: The present, epoch ms.

    Raises:
        NotFound: The session is not there.
        Refused: The title is empty or is the session's already.
    """
    require_session(db, session_id)
    title = _one_line(title, "title")
    (current,) = db.connection.execute(
        f"SELECT {db.form.title('s')} FROM chat_sessions s WHERE s.id = $1", {"1": session_id}
    ).fetchone()
    if current == title:
        raise Refused(f"the session is already called “{title}”")
    edits = (
        [set_column(db, "chat_sessions", session_id, "title", title)]
        if (db.form.title_column)
        else [set_metadata(db, "chat_sessions", session_id, "$.user.title", title)]
    )
    edits += touch_host(db, session_id, now)
    _finish(db, "rename", session_id, f"renamed to “{title}”", edits, now)
    return title


@beside_others
def star(db: Database, session_id: str, *, on: bool | None = None, now: int) -> bool:
    """Star a session or take the star off; returns whether it has one now.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        on: None turns it round.
        now: Epoch ms.

    Raises:
        NotFound: The session is not there.
        Refused: It is that way already.
    """
    require_session(db, session_id)
    has, given = starred_by_source(db, session_id)
    wanted = not has if on is None else on
    if wanted == has:
        raise Refused("the session is already starred" if has else "the session is not starred")
    edit = _star_edit(db, session_id, wanted, given)
    _finish(db, "star", session_id, "starred" if wanted else "removed the star", [edit], now)
    return wanted


def _star_edit(db: Database, session_id: str, wanted: bool, given: bool) -> CellEdit:
    """Set or remove a star; that of the agent is overruled, as it cannot be removed.

    Args:
        db: The store.
        session_id: The session's id.
        wanted: Whether it gets a star.
        given: Whether its agent gives it one.
    """
    value = True if wanted else False if given else None
    return set_metadata(db, "chat_sessions", session_id, "$.user.star", value)


@beside_others
def tag(
    db: Database,
    session_id: str,
    *,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    now: int,
) -> list[str]:
    """Add and remove tags; returns the session's tags now, in the order they were given.

    Args:
        db: The store.
        session_id: The session's id.
        add: Tags to add.
        remove: Tags to remove.
        now: The present, epoch ms.

    Raises:
        NotFound: The session is not there.
        Refused: Nothing changes by it, or a tag is empty.
    """
    require_session(db, session_id)
    before = list(tag_names(user_marks(db, session_id)))
    gone = {_one_line(name, "tag") for name in remove}
    after = [name for name in before if name not in gone]
    for name in add:
        if (line := _one_line(name, "tag")) not in after:
            after.append(line)
    if after == before:
        raise Refused("the session has these tags already")
    edit = set_metadata(db, "chat_sessions", session_id, "$.user.tags", after or None)
    summary = f"tagged {', '.join(after)}" if after else "removed all tags"
    _finish(db, "tag", session_id, summary, [edit], now)
    return after


@beside_others
def star_all(
    db: Database, session_ids: Sequence[str], *, on: bool | None = None, now: int
) -> tuple[bool, list[str]]:
    """Star sessions as one step of undo; returns whether they have one now, and which changed.

    Args:
        db: The store, inside a write transaction.
        session_ids: Ids of the sessions.
        on: None stars them, and where all have a star, takes those off.
        now: Epoch ms.

    Raises:
        NotFound: One of the sessions is not there; none is changed then.
        Refused: All of them are that way already.
    """
    names = _all_there(db, session_ids)
    states = {name: starred_by_source(db, name) for name in names}
    starred = {name for name in names if states[name][0]}
    wanted = len(starred) < len(names) if on is None else on
    targets = [name for name in names if (name in starred) != wanted]
    if not targets:
        one = len(names) == 1
        state = "already starred" if wanted else "not starred"
        raise Refused(f"the session is {state}" if one else f"all of these sessions are {state}")
    edits = [_star_edit(db, name, wanted, states[name][1]) for name in targets]
    summary = "starred" if wanted else "removed the star"
    _finish_all(db, "star", targets, summary, edits, now)
    return wanted, targets


@beside_others
def tag_all(
    db: Database, session_ids: Sequence[str], *, add: Iterable[str] = (),
    remove: Iterable[str] = (), now: int,
) -> list[str]:
    """Add tags to sessions, and remove some, as one step of undo; returns those that changed.

    Args:
        db: The store.
        session_ids: The sessions' ids.
        add: Tags to add.
        remove: Tags to remove.
        now: The present, epoch ms.

    Raises:
        NotFound: One of the sessions is not there; none is changed then.
        Refused: Nothing changes by it, or a tag is empty.
    """
    added = [_one_line(name, "tag") for name in add]
    gone = {_one_line(name, "tag") for name in remove}
    edits, targets = [], []
    for session_id in _all_there(db, session_ids):
        before = list(tag_names(user_marks(db, session_id)))
        after = list(dict.fromkeys([name for name in before if name not in gone] + added))
        if after != before:
            targets.append(session_id)
            tags = after or None
            edits.append(set_metadata(db, "chat_sessions", session_id, "$.user.tags", tags))
    if not targets:
        raise Refused("these sessions have these tags already")
    _finish_all(db, "tag", targets, "changed the tags", edits, now)
    return targets


def _all_there(db: Database, session_ids: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(session_ids))
    for name in names:
        require_session(db, name)
    if not names:
        raise Refused("no session given")
    return names


def _finish_all(
    db: Database, verb: str, targets: list[str], summary: str, edits: list[CellEdit], now: int
) -> None:
    for target in targets[1:]:
        note_change(db, target, now)
    words = f"{summary}: {len(targets)} sessions" if len(targets) > 1 else summary
    _finish(db, verb, targets[0], words, edits, now)


@beside_others
def label(db: Database, session_id: str, message_id: str, text: str | None, *, now: int) -> None:
    """Put a label on a message, or take it off with None.

    Labels are ``metadata_json.user.labels`` of the session: message id to text.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The message's id.
        text: The label; None removes it.
        now: The present, epoch ms.

    Raises:
        NotFound: Session or message is not there.
        Refused: The label is empty, or is that way already.
    """
    require_session(db, session_id)
    known = user_marks(db, session_id).get("labels")
    labels = dict(known) if isinstance(known, dict) else {}
    before = labels.get(message_id)
    if text is None:
        if before is None:
            raise Refused("this message has no label")
        del labels[message_id]
    else:
        require_visible_message(db, session_id, message_id)
        labels[message_id] = _one_line(text, "label")
    if labels.get(message_id) == before:
        raise Refused(f"the message is already labelled “{before}”")
    edit = set_metadata(db, "chat_sessions", session_id, "$.user.labels", labels or None)
    summary = "removed a label" if text is None else f"labelled “{labels[message_id]}”"
    _finish(db, "label", session_id, summary, [edit], now)
