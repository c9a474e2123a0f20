"""Deals a large sync's units out to helpers: the newest first, and a folder to one of them.

A source may look at what lies beside a file, as for the parent of a fork. A helper that
keeps to its folders looks there once, where otherwise every helper would.
"""

from __future__ import annotations

import heapq
import os
from collections import deque
from collections.abc import Hashable, Iterable

from store.sync.frames import Task


class Dealer:
    """The tasks that no helper has yet."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        """Take tasks, numbered in the order in which they are wanted."""
        self._folders: dict[str, deque[Task]] = {}
        for task in tasks:
            self._folders.setdefault(_folder(task), deque()).append(task)
        self._free = deque(self._folders)
        self._owned: dict[Hashable, list[tuple[int, str]]] = {}
        self._returned: deque[Task] = deque()

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._returned or self._folders)

    def next(self, helper: Hashable) -> Task:
        """Return the first wanted task of the helper's folders and of those nobody has.

        Where there is none, a folder changes hands.

        Raises:
            KeyError: There are no tasks.
        """
        if self._returned:
            return self._returned.popleft()
        mine = self._owned.setdefault(helper, [])
        if self._free and (not mine or self._first(self._free[0]) < mine[0][0]):
            folder = self._free.popleft()
        elif mine:
            folder = heapq.heappop(mine)[1]
        else:
            folder = self._taken_over()
        tasks = self._folders[folder]
        task = tasks.popleft()
        if tasks:
            heapq.heappush(mine, (tasks[0].number, folder))
        else:
            del self._folders[folder]
        return task

    def give_back(self, helper: Hashable, tasks: Iterable[Task]) -> None:
        """Take back what a helper will not do; its folders are anybody's."""
        self._returned.extendleft(reversed(list(tasks)))
        folders = [folder for _, folder in self._owned.pop(helper, [])]
        self._free = deque(sorted([*self._free, *folders], key=self._first))

    def _taken_over(self) -> str:
        """Take the folder that is wanted last from whoever has the most."""
        richest = max(self._owned.values(), key=len)
        if not richest:
            raise KeyError("no tasks are left")
        found = max(richest)
        richest.remove(found)
        heapq.heapify(richest)
        return found[1]

    def _first(self, folder: str) -> int:
        return self._folders[folder][0].number


def _folder(task: Task) -> str:
    return os.path.dirname(task.unit.stamps[0].path) if task.unit.stamps else ""
