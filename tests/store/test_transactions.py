"""What SQLite's errors become for a user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from store.engine.transactions import for_user
from store.errors import Refused, StoreError

PATH = Path("/somewhere/s.db")


@pytest.mark.parametrize(("code", "reading", "writing"), [
    (sqlite3.SQLITE_BUSY, StoreError, Refused),
    (sqlite3.SQLITE_READONLY, StoreError, Refused),
    (sqlite3.SQLITE_IOERR_READ, StoreError, Refused),
    (sqlite3.SQLITE_FULL, StoreError, StoreError),
    (sqlite3.SQLITE_CORRUPT, StoreError, StoreError),
    (sqlite3.SQLITE_NOTADB, StoreError, StoreError),
    (sqlite3.SQLITE_CONSTRAINT, sqlite3.DatabaseError, sqlite3.DatabaseError),
])
def test_a_write_is_refused_where_the_error_may_pass(
    code: int, reading: type[Exception], writing: type[Exception]
) -> None:
    error = sqlite3.DatabaseError("what SQLite says")
    error.sqlite_errorcode = code
    for verb, expected in ((False, reading), (True, writing)):
        assert type(for_user(error, PATH, writing=verb)) is expected
