"""Waits until file descriptors are readable, including those above 1,023."""

from __future__ import annotations

import select
from collections.abc import Sequence


def readable(descriptors: Sequence[int], timeout_s: float | None = None) -> bool:
    """Wait until one of some descriptors is readable; return False on a timeout.

    ``select`` refuses descriptors above 1,023 (``FD_SETSIZE`` in select(2)), which occur in a
    process with many open stores.

    Args:
        descriptors: Pipes, sockets, terminals, regular files, pidfds.
        timeout_s: Timeout in seconds; None waits without limit.
    """
    if not hasattr(select, "poll"):
        return bool(select.select(descriptors, (), (), timeout_s)[0])
    watched = select.poll()
    for descriptor in descriptors:
        watched.register(descriptor, select.POLLIN)
    return bool(watched.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))
