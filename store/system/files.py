"""Files that are written on the user's order: named safely, whole or not at all.

A file takes its name only when all of it is written. It never takes another's place unless
that was asked for, and then only that of a plain file: what a link names is not written.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from store.errors import Refused
from store.system.paths import expanded


class AlreadyThere(Refused):
    """Something of that name is there already."""


LONGEST_NAME = 100
_NOT_TAKEN = re.compile(r"[^A-Za-z0-9._]+")


def plain_name(wanted: str, otherwise: str = "session") -> str:
    """Return a name of letters, digits, ``.``, ``_`` and ``-`` that every file system takes.

    Args:
        wanted: Any text, an id say; what does not fit becomes ``-``.
        otherwise: The name where nothing fits.
    """
    plain = _NOT_TAKEN.sub("-", wanted).strip("-.")
    return plain[:LONGEST_NAME] or otherwise


def write_whole(path: Path, pieces: Iterable[str | bytes], *, replace: bool = False) -> int:
    """Write a file for its owner's eyes (0600), whole or not at all, and return its size.

    Args:
        path: Where; its folder has to be there.
        pieces: What it holds; text is written as UTF-8.
        replace: Whether a plain file that is there gives way.

    Raises:
        AlreadyThere: Something is there, and ``replace`` was not asked for.
        Refused: What is there is no plain file; the folder is missing, or the
            file cannot be written.
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
        partial = path.with_name(f".{path.name[:LONGEST_NAME]}.{secrets.token_hex(4)}.partial")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                count = _write(file, pieces)
            _name(partial, path, replace=replace)
        finally:
            partial.unlink(missing_ok=True)
    except FileExistsError as error:
        raise AlreadyThere(f"{path} is there already") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"{path} cannot be written: {reason or error}") from error
    return count


def _write(file: BinaryIO, pieces: Iterable[str | bytes]) -> int:
    for piece in pieces:
        file.write(piece.encode() if isinstance(piece, str) else piece)
    return file.tell()


def _unnamed(folder: Path) -> int | None:
    """Open a file that has no name, so that a process that is killed leaves nothing behind.

    Returns:
        Its descriptor; None where the system or the file system knows no such files.
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
        FileExistsError: Something of that name is there.
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
        return  # Writing says what is wrong.
    if stat.S_ISDIR(mode):
        raise Refused(f"{path} is a folder")
    if not replace:
        raise AlreadyThere(f"{path} is there already")
    if stat.S_ISLNK(mode):
        raise Refused(f"{path} is a link; name the file itself, or remove the link")
    if not stat.S_ISREG(mode):
        raise Refused(f"{path} is no plain file")


def _name(partial: Path, path: Path, *, replace: bool) -> None:
    """Give a file its name; a link, unlike a rename, refuses a file that came up meanwhile.

    Raises:
        FileExistsError: One is there.
    """
    if replace:
        partial.replace(path)
        return
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links: the look before has to do.
        partial.rename(path)
