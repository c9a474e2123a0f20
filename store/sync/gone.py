"""Keeps messages and parts that a source no longer has, in their place and marked as gone.

If a reading lacks a stored message, either the source lost it, or its id changed (a newer
mapping, another order, new ids). The original records distinguish the two: if all records
of the message are among those just read, the message is still there under another id; if one
is missing, the source no longer has the message. Without records, a message is recognized by
its source id, or by its text and time.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from store.conversation.copy_marks import naming
from store.conversation.gone_marks import GONE, GONE_MESSAGES, GONE_PARTS
from store.conversation.kept import rename_kept
from store.engine.connection import Connection
from store.ids import IDS_PER_MILLISECOND, STAMP_MASK, derived_tail
from store.sources.base.requests import request_of
from store.sources.base.titles import FIRST_PROMPT, shortened
from store.sync.blocks import KEPT_FROM, cut_blocks, unpacked
from store.sync.jsontext import json_text
from store.sync.prepared import sums
from store.sync.session_rows import MessageTuple, PartTuple, PreparedSession

_STAMPED = len("msg_") + 12
"""Characters of an id before its tail."""

_NOT_FROM_SOURCE = ("source", "user", "backscroll", "hidden_at", "inherited_from")
"""Keys of a message's metadata that sync and the user set, not the source."""


_Key = Callable[[MessageTuple, Sequence[PartTuple]], object]
"""Returns a key that is equal for two readings of the same message (row and parts)."""


@dataclass(slots=True)
class Merged:
    """A session to write.

    Attributes:
        moved: Stored message ids to their new ids, where these differ.
    """

    prepared: PreparedSession
    moved: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Old:
    """A stored message, with what is needed to find it in a new reading.

    Attributes:
        records: Digests of each part's records; the last group is the whole message's.
        gone: Indexes of the parts that were already missing at the source.
        now: Positions in the reading of the messages that correspond to it.
    """

    row: MessageTuple
    metadata: dict[str, Any]
    parts: list[PartTuple]
    groups: list[list[int]]
    records: list[list[bytes]]
    gone: list[int]
    now: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(_source(self.metadata).get("id"))

    def digests(self) -> set[bytes]:
        return {digest for group in self.records for digest in group}


def merged(
    connection: Connection, prepared: PreparedSession, *, same_mapping: bool = True
) -> Merged:
    """Return a session merged with stored messages that its source no longer has.

    Args:
        connection: In a transaction.
        prepared: The session as read. If nothing is missing, it is returned unchanged; that
            check reads the stored ids and the checksums of the record blocks.
        same_mapping: Whether the stored rows come from the same mapping version; a newer
            one may give messages other ids and texts.
    """
    stored = _stored_blocks(connection, prepared.id)
    kept_before = any(first >= KEPT_FROM for first in stored)
    ids_are_reliable = prepared.keeps_records or not (prepared.names_count or prepared.inherited)
    if (
        ids_are_reliable and not kept_before
        and grew(stored, prepared) and not _misses(connection, prepared)
    ):  # fmt: skip
        return Merged(prepared)
    return _Merge(connection, prepared, same_mapping=same_mapping).result()


def grew(stored: Mapping[int, tuple[int, int]], prepared: PreparedSession) -> bool:
    """Return whether the stored records are a prefix of the records just read.

    Args:
        stored: Count and checksum of each block, by the number of its first record.
        prepared: The session as read; the result is True if its records are not kept.
    """
    if not prepared.keeps_records:
        return True
    now = {block.first: block for block in prepared.blocks}
    last = max(stored, default=0)
    for first, (count, checksum) in stored.items():
        block = now.get(first)
        if block is None:
            return False
        if (block.count, block.checksum) == (count, checksum):
            continue
        if first != last or block.count < count:
            return False
        if zlib.crc32(b"\n".join(block.records()[:count])) != checksum:
            return False
    return True


