"""What the lines of a session's files add up to: entries, what is live, what was dropped.

Source: the Gemini CLI format page, sections 4.2 (records) and 4.3 (traps).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.values import epoch_ms, mapping, string
from store.sources.gemini.content import SNAPSHOT, kind_of, parts_of, text_of
from store.sources.gemini.copies import originals, without_context, written_at_once
from store.sources.gemini.entry import Entry, Key

_RICH = ("tokens", "thoughts", "model", "toolCalls", "displayContent")
"""What a turn loses when its history is written again."""


@dataclass(slots=True)
class History:
    """A session as its lines leave it.

    Attributes:
        meta: Header and ``$set`` values, the last of each.
        entries: All that ever were, in the order in which they came.
        live: Those that the program would load now.
        started: The first start, epoch ms; a resume notes another.
        last: The newest time of a message or a ``lastUpdated``.
        rewinds: How many ``$rewindTo`` there are.
        replaced: How often ``$set`` brought another history.
        quiet: Lines that made no entry, and that are no bookkeeping.
        changed: The first entry that is new, or otherwise than when this was set last.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    entries: dict[Key, Entry] = field(default_factory=dict)
    live: dict[Key, None] = field(default_factory=dict)
    started: int | None = None
    last: int = 0
    rewinds: int = 0
    replaced: int = 0
    quiet: list[int] = field(default_factory=list)
    changed: int = 0
    _batches: set[int] = field(default_factory=set)
    _copies: dict[Key, Key] = field(default_factory=dict)
    _rewound: int | None = None

    def take(self, data: dict[str, Any], number: int, following: dict[str, Any] | None) -> None:
        """Take one line.

        Args:
            data: The line.
            number: Of the record.
            following: The next line, which tells when a rewind was.
        """
        if "$rewindTo" in data:
            self._rewind(data["$rewindTo"], following)
            return
        rewound, self._rewound = self._rewound, None
        if isinstance(data.get("$set"), dict):
            self._set(data["$set"], number, rewound)
        elif "sessionId" in data:
            self._header(data)
        elif "type" in data:
            before = len(self.entries)
            entry = self._merge(data, number, f"record-{number}", from_set=False)
            if len(self.entries) > before:
                entry.compacts = _is_summary(entry, set())
            self._go_live(entry.key)
        else:
            self.quiet.append(number)

    def _header(self, data: dict[str, Any]) -> None:
        started = epoch_ms(data.get("startTime"))
        if started is not None:
            self.started = started if self.started is None else min(self.started, started)
        self._note(data)

    def _note(self, data: dict[str, Any]) -> None:
        self.meta.update({key: value for key, value in data.items() if key != "messages"})
        self.last = max(self.last, epoch_ms(data.get("lastUpdated")) or 0)

    def _set(self, data: dict[str, Any], number: int, rewound: int | None) -> None:
        messages = data.get("messages")
        before = self.last
        self._note(data)
        if not isinstance(messages, list):
            return
        self.replaced += 1
        known = set(self.entries)
        rows = [message for message in messages if isinstance(message, dict)]
        found = [
            self._merge(message, number, f"record-{number}-{place}", from_set=True)
            for place, message in enumerate(rows)
        ]
        found = self._recognise(found, written_at_once(rows))
        at = epoch_ms(data.get("lastUpdated")) or before + 1
        self._replace(found, known, rewound if rewound is not None else at, rewound is not None)

    def _touch(self, entry: Entry) -> None:
        self.changed = min(self.changed, entry.place)

    def _recognise(self, found: list[Entry], copied: list[bool]) -> list[Entry]:
        """Put what is recorded again under another id into the turn that it is."""
        result = originals(found, copied, self.entries.values())
        for entry, original in zip(found, result, strict=True):
            if original is not entry and self.entries.pop(entry.key, None) is not None:
                self._copies[entry.key] = original.key
                self.live.pop(entry.key, None)
                original.records = (*original.records, *entry.records)
                self.changed = 0
        if self.changed == 0:
            for place, entry in enumerate(self.entries.values()):
                entry.place = place
        return result

    def _replace(self, found: list[Entry], known: set[Key], at: int, after_rewind: bool) -> None:
        """Make another history the live one; what it leaves out is dropped.

        A start notes its context before an old history is restored: a history of context
        alone drops nothing.
        """
        keys = list(dict.fromkeys(entry.key for entry in found))
        if not after_rewind and all(entry.kind == "context" for entry in found):
            for key in keys:
                self._go_live(key)
            return
        compacts = next((entry for entry in found if _is_summary(entry, known)), None)
        kept = set(keys)
        dropped = [key for key in self.live if key not in kept]
        if compacts is not None and not after_rewind:
            after = keys[keys.index(compacts.key) + 1 :]
            compacts.tail = next((key for key in after if key in known), None)
            compacts.compacts = True
            compacts.covers = tuple(key for key in dropped if key[1] in _OF_HISTORY)
            self._touch(compacts)
        else:
            history = [key for key in dropped if key[1] in _OF_HISTORY]
            self._drop(history, at if after_rewind else self._unused(at), kept)
            keys += [key for key in dropped if key[1] not in _OF_HISTORY]
        self.live = dict.fromkeys(keys)
        for key in keys:
            self._come_back(key)

    def _rewind(self, target: object, following: dict[str, Any] | None) -> None:
        """Drop an entry and all after it; an unknown id drops everything.

        The program rewinds to what is there: to what a rewind dropped, a repeated line does.
        """
        named = [entry.left for key, entry in self.entries.items() if key[0] == target]
        if named and None not in named:
            return
        self.rewinds += 1
        at = epoch_ms(mapping(mapping(following).get("$set")).get("lastUpdated"))
        self._rewound = self._unused(max(at or 0, self.last + 1))
        live = list(self.live)
        start = next((index for index, key in enumerate(live) if key[0] == target), 0)
        self._drop(live[start:], self._rewound, set())
        self.live = dict.fromkeys(live[:start])

    def _drop(self, keys: list[Key], at: int, kept: set[Key]) -> None:
        """Drop entries; a summary goes with what it replaced, but for what is kept."""
        waiting = list(reversed(keys))
        while waiting:
            key = waiting.pop()
            entry = self.entries.get(key)
            if entry is not None and entry.left != at:
                self._leave(key, at)
                waiting += [covered for covered in entry.covers if covered not in kept]

    def _come_back(self, key: Key) -> None:
        """Make an entry visible; with a summary comes what was dropped with it."""
        waiting = [key]
        while waiting:
            entry = self.entries.get(waiting.pop())
            if entry is not None and entry.left is not None:
                at = entry.left
                self._leave(entry.key, None)
                waiting += [
                    covered
                    for covered in entry.covers
                    if covered in self.entries and self.entries[covered].left == at
                ]

    def _leave(self, key: Key, at: int | None) -> None:
        entry = self.entries[key]
        if entry.left != at:
            entry.left = at
            self._touch(entry)

    def _unused(self, at: int) -> int:
        while at in self._batches:
            at += 1
        self._batches.add(at)
        return at

    def _go_live(self, key: Key) -> None:
        self._come_back(key)
        self.live.setdefault(key)

    def _merge(self, data: dict[str, Any], number: int, placed: str, *, from_set: bool) -> Entry:
        """Put a record into the entry that it is of, by its id, else by its place."""
        data = without_context(data)
        kind = kind_of(data)
        name = data.get("id")
        entry_id = str(name) if isinstance(name, str | int) and name != "" else placed
        stamp = epoch_ms(data.get("timestamp"))
        at = stamp if stamp is not None else self.last
        self.last = max(self.last, at)
        key = (entry_id, kind)
        known = self.entries.get(self._copies.get(key, key))
        if known is None:
            known = Entry(entry_id, kind, dict(data), at, at, (number,), place=len(self.entries))
            self.entries[known.key] = known
            return known
        merged = _richest(known.data, data, from_set=from_set)
        if merged != known.data:
            known.data = merged
            known.records = (*known.records, number)
            known.updated = max(known.updated, at)
            self._touch(known)
        return known


