"""The checkpoints of a thread: which messages there are, which are shown, and since when.

Each checkpoint repeats the whole state. The newest one's messages are shown; those that only
others have are of a branch that was left, or were removed. A message is known by its id: where
it was replaced, the newest version counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import record_bytes
from store.sources.base.row_reader import Row, RowReader, bound_ids
from store.sources.base.row_session import RowSession
from store.sources.base.values import iso_ms, mapping, plausible_ms, string
from store.sources.langgraph.serde import Serde, Unreadable, as_message

_START = "__start__"
_MESSAGES = "messages"
_OWN = ("branch:", "__pregel", "__interrupt__", "__error__", "__resume__", "__return__")
"""Begin the channels in which the program keeps what it does next."""
_ERROR, _INTERRUPT = "__error__", "__interrupt__"
_REMOVE_ALL = "__remove_all__"
_GREGORIAN_MS = 12_219_292_800_000
"""From the beginning of a UUID's time, in 1582, to that of epoch ms."""

_BATCH = 20
"""Checkpoints that are held at a time."""
_LOOKED_BACK = 20
"""How many of the newest checkpoints are looked at for messages."""

Message = dict[str, Any]
Place = tuple[str, ...]
"""Where in the state the messages are: a channel, and a key where it holds an object."""


class _NotKept(Exception):
    """A list follows from one that was not kept."""


@dataclass(slots=True)
class Checkpoint:
    """One state of a graph.

    Attributes:
        at: Epoch ms.
        values: By channel.
        versions: Channels that were ever written.
        source: ``input``, ``loop``, ``update`` or ``fork``.
        unread: Why its state cannot be shown; empty where it can.
    """

    namespace: str
    id: str
    parent: str | None
    at: int
    values: dict[str, Any]
    versions: dict[str, Any]
    source: str
    step: object
    unread: str = ""


@dataclass(slots=True)
class Write:
    """What a task of an unfinished step wrote."""

    channel: str
    task: str
    value: Any
    record: int


@dataclass(slots=True)
class Seen:
    """A message of a thread.

    Attributes:
        id: Its own id; one made of its place and words where it has none.
        data: As the newest checkpoint that has it says.
        at: When the first checkpoint with it was made.
        used: Its usage, also where a later version of it lacks that.
        hidden_at: When it was left or removed; None for those that are shown.
        graph: The subgraph, or the other part of the state, that alone has it; empty for the
            thread's own.
        pending: Whether it is not in the state yet.
    """

    id: str
    data: Message
    at: int
    record: int = 0
    used: dict[str, Any] | None = None
    hidden_at: int | None = None
    graph: str = ""
    pending: bool = False
    last: str = ""
    before: str | None = None


@dataclass(slots=True)
class Thread:
    """What a thread's checkpoints hold.

    Attributes:
        messages: In display order.
        states: Of a thread without messages: the checkpoints on the way to the newest one.
        errors: What ended its newest step, as text.
        interrupts: What it waits for a person with.
        next: Whether a step was to follow the newest checkpoint.
        leaves: How many checkpoints nothing followed.
    """

    checkpoints: list[Checkpoint]
    head: Checkpoint
    messages: list[Seen] = field(default_factory=list)
    states: list[Checkpoint] = field(default_factory=list)
    errors: list[Write] = field(default_factory=list)
    interrupts: list[Write] = field(default_factory=list)
    next: bool = False
    leaves: int = 1


