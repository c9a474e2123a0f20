"""What the lists of tasks say of each task: in files, or among the values of an editor.

Source: the Cline format page, section 3.1. Their sums of tokens lag and are not used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from store.sources.base.databases import Databases, decoded
from store.sources.base.json_values import parse_json
from store.sources.base.listings import Entries, Listings, by_id, entry_stamps
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import mapping
from store.sources.base.vscode import STATE, stored_value
from store.system.paths import read_regular

TASKS = "tasks"
HISTORY = os.path.join("state", "taskHistory.json")
INDEX = os.path.join(TASKS, "_index.json")
EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")
"""Cline, Roo Code and Kilo Code, as their folders in an editor's storage are named."""


class TaskLists:
    """The lists of data folders; each is read again when it moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._databases = Databases()
        self._lists = Listings(self._read)

    def entry(self, data: str, task: str, problems: list[Problem]) -> dict[str, Any]:
        """Return what the lists say of a task; empty where none has it.

        Args:
            data: The folder that has the folder of tasks.
            task: The task's id.
            problems: Takes why a list cannot be read.
        """
        found: dict[str, Any] = {}
        for path in lists_of(data):
            found |= self._lists.entries(path, _extension(data), problems).get(task, {})
        return found

    def stamps(self, data: str, task: str, problems: list[Problem]) -> list[FileStamp]:
        """Return the stamp of a task's entries; none where no list has it.

        Args:
            data: The folder that has the folder of tasks.
            task: The task's id.
            problems: Takes why a list cannot be read.
        """
        return entry_stamps(Path(data) / TASKS, task, self.entry(data, task, problems))

    def moved(self, data: str) -> set[str]:
        """Return the tasks whose entries moved since the lists were read last."""
        lists = (self._lists.moved(path, _extension(data)) for path in lists_of(data))
        return {name for names in lists for name in names}

    def _read(self, path: str, extension: str) -> Entries:
        if path.endswith(STATE):
            kept = stored_value(self._databases, Path(path), extension)
            listed: Any = mapping(decoded(kept)).get("taskHistory")
        else:
            value = parse_json(read_regular(path))[0]
            listed = value.get("entries") if isinstance(value, dict) else value
        return by_id(listed if isinstance(listed, list) else (), "id")


def _extension(data: str) -> str:
    return os.path.basename(data)


def lists_of(data: str) -> list[str]:
    """Return the lists of a data folder; what a later one says holds."""
    beside = [os.path.join(os.path.dirname(data), STATE)]
    return [*(beside if os.path.basename(data) in EXTENSIONS else []),
            os.path.join(data, INDEX), os.path.join(data, HISTORY)]  # fmt: skip