def changed_in_place(
    connection: Connection, before: PreparedSession, now: PreparedSession
) -> bool:
    """Say whether records were replaced and added, each within the message that it was of.

    Nothing is to be kept then: ``merged`` would return the reading as it is. Where that is
    not plain the answer is no. It costs a look at the blocks of records that differ.

    Args:
        connection: In a transaction.
        before: The session as it was read and stored last.
        now: As it was read now; it has all messages of before.
    """
    stored = _stored_blocks(connection, now.id)
    if not now.keeps_records or now.names_count or max(stored, default=0) >= KEPT_FROM:
        return False
    same = {
        block.first for block in now.blocks
        if stored.get(block.first) == (block.count, block.checksum)
    }  # fmt: skip
    was = {
        number: record for first in stored.keys() - same
        for number, record in _numbered(connection, now.id, first)
    }  # fmt: skip
    read = {
        number: record for block in now.blocks if block.first not in same
        for number, record in enumerate(block.records(), block.first)
    }  # fmt: skip
    known, there = set(was.values()), set(read.values())
    last = was[max(was)] if was else b""
    if last not in there and any(record.startswith(last) for record in there):
        return False
    lost = set(Counter(was.values()) - Counter(read.values()))
    refs, names = dict(before.refs), set(before.message_names)
    named = {row[0]: name for row, name in zip(now.messages, now.message_names, strict=True)}
    replaced: dict[str, tuple[list[_Told], list[_Told]]] = {}
    for message, text in now.refs:
        groups = _told_by(text, read)
        told = set[int | bytes]().union(*groups)
        is_new = all(isinstance(each, bytes) and each not in known for each in told)
        if message not in refs:
            if not is_new or named[message] in names:
                return False
            continue
        earlier = _told_by(refs[message], was)
        if earlier == groups:
            continue
        told_before = set[int | bytes]().union(*earlier)
        if told_before.isdisjoint(told) and not is_new:
            return False
        if not told_before.isdisjoint(lost):
            if len(told) < len(told_before):
                return False
            replaced[message] = earlier, groups
    return _parts_tell_as_much(before.parts, now.parts, replaced)


_Told = frozenset[int | bytes]
"""What tells a part or message: records, or the numbers of those that are as they were."""


def _told_by(records_json: str, records: Mapping[int, bytes]) -> list[_Told]:
    groups = orjson.loads(records_json)
    return [frozenset(records.get(number, number) for number in group) for group in groups]


def _parts_tell_as_much(
    before: Sequence[PartTuple],
    now: Sequence[PartTuple],
    replaced: Mapping[str, tuple[list[_Told], list[_Told]]],
) -> bool:
    """Say whether each part of some messages is there, told by no fewer records than before.

    Args:
        before: All parts of the session.
        now: The same, of the reading.
        replaced: What told the parts of each message, and the message itself, before and now.
    """
    parts: dict[str, tuple[list[PartTuple], list[PartTuple]]] = {
        message: ([], []) for message in replaced
    }
    for place, found in enumerate((before, now)):
        for part in found:
            if part[1] in parts:
                parts[part[1]][place].append(part)
    for message, (earlier, groups) in replaced.items():
        matches = _matches(*parts[message])
        for told, match in zip(earlier[:-1], matches, strict=False):
            if match is None or match >= len(groups) - 1 or len(groups[match]) < len(told):
                return False
    return True


def misses_parts(before: Iterable[PartTuple], now: Iterable[PartTuple]) -> bool:
    """Return whether a part is missing or replaced by one of another kind."""
    there = {part[0]: _kind_of(part[4], part[6]) for part in now}
    return any(there.get(part[0]) != _kind_of(part[4], part[6]) for part in before)


def _kind_of(part_type: str, call_id: str | None) -> str:
    return part_type if call_id is None else f"call {call_id}"


def _misses(connection: Connection, prepared: PreparedSession) -> bool:
    ids = {row[0] for row in prepared.messages}
    for (message_id,) in connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ?", (prepared.id,)
    ):
        if message_id not in ids:
            return True
    there = {part[0]: _kind_of(part[4], part[6]) for part in prepared.parts}
    rows = connection.execute(
        "SELECT id, type, tool_call_id FROM chat_parts WHERE session_id = ?", (prepared.id,)
    )
    return any(there.get(part) != _kind_of(kind, call) for part, kind, call in rows)


def _stored_blocks(
    connection: Connection, session_id: str
) -> dict[int, tuple[int, int]]:
    return {
        first: (count, checksum)
        for first, count, checksum in connection.execute(
            "SELECT first, count, checksum FROM original_records WHERE session_id = ?",
            (session_id,),
        )
    }


