"""Several files with the same session id: identical copies, and copies that diverged.

A backup, a conflicted copy or a second root can contain a session again. An identical copy,
or one that is a prefix, is stored once. Of files that diverged one is the session; the others
are stored as separate sessions: forks with the same source id. Which one it is depends on whether
a file is named as a copy, and on the messages (``_compared``); what ids the others have, on the
messages (``_branch``). Whenever one of the files comes, changes or goes, that is decided anew from
all that are known, so that neither folders nor the order in which they were read matter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cmp_to_key
from typing import Any, NamedTuple

import orjson

from store.conversation.copy_marks import BRANCH, COPY_OF, branch_naming, branch_of
from store.conversation.gone_marks import GONE, GONE_MESSAGES, GONE_PARTS, PARTIAL
from store.conversation.kept import rename_kept
from store.engine.connection import Connection
from store.engine.server_url import server_url
from store.ids import derived_session_id, derived_tail
from store.sources.base.one_file import is_named_as_copy, name_order
from store.sync.blocks import KEPT_FROM, Attachment, Block
from store.sync.jsontext import json_text
from store.sync.prepared import sums
from store.sync.server_places import is_one_place, is_there
from store.sync.session_rows import MessageTuple, PartTuple, PreparedSession
from store.sync.user_overrides import said_archived_at
from store.usage import Rollups, whole_counts

_STAMPED = len("msg_") + 12
"""Characters of an id before its tail."""
_Mark = tuple[str, int, str]
"""Source id, time and text of a message; in some sources the id is only the position."""

_OF_ANSWER = re.compile(r"[\w-]{12} [\w-]{12}", re.ASCII)
"""A mark has this for the text of an answer: its ids, which a file may have after the text."""


class Move(NamedTuple):
    """What is written at the place of the session, or of one of its copies.

    Attributes:
        session: The session, or a copy with new ids.
        keeps: Whether messages are kept that are stored there and that it lacks: not where
            they are of another file, which is written elsewhere.
    """

    session: PreparedSession
    keeps: bool = True


class ToWrite(NamedTuple):
    """What is written because a file was read, in this order.

    Attributes:
        before: Stored sessions and copies, at the places that they have now.
        own: The file's session; None where another file has all of it.
        after: As ``before``.
        superseded: Ids of stored copies that are written elsewhere, or have no message beyond
            those of another file.
        again: Whether the other files that claim to be the session are to be read again.
    """

    before: Sequence[Move]
    own: Move | None
    after: Sequence[Move] = ()
    superseded: Sequence[str] = ()
    again: bool = False


class _Stored(NamedTuple):
    """What the store has of one of the files that claim to be a session.

    Attributes:
        id: The session, or the copy.
        branch: Names the copy; empty for the session itself.
        path: The file that it was read from; empty where it was removed with its file.
        there: Whether the file is still there.
        ever: The messages that it has or had.
        now: Those that its file has.
        size: The number of parts that its file has, and their tokens.
        marked: Whether the user marked it.
    """

    id: str
    branch: str
    path: str
    there: bool
    ever: frozenset[_Mark]
    now: frozenset[_Mark]
    size: tuple[int, int]
    marked: bool


class _Claim(NamedTuple):
    """A file that claims to be a session, with its messages and size.

    ``place`` is what is stored of it, if anything.
    """

    path: str
    now: frozenset[_Mark]
    size: tuple[int, int]
    place: _Stored | None


def session_to_write(
    connection: Connection,
    prepared: PreparedSession,
    read_from: Collection[str],
    keep_gone: bool,
) -> ToWrite | None:
    """Return what to write for a file, or None if it adds nothing.

    Args:
        connection: In a transaction.
        prepared: The session as read.
        read_from: Paths of the files that it was read from.
        keep_gone: Whether to keep messages that the files no longer have.

    Returns:
        None where another file already provided all of its messages.
    """
    row = connection.execute(
        "SELECT json_extract(metadata_json, '$.source') FROM chat_sessions WHERE id = ?",
        (prepared.id,),
    ).fetchone()
    source = orjson.loads(row[0]) if row is not None and row[0] is not None else {}
    path = source.get("path")
    if path is None or source.get(PARTIAL) or prepared.partial:
        return ToWrite((), Move(prepared))
    if prepared.first_record or prepared.holds_stored:
        return ToWrite((), Move(prepared))
    same = path == prepared.path or path in read_from
    if same and not copies_of(connection, prepared.id):
        return ToWrite((), Move(prepared))
    places = _places(connection, prepared.id)
    size = len(prepared.parts), sum(_tokens(orjson.loads(row[3])) for row in prepared.messages)
    own = _Claim(prepared.path, frozenset(_marks(prepared)), size, None)
    own = own._replace(place=_place_of(connection, places, own, read_from))
    return _plan(connection, prepared, places, own, keep_gone)


def _plan(
    connection: Connection,
    prepared: PreparedSession,
    places: list[_Stored],
    own: _Claim,
    keep_gone: bool,
) -> ToWrite | None:
    """Return what to write for one of several files, or None if that is nothing.

    Args:
        connection: In a transaction.
        prepared: The session as the file has it.
        places: What is stored.
        own: The file.
        keep_gone: Whether to keep messages that the files no longer have.
    """
    files = [own, *(
        _Claim(one.path, one.now, one.size, one)
        for one in places if one.path and one is not own.place
    )]  # fmt: skip
    said = frozenset[_Mark]().union(*(one.now for one in files))
    claims = [_with_gone(one, said) for one in files] if keep_gone else files
    chosen = _by_branch(
        [one for one in claims if not any(_is_within(one, other) for other in claims)]
    )
    first, is_first = chosen[""], chosen[""] is claims[0]
    before_now = first.place.ever if first.place is not None else frozenset()
    has_moved = first.place is None or first.place.branch != ""
    moved = {one.place.branch for one in chosen.values() if one.place is not None}
    kept = {one.branch for one in places if one.path and one.marked and one.branch not in moved}
    written: Move | None = None
    before, after, again = list[Move](), list[Move](), False
    for to, claim in sorted(chosen.items()):
        place = claim.place
        keeps = _keeps(to, claim, places, kept)
        if place is not None:
            # What another file has is kept there.
            elsewhere = (place.ever - claim.now) & said
            inherits_anew = claim is not claims[0] and to != "" and (
                has_moved or not place.now.isdisjoint(first.now ^ before_now)
            )
            again = again or bool(elsewhere) or to != place.branch
            if elsewhere or inherits_anew or to != place.branch:
                stored = _stored_session(
                    connection, prepared, place, vacated=place.branch not in chosen
                )
                stored = _at(_without(stored, elsewhere) if elsewhere else stored, first.now, to)
                is_before = claim is claims[0] or not is_first
                (before if is_before else after).append(Move(stored, keeps and not elsewhere))
                keeps = True
        if claim is claims[0]:
            written = Move(_at(prepared, first.now, to), keeps)
    superseded = [
        one.id for one in places if one.branch and one.branch not in chosen.keys() | kept
    ]
    if not (before or written or after or superseded):
        return None
    if own.place is not None:
        lost = own.size < own.place.size or not _covers(own.now, own.place.now)
        again = again or lost
    return ToWrite(before, written, after, superseded, again)


def _with_gone(claim: _Claim, said: frozenset[_Mark]) -> _Claim:
    """Return a file's claim with the messages that it has lost, and that no file has."""
    if claim.place is None or claim.place.ever <= claim.now | said:
        return claim
    return claim._replace(now=claim.now | (claim.place.ever - said))


