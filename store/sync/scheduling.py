"""Distributes a large sync's units to helpers: newest first, each folder to one helper.

A source may read neighbouring files, for instance to find the parent of a fork. Keeping a
folder with one helper avoids every helper reading the same neighbours.
"""

from __future__ import annotations

import heapq
import os
from collections import deque
from collections.abc import Hashable, Iterable

from store.sync.frames import Task


class Scheduler:
    """Queue of the tasks that are not yet assigned to a helper."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        """Queue tasks; their ``number`` is the order in which they should run."""
        self._folders: dict[str, deque[Task]] = {}
        for task in tasks:
            self._folders.setdefault(_folder(task), deque()).append(task)
        self._free = deque(self._folders)
        self._owned: dict[Hashable, list[tuple[int, str]]] = {}
        self._returned: deque[Task] = deque()

    def __bool__(self) -> bool:
        """Return whether any tasks are left."""
        return bool(self._returned or self._folders)

    def next(self, helper: Hashable) -> Task:
        """Return the next task: the earliest one in the helper's folders or an unassigned one.

        Where both are empty, a folder of another helper is reassigned.

        Raises:
            KeyError: No tasks are left.
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

    def numbers(self) -> list[int]:
        """Return the numbers of the tasks that are left."""
        folders = (task.number for tasks in self._folders.values() for task in tasks)
        return [*(task.number for task in self._returned), *folders]

    def drop(self, number: int) -> None:
        """Take a task out; nothing happens where it is not left."""
        self._returned = deque(task for task in self._returned if task.number != number)
        for folder, tasks in list(self._folders.items()):
            left = deque(task for task in tasks if task.number != number)
            if len(left) == len(tasks):
                continue
            if left:
                self._folders[folder] = left
            else:
                self._forget(folder)

    def _forget(self, folder: str) -> None:
        """Leave out a folder that has no tasks any more."""
        del self._folders[folder]
        self._free = deque(one for one in self._free if one != folder)
        for owned in self._owned.values():
            owned[:] = [entry for entry in owned if entry[1] != folder]
            heapq.heapify(owned)

    def give_back(self, helper: Hashable, tasks: Iterable[Task]) -> None:
        """Queue a helper's unfinished tasks again and release its folders."""
        self._returned.extendleft(reversed(list(tasks)))
        folders = [folder for _, folder in self._owned.pop(helper, [])]
        self._free = deque(sorted([*self._free, *folders], key=self._first))

    def _taken_over(self) -> str:
        """Return the last folder of the helper that has the most, and unassign it."""
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
