"""Writes problems to the log file, and returns them in one line."""

from __future__ import annotations

import os
import time
import traceback

from store.errors import BackscrollError
from store.system.locations import log_path, private_file
from store.text.masking import masked
from store.text.neutral import neutral

LARGEST_LOG = 4_000_000
"""Bytes; a larger log is started again."""


def reason(error: BaseException) -> str:
    """Return an error in one line of harmless text."""
    words = neutral(str(error)).strip().replace("\n", " ")
    if isinstance(error, BackscrollError):
        return words
    name = type(error).__name__
    return f"{name}: {words}" if words else name


def keep(summary: str, error: BaseException | None) -> str | None:
    """Write a problem to the log.

    Returns:
        The log file's path, or None where it cannot be written.
    """
    lines = [f"{time.strftime('%Y-%m-%d %H:%M:%S')} {masked(neutral(summary))}"]
    if error is not None:
        lines += [masked(neutral(line.rstrip())) for line in traceback.format_exception(error)]
    try:
        path = private_file(log_path())
        mode = "w" if path.stat().st_size > LARGEST_LOG else "a"
        with path.open(mode, encoding="utf-8", errors="replace") as file:
            file.write("\n".join(lines) + "\n")
    except OSError:
        return None
    return str(path)


def of_file(error: OSError) -> str:
    """Return the file name and message of an error, without the error number."""
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}"