class ThreadReader:
    """Reads one thread, and when it has grown, only its new checkpoints."""

    def __init__(self, name: str) -> None:
        """Start with nothing read.

        Args:
            name: The thread's id.
        """
        self._name = name
        self._keeps_lists = False
        """Whether the state has only changes, so that each list follows from the one before."""
        self._reader: RowReader
        self._session: RowSession
        self._begin(None, "")

    def _begin(self, place: Place | None, top: str) -> None:
        self._place, self._top = place, top
        self._serde = Serde()
        self._signs: list[Row] = []
        self._found: list[Checkpoint] = []
        self._lists: dict[tuple[str, str], list[Message]] = {}
        self._newest: Checkpoint | None = None
        self._current: list[Message] = []
        self._seen: dict[str, Seen] = {}

    def read(self, reader: RowReader, session: RowSession) -> Thread | None:
        """Return the thread; None where it is not there any more.

        Args:
            reader: Runs the statements.
            session: Takes records and problems.
        """
        self._reader, self._session = reader, session
        signs = reader.rows(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,"
            " length(checkpoint) AS size, length(metadata) AS about FROM checkpoints"
            " WHERE thread_id = $1 ORDER BY checkpoint_id, checkpoint_ns", self._name,
        )  # fmt: skip
        if not signs:
            return None
        top = min((str(row["checkpoint_ns"] or "") for row in signs), key=len)
        place = self._place_of(signs, top)
        known = len(self._signs)
        if (place, top) != (self._place, self._top) or signs[:known] != self._signs:
            self._begin(place, top)
        try:
            self._go_on(signs)
        except _NotKept:
            self._keeps_lists = True
            self._begin(place, top)
            self._go_on(signs)
        return self._thread()

    def _go_on(self, signs: list[Row]) -> None:
        """Take the checkpoints that are new."""
        new = signs[len(self._signs) :]
        for start in range(0, len(new), _BATCH):
            for one in self._checkpoints(new[start : start + _BATCH]):
                shown = one.namespace == self._top
                self._take(one, shown=shown)
                self._found.append(one)
                if self._place is None or (shown and one.unread):
                    continue
                # Of the states only the newest is needed.
                done, self._newest = (self._newest, one) if shown else (one, self._newest)
                if done is not None:
                    done.values = {}
        self._signs = signs

    def _thread(self) -> Thread:
        for seen in self._seen.values():
            seen.hidden_at = None
        for one in self._found:
            if one.unread:
                self._session.complain(f"checkpoint {one.id}: {one.unread}")
        own = [one for one in self._found if one.namespace == self._top]
        # A state that is damaged hides nothing of those before it.
        own = [one for one in own if not one.unread] or own
        thread = Thread(self._found, own[-1])
        parents = {one.parent for one in own}
        thread.leaves = sum(one.id not in parents for one in own)
        self._order(thread, own)
        self._take_unfinished(thread, own[-1], self._written(own[-1].id, self._top))
        if not thread.messages:
            thread.states = _path(own)
        self._keep(thread, own[-1])
        return thread

    def _checkpoints(self, signs: list[Row]) -> Iterator[Checkpoint]:
        """Yield the checkpoints of some rows, in their order."""
        wanted = {(row["checkpoint_ns"], row["checkpoint_id"]) for row in signs}
        for row in self._reader.rows(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
            f" FROM checkpoints WHERE thread_id = $1 AND checkpoint_id {self._reader.any_of(2)}"
            " ORDER BY checkpoint_id, checkpoint_ns",
            self._name, bound_ids([str(row["checkpoint_id"]) for row in signs]),
        ):
            if (row["checkpoint_ns"], row["checkpoint_id"]) not in wanted:
                continue
            name = str(row["checkpoint_id"])
            unread = ""
            try:
                data = mapping(self._serde.value(row["type"], row["checkpoint"]))
            except Unreadable as error:
                data, unread = {}, str(error)
            about = mapping(self._metadata(row))
            yield Checkpoint(
                str(row["checkpoint_ns"] or ""), name, string(row["parent_checkpoint_id"]),
                _time(data.get("ts"), name), mapping(data.get("channel_values")),
                mapping(data.get("channel_versions")), string(about.get("source")) or "",
                about.get("step"), unread,
            )  # fmt: skip

    def _metadata(self, row: Row) -> Any:
        """Return what is said about a checkpoint: JSON, and MessagePack in old files."""
        raw = row["metadata"]
        for kind in ("json", "msgpack"):
            try:
                return self._serde.value(kind, raw)
            except Unreadable:
                continue
        return None

    def _value(self, kind: object, blob: object, what: str) -> Any:
        try:
            return self._serde.value(kind, blob)
        except Unreadable as error:
            self._session.complain(f"{what}: {error}")
            return None

    def _place_of(self, signs: list[Row], top: str) -> Place | None:
        """Return where the newest state with messages has them; None where none has any.

        Args:
            signs: The rows of all checkpoints.
            top: The namespace of the graph itself.
        """
        own = [row for row in signs if str(row["checkpoint_ns"] or "") == top]
        last: Checkpoint | None = None
        for sign in own[: -_LOOKED_BACK - 1 : -1]:
            for one in self._checkpoints([sign]):
                last = last or (None if one.unread else one)
                places = dict(_places(one.values))
                if places:
                    usual = [place for place in places if place[-1] == _MESSAGES]
                    return min(usual or places, key=lambda each: -len(places[each]))
        # Where a channel is not in the state, only what was written to it is kept.
        unkept = {name for name in last.versions if name not in last.values and name != _START
                  and not name.startswith(_OWN)} if last is not None else set()  # fmt: skip
        for sign in own if unkept else ():
            for write in self._written(str(sign["checkpoint_id"]), top):
                if write.channel in unkept and _listed(write.value):
                    return (write.channel,)
        return None

    def _take(self, one: Checkpoint, *, shown: bool) -> None:
        """Take the messages of a checkpoint, also of lists beside the one that is shown."""
        before: str | None = None
        for name, data in _named(self._messages_of(one)) if shown else ():
            seen = self._note(one, name, data, before)
            seen.graph, seen.last = "", one.id
            before = name
        for place, messages in _places(one.values, without=self._place if shown else None):
            before = None
            for data in _kept(messages):
                name = string(data.get("id")) or ""
                if name and (name not in self._seen or self._seen[name].graph):
                    graph = one.namespace if not shown else ".".join(place)
                    self._note(one, name, data, before).graph = graph
                before = name or before

    def _note(self, one: Checkpoint, name: str, data: Message, before: str | None) -> Seen:
        seen = self._seen.get(name)
        if seen is None:
            seen = self._seen[name] = Seen(name, data, one.at, before=before)
        seen.data = data
        seen.used = mapping(data.get("usage_metadata")) or seen.used
        return seen

    def _messages_of(self, one: Checkpoint) -> list[Message]:
        """Return a checkpoint's messages; where it has only changes, those of all before it."""
        if self._place is None or one.unread:
            return []
        held: Any = one.values
        for name in self._place:
            held = mapping(held).get(name)
        found = _kept(_listed(held))
        if held is None and self._place[0] in one.versions and one.parent is not None:
            if not self._keeps_lists:
                raise _NotKept
            found = list(self._lists.get((one.namespace, one.parent), []))
            for write in self._written(one.parent, one.namespace):
                if write.channel == self._place[0]:
                    found = _added(found, write.value)
        if self._keeps_lists:
            self._lists[one.namespace, one.id] = found
        self._current = found
        return found

    def _written(self, checkpoint: str, namespace: str) -> list[Write]:
        columns = self._reader.columns("writes")
        if not columns:
            return []
        order = "task_path, task_id, idx" if "task_path" in columns else "task_id, idx"
        found = []
        for row in self._reader.rows(
            "SELECT task_id, idx, channel, type, value FROM writes WHERE thread_id = $1"
            f" AND checkpoint_ns = $2 AND checkpoint_id = $3 ORDER BY {order}",
            self._name, namespace, checkpoint,
        ):
            what = f"what a task wrote to {row['channel']}"
            value = self._value(row["type"], row["value"], what)
            found.append(Write(str(row["channel"]), str(row["task_id"]), value, 0))
        return found

    def _order(self, thread: Thread, own: list[Checkpoint]) -> None:
        """Lay out the messages: the shown ones in the order of the state, others behind theirs."""
        head = own[-1]
        shown = dict(_named(self._current))
        path = _path(own)
        behind: dict[str | None, list[str]] = {}
        for seen in self._seen.values():
            if seen.id in shown:
                seen.data = shown[seen.id]
                continue
            left = next((one.at for one in path if one.id > seen.last), head.at)
            seen.hidden_at = max(left, seen.at + 1)
            before = [name for name in shown if self._seen[name].at <= seen.at]
            first = seen.before is None and before and not seen.last
            behind.setdefault(before[-1] if first else seen.before, []).append(seen.id)
        found: list[str] = []
        waiting = [*reversed(shown), *reversed(behind.pop(None, []))]
        placed: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in placed:
                placed.add(name)
                found.append(name)
                waiting += reversed(behind.pop(name, []))
        thread.messages = [self._seen[name] for name in found]

    def _take_unfinished(self, thread: Thread, head: Checkpoint, writes: list[Write]) -> None:
        """Add what the newest state does not hold yet: its input, and what tasks wrote."""
        thread.errors = [one for one in writes if one.channel == _ERROR]
        thread.interrupts = [one for one in writes if one.channel == _INTERRUPT]
        thread.next = _START in head.values or any(
            name.startswith("branch:") or (name == "__pregel_tasks" and value)
            for name, value in head.values.items()
        )
        given = [one.value for one in writes if self._place and one.channel == self._place[0]]
        if _START in head.values and not given:
            start = head.values[_START]
            given = [mapping(start).get(self._place[-1]) if self._place else None, start]
            given += list(start.values()) if isinstance(start, dict) and not self._place else []
        shown = {seen.id for seen in thread.messages}
        for value in given:
            for name, data in _named(_listed(value) or _listed([value])):
                if name not in shown and data["type"] != "remove":
                    shown.add(name)
                    used = mapping(data.get("usage_metadata")) or None
                    thread.messages.append(
                        Seen(name, data, head.at, used=used, pending=True)
                    )

    def _keep(self, thread: Thread, head: Checkpoint) -> None:
        """Keep records: of each message one, and of the state what else it holds."""
        place = self._place or ("",)
        rest = {name: value for name, value in head.values.items()
                if name != place[0] and not name.startswith(_OWN)}  # fmt: skip
        self._session.keep("checkpoints", {
            "thread_id": self._name, "checkpoint_id": head.id, "source": head.source,
            "step": head.step, "values": rest, "messages": [one.id for one in thread.messages],
        })  # fmt: skip
        for seen in thread.messages:
            # Its id, which is above, is only given when the step that it began is done.
            words = {key: value for key, value in seen.data.items() if key != "id"}
            seen.record = self._session.keep("checkpoints", {"message": words})
        for write in (*thread.errors, *thread.interrupts):
            write.record = self._session.keep(
                "writes", {"checkpoint_id": head.id, "channel": write.channel,
                           "task_id": write.task, "value": write.value})  # fmt: skip


