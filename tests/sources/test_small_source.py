"""The smallest source: what a new agent's folder must have, from listing to live sync."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from store.engine.database import open_database
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.file_source import FileSource, first_record
from store.sources.base.growing import LINES, BuiltUnit, UnitFiles, entries_of, stamped
from store.sources.base.plain_parts import text_part
from store.sources.base.protocol import FollowedSource, Problem, Source, Unit
from store.sources.base.titles import first_prompt
from store.sources.base.values import epoch_ms
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target

KIND = "small"


class SmallSource(FileSource):
    """One ``.jsonl`` file a session, one message a line: ``{id, from, text, at}``."""

    kind = KIND
    label = "Small"

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        return [home / ".small"]

    def recognise(self, path: Path) -> Path | None:
        for entry in entries_of(str(path)) if path.is_dir() else ():
            record = first_record(Path(entry.path)) if entry.name.endswith(LINES) else None
            if record is not None and "from" in record and "text" in record:
                return path
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        for entry in entries_of(str(root), problems):
            for stamp in stamped(entry, problems) if entry.name.endswith(LINES) else ():
                name = entry.name.removesuffix(LINES)
                yield Unit(name, (stamp,), stamp.mtime_ns // 1_000_000)

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        return BuiltUnit(_build, self.line_limit)


def _build(unit: Unit, files: UnitFiles, problems: list[Problem]) -> list[SessionDraft]:
    (file,) = files.lines.values()
    messages = []
    for line in file.lines:
        at = epoch_ms(line.data.get("at")) or 0
        part = text_part(str(line.data.get("text", "")), at, line.number)
        role = "user" if line.data.get("from") == "person" else "assistant"
        name = str(line.data.get("id") or line.name)
        messages.append(MessageDraft(name, role, at, at, {}, [part]))  # type: ignore[arg-type]
    if not messages:
        return []
    first, last = messages[0].created_at, messages[-1].updated_at
    draft = SessionDraft(unit.key, file.path, KIND, first, last, messages=messages)
    draft.title, draft.records = first_prompt(messages), file.records
    return [draft]


def say(path: Path, who: str, text: str, at: int) -> None:
    with path.open("ab") as file:
        file.write(orjson.dumps({"from": who, "text": text, "at": at}) + b"\n")
    os.utime(path, ns=(at * 1_000_000, at * 1_000_000))


def test_a_source_of_its_own_is_listed_synced_and_followed(tmp_path: Path) -> None:
    root = tmp_path / ".small"
    root.mkdir()
    path = root / "one.jsonl"
    say(path, "person", "hello", 1_790_000_000_000)
    source = SmallSource()
    checked: Source = source
    assert isinstance(checked, FollowedSource)
    assert (checked.version, checked.program) == (1, None)
    assert source.recognise(root) == root
    database = open_database(tmp_path / "live.db", create=True)
    target = Target(source, root)
    assert Sync(database, Settings(helpers=0)).run([target]).new == 1
    say(path, "agent", "good day", 1_790_000_001_000)
    changed = source.units_at(root, [str(path)])
    assert changed is not None
    (unit,) = changed
    assert source.units_at(root, [str(root)]) is None
    assert Sync(database, Settings(helpers=0)).run([target]).updated == 1
    found = database.connection.execute(
        "SELECT role, json_extract(data_json, '$.text') FROM chat_messages "
        "JOIN chat_parts ON chat_parts.message_id = chat_messages.id ORDER BY 1 DESC"
    ).fetchall()
    database.close()
    assert found == [("user", "hello"), ("assistant", "good day")]
    follower = source.follower(root, unit)
    assert len(follower.read(unit).sessions[0].messages) == 2
    say(path, "person", "and now", 1_790_000_002_000)
    (unit,) = source.units(root, [])
    assert follower.read(unit) == source.read(root, unit)
