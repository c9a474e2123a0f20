"""A terminal on stdin, on which somebody answers."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def answering(answer: str) -> Iterator[None]:
    """Put a terminal in the place of stdin, with an answer typed already."""
    master, slave = pty.openpty()
    os.write(master, f"{answer}\n".encode())
    before = sys.stdin
    with open(slave, encoding="utf-8") as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before
    os.close(master)