def _keeps(branch: str, claim: _Claim, places: Iterable[_Stored], kept: Collection[str]) -> bool:
    """Return whether what is stored at a place is kept when a file is written there.

    Args:
        branch: The place.
        claim: The file.
        places: All that is stored.
        kept: The branches of what the user marked, and is not written elsewhere.
    """
    there = next((one for one in places if one.branch == branch), None)
    if there is None or there is claim.place or branch in kept:
        return True
    # What another file has beyond its messages is not gone while that file is there.
    return bool(there.path) and not there.there and _covers(claim.now, there.ever)


def _place_of(
    connection: Connection, places: list[_Stored], own: _Claim, read_from: Collection[str]
) -> _Stored | None:
    """Return what is stored of a file that was read before, at its path or another one.

    Args:
        connection: In a transaction.
        places: What is stored.
        own: The file.
        read_from: Paths of the files that it was read from.
    """
    for one in places:
        if one.path == own.path or (not one.branch and one.path in read_from):
            return one
    for one in places:
        if not one.branch and server_url(one.path) and is_one_place(connection, one.path, own.path):
            return one
    gone = sorted(
        (one for one in places if one.path and not one.there),
        key=lambda one: (-len(one.ever), one.branch),
    )
    if gone == places:
        # The only file went elsewhere, whatever became of it there.
        return gone[0] if len(gone) == 1 else _gone_to(own, gone)
    if any(one.there and _covers(one.now, own.now) for one in places):
        return None
    return _gone_to(own, gone)


