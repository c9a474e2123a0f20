"""A round: a host's file with columns, values and tables that the contract does not have."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from store.engine.database import in_transaction, open_database
from store.engine.schema import REQUIRED_COLUMNS
from store.errors import BackscrollError, StoreError
from store.ids import IdMinter
from store.verbs.fork import fork
from store.verbs.marks import rename
from store.verbs.rewind import rewind
from tests.fuzz.looking import OUR_FAULT, look_at_all
from tests.fuzz.sources import HOSTILE
from tests.sources.odd_values import ODD_CELLS, REMOVED

DEEP = "[" * 3000 + "]" * 3000
AFFINITIES = ("", " TEXT", " INTEGER", " BLOB", " REAL", " ANY", " NUMERIC")
TYPES = ("text", "reasoning", "tool-sh", "dynamic-tool", "file", "data-x", "data-compaction",
         "data-error", "step-start", "source-url", "", "x\x1b]0;x\x07")


def _json(random_: random.Random, wanted: dict[str, Any]) -> object:
    chance = random_.random()
    if chance < 0.15:
        return random_.choice([*ODD_CELLS, DEEP])
    for _ in range(random_.randint(0, 2)):
        wanted[random_.choice([*wanted, "extra"])] = random_.choice(
            [item for item in HOSTILE if item is not REMOVED])
    return json.dumps(wanted)


def _cell(random_: random.Random, usual: object) -> object:
    return random_.choice(ODD_CELLS) if random_.random() < 0.1 else usual


def _fill(random_: random.Random, connection: sqlite3.Connection) -> None:
    for number in range(random_.randint(1, 4)):
        session = f"ses_{number}"
        _insert(random_, connection, "chat_sessions", {
            "id": session, "agent": "host", "workspace_root": "/w", "model_json": _json(
                random_, {"provider_id": "p", "model_id": "m"}),
            "metadata_json": _json(random_, {"title": "T", "user": {}, "activity": {},
                                             "source": {"kind": "codex"}, "lineage": {}}),
            "permissions_json": _json(random_, {"permission": "x", "action": "allow"}),
            "created_at": number, "updated_at": number, "parent_id": f"ses_{number - 1}",
        })
        for place in range(random_.randint(0, 4)):
            message = f"msg_{number}_{place}"
            _insert(random_, connection, "chat_messages", {
                "id": message, "session_id": session, "role": random_.choice(
                    ["user", "assistant", "system", "x"]),
                "metadata_json": _json(random_, {"usage": {"input": 1}, "origin": "human",
                                                 "model": {}, "queued_at": None}),
                "created_at": place, "updated_at": place,
            })
            for index in range(random_.randint(0, 3)):
                kind = random_.choice(TYPES)
                _insert(random_, connection, "chat_parts", {
                    "id": f"prt_{number}_{place}_{index}", "message_id": message,
                    "session_id": session, "index": index, "type": kind,
                    "data_json": _json(random_, {
                        "type": kind, "text": "said", "state": "output-available", "input": {},
                        "output": "x", "toolCallId": "c", "data": {"summary": "s"},
                        "providerMetadata": {}, "resultProviderMetadata": {"backscroll": {}}}),
                    "tool_call_id": "c", "tool_state": "output-available", "created_at": place,
                    "updated_at": place,
                })


def _insert(
    random_: random.Random, connection: sqlite3.Connection, table: str, row: dict[str, object]
) -> None:
    cells = {name: value if name == "id" else _cell(random_, value) for name, value in row.items()}
    names = ", ".join(f'"{name}"' for name in cells)
    marks = ", ".join("?" * len(cells))
    # SQLite itself holds no such row.
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
        connection.execute(
            f"INSERT INTO {table}({names}) VALUES ({marks})", list(cells.values()))


def _make(random_: random.Random, path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for table, columns in REQUIRED_COLUMNS.items():
        missing = random_.choice(columns) if random_.random() < 0.05 else None
        wanted = [name for name in columns if name != missing]
        if random_.random() < 0.3:
            wanted.insert(random_.randrange(len(wanted) + 1), "host's own \x1b[31m")
        told = ", ".join(
            f'"{name}"{" PRIMARY KEY" if name == "id" else random_.choice(AFFINITIES)}'
            for name in wanted)
        rowless = "id" in wanted and random_.random() < 0.1
        ending = " WITHOUT ROWID" if rowless else ""
        connection.execute(f"CREATE TABLE {table}({told}){ending}")
    _fill(random_, connection)
    if random_.random() < 0.1:
        table = random_.choice(list(REQUIRED_COLUMNS))
        connection.execute(f"ALTER TABLE {table} RENAME TO real_{table}")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM real_{table}")
    connection.close()


def run(seed: int) -> None:
    """Do one round in a folder of its own."""
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host.db"
        _make(random_, path)
        try:
            database = open_database(path)
        except StoreError as error:
            assert not OUR_FAULT.search(str(error)), str(error)
            return
        try:
            look_at_all(database)
            ids = IdMinter()
            for work in (
                lambda db: rename(db, "ses_0", "new", now=5),
                lambda db: fork(db, "ses_0", "msg_0_0", ids=ids, now=5),
                lambda db: rewind(db, "ses_0", "msg_0_0", now=5),
            ):
                try:
                    in_transaction(database, work)
                except BackscrollError as error:
                    assert not OUR_FAULT.search(str(error)), str(error)
            look_at_all(database)
        finally:
            database.close()
