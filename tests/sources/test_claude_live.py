"""Recorded runs, append by append: what was shown stays, and the end is as read at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.claude_code import ClaudeCodeSource, SessionReader
from store.sources.claude_code.neighbours import Neighbours
from tests.sources.claude_rows import File, tool

LIVE = Path(__file__).parent.parent / "data" / "claude-code" / "live"
SESSION = "22222222-2222-4222-8222-222222222222"


def appends(name: str) -> list[tuple[str, bytes]]:
    lines = (LIVE / f"{name}.timeline.jsonl").read_text().splitlines()
    events = sorted((json.loads(line) for line in lines), key=lambda event: event["t"])
    return [
        (event["file"], event["append"].encode("utf-8", "surrogateescape"))
        for event in events
        if "append" in event
    ]


def parts_of(draft: SessionDraft) -> dict[tuple[str, int], str]:
    return {
        (message.source_id, index): part.type
        for message in draft.messages
        for index, part in enumerate(message.parts)
    }


@pytest.mark.parametrize("name", ["2.1.332-terminal", "2.1.332-print", "2.0.77-print"])
def test_appended_bytes_come_to_the_same(name: str, tmp_path: Path) -> None:
    source = ClaudeCodeSource()
    (tmp_path / "-home-user-project").mkdir()
    (tmp_path / "-home-user-project" / f"{SESSION}.jsonl").touch()
    (unit,) = source.units(tmp_path, [])
    reader = source.reader(tmp_path, unit)
    known: dict[str, dict[tuple[str, int], str]] = {}
    for file, body in appends(name):
        path = tmp_path / file
        with path.open("ab") as out:
            out.write(body)
        reader.transcript(str(path)).push(body)
        for draft in reader.build():
            parts = parts_of(draft)
            before = known.get(draft.source_id, {})
            assert before.items() <= parts.items()
            known[draft.source_id] = parts
    (unit,) = source.units(tmp_path, [])
    reading = source.read(tmp_path, unit)
    assert reading.problems == []
    assert reader.build() == reading.sessions
    assert [stamp.offset for stamp in reading.stamps] == [stamp.size for stamp in unit.stamps]
    main = reading.sessions[0]
    assert main.source_id == SESSION and main.lineage is None
    assert all("hidden_at" not in message.metadata for message in main.messages)
    states = {p.tool_state for m in main.messages for p in m.parts if p.tool_call_id}
    assert states == {"output-available"}


FILES = sorted((LIVE.parent / "home" / ".claude" / "projects").glob("*/*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_line_by_line_is_as_at_once(path: Path) -> None:
    whole, grown = (SessionReader(path.stem, str(path), Neighbours("/nowhere")) for _ in "ab")
    assert whole.main and grown.main
    names: set[str] = set()
    for line in path.read_bytes().splitlines(keepends=True):
        grown.main.push(line)
        now = {
            message.source_id
            for draft in grown.build()
            for message in draft.messages
            if "queued_at" not in message.metadata
        }
        assert names <= now
        names = now
    whole.main.push(path.read_bytes())
    assert grown.build() == whole.build()


def test_what_grows_is_built_again_where_it_must(tmp_path: Path) -> None:
    file = File()
    base = file.user("a")
    file.assistant(tool("t1"), id="msg_1")
    file.result("t2", "before its call")
    file.assistant(tool("t2"), id="msg_2")
    file.user("b", parent=base)
    file.assistant("re b", id="msg_3")
    lines = file.text().encode().splitlines(keepends=True)
    reader = SessionReader("s", "s", Neighbours("/nowhere"))
    assert reader.main
    hidden: list[int] = []
    for line in lines:
        reader.main.push(line)
        (draft,) = reader.build()
        hidden.append(sum("hidden_at" in message.metadata for message in draft.messages))
    assert hidden == [0, 0, 0, 0, 2, 2]
    assert [part.type for m in draft.messages for part in m.parts] == [
        "text",
        "tool-Bash",
        "tool-Bash",
        "text",
        "text",
    ]


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    source = ClaudeCodeSource()
    folder = tmp_path / "p"
    folder.mkdir()
    path = folder / f"{SESSION}.jsonl"
    events = appends("2.0.77-print")
    path.write_bytes(b"".join(body for file, body in events if SESSION in file))
    whole = path.read_bytes()
    path.write_bytes(b'{"type":"user","uuid":"x","parentUuid":null}\n')
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    follower.read(unit)
    path.write_bytes(whole)
    (unit,) = source.units(tmp_path, [])
    assert follower.read(unit) == source.read(tmp_path, unit)