def changed(states: list[Checkpoint]) -> Iterator[tuple[Checkpoint, dict[str, Any]]]:
    """Yield checkpoints that changed the state, each with the values that it changed."""
    before: dict[str, Any] = {}
    for one in states:
        values = {name: value for name, value in one.values.items()
                  if not name.startswith(_OWN)}  # fmt: skip
        new = {name: value for name, value in values.items()
               if name not in before or before[name] != value}  # fmt: skip
        if one.unread:
            new = {"unreadable": one.unread}
        before = values
        if new:
            yield one, new


def uuid_ms(name: str) -> int:
    """Return when an id was made, epoch ms: a UUID of version 6 tells it; 0 for others."""
    digits = name.replace("-", "")
    if len(digits) != 32 or digits[12] != "6":
        return 0
    try:
        ticks = int(digits[:12] + digits[13:16], 16)
    except ValueError:
        return 0
    return plausible_ms(ticks // 10_000 - _GREGORIAN_MS) or 0


def _time(stamp: object, checkpoint: str) -> int:
    found = iso_ms(stamp, utc=True) if isinstance(stamp, str) else None
    return found if found is not None else uuid_ms(checkpoint)


def _path(own: list[Checkpoint]) -> list[Checkpoint]:
    """Return the checkpoints from the first one to the newest."""
    known = {one.id: one for one in own}
    found: dict[str, Checkpoint] = {}
    current: Checkpoint | None = own[-1]
    while current is not None and current.id not in found:
        found[current.id] = current
        current = known.get(current.parent or "")
    return list(reversed(found.values()))


def _places(
    values: dict[str, Any], without: Place | None = None
) -> Iterator[tuple[Place, list[Message]]]:
    """Yield where a state has lists of messages, but for one place."""
    for name, value in values.items():
        if name == _START or name.startswith(_OWN) or (name,) == without:
            continue
        if found := _listed(value):
            yield (name,), found
        elif isinstance(value, dict):
            for key, inner in value.items():
                if (name, key) != without and (found := _listed(inner)):
                    yield (name, key), found


def _listed(value: Any) -> list[Message]:
    """Return a list of messages; empty for anything else."""
    if not isinstance(value, list) or not value:
        return []
    found = [as_message(each) for each in value]
    return [each for each in found if each is not None] if None not in found else []


def _kept(messages: list[Message]) -> list[Message]:
    return [one for one in messages if one["type"] != "remove"]


def _added(messages: list[Message], written: Any) -> list[Message]:
    """Return messages with what a task wrote: new ones, others in place, or removed."""
    places = {one.get("id"): at for at, one in enumerate(messages) if one.get("id")}
    found: list[Message | None] = list(messages)
    for one in _listed(written) or _listed([written]):
        at = places.get(one.get("id"))
        if one["type"] == "remove":
            if one.get("id") == _REMOVE_ALL:
                found, places = [], {}
            elif at is not None:
                found[at] = None
        elif at is not None:
            found[at] = one
        else:
            places[one.get("id")] = len(found)
            found.append(one)
    return [one for one in found if one is not None]


def _named(messages: list[Message]) -> Iterator[tuple[str, Message]]:
    """Yield messages with names that are unique among them and the same in all checkpoints."""
    used: dict[str, int] = {}
    for place, data in enumerate(messages):
        name = string(data.get("id"))
        if name is None:
            words = record_bytes({"type": data["type"], "content": data.get("content")})
            name = f"{place}:{hashlib.blake2b(words, digest_size=8).hexdigest()}"
        used[name] = used.get(name, 0) + 1
        yield name if used[name] == 1 else f"{name}#{used[name]}", data
