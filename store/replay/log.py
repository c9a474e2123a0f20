"""Takes from a library's event log where messages and parts were, and what they were then."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from store.engine.database import Database
from store.engine.dialect import quoted
from store.engine.event_log import KEYS, bit_of, values_of
from store.engine.reading import message_row, part_row
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.values import decoded, number, number_or_none, text
from store.events.log import has_events
from store.events.rows import Row, exact, placed, update
from store.queries.transcript import Keyset
from store.rows import MessageRow, PartRow

LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""
FOREVER = 1 << 62
"""The end of the life of what was not deleted."""
MOST_BYTES = 2_000_000
"""Of JSON that the versions of one part hold; later and earlier ones are read when wanted."""
AS_IT_HAPPENED_MS = 60_000
"""An event that was written so much later repeats the times of a row, as an import does."""
_AT_ONCE = 50
"""Events whose values are read at once."""


class Head(NamedTuple):
    """What the head of a session shows from a moment on.

    Attributes:
        at: Epoch ms.
        title: None where it was unset.
        model_json: As in ``SessionRow``.
    """

    at: int
    title: str | None
    model_json: str | None


class LogEvent(NamedTuple):
    """An event about a session, a message or a part, without content.

    Attributes:
        seq: Its number among the session's events.
        what: ``created``, ``snapshot``, ``updated``, ``deleted``, ``moved``, or another change.
        logged_at: When it was written, epoch ms.
        is_session: Whether it is about the session's row.
        is_whole: Whether it has the whole row.
        has_facts: Whether it has the metadata of a session or a message.
        title: Of a session whose metadata it has.
        model_json: Of a session; None where it has none, or does not change it.
        has_model: Whether it changes the model of a session.
    """

    seq: int
    what: str
    logged_at: int
    is_session: bool
    is_whole: bool
    has_facts: bool
    message_id: str
    part_id: str | None
    position: int | None
    type: str | None
    state: str | None
    role: str | None
    created_at: int | None
    updated_at: int | None
    hidden_at: int
    queued_at: int | None
    cancelled_at: int | None
    inherited: int
    origin: str | None
    title: str | None = None
    model_json: str | None = None
    has_model: bool = False


def log_page(
    db: Database, session_id: str, after: int, limit: int
) -> tuple[list[LogEvent], int | None]:
    """Return events of a session, and the one to go on after; None at the end.

    Args:
        db: The store; one without a log has none.
        session_id: The session.
        after: The number of the last event that is known, 0 for none.
        limit: Of events at most.
    """
    if not has_events(db):
        return [], None
    rows = db.connection.execute(
        'SELECT seq, at, kind, message_id, part_id, changed, "index", type, tool_state, role,'
        " created_at, updated_at, metadata_json, model_json FROM events"
        " WHERE stream_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        {"1": session_id, "2": after, "3": limit},
    ).fetchall()
    return [_event(row) for row in rows], rows[-1][0] if rows else None


_METADATA = 1 << bit_of("chat_messages", "metadata_json")
_FACTS = 1 << bit_of("chat_sessions", "metadata_json")
_MODEL = 1 << bit_of("chat_sessions", "model_json")


def _event(row: Sequence[Any]) -> LogEvent:
    seq, at, kind, message, part, changed, index, name, state, role, created_at, updated_at, \
        metadata_json, model_json = row
    subject, _, what = str(kind).partition(".")
    is_whole = changed is None and what not in ("deleted", "moved", "forgot")
    facts = decoded(text(metadata_json)) if subject != "part" and metadata_json else {}
    queued, cancelled = facts.get("queued_at"), facts.get("queue_canceled_at")
    origin = facts.get("origin")
    is_session = message is None
    return LogEvent(
        seq=number(seq), what=what, logged_at=number(at), is_session=is_session,
        is_whole=is_whole, message_id=text(message) or "", part_id=text(part),
        has_facts=subject != "part" and (
            is_whole or bool(number(changed) & (_FACTS if is_session else _METADATA))),
        title=_title(facts) if is_session else None, model_json=text(model_json),
        has_model=is_session and (is_whole or bool(number(changed) & _MODEL)),
        position=number_or_none(index), type=text(name), state=text(state), role=text(role),
        created_at=number_or_none(created_at), updated_at=number_or_none(updated_at),
        hidden_at=_whole(facts.get("hidden_at")),
        queued_at=_whole(queued) if _is_number(queued) else None,
        cancelled_at=None if cancelled is None else _whole(cancelled),
        inherited=int(isinstance(facts.get("inherited_from"), str)),
        origin=origin if isinstance(origin, str) else None)


def _title(facts: Mapping[str, Any]) -> str | None:
    """Return a session's title: the user's before the agent's."""
    users = facts.get("user")
    for title in (users.get("title") if isinstance(users, dict) else None, facts.get("title")):
        if isinstance(title, str) and title:
            return title
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> int:
    """Return a value of JSON as SQLite reads a number; 0 where it is none."""
    return number(value) if _is_number(value) and abs(value) < 1 << 63 else 0


