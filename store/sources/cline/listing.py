"""What the lists of tasks say of each task: in files, or among the values of an editor.

Source: the Cline format page, section 3.1. Their sums of tokens lag and are not used.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import StoreError
from store.sources.base.databases import Databases, decoded, stamp_of_rows
from store.sources.base.growing import FACT
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import mapping, string
from store.sources.base.vscode import STATE, stored_value
from store.system.paths import read_regular

TASKS = "tasks"
HISTORY = os.path.join("state", "taskHistory.json")
INDEX = os.path.join(TASKS, "_index.json")
EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")
"""Cline, Roo Code and Kilo Code, as their folders in an editor's storage are named."""

Entries = dict[str, dict[str, Any]]


class _List(NamedTuple):
    """A list as it was read last."""

    stamps: tuple[FileStamp, ...]
    entries: Entries


class TaskLists:
    """The lists of data folders; each is read again when it moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._databases = Databases()
        self._lists: dict[str, _List] = {}

    def entry(self, data: str, task: str, problems: list[Problem]) -> dict[str, Any]:
        """Return what the lists say of a task; empty where none has it.

        Args:
            data: The folder that has the folder of tasks.
            task: The task's id.
            problems: Takes why a list cannot be read.
        """
        found: dict[str, Any] = {}
        for path in lists_of(data):
            found |= self._entries(path, data, problems).get(task, {})
        return found

    def stamps(self, data: str, task: str, problems: list[Problem]) -> list[FileStamp]:
        """Return the stamp of a task's entries; none where no list has it.

        Args:
            data: The folder that has the folder of tasks.
            task: The task's id.
            problems: Takes why a list cannot be read.
        """
        entry = self.entry(data, task, problems)
        if not entry:
            return []
        place = Path(data) / TASKS / f"{FACT}{task}"
        return [stamp_of_rows(place, sorted(entry.items()), at=0, size=0)]

    def moved(self, data: str) -> set[str]:
        """Return the tasks whose entries moved since the lists were read last."""
        names: set[str] = set()
        for path in lists_of(data):
            before = self._lists[path].entries if path in self._lists else {}
            now = self._entries(path, data, [])
            names |= {name for name in before.keys() | now.keys()
                      if before.get(name) != now.get(name)}  # fmt: skip
        return names

    def _entries(self, path: str, data: str, problems: list[Problem]) -> Entries:
        stamps = tuple(FileStamp.now(path + end) for end in ("", "-wal"))
        known = self._lists.get(path)
        if known is not None and known.stamps == stamps:
            return known.entries
        try:
            entries = _by_id(self._listed(path, os.path.basename(data))) if stamps[0].inode else {}
        except (StoreError, sqlite3.Error, OSError, LineError) as error:
            problems.append(Problem(path, 0, f"cannot be read: {error}"))
            return known.entries if known is not None else {}
        self._lists[path] = _List(stamps, entries)
        return entries

    def _listed(self, path: str, extension: str) -> Any:
        if not path.endswith(STATE):
            value = parse_json(read_regular(path))[0]
            return value.get("entries") if isinstance(value, dict) else value
        kept = stored_value(self._databases, Path(path), extension)
        return mapping(decoded(kept)).get("taskHistory")


def lists_of(data: str) -> list[str]:
    """Return the lists of a data folder; what a later one says holds."""
    beside = [os.path.join(os.path.dirname(data), STATE)]
    return [*(beside if os.path.basename(data) in EXTENSIONS else []),
            os.path.join(data, INDEX), os.path.join(data, HISTORY)]  # fmt: skip


def _by_id(listed: object) -> Entries:
    entries = map(mapping, listed if isinstance(listed, list) else ())
    return {name: entry for entry in entries if (name := string(entry.get("id")))}
