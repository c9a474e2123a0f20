"""Resolves and opens untrusted paths: from settings, variables, agents' files and sessions.

Such a path may be anything: a pipe, on which an ordinary ``open`` waits for a writer; an
endless device; a cycle of links; the home folder of a user who does not exist. None of these
may hang or crash the program, so code outside this module does not call
``resolve``, ``realpath``, ``expanduser``, ``read_bytes``, ``read_text`` or ``open`` for such paths.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_LARGEST = 1 << 30
"""Most bytes of a file that ``read_regular`` reads."""


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return the result of ``expanded_name`` as a ``Path``."""
    from pathlib import Path

    return Path(expanded_name(path))


def expanded_name(path: str | os.PathLike[str]) -> str:
    """Return a path with ``~`` expanded; unchanged if there is no such user.

    A NUL, which is invalid in paths, becomes U+FFFD, so that no such file exists.
    """
    return os.path.expanduser(os.fspath(path).replace("\0", "\ufffd"))


def resolved(path: str | os.PathLike[str]) -> str:
    """Return an absolute path with links resolved, as far as possible.

    Cycles of links, and paths with invalid characters, are left as they are.
    """
    try:
        return os.path.realpath(path)
    except ValueError:
        return os.path.abspath(path)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the result of ``resolved`` as a ``Path``."""
    from pathlib import Path

    return Path(resolved(path))


def open_regular(path: str | os.PathLike[str]) -> FileIO:
    """Return a regular file opened for reading, unbuffered; never waits for a writer.

    The null device counts as an empty file: people link files to it to keep them empty.

    Raises:
        OSError: It cannot be opened, or is a pipe, a device, a socket or a folder.
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
    """Return the content of a regular file.

    Args:
        path: The file.
        most: Size limit in bytes.

    Raises:
        OSError: As for ``open_regular``, or the file is larger than ``most``.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most >> 20:,} MiB", os.fspath(path))
        return b"".join(iter(lambda: file.read(1 << 20), b""))