_OF_HISTORY = ("context", "user", "tool-response", "gemini")


def _is_summary(entry: Entry, known: set[Key]) -> bool:
    return (
        entry.kind == "user"
        and entry.key not in known
        and text_of(entry.data.get("content")).lstrip().startswith(SNAPSHOT)
    )


def _richest(known: dict[str, Any], data: dict[str, Any], *, from_set: bool) -> dict[str, Any]:
    """Merge two records of one message; a history that is written again tells less."""
    if not from_set:
        merged = {**known, **data, "timestamp": known.get("timestamp", data.get("timestamp"))}
        return _with_calls(merged, known, data)
    merged = dict(known)
    for key in _RICH:
        if data.get(key) and not known.get(key):
            merged[key] = data[key]
    if not parts_of(known.get("content")) and parts_of(data.get("content")):
        merged["content"] = data["content"]
    return _with_calls(merged, known, data)


def _with_calls(
    merged: dict[str, Any], known: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """Put the calls of both records into one, of each call the record that tells more."""
    calls: dict[str, dict[str, Any]] = {}
    for record in (known, data):
        found = record.get("toolCalls")
        for place, call in enumerate(found if isinstance(found, list) else ()):
            if isinstance(call, dict):
                name = string(call.get("id")) or f"call-{place}"
                if name not in calls or call.get("result") or not calls[name].get("result"):
                    calls[name] = call
    if calls:
        merged["toolCalls"] = list(calls.values())
    for key in ("thoughts", "tokens", "model"):
        if not merged.get(key) and known.get(key):
            merged[key] = known[key]
    return merged
