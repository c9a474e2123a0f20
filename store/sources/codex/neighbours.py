"""Files of other threads that a thread refers to: the base it goes on from, its parent."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

from store.sources.codex.discovery import home_of, rollout_stamps
from store.sources.codex.lineage import history_of
from store.sources.codex.messages import Thread
from store.sources.codex.names import rollout_name
from store.sources.codex.reading import read_rollout
from store.sources.codex.rollout import Rollout

KEPT = 12
"""Rollouts that are kept parsed, the last ones used."""


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

    def find(self, key: str) -> Rollout | None:
        """Return a rollout by its physical key; None where there is none that can be read."""
        path = self._paths.get(key)
        if path is None or not os.path.exists(path):
            self._list()
            path = self._paths.get(key)
        return self._rollout(path) if path is not None else None

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
        thread.take(history_of(rollouts, None, self.find).entries)
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
        found = [self.find(key) for key in sorted(keys)]
        return [rollout for rollout in found if rollout is not None]

    def _list(self) -> None:
        home = home_of(self._root)
        for root in dict.fromkeys((home, self._root)):
            if not root.exists() or (root == home and not _is_home(home) and home != self._root):
                continue
            for stamp in rollout_stamps(root, []):
                name = rollout_name(stamp.path)
                if name is not None and (name.key not in self._paths or not name.packed):
                    self._paths[name.key] = stamp.path
        if self._root.is_file():
            for stamp in rollout_stamps(self._root.absolute().parent, []):
                name = rollout_name(stamp.path)
                if name is not None:
                    self._paths.setdefault(name.key, stamp.path)

    def _rollout(self, path: str) -> Rollout | None:
        try:
            stat = os.stat(path)
        except OSError:
            return None
        sign = (stat.st_size, stat.st_mtime_ns)
        known = self._read.pop(path, None)
        if known is None or known[0] != sign:
            rollout = Rollout(path)
            if read_rollout(rollout, []) is None:
                return None
            known = (sign, rollout)
        self._read[path] = known
        while len(self._read) > KEPT:
            self._read.popitem(last=False)
        return known[1]


def _is_home(path: Path) -> bool:
    return (path / "sessions").is_dir() or (path / "archived_sessions").is_dir()