def _gone_to(own: _Claim, gone: Iterable[_Stored]) -> _Stored | None:
    """Return what is stored of a file that is gone, and that went to this path."""
    names = {mark[:2] for mark in own.now}
    ways: tuple[Callable[[_Stored], bool], ...] = (
        lambda one: _covers(own.now, one.ever),
        # A message was edited.
        lambda one: len(one.ever) > 1 and {mark[:2] for mark in one.ever} <= names,
    )
    return next((one for way in ways for one in gone if way(one)), None)


def _covers(whole: frozenset[_Mark], own: frozenset[_Mark]) -> bool:
    """Return whether a file has all messages of another one, whose last one may be cut."""
    if own <= whole:
        return True
    last = max(own, key=_order)
    return own - whole == {last} and any(
        mark[:2] == last[:2] and (mark[2].startswith(last[2]) or _OF_ANSWER.fullmatch(mark[2]))
        for mark in whole
    )


def _is_within(one: _Claim, other: _Claim) -> bool:
    """Return whether another file has all that a file has.

    Of files with the same messages, the one does that has most parts, as the others may end within
    the last answer; then the one with the better name.
    """
    if one is other or not _covers(other.now, one.now):
        return False
    return not _covers(one.now, other.now) or _preference(other) < _preference(one)


def _preference(claim: _Claim) -> tuple[object, ...]:
    parts, tokens = claim.size
    return -parts, -tokens, is_named_as_copy(claim.path), *name_order(claim.path)


def _by_branch(claims: Iterable[_Claim]) -> dict[str, _Claim]:
    """Return files that diverged by what names them as copies; the session has no such name.

    That depends on all files there are, and on nothing else. Each is a copy of the one before it in
    order that has the place it would have.
    """
    found: dict[str, _Claim] = {}
    for one in sorted(claims, key=cmp_to_key(_compared)):
        branch, passed = "", list[str]()
        while branch in found:
            passed.append(branch)
            branch = _branch(one.now, found[branch].now)
            if branch in passed:
                branch = f"{branch}~{len(passed)}"
        found[branch] = one
    return found


def _compared(one: _Claim, other: _Claim) -> int:
    """Return -1 where a file goes before another one from which it diverged, else 1.

    The one that has its agent's own name does, as the agent goes on with it. Of two such, or two
    that are named as copies, the one does whose messages went on earlier where the two part.
    Neither a move nor appending to either changes that.
    """
    named, others = is_named_as_copy(one.path), is_named_as_copy(other.path)
    if named != others:
        return 1 if named else -1
    return -1 if min(one.now ^ other.now, key=_order) in one.now else 1


def _branch(own: frozenset[_Mark], other: frozenset[_Mark]) -> str:
    """Return what names a copy: the first message that the file that goes before it lacks.

    The text counts only where the place and time of the message do not tell it apart: an answer
    that is being written is one message.
    """
    first = min(own - other, key=_order)
    shared = any(mark[:2] == first[:2] for mark in other)
    said = orjson.dumps(first if shared else first[:2])
    return hashlib.blake2b(said, digest_size=12).hexdigest()


def _order(mark: _Mark) -> tuple[int, str, str]:
    name, at, text = mark
    return at, name, text


