"""Saves files of a session below a folder that a person chose, and never outside of it.

Paths of a session are hostile. Each name of a path becomes a plain one: no ``..``, no control
characters, no drive. Folders are opened one by one without following links, so that no link
that is there leads elsewhere; a file gets its name when it is completely written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from store.errors import Refused
from store.system.files import AlreadyThere, made_folder
from store.system.paths import expanded, real_path
from store.text.neutral import neutral, neutral_row

LONGEST_NAME = 200
"""Bytes of a name; longer ones are cut."""
MOST_NAMES = 60
"""Folders of a path, counted from its end."""
_DATABASE = b"SQLite format 3\0"
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}
"""What file systems without hard links say, such as FAT."""
_SEPARATORS = re.compile(r"[/\\]+")
_DRIVE = re.compile(r"^[A-Za-z]:")
_NO_NAMES = ("", ".", "..", "~")


@dataclass(frozen=True, slots=True)
class Saved:
    """A file that was saved."""

    path: Path
    size: int


def safe_parts(path: str) -> tuple[str, ...]:
    """Return the names of a session's path that are safe below any folder; never none."""
    names = [_safe_name(name) for name in _SEPARATORS.split(_DRIVE.sub("", path))]
    kept = [name for name in names if name not in _NO_NAMES][-MOST_NAMES:]
    return tuple(kept) or ("file",)


def _safe_name(name: str) -> str:
    return _cut(neutral_row(name), LONGEST_NAME)


def _cut(name: str, most: int) -> str:
    """Return a name of at most so many bytes, without spaces around it."""
    return name.strip(" ").encode("utf-8", "replace")[:most].decode("utf-8", "ignore").strip(" ")


def _free(parts: tuple[str, ...], *taken: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of a path, with a number behind the last where the path is taken."""
    *folders, stem = parts
    number = 2
    while any(parts in paths for paths in taken):
        ending = f"-{number}"
        parts = (*folders, _cut(stem, LONGEST_NAME - len(ending)) + ending)
        number += 1
    return parts


def _is_safe(name: str) -> bool:
    return name not in _NO_NAMES and not _SEPARATORS.search(name) and _safe_name(name) == name


class Folder:
    """The folder below which files are saved."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made where it is missing.

        Raises:
            Refused: It cannot be made, or is something else.
        """
        made_folder(expanded(folder))
        self.path = real_path(expanded(folder))
        self._places: dict[str, tuple[str, ...]] = {}
        self._files: set[tuple[str, ...]] = set()
        self._folders: set[tuple[str, ...]] = set()

    def place(self, path: str, shown: str) -> tuple[str, ...]:
        """Return the names below the folder for a session's file, for each file other ones.

        What was a file in the session, and a folder at another time, is there as both.

        Args:
            path: The file, as in ``FileRow.key``.
            shown: Its path from the session's folder on.
        """
        if path not in self._places:
            *folders, name = safe_parts(shown)
            parts: tuple[str, ...] = ()
            for folder in folders:
                parts = _free((*parts, folder), self._files)
                self._folders.add(parts)
            self._places[path] = _free((*parts, name), self._files, self._folders)
            self._files.add(self._places[path])
        return self._places[path]

    def write(self, parts: tuple[str, ...], body: bytes, *, replace: bool = False) -> Saved:
        """Write a file below the folder.

        Args:
            parts: The names, as ``place`` returns them.
            body: The content.
            replace: Whether to replace a regular file that is there.

        Raises:
            AlreadyThere: Something has the name, and ``replace`` is False.
            Refused: It cannot be written, or a link is in the way.
        """
        path = self.path.joinpath(*parts)
        if not parts or not all(map(_is_safe, parts)):
            raise Refused(f"{neutral(str(path))} is no safe path")
        folder = self._opened(parts[:-1])
        try:
            _write(folder, parts[-1], body, path, replace=replace)
        except FileExistsError as error:
            raise AlreadyThere(f"{path} exists already") from error
        except OSError as error:
            raise Refused(f"{path} cannot be written: {error.strerror or error}") from error
        finally:
            os.close(folder)
        return Saved(path, len(body))

    def _opened(self, names: tuple[str, ...]) -> int:
        """Return the descriptor of a folder below this one; folders are made as needed."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        number = os.open(self.path, flags)
        for at, name in enumerate(names):
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=number)
                inner = os.open(name, flags, dir_fd=number)
            except OSError as error:
                path = self.path.joinpath(*names[: at + 1])
                raise Refused(f"{path} is a link or no folder: nothing is saved through it"
                              ) from error
            finally:
                os.close(number)
            number = inner
        return number


def _write(folder: int, name: str, body: bytes, path: Path, *, replace: bool) -> None:
    """Write a file in an open folder, completely or not at all.

    Args:
        folder: The folder's descriptor.
        name: The file's name.
        body: The content.
        path: The whole path, for messages.
        replace: Whether to replace a regular file.

    Raises:
        FileExistsError: Something has the name.
        Refused: What is there is not replaced.
        OSError: It cannot be written.
    """
    _refuse_other(folder, name, path, replace=replace)
    partial = f".{secrets.token_hex(8)}.partial"
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600,
                     dir_fd=folder)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(body)
        if not replace:
            _keep_name(folder, partial, name)
        else:
            os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=folder)


def _keep_name(folder: int, partial: str, name: str) -> None:
    """Give a file its name, unless something has it.

    Args:
        folder: The folder's descriptor.
        partial: The name that the file has.
        name: The name that it gets.
    """
    try:
        # A link, unlike a new name, never replaces what is there.
        os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        os.close(os.open(name, flags, 0o600, dir_fd=folder))
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)


def _refuse_other(folder: int, name: str, path: Path, *, replace: bool) -> None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not replace:
        raise FileExistsError(name)
    if stat.S_ISLNK(mode):
        raise Refused(f"{path} is a link; nothing is saved through it")
    if not stat.S_ISREG(mode):
        raise Refused(f"{path} is not a regular file")
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(number, "rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE:
            raise Refused(f"{path} is a database and is not replaced")
