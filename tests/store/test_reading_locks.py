from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from store.engine.access import read_header
from store.engine.companions import beside
from store.engine.database import open_database
from tests.store import making

WRITES = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("UPDATE chat_sessions SET agent = agent || '+'")
connection.close()
"""


def another_process_writes(path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITES, str(path)], check=True, timeout=120)


@pytest.mark.parametrize("again", ["header", "database"])
def test_a_second_look_at_a_file_does_not_blind_the_first(again: str, tmp_path: Path) -> None:
    path = making.own(tmp_path / "s.db")
    with_session = open_database(path)
    making.add_session(with_session.connection, "ses_a")
    with_session.close()
    reader = open_database(path, write=False)

    def version() -> int:
        return int(reader.connection.execute("PRAGMA data_version").fetchall()[0][0])

    before = version()
    if again == "header":
        read_header(path)
    else:
        open_database(path, write=False).close()
    for expected in ("claude+", "claude++"):
        another_process_writes(path)
        assert beside(path, "-wal").exists()
        assert version() != before
        before = version()
        (agent,) = reader.connection.execute("SELECT agent FROM chat_sessions").fetchall()[0]
        assert agent == expected
    reader.close()