def _places(connection: Connection, session_id: str) -> list[_Stored]:
    """Return what is stored of the files that claim to be a session; the session is first."""
    found = []
    for one in (session_id, *copies_of(connection, session_id)):
        (text,) = connection.execute(
            "SELECT metadata_json FROM chat_sessions WHERE id = ?", (one,)
        ).fetchone()
        metadata = orjson.loads(text)
        source = metadata["source"]
        branch = "" if one == session_id else branch_of(source)
        found.append(_Stored(
            one, branch, source["path"], is_there(connection, source["path"]),
            *_stored_marks(connection, one), "user" in metadata,
        ))  # fmt: skip
    return found


def _at(prepared: PreparedSession, shared: frozenset[_Mark], branch: str) -> PreparedSession:
    """Return a session as it is written at a place: itself, or a copy.

    Args:
        prepared: The session as its file has it.
        shared: The messages of the session itself.
        branch: The place.
    """
    return _copy(prepared, shared, branch) if branch else prepared


def copies_of(connection: Connection, session_id: str) -> list[str]:
    """Return the ids of a session's stored copies."""
    rows = connection.execute(
        "SELECT s.id FROM session_links l JOIN chat_sessions s ON s.id = l.session_id"
        " WHERE l.parent_id = ? AND json_extract(s.metadata_json, ?) = ? ORDER BY s.id",
        (session_id, f"$.source.{COPY_OF}", session_id),
    )
    return [copy for (copy,) in rows]


def original_of(connection: Connection, session_id: str) -> str:
    """Return the id of the session that a stored session is a copy of, or its own."""
    row = connection.execute(
        "SELECT json_extract(metadata_json, ?) FROM chat_sessions WHERE id = ?",
        (f"$.source.{COPY_OF}", session_id),
    ).fetchone()
    return session_id if row is None or row[0] is None else str(row[0])


