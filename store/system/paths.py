"""Looks up and opens paths that others chose: settings, variables, agents' files, sessions.

Each may be anything: a pipe, on which an ordinary ``open`` waits for a writer; a device
without an end; a ring of links; the home folder of a user who does not exist. None of
these may hang or end the program, so code outside this module does not call
``resolve``, ``realpath``, ``expanduser``, ``read_bytes``, ``read_text`` or ``open`` for such paths.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from pathlib import Path

_LARGEST = 1 << 30
"""Bytes of the largest file that ``read_regular`` reads."""


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with ``~`` as the home folder; as it is where there is no such user.

    A NUL, which no path can have, becomes U+FFFD: there is no such file then.
    """
    return Path(os.path.expanduser(os.fspath(path).replace("\0", "\ufffd")))


def resolved(path: str | os.PathLike[str]) -> str:
    """Return an absolute path without links; what cannot be followed stays as it is.

    That is a ring of links, and a path with characters that no file system takes.
    """
    try:
        return os.path.realpath(path)
    except ValueError:
        return os.path.abspath(path)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return ``resolved`` as a path object."""
    return Path(resolved(path))


def open_regular(path: str | os.PathLike[str]) -> FileIO:
    """Open a regular file for reading, unbuffered, without ever waiting for a writer.

    The null device counts as an empty one: people link to it what shall stay empty.

    Raises:
        OSError: When it cannot be opened, or is a pipe, a device, a socket or a folder.
    """
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not _is_plain(os.fstat(number)):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return FileIO(number, "rb")


def _is_plain(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or (
        stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev
    )


def read_regular(path: str | os.PathLike[str], most: int = _LARGEST) -> bytes:
    """Return what a regular file holds.

    Args:
        path: The file.
        most: Bytes of the largest file that is read.

    Raises:
        OSError: As ``open_regular`` does; or the file is larger.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most >> 20:,} MiB", os.fspath(path))
        return b"".join(iter(lambda: file.read(1 << 20), b""))
