"""The class of the driver's rows."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import new_class
from typing import Any


@cache
def row_class() -> type[Any]:
    """Return a class of rows whose memory is free once nobody holds them.

    Of its own class, asyncpg 0.31 and later keep up to 2,000 dead rows of each length up to 20
    for each thread, some megabytes, and do not free them when the thread ends (``freelist_key``
    in its ``record/recordobj.c``). Rows of a class that inherits from it are not kept.
    """
    base = import_module("asyncpg").Record
    return new_class("Row", (base,), exec_body=lambda body: body.update(__slots__=()))
