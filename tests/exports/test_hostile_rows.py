"""A host's file may hold any value anywhere: every export and plan is made, or refused.

Values are put into one place at a time of a session that has everything; the seed decides
which. ``BACKSCROLL_FUZZ`` sets how many are tried of each form.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.engine.schema import CONTRACT_INDEXES, CONTRACT_TABLES
from store.errors import BackscrollError
from store.exports.reading import read_session
from store.exports.registry import FORMATS, writer
from store.queries.sessions import get
from store.resume.registry import AGENTS, plan
from tests.cli.hostile import VALUES

TRIES = int(os.environ.get("BACKSCROLL_FUZZ", "20"))
AT = 1_790_000_000_000
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**63 - 1, -(2**63), 10**400, 1e308, 0.5, [], {}, ["x"],
    {"type": ["x"]}, [[]], {"a": {"b": [None]}}, "", "x", "\x00", *VALUES,
)  # fmt: skip
PARTS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "said", "providerMetadata": {"backscroll": {"synthetic": True}}},
    {"type": "reasoning", "text": "thought", "providerMetadata": {
        "anthropic": {"signature": "s"}, "openai": {"reasoningEncryptedContent": "e"}, "pi": {}}},
    {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA",
     "filename": "a.png"},
    {"type": "file", "mediaType": "text/plain", "url": "data:,hello%20you"},
    {"type": "tool-bash", "toolCallId": "c1", "state": "output-available",
     "input": {"command": "ls"}, "output": [{"type": "text", "text": "x"},
                                            {"type": "file", "mediaType": "image/png",
                                             "url": "data:image/png;base64,AAAA"}],
     "resultProviderMetadata": {"backscroll": {"exit_code": 1, "title": "t"}},
     "callProviderMetadata": {"openai": {"type": "custom_tool_call", "namespace": "n"}}},
    {"type": "dynamic-tool", "toolName": "t", "toolCallId": "c2", "state": "output-error",
     "input": {}, "errorText": "no"},
    {"type": "tool-x", "toolCallId": "c3", "state": "output-denied", "input": {},
     "approval": {"id": "a", "approved": False, "reason": "no"}},
    {"type": "data-compaction", "data": {"summary": "s", "tail_start_id": "m1", "auto": True,
                                         "pre_tokens": 5}},
    {"type": "data-patch", "data": {"hash": "h", "files": ["a"]}},
)  # fmt: skip
METADATA: dict[str, Any] = {
    "origin": "human", "usage": {"input": 1, "output": 2}, "agent": "build", "cost_usd": 0.1,
    "model": {"provider_id": "p", "model_id": "m"}, "source": {"id": "s1"},
}  # fmt: skip
SESSION: dict[str, Any] = {
    "title": "T", "git_branch": "main", "version": "1", "lineage": {"kind": "fork"},
    "source": {"kind": "codex", "id": "i", "path": "/nowhere"}, "user": {"title": "U"},
    "backscroll": {"draft_prompt": "d"},
}  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything inside a value, and of itself."""
    inner = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else ())  # fmt: skip
    return [at, *(path for key, one in inner for path in places(one, (*at, key)))]


def put(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a copy of a value with another in one place."""
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], odd)
    return copy


def storable(value: object) -> str | None:
    return value if isinstance(value, str) and "\udc80" not in value else None


def host(path: Path, chance: random.Random) -> str:
    """Write a host's file with one odd value and return what was put where."""
    parts, metadata, session = [*PARTS], dict(METADATA), dict(SESSION)
    columns: dict[str, Any] = {"workspace_root": "/w", "created_at": AT, "updated_at": AT,
                               "agent": "x"}  # fmt: skip
    rows: dict[str, Any] = {"created_at": AT + 1, "updated_at": AT + 2, "role": "assistant"}
    what = chance.choice(("part", "part", "part", "metadata", "session", "column", "row"))
    odd = chance.choice(ODD)
    if what == "part":
        number = chance.randrange(len(parts))
        place: Any = (number, chance.choice(places(parts[number])))
        parts[number] = put(parts[number], place[1], odd)
    elif what == "metadata":
        place = chance.choice(places(metadata))
        metadata = put(metadata, place, odd)
    elif what == "session":
        place = chance.choice(places(session))
        session = put(session, place, odd)
    else:
        target = columns if what == "column" else rows
        place = chance.choice([*target])
        target[place] = json.dumps(odd) if isinstance(odd, dict | list | bool) else odd
        if isinstance(target[place], int) and abs(target[place]) >= 2**63:
            target[place] = 1e300
        if isinstance(target[place], str):
            target[place] = target[place].encode("utf-8", "replace").decode()
        if target[place] is None and place != "workspace_root":
            target[place] = ""
    text = json.dumps
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    database.executescript(CONTRACT_TABLES + CONTRACT_INDEXES)
    database.execute(
        "INSERT INTO chat_sessions(id, agent, workspace_root, model_json, metadata_json,"
        " created_at, updated_at) VALUES ('s', ?, ?, ?, ?, ?, ?)",
        (columns["agent"], columns["workspace_root"], text(METADATA["model"]), text(session),
         columns["created_at"], columns["updated_at"]),
    )  # fmt: skip
    messages = [("m0", "user", AT), ("m1", rows["role"], rows["created_at"]),
                ("m2", "user", AT + 5), ("m3", "assistant", AT + 6)]  # fmt: skip
    for name, role, at in messages:
        database.execute("INSERT INTO chat_messages VALUES (?, 's', ?, ?, ?, ?)",
                         (name, role, text(metadata), at, rows["updated_at"]))  # fmt: skip
        mine = parts if name == "m1" else parts[:3] + parts[7:8] * (name == "m3")
        for index, part in enumerate(mine):
            kind = part.get("type") if isinstance(part, dict) else None
            call = part.get("toolCallId") if isinstance(part, dict) else None
            database.execute(
                "INSERT INTO chat_parts VALUES (?, ?, 's', ?, ?, ?, ?, NULL, ?, ?)",
                (f"{name}p{index}", name, index, storable(kind) or "x", text(part), storable(call),
                 rows["created_at"], rows["updated_at"]),
            )  # fmt: skip
    database.commit()
    database.close()
    return f"{what} {place}: {odd!r}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.one_in(2)
def test_every_export_and_plan_is_made(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    chance = random.Random(seed)
    faults = []
    for number in range(TRIES):
        path = tmp_path / f"{number}.db"
        what = host(path, chance)
        database = open_database(path, write=False)
        for form in FORMATS:
            view = FORMATS[form].view or "display"
            try:
                "".join(writer(form)(read_session(database, "s", view))).encode()
            except BackscrollError:
                pass
            except Exception as error:
                faults.append(f"{form}: {what}: {error!r}")
        for agent in AGENTS:
            try:
                row = get(database, "s")
                assert row is not None
                plan(database, row, {}, tmp_path, agent)
            except BackscrollError:
                pass
            except Exception as error:
                faults.append(f"plan {agent}: {what}: {error!r}")
        database.close()
        path.unlink()
    assert faults == []
