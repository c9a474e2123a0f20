"""A round: a file or folder that is nobody's, handed in as a target."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from store.engine.database import open_database
from store.engine.opening import recognise
from store.errors import StoreError
from store.sources.registry import all_sources, recognised
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.fuzz.looking import OUR_FAULT, look_at_all
from tests.fuzz.sources import HOSTILE
from tests.sources.odd_values import REMOVED

KEYS = (
    "type", "role", "kind", "id", "uuid", "parentUuid", "sessionId", "timestamp", "message",
    "payload", "content", "parts", "messages", "history", "session", "items", "cwd", "version",
    "projectHash", "startTime", "lastUpdated", "info", "time", "data", "metadata", "name",
)
NAMES = (
    "x.jsonl", "session-2026-11-27T10-00-aaaaaaaa.jsonl", "a.json", "events.jsonl", "logs.json",
    "11111111-1111-4111-8111-111111111111.jsonl", ".aider.chat.history.md", "workspace.yaml",
    "rollout-2026-01-01T00-00-00-11111111-1111-4111-8111-111111111111.jsonl",
    "2026-11-27T10-00-00-000Z_11111111-1111-4111-8111-111111111111.jsonl",
)  # fmt: skip
TYPES = ("user", "assistant", "session_meta", "response_item", "session", "message", "summary",
         "session.start", "system", "gemini", "event_msg", "tool")


def _value(random_: random.Random, depth: int = 0) -> Any:
    if depth < 3 and random_.random() < 0.4:
        return _record(random_, depth + 1)
    if random_.random() < 0.2:
        return [_value(random_, depth + 1) for _ in range(random_.randint(0, 3))]
    return random_.choice([*TYPES, *(item for item in HOSTILE if item is not REMOVED)])


def _record(random_: random.Random, depth: int = 0) -> dict[str, Any]:
    keys = random_.sample(KEYS, random_.randint(1, 7))
    record = {key: _value(random_, depth) for key in keys}
    if random_.random() < 0.6:
        record["type"] = random_.choice(TYPES)
    return record


def run(seed: int) -> None:
    """Do one round in a folder of its own."""
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "given"
        path = top / random_.choice(["", "chats", "sessions/2026/01/01", "projects/-x"])
        path.mkdir(parents=True, exist_ok=True)
        file = path / random_.choice(NAMES)
        lines = [json.dumps(_record(random_)) for _ in range(random_.randint(1, 12))]
        text = "\n".join(lines) if file.suffix != ".json" or random_.random() < 0.5 else (
            f"[{','.join(lines)}]")
        file.write_text(text + "\n" * random_.randint(0, 1))
        recognise(file)
        for given in (file, top):
            found = None
            try:
                found = recognised(given, all_sources())
            except StoreError as error:
                assert not OUR_FAULT.search(str(error)), str(error)
            if found is not None:
                _read(Target(*found), Path(folder) / f"{given.name}.db")


def _read(target: Target, store: Path) -> None:
    database = open_database(store, create=True)
    try:
        Sync(database, Settings(helpers=0)).run([target])
        for path, line, reason in database.connection.execute(
            "SELECT path, line, reason FROM source_problems"
        ):
            assert not OUR_FAULT.search(reason), f"{path}:{line}: {reason}"
        look_at_all(database)
    finally:
        database.close()
