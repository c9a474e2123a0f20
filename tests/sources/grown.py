"""What the tests of sources share: reading a root, and proof that nothing was touched."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from store.engine.database import Database, open_database
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.protocol import FollowedSource, Problem, Reading, Source
from store.sources.base.values import epoch_ms
from store.sync.engine import Sync
from store.sync.targets import Target

BUCKETS = ("input", "output", "reasoning", "cache_read", "cache_write")


def at(second: int) -> str:
    """Return a second of the minute that sessions made by hand take."""
    return f"2026-11-27T10:00:{second:02}.000Z"


def ms(second: int) -> int:
    """Return the same second as epoch ms."""
    found = epoch_ms(at(second))
    assert found is not None
    return found


def read_all(source: Source, root: Path) -> tuple[dict[str, SessionDraft], list[Problem]]:
    problems: list[Problem] = []
    drafts: dict[str, SessionDraft] = {}
    for unit in source.units(root, problems):
        reading = source.read(root, unit)
        problems += reading.problems
        for draft in reading.sessions:
            assert draft.source_id not in drafts
            drafts[draft.source_id] = draft
    return drafts, problems


def contents(source: Source, root: Path) -> dict[str, list[Any]]:
    """Return what each message of a root's sessions holds and used, by session."""
    return {
        name: [(one.source_id, one.role, one.metadata.get("usage"),
                [part.data for part in one.parts]) for one in draft.messages]
        for name, draft in read_all(source, root)[0].items()
    }  # fmt: skip


def only(source: Source, root: Path) -> SessionDraft:
    drafts, problems = read_all(source, root)
    assert problems == []
    (draft,) = drafts.values()
    return draft


def tokens(messages: Iterable[MessageDraft]) -> dict[str, int]:
    total = dict.fromkeys(BUCKETS, 0)
    for message in messages:
        for bucket, count in message.metadata.get("usage", {}).items():
            total[bucket] += count
    return total


def visible(draft: SessionDraft) -> list[MessageDraft]:
    return [message for message in draft.messages if "hidden_at" not in message.metadata]


def words(message: MessageDraft) -> str:
    return "|".join(part.data["text"] for part in message.parts if part.type == "text")


def prompts(messages: Iterable[MessageDraft]) -> list[str]:
    return [words(m) for m in messages if m.metadata.get("origin") == "human"]


def calls(messages: Iterable[MessageDraft]) -> list[PartDraft]:
    return [p for m in messages for p in m.parts if p.tool_call_id is not None]


def call(draft: SessionDraft, call_id: str) -> PartDraft:
    (found,) = [part for part in calls(draft.messages) if part.tool_call_id == call_id]
    return found


def extra(part: PartDraft) -> dict[str, Any]:
    found: dict[str, Any] = part.data["resultProviderMetadata"]["backscroll"]
    return found


def write_lines(path: Path, rows: Iterable[Any], *, end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows) + end)
    return path


def snapshot(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return size, mtime and bytes of each file, and of each folder its mtime."""
    found: dict[str, tuple[int, int, bytes]] = {}
    for folder, _, names in os.walk(root):
        found[folder] = (0, os.stat(folder).st_mtime_ns, b"")
        for name in names:
            path = Path(folder, name)
            status = path.stat()
            found[str(path)] = (status.st_size, status.st_mtime_ns, path.read_bytes())
    return found


def synced(source: Source, root: Path, store: Path) -> Database:
    """Sync a root into a new store, twice: the second time nothing is read."""
    database = open_database(store, create=True)
    Sync(database).run([Target(source, root)])
    again = Sync(database)
    again.run([Target(source, root)])
    assert again.changed == []
    return database


def check_records(draft: SessionDraft) -> None:
    """Assert that every message names records of its own session, and has an id of its own."""
    ids = [message.source_id for message in draft.messages]
    assert len(ids) == len(set(ids))
    for message in draft.messages:
        numbers = [*message.records, *(n for part in message.parts for n in part.records)]
        assert numbers
        assert all(0 <= number < len(draft.records) for number in numbers)


def grows_like_a_whole(make: type[Any], root: Path, path: Path, *, step: int | None = None) -> None:
    """Assert that a file followed byte by byte, or line by line, reads as one read whole.

    Args:
        make: The source's class.
        root: What is read.
        path: The file below it that grows.
        step: Bytes at a time; None for a line at a time.
    """
    body = path.read_bytes()
    source = make()
    assert isinstance(source, FollowedSource)
    path.write_bytes(b"")
    problems: list[Problem] = []
    lines = body.splitlines(keepends=True)
    pieces = lines if step is None else [body[i : i + step] for i in range(0, len(body), step)]
    follower = None
    reading: Reading | None = None
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        for unit in source.units_at(root, [str(path)]) or make().units(root, problems):
            if any(stamp.path == str(path) for stamp in unit.stamps):
                follower = follower or source.follower(root, unit)
                reading = follower.read(unit)
    assert reading is not None and reading.problems == []
    drafts, _ = read_all(make(), root)
    assert {draft.source_id: draft for draft in reading.sessions}.items() <= drafts.items()
    assert reading.sessions
