"""Opens regular files only: a pipe would be waited on, a device read without an end."""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO


def open_regular(path: str | os.PathLike[str]) -> FileIO:
    """Open a regular file for reading, unbuffered, without ever waiting for a writer.

    Raises:
        OSError: When it cannot be opened, or is a pipe, a device, a socket or a folder.
    """
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return FileIO(number, "rb")
