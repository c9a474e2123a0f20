"""Imports asyncio without what the browser has no use for."""

from __future__ import annotations

import sys
from typing import Any


def import_asyncio() -> None:
    """Import asyncio without ``ssl``, which takes 5 ms of each start.

    The browser's loop has no connections: servers are read by other processes, or before it
    starts, in which case all is imported already. asyncio itself provides for a Python without
    ``ssl``, and says so where TLS is asked of it.
    """
    modules: dict[str, Any] = sys.modules
    if "asyncio" in modules or "ssl" in modules:
        return
    modules["ssl"] = None  # Its import fails from now on.
    try:
        import asyncio  # noqa: F401
    finally:
        del modules["ssl"]