class Hiding(NamedTuple):
    """A message was written, hidden or not.

    Attributes:
        hidden_at: When a rewind hid it, epoch ms; 0 where it is visible.
        at: When that was written.
    """

    hidden_at: int
    at: int


@dataclass(slots=True)
class Life:
    """A stretch of time in which a message or a part was there, at one place of the session.

    Attributes:
        event: Has its facts: the last event that changed one of them, with all facts.
        is_own: Whether the log saw it come; else it has the times of its row.
        since: When it came to this place; None where it came there first.
        until: When it was deleted, or came to another place; ``FOREVER`` while it is there.
        times: When it was written, ascending.
        seqs: The events that did.
        hidings: Of a message: whether it was hidden.
    """

    event: LogEvent
    is_own: bool
    since: int | None = None
    until: int = FOREVER
    times: array[int] = field(default_factory=lambda: array("q"))
    seqs: array[int] = field(default_factory=lambda: array("q"))
    hidings: list[Hiding] = field(default_factory=list)

    @property
    def begin(self) -> int:
        """When it was there first, epoch ms."""
        if self.since is not None:
            return self.since
        return self.times[0] if self.is_own else bounded(self.event.created_at or 0)

    @property
    def is_plain(self) -> bool:
        """Whether it came once and stayed."""
        return self.since is None and self.until == FOREVER

    @property
    def place(self) -> Keyset:
        """Where a message is among those of its session."""
        return self.event.created_at or 0, self.event.message_id

    @property
    def is_shown(self) -> bool:
        """Whether a message is shown at all: one that was cancelled while it waited is not."""
        return self.event.cancelled_at is None or not self.event.hidden_at


class Writes(NamedTuple):
    """The writes of a message or a part by the log.

    Attributes:
        times: When they were, ascending, epoch ms.
        seqs: The numbers of their events.
        is_own: Whether the log saw it come.
        is_past: Whether it is gone in the end, so that no row of the store is what it was.
    """

    times: array[int]
    seqs: array[int]
    is_own: bool
    is_past: bool

    @property
    def is_news(self) -> bool:
        """Whether they tell more than one copy of a row of the store."""
        return self.is_own or len(self.times) > 1 or self.is_past

    def differ_at(self, moment: int) -> bool:
        """Return whether what there was at a moment is not the row of the store."""
        return self.is_past or moment < self.times[-1]


