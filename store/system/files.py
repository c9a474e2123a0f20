"""Writes files for the user: with safe names, completely or not at all.

A file gets its name only when it is completely written. It replaces an existing file only if
that is requested, and only a regular file: links are not followed.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from store.errors import Refused
from store.system.paths import expanded


class AlreadyThere(Refused):
    """Something of that name exists already."""


LONGEST_NAME = 100
_DATABASE = b"SQLite format 3\0"
"""What a file of SQLite begins with."""
_NOT_TAKEN = re.compile(r"[^A-Za-z0-9._]+")


def plain_name(wanted: str, otherwise: str = "session") -> str:
    """Return a file name of letters, digits, ``.``, ``_`` and ``-``, valid everywhere.

    Args:
        wanted: Any text, such as an id; other characters become ``-``.
        otherwise: The name to use if nothing is left.
    """
    plain = _NOT_TAKEN.sub("-", wanted).strip("-.")
    return plain[:LONGEST_NAME] or otherwise


def made_folder(folder: Path) -> None:
    """Make a private folder (0700), and those above it, where they are missing.

    Raises:
        Refused: It cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise Refused(f"{folder} is no folder; name another") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"{folder} cannot be made: {reason or error}") from error


def write_whole(path: Path, pieces: Iterable[str | bytes], *, replace: bool = False) -> int:
    """Write a private file (0600), completely or not at all, and return its size in bytes.

    Args:
        path: The file's path; its folder must exist.
        pieces: The content; text is written as UTF-8.
        replace: Whether to replace an existing regular file.

    Raises:
        AlreadyThere: Something exists at the path, and ``replace`` is False.
        Refused: Something other than a regular file is there, or a database, as a store is; or
            the folder is missing, or the file cannot be written.
    """
    if "\0" in str(path):
        raise Refused(f"{expanded(path)} cannot be written: its name holds a null character")
    path = expanded(path)
    _refuse_other(path, replace=replace)
    try:
        handle = None if replace else _unnamed(path.parent)
        if handle is not None:
            with os.fdopen(handle, "wb") as file:
                count = _write(file, pieces)
                file.flush()
                _name_descriptor(file.fileno(), path)
            return count
        import secrets  # It loads OpenSSL, which a browser that only reads does without.

        partial = path.with_name(f".{path.name[:LONGEST_NAME]}.{secrets.token_hex(4)}.partial")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                count = _write(file, pieces)
            _name(partial, path, replace=replace)
        finally:
            partial.unlink(missing_ok=True)
    except FileExistsError as error:
        raise AlreadyThere(f"{path} exists already") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"{path} cannot be written: {reason or error}") from error
    return count


def _write(file: BinaryIO, pieces: Iterable[str | bytes]) -> int:
    for piece in pieces:
        file.write(piece.encode() if isinstance(piece, str) else piece)
    return file.tell()


def _unnamed(folder: Path) -> int | None:
    """Open a file without a name, so that a killed process leaves nothing behind.

    Returns:
        Its descriptor; None if the system or the file system does not support this.
    """
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, flag | os.O_WRONLY, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise


_DESCRIPTORS = "/proc/self/fd"


def _name_descriptor(number: int, path: Path) -> None:
    """Give an unnamed file its name.

    Raises:
        FileExistsError: Something of that name exists.
    """
    folder = os.open(_DESCRIPTORS, os.O_RDONLY)
    try:
        # With a folder's descriptor the link in /proc is followed (linkat, AT_SYMLINK_FOLLOW).
        os.link(str(number), path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _refuse_other(path: Path, *, replace: bool) -> None:
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return  # The write itself will report the error.
    if stat.S_ISDIR(mode):
        raise Refused(f"{path} is a folder")
    if not replace:
        raise AlreadyThere(f"{path} exists already")
    if stat.S_ISLNK(mode):
        raise Refused(f"{path} is a link; name the file itself, or remove the link")
    if not stat.S_ISREG(mode):
        raise Refused(f"{path} is not a regular file")
    if _is_database(path):
        raise Refused(f"{path} is a database and is not replaced; choose another name")


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False  # The write itself will report the error.


def _name(partial: Path, path: Path, *, replace: bool) -> None:
    """Give a file its name, by a hard link: unlike a rename, it never replaces a file.

    Raises:
        FileExistsError: Something of that name exists.
    """
    if replace:
        partial.replace(path)
        return
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links: the earlier check must suffice.
        partial.rename(path)
