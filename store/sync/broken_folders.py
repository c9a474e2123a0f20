"""Names folders of a root that may hold sessions, and cannot be listed or lead nowhere.

A source finds what it can list, and a folder without rights looks like an empty one to it. The
folders are looked at here, for all sources alike.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from store.sources.base.protocol import Problem

_SESSION_FOLDERS = frozenset(
    ["projects", "project", "sessions", "session", "tasks", "chats", "storage", "message",
     "messages", "logs", "threads", "conversations", "history", "transcripts",
     "agent-transcripts", "agents", "kanban", "chat", "db", "file-history", "files",
     "globalStorage", "workspaceStorage", "chatSessions", "data", "tmp"]
)  # fmt: skip
"""Names of folders that sessions, or what belongs to them, are in at some agent."""
_DEEPEST = 4
"""Levels below a root, or below a folder that sessions were found in."""
_MOST_FOLDERS = 2_000
"""Folders that are looked at although no session was found in them or below them."""


def broken_folders(root: str, holders: Collection[str], beside: Iterable[str]) -> list[Problem]:
    """Return a problem for each folder that cannot be listed, or is a link to nothing.

    Where sessions were found, of the root's own folders only those are looked into that hold
    some, or are named as folders of sessions are.

    Args:
        root: The root; nothing is returned where it is a file.
        holders: Folders that sessions were found in. A link to nothing beside one counts.
        beside: Folders that only side files of sessions were found in.
    """
    top = os.path.abspath(root)
    known = _with_above(top, {*holders, *beside})
    inner = Counter(os.path.dirname(folder) for folder in known)
    with_holders = {os.path.dirname(holder) for holder in holders}
    is_open = not known or os.path.basename(top) in _SESSION_FOLDERS
    listed = {top} | {
        one for one in known if one in with_holders or _may_hold_more(one, inner[one])
    }
    found: list[Problem] = []
    left = [(folder, 0) for folder in sorted(listed)]
    for folder, depth in left:
        for entry in _entries(folder):
            named = entry.name in _SESSION_FOLDERS
            if entry.path in known or not (entry.is_symlink() or entry.is_dir()):
                continue
            wrong = _wrong(entry, linked=named or folder in with_holders)
            if wrong is not None:
                found.append(Problem(entry.path, 0, wrong))
            elif (
                depth < _DEEPEST and (folder != top or is_open or named)
                and len(left) < _MOST_FOLDERS + len(listed)
                and not entry.is_symlink() and _may_hold_more(entry, 0)
            ):  # fmt: skip
                left.append((entry.path, depth + 1))
    return found


def why_unreadable(path: str | os.PathLike[str]) -> str | None:
    """Return why an existing file or folder cannot be read, or None."""
    try:
        wanted = os.R_OK
        if stat.S_ISDIR(os.stat(path).st_mode):
            os.scandir(path).close()
            wanted |= os.X_OK
        if not os.access(path, wanted):
            return f"cannot be read: {os.strerror(errno.EACCES)}"
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            return f"is a link to {os.readlink(path)}, which is not there"
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None


def _with_above(top: str, holders: Iterable[str]) -> set[str]:
    """Return folders at or below the top, and those between it and them."""
    known: set[str] = set()
    below = top.rstrip(os.sep) + os.sep
    for holder in holders:
        folder = holder
        while folder not in known and (folder == top or folder.startswith(below)):
            known.add(folder)
            folder = os.path.dirname(folder)
    return known


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return  # Named already, with the folder above it or by the source.


def _may_hold_more(folder: str | os.DirEntry[str], known: int) -> bool:
    """Return whether a folder may have more folders in it than those that are known.

    Each folder within is a link to the one around it, by the name ``..``, beside its own two.
    A file system that does not count them tells of one link, or of more.
    """
    try:
        return os.stat(folder).st_nlink != 2 + known
    except OSError:
        return False


def _wrong(entry: os.DirEntry[str], *, linked: bool) -> str | None:
    """Return why a folder cannot be listed.

    Args:
        entry: The folder, or a link to anything.
        linked: Whether links that lead nowhere count.
    """
    if entry.is_symlink():
        broken = linked and not os.path.exists(entry.path)
        return why_unreadable(entry.path) if broken else None
    if not os.access(entry.path, os.R_OK | os.X_OK):
        return f"cannot be read: {os.strerror(errno.EACCES)}"
    return None