@dataclass(slots=True)
class _Entry:
    """A message of the merged session.

    Attributes:
        gone: Indexes of the parts that the source no longer has.
        marked: Whether the source has less of the message than before.
    """

    row: MessageTuple
    name: str
    inherited: str | None
    parts: list[PartTuple]
    groups: list[list[int]] | None
    gone: list[int] = field(default_factory=list)
    marked: bool = False

    def insert(self, index: int, part: PartTuple, numbers: list[int]) -> None:
        """Insert a kept part before the part that has its index now."""
        at = min(index, len(self.parts))
        self.parts.insert(at, part)
        if self.groups is not None:
            self.groups.insert(min(at, len(self.groups) - 1), numbers)
        self.gone = sorted([*(each + (each >= at) for each in self.gone), at])
        self.marked = True


class _Merge:
    """Compares a stored session with a new reading and merges the two."""

    def __init__(
        self, connection: Connection, prepared: PreparedSession, *, same_mapping: bool
    ) -> None:
        self._new, self._same_mapping = prepared, same_mapping
        self._connection = connection
        # If records are no longer kept, old ones cannot be compared with the reading.
        kept = prepared.keeps_records
        self._records = dict(_numbered(connection, prepared.id)) if kept else {}
        self._digests = {number: _digest(record) for number, record in self._records.items()}
        records = [each for block in prepared.blocks for each in block.records()]
        read = [_digest(each) for each in records]
        self._follow_growth(records, read)
        self._read: dict[bytes, int] = {}
        for number, digest in enumerate(read):
            self._read.setdefault(digest, number)
        now = Counter(read)
        counts = Counter(self._digests.values())
        self._lost = {digest for digest, count in counts.items() if now[digest] < count}
        self._old = _stored_messages(connection, prepared.id, self._digests)
        parts: dict[str, list[PartTuple]] = {}
        for part in prepared.parts:
            parts.setdefault(part[1], []).append(part)
        groups = {message: orjson.loads(text) for message, text in prepared.refs}
        self._entries = [
            _Entry(row, name, prepared.inherited.get(place), parts.get(row[0], []),
                   groups.get(row[0]))
            for place, (row, name) in enumerate(
                zip(prepared.messages, prepared.message_names, strict=True)
            )
        ]  # fmt: skip
        self._extra: dict[int, int] = {}
        self._digests_read = read
        self._match(read)

    def _follow_growth(self, records: Sequence[bytes], read: Sequence[bytes]) -> None:
        """Match the last stored record with a longer one: it was read while being written."""
        last = max((number for number in self._records if number < KEPT_FROM), default=None)
        if last is None or self._digests[last] in read:
            return
        whole = self._records[last]
        for record, digest in zip(records, read, strict=True):
            if record.startswith(whole):
                self._digests[last] = digest
                return

    def result(self) -> Merged:
        """Return the merged session."""
        gone = {index for index, old in enumerate(self._old) if self._is_gone(old)}
        restored = sum(self._restore(old) or self._recount(old) for old in self._old)
        restored += self._keep_visibility(self._digests_read)
        missing = {
            index: parts
            for index, old in enumerate(self._old)
            if (parts := self._gone_parts(old))
        }
        if not gone and not missing and not restored:
            return Merged(self._new, self._moved({}))
        before = {id(entry): entry.row[0] for entry in self._entries}
        kept = {index: self._kept(self._old[index]) for index in sorted(gone)}
        for index, parts in missing.items():
            old = self._old[index]
            for at in parts:
                numbers = self._numbers([old.groups[at]] if at < len(old.groups) else [[]])
                self._entries[old.now[0]].insert(at, old.parts[at], numbers[0])
        entries = self._in_order(kept)
        _lay_out(entries)
        ids = {before[id(entry)]: entry.row[0] for entry in self._entries}
        moved = self._moved(kept)
        prepared = self._assembled(entries, {**moved, **ids})
        marked = sum(entry.marked for entry in self._entries)
        absent = [self._old[index] for index in kept]
        _count(prepared, absent, len(kept) + marked)
        _keep_title(self._connection, prepared, absent)
        return Merged(prepared, moved)

    def _moved(self, kept: Mapping[int, _Entry]) -> dict[str, str]:
        """Return stored message ids to new ids, where they differ."""
        moved = {self._old[index].row[0]: entry.row[0] for index, entry in kept.items()}
        for old in self._old:
            if old.now:
                moved[old.row[0]] = self._entries[old.now[0]].row[0]
        return {before: now for before, now in moved.items() if before != now}

    def _match(self, read: Sequence[bytes]) -> None:
        """Match each message of the reading with the stored message it corresponds to."""
        owners: dict[bytes, list[int]] = {}
        for index, old in enumerate(self._old):
            for digest in old.digests():
                owners.setdefault(digest, []).append(index)
        unmatched: list[int] = []
        part_of: dict[int, int] = {}
        names = {} if self._new.names_count else {old.name: i for i, old in enumerate(self._old)}
        for place, entry in enumerate(self._entries):
            numbers = {number for group in entry.groups or () for number in group}
            digests = {read[number] for number in numbers if number < len(read)}
            found = Counter(index for digest in digests for index in owners.get(digest, ()))
            if not found:
                unmatched.append(place)
                continue
            name = entry.name
            known = names.get(name)
            if known is not None and known not in found and self._is_same(self._old[known], entry):
                # Records that say nothing, as at a file's beginning, came to another message.
                self._old[known].now.append(place)
                continue
            best = max(found, key=lambda i: (self._old[i].name == name, found[i], -i))
            self._old[best].now.append(place)
            for index in found:
                if self._old[index].digests() <= digests:
                    part_of.setdefault(index, place)
        for index, place in part_of.items():
            # Two messages of an older mapping may have become one.
            if not self._old[index].now:
                self._old[index].now.append(place)
        self._match_by_name(unmatched)
        for old in self._old:
            if not old.now and "queued_at" in old.metadata:
                old.now += self._sent(old)

    def _sent(self, queued: _Old) -> list[int]:
        """Return the position of the message that a queued prompt was sent as, if any."""
        words, taken = _texts_of(queued.parts), {place for one in self._old for place in one.now}
        found = [
            place
            for place, entry in enumerate(self._entries)
            if entry.row[2] == "user" and '"queued_at"' not in entry.row[3]
            and _said_at(entry.row) >= _said_at(queued.row) and _texts_of(entry.parts) == words
        ]  # fmt: skip
        return sorted(found, key=lambda place: (place in taken, place))[:1] if words else []

    def _match_by_name(self, places: Sequence[int]) -> None:
        """Match messages without common records: by source id, then by text and time."""
        if self._new.names_count:
            # Ids that are only positions are less reliable than text.
            places = self._match_by_words(places)
        names: dict[str, int] = {}
        for index, old in enumerate(self._old):
            names.setdefault(old.name, index)
        left: list[int] = []
        for place in places:
            entry = self._entries[place]
            known = names.get(entry.name)
            if known is None or self._old[known].now:
                left.append(place)
            elif not self._is_another(self._old[known], entry):
                self._old[known].now.append(place)
        left = self._match_by_words(left)
        if not self._same_mapping:
            self._match_anew(left)

    def _match_by_words(self, places: Sequence[int]) -> list[int]:
        """Match messages of equal role, time and content; return the unmatched positions."""
        said: dict[object, list[int]] = {}
        for place in places:
            entry = self._entries[place]
            said.setdefault(_words(entry.row, entry.parts), []).append(place)
        for old in self._old:
            twins = said.get(_words(old.row, old.parts)) if said and not old.now else None
            if twins:
                old.now.append(twins.pop(0))
        return sorted(place for found in said.values() for place in found)

    def _is_same(self, old: _Old, entry: _Entry) -> bool:
        """Return whether two messages with the same source id say the same too."""
        same = old.row[2] == entry.row[2]
        return same and _continues(_texts_of(old.parts), _texts_of(entry.parts))

    def _is_another(self, old: _Old, entry: _Entry) -> bool:
        """Return whether two messages with the same source id are different messages."""
        if not self._new.names_count:
            return False
        if old.digests() and any(entry.groups or ()):
            return True
        return not _continues(_texts_of(old.parts), _texts_of(entry.parts))

    def _match_anew(self, places: Sequence[int]) -> None:
        """Match messages without records whose id and content a newer mapping changed.

        First by role, time and text; then by role and time, if that is unambiguous; then
        messages that became part of another one, by their texts and calls.
        """
        old = [i for i, one in enumerate(self._old) if not one.now and not one.digests()]
        for key in (_role_time_text, _role_time):
            self._pair(old, places, key)
            old = [index for index in old if not self._old[index].now]
            taken = {place for one in self._old for place in one.now}
            places = [place for place in places if place not in taken]
        self._match_contents(old)

    def _pair(self, old: Sequence[int], places: Sequence[int], key: _Key) -> None:
        """Match messages of equal keys in order, if there are as many now as before."""
        before: dict[object, list[int]] = {}
        for index in old:
            one = self._old[index]
            before.setdefault(key(one.row, one.parts), []).append(index)
        now: dict[object, list[int]] = {}
        for place in places:
            entry = self._entries[place]
            now.setdefault(key(entry.row, entry.parts), []).append(place)
        for each, indexes in before.items():
            found = now.get(each, [])
            if len(indexes) == len(found):
                for index, place in zip(indexes, found, strict=True):
                    self._old[index].now.append(place)

    def _match_contents(self, indexes: Sequence[int]) -> None:
        there: dict[object, int] = {}
        for place, entry in enumerate(self._entries):
            for content in _contents(entry.parts):
                there.setdefault(content, place)
        for index in indexes:
            contents = _contents(self._old[index].parts)
            if contents and contents <= there.keys():
                self._old[index].now.append(min(there[content] for content in contents))

    def _is_gone(self, old: _Old) -> bool:
        if old.now:
            return False
        digests = old.digests()
        return not digests or not digests.isdisjoint(self._lost)

    def _restore(self, old: _Old) -> bool:
        """Restore content of a message that came from records which are lost.

        For example the result of a call, or token counts from an answer's last line.

        Returns:
            Whether anything was restored.
        """
        before = old.digests()
        if not old.now or before.isdisjoint(self._lost):
            return False
        found = False
        places = [(p, i) for p in old.now for i in range(len(self._entries[p].parts))]
        parts = [self._entries[place].parts[index] for place, index in places]
        for index, match in enumerate(_matches(old.parts, parts)):
            if match is None or index >= len(old.records) - 1:
                continue
            entry, at = self._entries[places[match][0]], places[match][1]
            # Of a part with many records some sources name the first and last one; its message
            # names those between.
            between = old.records[-1]
            if self._has_lost_records(self._digests_of(entry, at), old.records[index], between):
                entry.parts[at] = (*entry.parts[at][:4], *old.parts[index][4:])
                if entry.groups is not None:
                    entry.groups[at] = self._numbers([old.groups[index]])[0]
                entry.gone = sorted({*entry.gone, at})
                found = True
        entry = self._entries[old.now[0]]
        now = {self._digest_of(n) for place in old.now for g in self._entries[place].groups or ()
               for n in g}  # fmt: skip
        if not found and not self._has_lost_records(now, before):
            return False
        entry.row = (*entry.row[:3], _with_lost_values(entry.row[3], old.metadata), *entry.row[4:])
        lost = [n for n in old.groups[-1] if self._digests.get(n) in self._lost - now]
        if entry.groups is not None:
            there = {number for group in entry.groups for number in group}
            more = [number for number in self._numbers([lost])[0] if number not in there]
            entry.groups[-1] = [*entry.groups[-1], *dict.fromkeys(more)]
        entry.marked = True
        return True

    def _keep_visibility(self, read: Sequence[bytes]) -> int:
        """Keep what was hidden hidden, and the rest visible, where the source only lost records.

        A rewind that a lost record took back, or another branch that ends a cut file, is no
        decision of the source.

        Returns:
            How many messages were changed.
        """
        before = set(self._digests.values())
        known = {place for old in self._old for place in old.now}
        has_new = len(known) < len(self._entries) and not all(digest in before for digest in read)
        if not self._lost or has_new:
            return 0
        count = 0
        for old in self._old:
            for place in old.now:
                entry = self._entries[place]
                said, hidden_at = orjson.loads(entry.row[3]), old.metadata.get("hidden_at")
                if (said.get("hidden_at") is None) != (hidden_at is None):
                    said.pop("hidden_at", None)
                    more = {} if hidden_at is None else {"hidden_at": hidden_at}
                    entry.row = (*entry.row[:3], json_text({**said, **more}), *entry.row[4:])
                    count += 1
        return count

    def _recount(self, old: _Old) -> bool:
        """Keep an answer's stored usage if the reading has none and no records are kept.

        The usage came from the session that the answer was copied from.

        Returns:
            Whether anything was restored.
        """
        if not old.now or old.digests() or self._new.keeps_records:
            return False
        entry = self._entries[old.now[0]]
        said, before = orjson.loads(entry.row[3]), old.metadata.get("usage")
        if not _is_nothing(said.get("usage")) or _is_nothing(before):
            return False
        entry.row = (*entry.row[:3], json_text({**said, "usage": before}), *entry.row[4:])
        return True

    def _has_lost_records(
        self, now: Collection[bytes], before: Collection[bytes], between: Collection[bytes] = ()
    ) -> bool:
        """Return whether only some of the earlier records are left, and others are lost.

        Args:
            now: Digests of the records as read.
            before: Of those of the stored row.
            between: Of further ones that it may have been made of.
        """
        left = set(before) - set(now)
        known = {*before, *between}
        return bool(now) and bool(left) and set(now) <= known and not left.isdisjoint(self._lost)

    def _digests_of(self, entry: _Entry, index: int) -> set[bytes]:
        if entry.groups is None or index >= len(entry.groups) - 1:
            return set()
        return {self._digest_of(number) for number in entry.groups[index]}

    def _digest_of(self, number: int) -> bytes:
        return self._digests_read[number] if number < len(self._digests_read) else b""

    def _gone_parts(self, old: _Old) -> list[int]:
        """Return the indexes of a stored message's parts that the source no longer has."""
        if not old.now:
            return []
        there = [part for place in old.now for part in self._entries[place].parts]
        return [
            index
            for index, match in enumerate(_matches(old.parts, there))
            if match is None
            and index < len(old.records) - 1
            and not self._lost.isdisjoint(old.records[index])
        ]

    def _kept(self, old: _Old) -> _Entry:
        """Return the entry for a stored message that the source no longer has."""
        name = old.name
        if any(entry.name == name for entry in self._entries):
            # Some sources use positions as ids, and another message has this position now.
            words = _texts_of(old.parts).encode("utf-8", "replace")
            known = b"".join(sorted(old.digests())) or words
            name = f"{name}~{hashlib.blake2b(known, digest_size=6).hexdigest()}"
        source = {**_source(old.metadata), "id": name, GONE: True}
        metadata = {**old.metadata, "source": source}
        metadata.pop("inherited_from", None)
        tail = derived_tail(self._new.kind, naming(self._new.metadata), name)
        message_id = old.row[0] if name == old.name else old.row[0][:_STAMPED] + tail
        row = (message_id, *old.row[1:3], json_text(metadata), *old.row[4:])
        inherited = source.get("inherited_from")
        return _Entry(
            row, name, inherited if isinstance(inherited, str) else None, list(old.parts),
            self._numbers(old.groups), list(old.gone),
        )  # fmt: skip

    def _in_order(self, kept: Mapping[int, _Entry]) -> list[_Entry]:
        """Return all messages in order: a kept one follows its former predecessor.

        New messages with an earlier time go before it.
        """
        after: dict[int, list[_Entry]] = {}
        times = [entry.row[4] for entry in self._entries]
        known = {place for old in self._old for place in old.now}
        anchor = -1
        for index, old in enumerate(self._old):
            if old.now:
                anchor = max(old.now)
            elif index in kept:
                place = anchor
                while place + 1 < len(times) and times[place + 1] < old.row[4]:
                    if place + 1 in known:
                        break
                    place += 1
                after.setdefault(place, []).append(kept[index])
        order = after.get(-1, [])
        for place, entry in enumerate(self._entries):
            order += [entry, *after.get(place, ())]
        return order

    def _numbers(self, groups: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the new numbers of stored records."""
        return [[self._number(number) for number in group] for group in groups]

    def _number(self, number: int) -> int:
        read = self._read.get(self._digests.get(number, b""))
        if read is not None:
            return read
        return self._extra.setdefault(number, KEPT_FROM + len(self._extra))

    def _assembled(self, entries: Sequence[_Entry], ids: Mapping[str, str]) -> PreparedSession:
        """Return the merged session, with the records of the kept messages."""
        records = [self._records.get(number, b"") for number in self._extra]
        blocks = cut_blocks(records, compress=False)
        return replace(
            self._new,
            metadata=dict(self._new.metadata),
            messages=[entry.row for entry in entries],
            message_names=[entry.name for entry in entries],
            inherited={
                place: entry.inherited
                for place, entry in enumerate(entries)
                if entry.inherited is not None
            },
            parts=[_tail_named(part, ids) for entry in entries for part in entry.parts],
            refs=[
                (entry.row[0], json_text(entry.groups))
                for entry in entries
                if entry.groups is not None
            ],
            blocks=[
                *self._new.blocks,
                *(replace(block, first=block.first + KEPT_FROM) for block in blocks),
            ],
        )


def _lay_out(entries: Sequence[_Entry]) -> None:
    """Give each message and part the id and time for its position, as ``prepared`` does."""
    at, position = -1, 0
    for entry in entries:
        said = _said_at(entry.row)
        if said > at:
            at, position = said, 0
        elif position == IDS_PER_MILLISECOND - 1:
            at, position = at + 1, 0
        else:
            position += 1
        ticks, tail = at * IDS_PER_MILLISECOND, entry.row[0][_STAMPED:]
        row = entry.row
        message_id = f"msg_{(ticks + position) & STAMP_MASK:012x}{tail}"
        metadata = _timed(row[3], said, at) if at != row[4] else row[3]
        if entry.marked:
            metadata = _with_gone_parts(metadata, entry.gone)
        entry.row = (message_id, row[1], row[2], metadata, at, max(at, row[5]))
        names = (
            f"prt_{(ticks + index) & STAMP_MASK:012x}{tail}" for index in range(len(entry.parts))
        )
        entry.parts = [
            (name, message_id, part[2], index, *part[4:])
            for index, (name, part) in enumerate(zip(names, entry.parts, strict=True))
        ]


def _said_at(row: MessageTuple) -> int:
    """Return a message's creation time as recorded by its source."""
    if '"true_created_at"' not in row[3]:
        return row[4]
    own = orjson.loads(row[3]).get("backscroll")
    said = own.get("true_created_at") if isinstance(own, dict) else None
    return said if isinstance(said, int) else row[4]


def _timed(text: str, said: int, at: int) -> str:
    metadata = orjson.loads(text)
    own = {k: v for k, v in (metadata.get("backscroll") or {}).items() if k != "true_created_at"}
    if at != said:
        own["true_created_at"] = said
    metadata.pop("backscroll", None)
    return json_text({**metadata, "backscroll": own} if own else metadata)


def _with_gone_parts(text: str, gone: Sequence[int]) -> str:
    metadata = orjson.loads(text)
    return json_text({**metadata, "source": {**_source(metadata), GONE_PARTS: list(gone)}})


def _tail_named(part: PartTuple, ids: Mapping[str, str]) -> PartTuple:
    """Return a compaction part that names messages by their new ids."""
    if part[4] != "data-compaction":
        return part
    value = orjson.loads(part[5])
    if not rename_kept(value, lambda name: ids.get(name, name)):
        return part
    return (*part[:5], json_text(value), *part[6:])


def _count(prepared: PreparedSession, kept: Sequence[_Old], marked: int) -> None:
    """Update the session's sums, times and count of gone messages for the kept messages."""
    source = _source(prepared.metadata)
    marked += source.get(GONE_MESSAGES, 0)
    if marked:
        prepared.metadata["source"] = {**source, GONE_MESSAGES: marked}
    prepared.rollups = sums(
        orjson.loads(row[3]) for row in prepared.messages if row[2] == "assistant"
    )
    for old in kept:
        prepared.updated_at = max(prepared.updated_at, old.row[4])
        if "inherited_from" not in _source(old.metadata):
            prepared.created_at = min(prepared.created_at, old.row[4])


def _keep_title(
    connection: Connection, prepared: PreparedSession, kept: Sequence[_Old]
) -> None:
    """Keep a title that was made from a prompt which the source no longer has."""
    if prepared.metadata.get("title_from") not in (None, FIRST_PROMPT):
        return
    row = connection.execute(
        "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions"
        " WHERE id = ? AND json_extract(metadata_json, '$.title_from') = ?",
        (prepared.id, FIRST_PROMPT),
    ).fetchone()
    if row is not None and any(_title_of(old) == row[0] for old in kept if old.row[2] == "user"):
        prepared.metadata |= {"title": row[0], "title_from": FIRST_PROMPT}


def _title_of(old: _Old) -> str:
    texts = (orjson.loads(part[5]).get("text") for part in old.parts if part[4] == "text")
    return shortened(" ".join(request_of(text) for text in texts if isinstance(text, str)))


def _source(metadata: Mapping[str, Any]) -> dict[str, Any]:
    source = metadata.get("source")
    return source if isinstance(source, dict) else {}


def _digest(record: bytes) -> bytes:
    return hashlib.blake2b(record, digest_size=16).digest()


def _words(row: MessageTuple, parts: Sequence[PartTuple]) -> object:
    """Return role, time and content: equal for two readings of one message."""
    return row[2], _said_at(row), tuple((part[4], part[5]) for part in parts)


def _texts_of(parts: Sequence[PartTuple]) -> str:
    return "\n".join(str(orjson.loads(part[5]).get("text")) for part in parts if part[4] == "text")


def _continues(before: str, now: str) -> bool:
    """Return whether one text is a prefix of the other, as for a message still growing."""
    return now.startswith(before) or before.startswith(now)


def _is_nothing(usage: object) -> bool:
    return not isinstance(usage, dict) or not any(usage.values())


def _role_time(row: MessageTuple, parts: Sequence[PartTuple]) -> object:
    return row[2], _said_at(row)


def _role_time_text(row: MessageTuple, parts: Sequence[PartTuple]) -> object:
    return row[2], _said_at(row), _texts_of(parts)


def _contents(parts: Sequence[PartTuple]) -> set[object]:
    """Return a message's texts and call ids, which a newer mapping keeps."""
    calls = {("call", part[6]) for part in parts if part[6] is not None}
    texts = {orjson.loads(part[5]).get("text") for part in parts if part[4] == "text"}
    return {*calls, *(("text", text) for text in texts)}


def _matches(before: Sequence[PartTuple], now: Sequence[PartTuple]) -> list[int | None]:
    """Return for each stored part the index of the new part it corresponds to, or None.

    Calls are matched by id, other parts by type and order: the first text of a message
    remains its first text, however much it grew.
    """
    same: dict[tuple[str, str], list[int]] = {}
    alike: dict[str, list[int]] = {}
    for index, part in enumerate(now):
        same.setdefault((part[4], part[5]), []).append(index)
        alike.setdefault(_kind_of(part[4], part[6]), []).append(index)
    found: list[int | None] = [None] * len(before)
    for index, part in enumerate(before):
        equal = same.get((part[4], part[5]))
        if equal:
            match = found[index] = equal.pop(0)
            alike[_kind_of(part[4], part[6])].remove(match)
    for index, part in enumerate(before):
        left = alike.get(_kind_of(part[4], part[6])) if found[index] is None else None
        if left:
            found[index] = left.pop(0)
    return found


def _with_lost_values(text: str, before: Mapping[str, Any]) -> str:
    """Return ``metadata_json`` with the values that came from lost records."""
    said = orjson.loads(text)
    kept = {*said, *_NOT_FROM_SOURCE}
    more = {key: value for key, value in before.items() if key not in kept}
    if "usage" in before:
        more["usage"] = before["usage"]
    return json_text({**said, **more})


def _numbered(
    connection: Connection, session_id: str, block: int | None = None
) -> Iterable[tuple[int, bytes]]:
    """Yield the stored records of a session with their numbers.

    Args:
        connection: In a transaction.
        session_id: The session.
        block: The number that the only block to look at begins with.
    """
    for first, count, body in connection.execute(
        "SELECT first, count, body FROM original_records WHERE session_id = ?1 "
        "AND (?2 IS NULL OR first = ?2) ORDER BY first",
        (session_id, block),
    ):
        yield from enumerate(unpacked(count, body), first)


def _stored_messages(
    connection: Connection, session_id: str, digests: Mapping[int, bytes]
) -> list[_Old]:
    """Return the stored messages of a session in order."""
    parts: dict[str, list[PartTuple]] = {}
    for part in connection.execute(
        'SELECT id, message_id, session_id, "index", type, data_json, tool_call_id, tool_state, '
        'created_at, updated_at FROM chat_parts WHERE session_id = ? ORDER BY message_id, "index"',
        (session_id,),
    ):
        parts.setdefault(part[1], []).append(part)
    found: list[_Old] = []
    for *row, text in connection.execute(
        "SELECT m.id, m.session_id, m.role, m.metadata_json, m.created_at, m.updated_at, "
        "r.records_json FROM chat_messages m LEFT JOIN record_refs r ON r.message_id = m.id "
        "WHERE m.session_id = ? ORDER BY m.created_at, m.id",
        (session_id,),
    ):
        message_id, _, role, metadata_json, created, updated = row
        metadata = orjson.loads(metadata_json)
        groups = orjson.loads(text) if text is not None else []
        found.append(
            _Old(
                (message_id, session_id, role, metadata_json, created, updated),
                metadata,
                parts.get(message_id, []),
                groups,
                [[digests[n] for n in group if n in digests] for group in groups],
                list(_source(metadata).get(GONE_PARTS) or ()),
            )
        )
    return found
