"""What is below a root: rollout files, by thread. No rollout is opened for it.

Source: the Codex format page, section 3.1. ``sessions/YYYY/MM/DD/`` holds what is in use,
``archived_sessions/`` what was archived. Only names of rollouts are ever looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store.sources.base.one_file import is_one_file, name_order
from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.codex.facts import Facts
from store.sources.codex.names import rollout_name

IN_USE, ARCHIVED = "sessions", "archived_sessions"
DEEPEST = 5


COPY_MARK = "#"
"""Separates a unit's thread from the path of a copy in its key."""


def thread_of(key: str) -> str:
    """Return the thread of a unit, by its key."""
    return key.partition(COPY_MARK)[0]


@dataclass(slots=True)
class ThreadFiles:
    """The files of one thread.

    Attributes:
        segments: By physical key.
        copy: The path of a file that claims to be one of its segments, where this is the
            thread as that file has it; else empty.
    """

    thread: str
    segments: dict[str, FileStamp] = field(default_factory=dict)
    copy: str = ""

    def unit(self, facts: Facts | None, home: Path) -> Unit:
        """Return the unit; segments are in the order in which they were begun."""
        stamps = tuple(self.segments[key] for key in sorted(self.segments))
        newest = max(stamp.mtime_ns for stamp in stamps)
        extra = (facts.stamp(str(home)),) if facts is not None else ()
        key = f"{self.thread}{COPY_MARK}{self.copy}" if self.copy else self.thread
        return Unit(key, (*stamps, *extra), newest // 1_000_000)


def home_of(root: Path) -> Path:
    """Return the Codex home that a root is in; the root's own folder where it is in none."""
    path = root.absolute()
    for folder in (path, *path.parents):
        if folder.name in (IN_USE, ARCHIVED):
            return folder.parent
    return path.parent if path.is_file() else path


def thread_files(root: Path, problems: list[Problem]) -> Iterator[ThreadFiles]:
    """Yield what is below a root, by thread, and after that the copies of segments."""
    found: dict[str, ThreadFiles] = {}
    copies: list[tuple[str, str, FileStamp]] = []
    for stamp in rollout_stamps(root, problems):
        name = rollout_name(stamp.path)
        thread = name.thread if name else Path(stamp.path).name
        key = name.key if name else thread
        files = found.setdefault(thread, ThreadFiles(thread))
        other = files.segments.setdefault(key, stamp)
        if other is stamp:
            continue
        kept, left = sorted((other, stamp), key=_order)
        files.segments[key] = kept
        if not left.path.endswith(".zst") and not is_one_file(kept.path, left.path):
            copies.append((thread, key, left))
    yield from found.values()
    for thread, key, stamp in copies:
        yield ThreadFiles(thread, found[thread].segments | {key: stamp}, stamp.path)


def _order(stamp: FileStamp) -> tuple[Any, ...]:
    """Return what sorts the files of one segment: plain before compressed, copies last."""
    name = rollout_name(stamp.path)
    is_copy = name is not None and name.copied
    packed = stamp.path.endswith(".zst")
    return packed, is_copy, -stamp.size, -stamp.mtime_ns, *name_order(stamp.path)


def rollout_stamps(root: Path, problems: list[Problem]) -> Iterator[FileStamp]:
    """Yield the stamps of a root's rollouts; of a file, those of its whole thread."""
    if root.is_file():
        yield from _of_file(root, problems)
        return
    bases = [root / IN_USE, root / ARCHIVED]
    bases = [base for base in bases if base.is_dir()]
    if not bases:
        if not root.is_dir():
            problems.append(Problem(str(root), 0, "No such file or directory"))
            return
        bases = [root]
    for base in bases:
        yield from _below(str(base), 0, problems)


def _of_file(path: Path, problems: list[Problem]) -> Iterator[FileStamp]:
    path = path.absolute()
    own = rollout_name(str(path))
    for stamp in _below(str(path.parent), DEEPEST, problems, any_name=path.name):
        name = rollout_name(stamp.path)
        if stamp.path == str(path) or (own and name and name.thread == own.thread):
            yield stamp


def _below(
    folder: str, depth: int, problems: list[Problem], any_name: str | None = None
) -> Iterator[FileStamp]:
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Problem(folder, 0, error.strerror or str(error)))
        return
    for entry in listed:
        try:
            if entry.name == any_name or rollout_name(entry.name):
                if not entry.is_file():
                    problems.append(Problem(entry.path, 0, "not a regular file"))
                    continue
                stat = entry.stat()
                yield FileStamp(
                    entry.path, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_size
                )
            elif depth < DEEPEST and entry.is_dir():
                yield from _below(entry.path, depth + 1, problems)
        except OSError as error:
            problems.append(Problem(entry.path, 0, error.strerror or str(error)))
