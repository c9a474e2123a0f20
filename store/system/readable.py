"""Waits for files to read from, whatever their numbers are."""

from __future__ import annotations

import select
from collections.abc import Sequence


def readable(descriptors: Sequence[int], timeout_s: float | None = None) -> bool:
    """Wait until a read from one of some files would return at once.

    ``select`` refuses descriptors above 1,023 (``FD_SETSIZE`` in select(2)), which a process
    has that keeps many stores open.

    Args:
        descriptors: Pipes, sockets, terminals, plain files; pidfds where there are some.
        timeout_s: Longest wait in seconds; None waits for ever.

    Returns:
        False when time ran out.
    """
    if not hasattr(select, "poll"):
        return bool(select.select(descriptors, (), (), timeout_s)[0])
    watched = select.poll()
    for descriptor in descriptors:
        watched.register(descriptor, select.POLLIN)
    return bool(watched.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))
