"""What a folder of the unified store holds now: its snapshot, then the journal applied to it.

Source: the Mistral Vibe format page, section "Unified store". Only the generation that ``CURRENT``
names is read, and the segment of the journal that follows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.documents import parse_document
from store.sources.base.json_values import LineError
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import mapping, string
from store.system.paths import read_regular

CURRENT, META, JOURNAL = "CURRENT", "meta.json", "journal"
FORMAT = "mistral.vibe.unified-session-store/"
_NAME = re.compile(r"[0-9A-Za-z_-]{1,128}")
_SEGMENT = re.compile(r"journal/([0-9A-Za-z_-]{1,64}\.jsonl)")


@dataclass(slots=True)
class Snapshot:
    """A session as its store has it.

    Attributes:
        entries: Its entries in order.
        removed: Those that the journal took away, each with the id of the one before it.
        envelope: What is said of the session and its last turn.
        segment: The name of the journal's file.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    removed: list[dict[str, Any]] = field(default_factory=list)
    envelope: dict[str, Any] = field(default_factory=dict)
    segment: str | None = None


Chunks = dict[str, tuple[FileStamp, list[dict[str, Any]]]]
"""Stamps and entries of chunks by their names."""


class Store:
    """Reads the files of one session's folder."""

    def __init__(
        self, folder: str, looked: list[FileStamp], problems: list[Problem],
        chunks: Chunks | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            folder: The session's folder.
            looked: Takes the stamps of the files that are read.
            problems: Takes what is damaged.
            chunks: What was read of it before; chunks are never written again.
        """
        self._folder, self._looked, self._problems = folder, looked, problems
        self._chunks: Chunks = {} if chunks is None else chunks

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot that ``CURRENT`` names; None where there is none to read."""
        current = mapping(self._document(CURRENT))
        generation = current.get("generation")
        name = str(generation) if isinstance(generation, int | str) else ""
        if not _NAME.fullmatch(name):
            return None
        below = os.path.join("generations", name)
        manifest = mapping(self._document(os.path.join(below, "manifest.json")))
        told = mapping(manifest.get("projection_state"))
        own = os.path.basename(string(told.get("path")) or "projection-state.json")
        state = self._document(os.path.join(below, own))
        if not manifest or not isinstance(state, dict):
            return None
        envelope = mapping(state.get("snapshot")) or state
        found = Snapshot(envelope=envelope)
        chunks = told.get("chunks")
        names = chunks if isinstance(chunks, list) else []
        for chunk in names:
            found.entries += self._chunk(chunk)
        for gone in [name for name in self._chunks if name not in names]:
            del self._chunks[gone]
        found.entries = found.entries or _objects(mapping(envelope.get("history")).get("entries"))
        segment = string(mapping(manifest.get("recovery_journal_segment")).get("path")) or ""
        matched = _SEGMENT.fullmatch(segment)
        found.segment = matched[1] if matched else None
        return found

    def _chunk(self, name: object) -> list[dict[str, Any]]:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._problems.append(Problem(self._folder, 0, "a chunk without a name"))
            return []
        path = os.path.join("chunks", f"{name}.json")
        stamp = FileStamp.now(os.path.join(self._folder, path))
        known = self._chunks.get(name)
        if known is not None and known[0] == stamp:
            self._looked.append(stamp)
            return known[1]
        before = len(self._problems)
        entries = _objects(self._document(path))
        if len(self._problems) == before:
            self._chunks[name] = stamp, entries
        return entries

    def _document(self, name: str) -> Any:
        path = os.path.join(self._folder, name)
        self._looked.append(FileStamp.now(path))
        try:
            value, repaired = parse_document(read_regular(path))
        except (OSError, LineError) as error:
            said = error.strerror if isinstance(error, OSError) else None
            self._problems.append(Problem(path, 0, said or str(error)))
            return None
        self._problems += [Problem(path, 0, repaired)] if repaired else []
        return value


def apply(snapshot: Snapshot, records: Iterable[dict[str, Any]]) -> None:
    """Bring a snapshot up to what the journal says since.

    Args:
        snapshot: The snapshot.
        records: The records of its segment.
    """
    for record in sorted(records, key=_sequence):
        payload = mapping(record.get("payload"))
        if record.get("type") == "projection_delta":
            for operation in _objects(payload.get("delta")):
                _operate(snapshot, operation)
        elif record.get("type") == "projection_advanced":
            state = next(iter(_states(payload)), None)
            if state is not None:
                _replace(snapshot, _objects(mapping(state.get("history")).get("entries")))
                snapshot.envelope = state


def _states(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield where a whole state may be in a record."""
    inner = mapping(payload.get("projection_state"))
    for each in (payload.get("state"), payload.get("snapshot"), inner.get("snapshot"), payload):
        if "history" in mapping(each):
            yield mapping(each)


def _sequence(record: dict[str, Any]) -> int:
    sequence = record.get("sequence")
    return sequence if type(sequence) is int else 0


def _operate(snapshot: Snapshot, operation: dict[str, Any]) -> None:
    kind, entry = operation.get("op"), operation.get("entry")
    if kind == "append_entry" and isinstance(entry, dict):
        snapshot.entries.append(entry)
    elif kind == "replace_entry" and isinstance(entry, dict):
        # Nearly always it is one of the last.
        places, name = reversed(range(len(snapshot.entries))), operation.get("id")
        place = next((each for each in places if snapshot.entries[each].get("id") == name), None)
        if place is None:
            snapshot.entries.append(entry)
        else:
            snapshot.entries[place] = entry
    elif kind in ("remove_entries", "remove_entry"):
        ids = operation.get("ids")
        named = ids if isinstance(ids, list) else [operation.get("id")]
        gone = {each for each in named if isinstance(each, str)}
        _replace(snapshot, [each for each in snapshot.entries if each.get("id") not in gone])
    elif kind == "set_history_entries":
        _replace(snapshot, _objects(operation.get("entries")))
    elif kind == "set_envelope":
        snapshot.envelope = mapping(operation.get("state")) or snapshot.envelope


def _replace(snapshot: Snapshot, entries: list[dict[str, Any]]) -> None:
    kept = {str(each.get("id")) for each in entries}
    snapshot.removed += [each for each in snapshot.entries if str(each.get("id")) not in kept]
    snapshot.entries = entries


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
