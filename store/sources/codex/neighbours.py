"""Files of other threads that a thread refers to: the base it continues, its parent.

A file that is gone is read from the library, which has its lines among the original records
of its thread. Each reading of a thread names its files for that.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from store.sources.base.protocol import Fact, Library, NoLibrary
from store.sources.codex.copies import Base, base_of
from store.sources.codex.discovery import home_of, rollout_stamps
from store.sources.codex.lineage import history_of
from store.sources.codex.messages import Thread
from store.sources.codex.names import rollout_name
from store.sources.codex.rollout import Rollout, rollout_file

KEPT = 12
"""Rollouts that are kept parsed, the last ones used."""
ROLLOUT, SEGMENTS, BASE = "rollout:", "segments:", "base:"
"""Facts: that a thread has a file of this physical key; which files a thread has; what the file
of a physical key goes on from."""


class Segment(NamedTuple):
    """One file among the original records of its thread: ``length`` of them from ``first`` on."""

    key: str
    path: str
    first: int
    length: int


def shared_facts(thread: str, rollouts: Sequence[Rollout]) -> list[Fact]:
    """Return what a reading says about a thread's files.

    Args:
        thread: The thread's id.
        rollouts: Its files in the order in which their records are in the session.
    """
    first, segments = 0, list[Segment]()
    for rollout in rollouts:
        count = rollout.first + len(rollout.records)
        segments.append(Segment(rollout.key, rollout.path, first, count))
        first += count
    facts = [Fact(ROLLOUT + segment.key, thread) for segment in segments]
    facts += [base_fact(thread, rollout.key, base) for rollout in rollouts
              if (base := base_of(rollout)) is not None]  # fmt: skip
    value = json.dumps(segments)
    return [*facts, Fact(SEGMENTS + thread, thread, value)]


def base_fact(thread: str, key: str, base: Base) -> Fact:
    """Return the fact of what a file goes on from.

    Args:
        thread: A thread that goes on from the file, or has it.
        key: The file's physical key.
        base: What it goes on from.
    """
    return Fact(BASE + key, thread, json.dumps(base))


def _segments(library: Library, thread: str) -> list[Segment]:
    facts = library.facts(SEGMENTS + thread)
    return [Segment(*each) for each in json.loads(facts[-1].value)] if facts else []


class Neighbours:
    """The rollouts of one Codex home, read on demand."""

    def __init__(self, root: Path) -> None:
        """Start with nothing read.

        Args:
            root: A root of the source; all of its home is looked at.
        """
        self._root = root
        self._paths: dict[str, str] = {}
        self._read: OrderedDict[str, tuple[tuple[int, int], Rollout]] = OrderedDict()
        self._calls: dict[tuple[str, str], tuple[str, str] | None] = {}
        self._library: Library = NoLibrary()
        self._gone: OrderedDict[str, Rollout] = OrderedDict()

    def use_library(self, library: Library) -> None:
        """Take the library to look into for files that are gone."""
        self._library = library
        self._gone.clear()

    def find(self, key: str) -> Rollout | None:
        """Return a rollout by its physical key; None where there is none that can be read."""
        path = self._paths.get(key)
        if path is None or not os.path.exists(path):
            self._list()
            path = self._paths.get(key)
        found = self._rollout(path) if path is not None else None
        return found or self._find_gone(key)

    def base(self, key: str) -> Base | None:
        """Return what a file went on from whose lines are neither there nor in the library."""
        facts = self._library.facts(BASE + key)
        if not facts:
            return None
        base, end = json.loads(facts[-1].value)
        return str(base), int(end)

    def gone_segments(self, thread: str, there: Collection[str]) -> list[Rollout]:
        """Return the files of a thread that the library knows and that are no longer there.

        Args:
            thread: The thread's id.
            there: The physical keys of its files that are.
        """
        return [
            found
            for segment in _segments(self._library, thread)
            if segment.key not in there and (found := self._find_gone(segment.key)) is not None
        ]

    def _find_gone(self, key: str) -> Rollout | None:
        found = self._gone.get(key)
        for fact in () if found is not None else self._library.facts(ROLLOUT + key):
            known = {segment.key: segment for segment in _segments(self._library, fact.session)}
            records = self._library.records(fact.session) if key in known else ()
            lines = records[known[key].first :][: known[key].length] if records else ()
            if lines and len(lines) == known[key].length:
                found = self._gone[key] = Rollout(known[key].path)
                found.key, found.gone = key, True
                found.push(b"".join(line + b"\n" for line in lines))
                break
        while len(self._gone) > KEPT:
            self._gone.popitem(last=False)
        return found

    def call_of(self, parent: str, child: str) -> tuple[str, str] | None:
        """Return message and call id of a parent thread that started a child thread."""
        if (parent, child) not in self._calls:
            found = self._search(parent, child)
            if found is None:
                return None
            self._calls[parent, child] = found
        return self._calls[parent, child]

    def _search(self, parent: str, child: str) -> tuple[str, str] | None:
        rollouts = self._of_thread(parent)
        if not rollouts:
            return None
        thread = Thread({})
        thread.take(history_of(rollouts, None, self.find, self.base).entries)
        for call_id, part in thread.calls.parts.items():
            extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
            if extra.get("child_session_source_id") == child:
                return thread.calls.owners[call_id].source_id, call_id
        return None

    def _of_thread(self, thread: str) -> list[Rollout]:
        if thread not in self._paths:
            self._list()
        keys = [
            key
            for key, path in self._paths.items()
            if (name := rollout_name(path)) is not None and name.thread == thread
        ]
        found = [rollout for key in keys if (rollout := self.find(key)) is not None]
        found += self.gone_segments(thread, {rollout.key for rollout in found})
        return sorted(found, key=lambda rollout: rollout.key)

    def _list(self) -> None:
        home = home_of(self._root)
        for root in dict.fromkeys((home, self._root)):
            if not root.exists() or (root == home and not _is_home(home) and home != self._root):
                continue
            for stamp in rollout_stamps(root, []):
                name = rollout_name(stamp.path)
                if name is None or (name.copied and name.key in self._paths):
                    continue
                if name.key not in self._paths or not name.packed:
                    self._paths[name.key] = stamp.path
        if self._root.is_file():
            for stamp in rollout_stamps(self._root.absolute().parent, []):
                name = rollout_name(stamp.path)
                if name is not None:
                    self._paths.setdefault(name.key, stamp.path)

    def _rollout(self, path: str) -> Rollout | None:
        try:
            stat = os.stat(path)
            sign = (stat.st_size, stat.st_mtime_ns)
            known = self._read.pop(path, None)
            if known is None or known[0] != sign:
                known = (sign, rollout_file(path))
                known[1].read([])
        except OSError:
            return None
        self._read[path] = known
        while len(self._read) > KEPT:
            self._read.popitem(last=False)
        return known[1]


def _is_home(path: Path) -> bool:
    return (path / "sessions").is_dir() or (path / "archived_sessions").is_dir()
