"""A source of one-line-a-message files, and drafts by hand, for the tests of sync."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from store.engine.database import Database, open_database
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.protocol import FileStamp, Problem, Reading, Source, Unit
from store.sync.engine import Sync
from store.sync.progress import Summary
from store.sync.settings import Settings
from store.sync.targets import Target

START = 1_795_000_000_000
TABLES = ("chat_sessions", "chat_messages", "chat_parts")
SIDE_TABLES = ("original_records", "record_refs", "attachments", "session_links", "system_prompts")


def text_part(text: str, at: int = START, records: tuple[int, ...] = ()) -> PartDraft:
    return PartDraft("text", {"type": "text", "text": text, "state": "done"}, at, at,
                     records=records)  # fmt: skip


def message(
    name: str, at: int = START, text: str | None = None, role: Any = "user", **metadata: Any
) -> MessageDraft:
    return MessageDraft(name, role, at, at, dict(metadata), [text_part(text or name, at)])


def session(name: str = "one", *messages: MessageDraft, **fields: Any) -> SessionDraft:
    values: dict[str, Any] = {
        "path": f"/sessions/{name}.jsonl", "agent": "fake", "created_at": START,
        "updated_at": max((one.updated_at for one in messages), default=START),
        "messages": list(messages), **fields,
    }  # fmt: skip
    return SessionDraft(name, **values)


def dump(database: Database, tables: Iterable[str] = TABLES) -> dict[str, list[Any]]:
    """Every row of the tables, in an order that says nothing of when it was written."""
    return {
        table: sorted(database.connection.execute(f"SELECT * FROM {table}"), key=repr)
        for table in tables
    }


class LineSource(Source):
    """Reads ``*.lines``: each line ``{"id", "at", "text", ...}``; ``BAD`` lines are damage."""

    kind = "fake"
    label = "Fake agent"

    def __init__(self) -> None:
        self.read_units: list[str] = []

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        return [home / ".fake"]

    def recognise(self, path: Path) -> Path | None:
        if path.suffix == ".lines":
            return path.parent
        return path if path.is_dir() and any(path.glob("*.lines")) else None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        for path in sorted(root.glob("*.lines")):
            stamp = _stamp(path)
            yield Unit(path.name, (stamp,), stamp.mtime_ns // 1_000_000)
        for path in sorted(root.glob("*.broken")):
            problems.append(Problem(str(path), 0, "is broken"))

    def read(self, root: Path, unit: Unit) -> Reading:
        self.read_units.append(unit.key)
        path = root / unit.key
        stamp = _stamp(path)
        body = path.read_bytes()
        whole = body[: body.rfind(b"\n") + 1]
        if whole.startswith(b"EXPLODE"):
            raise RuntimeError("this file explodes")
        problems: list[Problem] = []
        records: list[bytes] = []
        draft = session(path.stem, path=str(path))
        for number, line in enumerate(whole.splitlines(), 1):
            records.append(line)
            try:
                value = json.loads(line)
            except ValueError:
                problems.append(Problem(str(path), number, "is no JSON"))
                continue
            _add(draft, value, len(records) - 1)
        draft.records = records
        stamp = FileStamp(stamp.path, stamp.inode, stamp.size, stamp.mtime_ns, len(whole))
        return Reading([draft] if records else [], problems, (stamp,))

    def watch_paths(self, root: Path) -> Iterable[Path]:
        return [root]


def _add(draft: SessionDraft, value: dict[str, Any], number: int) -> None:
    at = value["at"]
    if "workspace" in value:
        draft.workspace_root = value["workspace"]
    draft.title = draft.title or value["text"]
    part = text_part(value["text"], at, (number,))
    draft.messages.append(MessageDraft(value["id"], value.get("role", "user"), at, at, {}, [part]))
    draft.updated_at = max(draft.updated_at, at)


def _stamp(path: Path) -> FileStamp:
    stat = path.stat()
    return FileStamp(str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns)


def line(number: int, text: str | None = None, **more: Any) -> str:
    value = {"id": f"m{number}", "at": START + number * 10, "text": text or f"text {number}"}
    return json.dumps(value | more) + "\n"


def write_lines(root: Path, name: str, count: int, *, at: int = START, **more: Any) -> Path:
    """A session file of ``count`` messages; its mtime is ``at``."""
    root.mkdir(exist_ok=True, parents=True)
    path = root / f"{name}.lines"
    path.write_text("".join(line(number, **more) for number in range(count)))
    os.utime(path, ns=(at * 1_000_000, at * 1_000_000))
    return path


def run(database: Database, root: Path, source: Any = None, **settings: Any) -> Summary:
    options = Settings(helpers=0, **settings)
    return Sync(database, options).run([Target(source or LineSource(), root)])


if __name__ == "__main__":
    opened = open_database(Path(sys.argv[1]), create=True)
    print(run(opened, Path(sys.argv[2]), exclusive=sys.argv[3] == "exclusive").as_dict())