class Lives:
    """Where the messages and parts of a session were, by all events of its log.

    Attributes:
        messages: The lives of each message, in order of time.
        parts: The lives of each part.
        parts_of: The parts that each message ever had.
        heads: What the head of the session showed, in order of time.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self.messages: dict[str, list[Life]] = {}
        self.parts: dict[str, list[Life]] = {}
        self.parts_of: dict[str, dict[str, None]] = {}
        self.heads: list[Head] = []
        self._latest = self._moved = 0
        self._gone_at: int | None = None
        self._unseen: dict[int, Life] = {}

    def take(self, events: Iterable[LogEvent]) -> None:
        """Take the next events."""
        for event in events:
            if event.is_session:
                self._take_session(event)
            elif event.part_id is None:
                self._take_row(event, self.messages.setdefault(event.message_id, []))
            else:
                self.parts_of.setdefault(event.message_id, {})[event.part_id] = None
                self._take_row(event, self.parts.setdefault(event.part_id, []))

    def _take_session(self, event: LogEvent) -> None:
        """Rows that go with their session, or were gone before its snapshot, have no events."""
        if event.has_facts or event.has_model:
            self._take_head(event)
        if event.what == "deleted":
            self._gone_at = max(bounded(event.logged_at), self._latest)
        elif event.what in ("created", "snapshot"):
            self.settle()
            self._unseen = {
                id(lives[-1]): lives[-1] for known in (self.messages, self.parts)
                for lives in known.values() if lives and lives[-1].until == FOREVER}
            if self._gone_at is None:
                self._gone_at = max(bounded(event.logged_at), self._latest)

    def _take_head(self, event: LogEvent) -> None:
        before = self.heads[-1] if self.heads else Head(0, None, None)
        told, logged_at = event.updated_at or 0, event.logged_at
        at = told if told > 0 and logged_at - told < AS_IT_HAPPENED_MS else logged_at
        at = max(before.at, bounded(at))
        head = Head(at, event.title if event.has_facts else before.title,
                    event.model_json if event.has_model else before.model_json)
        if not self.heads or head[1:] != before[1:]:
            self.heads.append(head)

    def head_at(self, at: int) -> Head | None:
        """Return what the head showed at a moment; None where that is what it shows today."""
        place = bisect_right(self.heads, at, key=attrgetter("at"))
        return self.heads[max(0, place - 1)] if place < len(self.heads) else None

    def settle(self) -> None:
        """End the lives of what did not come back with its session."""
        for life in self._unseen.values():
            life.until = max(self._gone_at or 0, life.times[-1])
        self._unseen, self._gone_at = {}, None

    def _take_row(self, event: LogEvent, lives: list[Life]) -> None:
        life = lives[-1] if lives and lives[-1].until == FOREVER else None
        if event.what in ("deleted", "moved"):
            self._moved = event.seq if event.what == "moved" else 0
            if life is not None:
                life.until = max(bounded(event.logged_at), self._latest, life.times[-1])
                self._unseen.pop(id(life), None)
            return
        if life is None:
            if event.is_whole:
                lives.append(self._begun(event, lives))
            return
        self._unseen.pop(id(life), None)
        at = self._time_of(event, is_new=False)
        if not life.is_own and len(life.times) == 1:
            life.times[0] = min(life.times[0], at)
        self._write(lives, life, event, max(at, life.times[-1]))

    def _begun(self, event: LogEvent, lives: list[Life]) -> Life:
        """Return the life of a row that came."""
        if lives or (self._moved and event.seq == self._moved + 1):
            # Its times are older: it was deleted for a while, or had another id.
            at = max(bounded(event.logged_at), self._latest, lives[-1].until if lives else 0)
            life = Life(event, True, since=at)
        else:
            at = self._time_of(event, is_new=True)
            is_own = event.logged_at - at < AS_IT_HAPPENED_MS
            if not is_own:
                at = max(at, bounded(event.updated_at or 0))
            life = Life(event, is_own)
        life.times.append(at)
        life.seqs.append(event.seq)
        life.hidings.append(Hiding(event.hidden_at, event.hidden_at or at))
        return life

    def _time_of(self, event: LogEvent, *, is_new: bool) -> int:
        """Return when an event happened: by its row where that says so."""
        told = event.created_at if is_new else event.updated_at
        at = bounded(event.logged_at if not told or told < 0 else told)
        if event.logged_at - at < AS_IT_HAPPENED_MS:
            self._latest = max(self._latest, at)
        return at

    def _write(self, lives: list[Life], life: Life, event: LogEvent, at: int) -> None:
        """Take a change of a row that is there."""
        before, now = life.event, _with(life.event, event)
        if _place(before) != _place(now):
            later = Life(now, True, since=at, times=life.times[:], seqs=life.seqs[:])
            life.until = at
            lives.append(later)
            later.hidings.append(Hiding(before.hidden_at, at))
            life = later
        life.event = now
        life.times.append(at)
        life.seqs.append(event.seq)
        if event.has_facts:
            life.hidings.append(Hiding(now.hidden_at, at))

    def odd(self) -> Iterator[str]:
        """Yield the messages that, or whose parts, were not always where they are in the end."""
        for message_id in {**self.messages, **self.parts_of}:
            lives = self.messages.get(message_id, [])
            parts = [life for part_id in self.parts_of.get(message_id, ())
                     for life in self.parts[part_id]]
            if len(lives) != 1 or not lives[0].is_plain or not all(
                    life.is_plain and life.event.message_id == message_id for life in parts):
                if lives:
                    yield message_id
            elif lives[0].is_own and parts and lives[0].begin < min(
                    life.begin for life in parts):
                yield message_id


def bounded(at: int) -> int:
    """Return a time within the years that are shown."""
    return max(0, min(at, LATEST))


def _with(before: LogEvent, event: LogEvent) -> LogEvent:
    """Return an event with the facts that it does not change."""
    if event.is_whole:
        return event
    kept: dict[str, Any] = {
            name: value for name in ("position", "type", "role", "created_at", "updated_at")
            if (value := getattr(event, name)) is None
            and (value := getattr(before, name)) is not None}
    if not event.has_facts:
        kept |= {name: getattr(before, name) for name in (
            "hidden_at", "queued_at", "cancelled_at", "inherited", "origin")}
    if event.state is None:
        kept["state"] = before.state
    return event._replace(**kept)


def _place(event: LogEvent) -> tuple[object, ...]:
    """Return what decides where, and as what, a row is shown."""
    if event.part_id is not None:
        return event.message_id, event.position, event.type
    waits = event.queued_at is not None
    gone = event.cancelled_at is not None and bool(event.hidden_at)
    return event.role, event.created_at, waits, gone, event.inherited, event.origin


# -- what a row was


def _rows(db: Database, session_id: str, table: str, seqs: Sequence[int]) -> Iterator[Row]:
    """Yield a row as it was after each of the events that wrote it, the first of them whole."""
    connection, names = db.connection, values_of(table)
    keys = [KEYS[table].get(name, name) for name in REQUIRED_COLUMNS[table]]
    row: list[Any] = []
    for start in range(0, len(seqs), _AT_ONCE):
        some = seqs[start: start + _AT_ONCE]
        with exact(connection):
            found = connection.execute(
                f"SELECT changed, kept, insert_at, inserted, {', '.join(map(quoted, keys))}"
                f" FROM events WHERE stream_id = {placed(None)}"
                f" AND seq IN ({', '.join('?' * len(some))})"
                " ORDER BY seq", (session_id, *some)).fetchall()
        for changed, kept, insert_at, inserted, *values in found:
            if changed is None or not row:
                row = values
            else:
                update(row, names, values[-len(names):], changed, (kept, insert_at, inserted))
            yield tuple(row)


class PartVersions:
    """What a part was, write by write; of a text that became longer only the length is kept.

    Attributes:
        begin: The first moment that they are known of.
        end: The first moment after it that they are not known of.
    """

    def __init__(self, begin: int = 0) -> None:
        """Start without a version."""
        self.begin, self.end = begin, FOREVER
        self._times = array("q")
        self._rows: list[PartRow] = []
        self._lengths: list[tuple[int, int] | None] = []
        self._texts: list[str] = []
        self.weight = 0

    def covers(self, moment: int) -> bool:
        """Return whether it is known what the part was at a moment."""
        return self.begin <= moment < self.end

    def add(self, at: int, row: PartRow) -> bool:
        """Add the next version where there is room for it; return whether there was.

        Args:
            at: When it was written, epoch ms; not before the version before.
            row: What was written.
        """
        data = decoded(row.data_json)
        words, length = data.get("text"), None
        if isinstance(words, str) and row.type in ("text", "reasoning"):
            if not self._texts or not words.startswith(self._texts[-1]):
                self._texts.append("")
            length = (len(self._texts) - 1, len(words))
            self.weight += len(words) - len(self._texts[-1])
            self._texts[-1] = words
            row = replace(row, data_json=_json(data | {"text": None}))
        self.weight += len(row.data_json)
        if self.weight > MOST_BYTES and self._rows:
            self.end = at
            return False
        self._times.append(at)
        self._rows.append(row)
        self._lengths.append(length)
        return True

    def at(self, moment: int) -> tuple[PartRow, bool] | None:
        """Return the part at a moment, and whether it was as yet unwritten; None without one."""
        if not self._times:
            return None
        place = bisect_right(self._times, moment) - 1
        row, length = self._rows[max(0, place)], self._lengths[max(0, place)]
        if length is not None:
            words = self._texts[length[0]][: length[1]]
            row = replace(row, data_json=_json(decoded(row.data_json) | {"text": words}))
        return row, place < 0


class MessageVersions:
    """What a message was, write by write."""

    def __init__(self, times: Sequence[int], rows: Sequence[MessageRow]) -> None:
        """Take its versions, ascending.

        Args:
            times: When they were written, epoch ms.
            rows: What was written.
        """
        self._times, self._rows = times, rows

    @property
    def weight(self) -> int:
        """How many characters they take."""
        return sum(len(row.metadata_json) for row in self._rows)

    def at(self, moment: int) -> tuple[MessageRow, bool] | None:
        """Return the message at a moment, and whether it was as yet unwritten."""
        if not self._rows:
            return None
        place = bisect_right(self._times, moment, 0, len(self._rows)) - 1
        return self._rows[max(0, place)], place < 0


def part_versions(
    db: Database, session_id: str, writes: Writes, moment: int = 0
) -> PartVersions:
    """Return what a part was: at a moment, and before and after it as far as there is room.

    Args:
        db: The library.
        session_id: The session.
        writes: The part's, by the log.
        moment: The moment, epoch ms.
    """
    found, first = PartVersions(), max(0, bisect_right(writes.times, moment) - 1)
    rows = zip(writes.times, _rows(db, session_id, "chat_parts", writes.seqs), strict=False)
    for place, (at, row) in enumerate(rows):
        if place < first and found.begin:
            continue
        if found.add(at, part_row(row)):
            continue
        if place > first:
            break
        # No room for all before the moment: they begin with it.
        found = PartVersions(writes.times[first])
        if place == first:
            found.add(at, part_row(row))
    return found


def message_versions(db: Database, session_id: str, writes: Writes) -> MessageVersions:
    """Return what a message was.

    Args:
        db: The library.
        session_id: The session.
        writes: The message's, by the log.
    """
    rows = []
    for *head, metadata, created_at, updated_at in _rows(
            db, session_id, "chat_messages", writes.seqs):
        hidden_at = decoded(text(metadata)).get("hidden_at")
        rows.append(message_row((
            *head, metadata, hidden_at if isinstance(hidden_at, int | float) else None,
            created_at, updated_at)))
    return MessageVersions(writes.times, rows)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