def stored_path(connection: Connection, session_id: str) -> str | None:
    """Return the file that a session was read from; None where the session is not stored."""
    row = connection.execute(
        "SELECT json_extract(metadata_json, '$.source.path') FROM chat_sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    return row[0] if row is not None else None


def take_path(connection: Connection, session_id: str) -> None:
    """Note that a session or copy was removed with its file; another one takes its place."""
    connection.execute(
        "UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.source.path', '')"
        " WHERE id = ?",
        (session_id,),
    )


def _stored_session(
    connection: Connection, prepared: PreparedSession, place: _Stored, *, vacated: bool
) -> PreparedSession:
    """Return the stored rows of a session or copy, as they were read from another file.

    Args:
        connection: In a transaction.
        prepared: The same session as another file has it.
        place: What the stored rows are of.
        vacated: Whether nothing else is written there: what the user set moves along.
    """
    agent, workspace, model, text, *totals = connection.execute(
        f"SELECT agent, workspace_root, model_json, metadata_json, {', '.join(Rollups._fields)},"
        " created_at, updated_at FROM chat_sessions WHERE id = ?",
        (place.id,),
    ).fetchone()
    metadata = orjson.loads(text)
    source = metadata["source"]
    if not vacated:
        metadata.pop("user", None)
    messages = connection.execute(
        "SELECT id, session_id, role, metadata_json, created_at, updated_at FROM chat_messages"
        " WHERE session_id = ? ORDER BY created_at, id",
        (place.id,),
    ).fetchall()
    if place.branch:
        messages = [(*row[:3], _without_inheriting(row[3]), *row[4:]) for row in messages]
        metadata["source"] = {
            key: value for key, value in source.items() if key not in (COPY_OF, BRANCH)
        }
        if (metadata.get("lineage") or {}).get("parent_source_id") == source["id"]:
            del metadata["lineage"]
        if isinstance(title := metadata.get("title"), str):
            metadata["title"] = title.removesuffix(_COPY)
    sources = [orjson.loads(row[3])["source"] for row in messages]
    blocks = connection.execute(
        "SELECT first, count, checksum, body FROM original_records WHERE session_id = ?"
        " ORDER BY first",
        (place.id,),
    ).fetchall()
    lineage = metadata.get("lineage") or {}
    stored = replace(
        prepared,
        path=place.path, agent=agent, workspace_root=workspace, model_json=model, metadata=metadata,
        rollups=Rollups(*totals[:7]), created_at=totals[7], updated_at=totals[8],
        archived_at=said_archived_at(text), parent_id=None, parent_message=None,
        lineage_kind=lineage.get("kind"),
        messages=messages,
        message_names=[str(source["id"]) for source in sources],
        inherited={
            number: source["inherited_from"] for number, source in enumerate(sources)
            if "inherited_from" in source
        },
        parts=connection.execute(
            'SELECT id, message_id, session_id, "index", type, data_json, tool_call_id,'
            " tool_state, created_at, updated_at FROM chat_parts WHERE session_id = ?"
            ' ORDER BY message_id, "index"',
            (place.id,),
        ).fetchall(),
        refs=connection.execute(
            "SELECT message_id, records_json FROM record_refs WHERE message_id IN"
            " (SELECT id FROM chat_messages WHERE session_id = ?)",
            (place.id,),
        ).fetchall(),
        blocks=[Block(first, count, checksum, None, body)
                for first, count, checksum, body in blocks],
        attachments=[
            Attachment(*row) for row in connection.execute(
                "SELECT name, media_type, size, body FROM attachments WHERE session_id = ?",
                (place.id,),
            )
        ],
    )  # fmt: skip
    return _renamed(stored, source["id"]) if place.branch else stored


def _without(stored: PreparedSession, left_out: frozenset[_Mark]) -> PreparedSession:
    """Return stored rows without some messages, most of which their file has lost."""
    stays = [
        number for number, mark in enumerate(_marks(stored)) if mark not in left_out
    ]  # fmt: skip
    messages = [stored.messages[number] for number in stays]
    names = {row[0] for row in messages}
    sources = [orjson.loads(row[3]) for row in messages]
    metadata = {**stored.metadata, "source": {**stored.metadata["source"]}}
    metadata["source"].pop(GONE_MESSAGES, None)
    gone = sum(GONE in each["source"] or GONE_PARTS in each["source"] for each in sources)
    if gone:
        metadata["source"][GONE_MESSAGES] = gone
    return replace(
        stored, metadata=metadata, messages=messages,
        message_names=[stored.message_names[number] for number in stays],
        inherited={
            place: stored.inherited[number] for place, number in enumerate(stays)
            if number in stored.inherited
        },
        parts=[row for row in stored.parts if row[1] in names],
        refs=[row for row in stored.refs if row[0] in names],
        blocks=[each for each in stored.blocks if gone or each.first < KEPT_FROM],
        rollups=sums(
            each for row, each in zip(messages, sources, strict=True) if row[2] == "assistant"
        ),
    )  # fmt: skip


def _stored_marks(
    connection: Connection, session_id: str
) -> tuple[frozenset[_Mark], frozenset[_Mark], tuple[int, int]]:
    """Return ``ever``, ``now`` and ``size`` of a stored session, as in ``_Stored``."""
    texts = _texts(
        connection.execute(
            "SELECT message_id, data_json FROM chat_parts WHERE session_id = ? AND type = 'text'"
            ' ORDER BY message_id, "index"',
            (session_id,),
        )
    )
    ever, now, size, tokens = set[_Mark](), set[_Mark](), 0, 0
    for message_id, role, text, at, parts in connection.execute(
        "SELECT id, role, metadata_json, created_at,"
        " (SELECT count(*) FROM chat_parts p WHERE p.message_id = m.id)"
        " FROM chat_messages m WHERE session_id = ?",
        (session_id,),
    ):
        metadata = orjson.loads(text)
        source = metadata["source"]
        mark = _mark(source, role, at, texts.get(message_id, ""))
        ever.add(mark)
        if GONE not in source:
            now.add(mark)
            size += parts - len(source.get(GONE_PARTS, ()))
            tokens += _tokens(metadata)
    return frozenset(ever), frozenset(now), (size, tokens)


def _tokens(metadata: dict[str, Any]) -> int:
    return sum(whole_counts(metadata.get("usage")).values())


def _marks(prepared: PreparedSession) -> list[_Mark]:
    """Return the comparison key of each message."""
    texts = _texts((row[1], row[5]) for row in prepared.parts if row[4] == "text")
    return [
        _mark(orjson.loads(row[3])["source"], row[2], row[4], texts.get(row[0], ""))
        for row in prepared.messages
    ]


def _mark(source: dict[str, Any], role: str, at: int, text: str) -> _Mark:
    """Return a message's comparison key.

    Answers are compared by their ids where they have a request id: their text may be
    truncated in a copy.
    """
    answer = source.get("answer")
    if role == "assistant" and isinstance(answer, list) and len(answer) > 1 and answer[1]:
        text = f"{answer[0]} {answer[1]}"
    return str(source["id"]), at, text


def _texts(parts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the text of each message, by its id."""
    found: dict[str, str] = {}
    for message_id, data in parts:
        text = orjson.loads(data).get("text")
        found[message_id] = f"{found.get(message_id, '')}\n{text}"
    return found


def _copy(prepared: PreparedSession, shared: frozenset[_Mark], branch: str) -> PreparedSession:
    """Return a session as a fork of the session itself, with ids derived from its branch.

    Args:
        prepared: The session as its file has it.
        shared: The messages of the session itself.
        branch: Names the copy.
    """
    inherited, messages = dict(prepared.inherited), list(prepared.messages)
    last: str | None = None
    for place, mark in enumerate(_marks(prepared)):
        if mark in shared:
            last = inherited[place] = prepared.message_names[place]
            row = messages[place]
            messages[place] = (*row[:3], _inheriting(row[3], last), *row[4:])
    naming = branch_naming(prepared.metadata["source"]["id"], branch)
    found = replace(prepared, messages=messages, inherited=inherited)
    return replace(
        _renamed(found, naming),
        metadata=_metadata(prepared, last is not None, branch),
        **_lineage(prepared, last),
    )


def _renamed(prepared: PreparedSession, naming: str) -> PreparedSession:
    """Return a session with other row ids.

    Args:
        prepared: The session.
        naming: The text that its ids are derived from.
    """
    session_id = derived_session_id(prepared.kind, naming)
    ids: dict[str, str] = {}
    tails: dict[str, str] = {}
    messages: list[MessageTuple] = []
    for name, row in zip(prepared.message_names, prepared.messages, strict=True):
        tails[row[0]] = derived_tail(prepared.kind, naming, name)
        ids[row[0]] = row[0][:_STAMPED] + tails[row[0]]
        messages.append((ids[row[0]], session_id, *row[2:]))
    return replace(
        prepared,
        id=session_id,
        messages=messages,
        parts=[_part(row, session_id, ids, tails) for row in prepared.parts],
        refs=[(ids[message], records) for message, records in prepared.refs],
    )


_COPY = " (copy)"
"""What the title of a copy ends with."""


def _metadata(prepared: PreparedSession, is_fork: bool, branch: str) -> dict[str, Any]:
    metadata = dict(prepared.metadata)
    metadata["source"] = {**metadata["source"], COPY_OF: prepared.id, BRANCH: branch}
    if isinstance(title := metadata.get("title"), str):
        metadata["title"] = title + _COPY
    if prepared.lineage_kind != "subagent":
        kind = "fork" if is_fork else "unknown"
        metadata["lineage"] = {"kind": kind, "parent_source_id": metadata["source"]["id"]}
    return metadata


def _lineage(prepared: PreparedSession, shared: str | None) -> dict[str, Any]:
    if prepared.lineage_kind == "subagent":
        return {}
    kind = "fork" if shared is not None else "unknown"
    return {"parent_id": prepared.id, "parent_message": shared, "lineage_kind": kind}


def _inheriting(metadata_json: str, name: str) -> str:
    metadata = orjson.loads(metadata_json)
    metadata["source"] = {**metadata["source"], "inherited_from": name}
    return json_text(metadata)


def _without_inheriting(metadata_json: str) -> str:
    """Return what ``_inheriting`` was given."""
    metadata = orjson.loads(metadata_json)
    source = metadata["source"]
    if source.get("inherited_from") == source["id"]:
        del source["inherited_from"]
    return json_text(metadata)


def _part(
    row: PartTuple, session_id: str, ids: dict[str, str], tails: dict[str, str]
) -> PartTuple:
    data = row[5]
    if row[4] == "data-compaction":
        part = orjson.loads(data)
        if rename_kept(part, lambda name: ids.get(name, name)):
            data = json_text(part)
    part_id = row[0][:_STAMPED] + tails[row[1]]
    return (part_id, ids[row[1]], session_id, *row[3:5], data, *row[6:])
