"""Lines that were written or copied twice count once; what was said twice counts twice."""

from __future__ import annotations

import gc
import json
import random
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.growing import Changed, GrowingFile
from store.sources.base.repeats import Repeats
from store.sources.claude_code.transcript import Transcript
from store.sources.codex.rollout import Rollout
from store.sync import units
from store.sync.engine import Sync
from store.sync.settings import Settings
from tests.sources.grown import contents, read_all
from tests.sources.samples import MORE, SAMPLES, Sample, path_of
from tests.store.sync_fakes import dump

USER, MODEL = (
    {"role": "user", "text": "go"},
    {"role": "assistant", "text": "It is in limit.py, line 4."},
)
WAITING = {"role": "assistant", "content": [
    {"type": "text", "text": "I run the tests once more."},
    {"type": "tool_use", "name": "bash", "input": {"command": "make test"}},
]}  # fmt: skip
OTHER_CALL = {"role": "assistant", "content": [
    {"type": "text", "text": "I read the first failing test."},
    {"type": "tool_use", "name": "read", "input": {"path": "test_limit.py"}},
]}  # fmt: skip
LONG = {"role": "assistant", "text": "It is in limit.py, line 4. " * 9}
RESULT = {"role": "tool", "content": "1 failed"}
SHORT = {"role": "assistant", "text": "Done."}
HEAD = {"session": 1, "startTime": "2026-11-27T10:00:00.000Z"}
STATE, OTHER = {"type": "mode", "mode": "plan"}, {"type": "mode", "mode": "edit"}


def timed(text: str, second: int = 0, part: str = "000") -> dict[str, Any]:
    return {"timestamp": f"2026-11-27T10:00:{second:02}.{part}Z", "text": text}


def named(text: str, name: str) -> dict[str, Any]:
    return {"id": name, "text": text}


A, B, C = timed("a", 1), timed("b", 2), timed("c", 3)


def taken(path: Path, rows: list[dict[str, Any]], *cuts: int) -> list[dict[str, Any]]:
    """Return the rows that are no repeats, of a file that grows with stops at some rows."""
    path.write_bytes(b"")
    file = GrowingFile(str(path))
    start = 0
    for cut in (*cuts, len(rows)):
        with path.open("a") as growing:
            growing.write("".join(json.dumps(row) + "\n" for row in rows[start:cut]))
        start = cut
        try:
            file.read([])
        except Changed:
            file = GrowingFile(str(path))
            file.read([])
    return [record.data for record in file.lines]


@pytest.mark.parametrize(("rows", "once"), [
    pytest.param([A, B, C, B, C], [A, B, C], id="the last lines again"),
    pytest.param([A, B, B, C], [A, B, C], id="one line written twice"),
    pytest.param([A, B, A, C], [A, B, C], id="a line that comes too late"),
    pytest.param([A, STATE, B, STATE, B, C], [A, STATE, B, C], id="with what has no time"),
    pytest.param([A, B, C, A, B, timed("d", 4)], [A, B, C, timed("d", 4)], id="an older copy"),
    pytest.param([timed("a"), timed("b"), timed("a")], [timed("a"), timed("b"), timed("a")],
                 id="said twice in one second"),
    pytest.param([A, *[timed("x", 9, "123"), timed("y", 9, "123")] * 2],
                 [A, timed("x", 9, "123"), timed("y", 9, "123")], id="two lines of one time again"),
    pytest.param([timed(word, 9, "123") for word in "abcdefeg"],
                 [timed(word, 9, "123") for word in "abcdefeg"], id="copied at once"),
    pytest.param([named("a", "1"), named("b", "2"), named("a", "1")],
                 [named("a", "1"), named("b", "2")], id="an id again"),
    pytest.param([named("a", "1"), named("b", "1"), named("a", "1")],
                 [named("a", "1"), named("b", "1"), named("a", "1")], id="back to what it was"),
    pytest.param([{"id": "1"}, STATE, OTHER, STATE], [{"id": "1"}, STATE, OTHER, STATE],
                 id="a state again"),
    pytest.param([USER, MODEL, USER, MODEL], [USER, MODEL], id="an answer word for word"),
    pytest.param([USER, MODEL, MODEL], [USER, MODEL, MODEL],
                 id="an answer right after itself"),
    pytest.param([USER, WAITING, WAITING, MODEL], [USER, WAITING, WAITING, MODEL],
                 id="a call again"),
    pytest.param([USER, MODEL, SHORT, MODEL, SHORT, USER], [USER, MODEL, SHORT, MODEL, SHORT, USER],
                 id="two answers again that nobody asked for"),
    pytest.param([SHORT, *[WAITING, RESULT, OTHER_CALL, RESULT] * 3, MODEL],
                 [SHORT, *[WAITING, RESULT, OTHER_CALL, RESULT] * 3, MODEL],
                 id="two calls in turn"),
    pytest.param([SHORT, *[USER, MODEL] * 3], [SHORT, *[USER, MODEL] * 3], id="tried again"),
    pytest.param([SHORT, *[USER, LONG, STATE] * 3], [SHORT, USER, LONG, STATE],
                 id="a long answer"),
    pytest.param([SHORT, *[USER, WAITING, RESULT, MODEL] * 2],
                 [SHORT, USER, WAITING, RESULT, MODEL],
                 id="a prompt with two answers"),
    pytest.param([SHORT, USER, MODEL, USER, SHORT], [SHORT, USER, MODEL, USER, SHORT],
                 id="a prompt again"),
    pytest.param([USER, SHORT, USER, SHORT], [USER, SHORT, USER, SHORT], id="an answer by chance"),
    pytest.param([USER, USER, SHORT, SHORT, MODEL, MODEL], [USER, SHORT, MODEL],
                 id="each line twice"),
    pytest.param([A, STATE, STATE, OTHER, STATE, *[timed(word, 9, "5") for word in "xyzx"]],
                 [A, STATE, OTHER, STATE, *[timed(word, 9, "5") for word in "xyzx"]],
                 id="a state right after itself tells nothing of others"),
    pytest.param([USER, *[WAITING, RESULT] * 9, MODEL], [USER, *[WAITING, RESULT] * 9, MODEL],
                 id="the same call again and again"),
    pytest.param([USER, USER, SHORT, MODEL], [USER, USER, SHORT, MODEL], id="a prompt twice"),
    pytest.param([HEAD, A, HEAD, A, STATE, B, STATE, OTHER, B, C, OTHER, C],
                 [HEAD, A, STATE, B, OTHER, C], id="two copies mixed"),
    pytest.param([HEAD, USER, HEAD, STATE, USER, STATE], [HEAD, USER, STATE],
                 id="mixed, with what has neither id nor time"),
    pytest.param([HEAD, HEAD, STATE, USER, OTHER, STATE, USER],
                 [HEAD, STATE, USER, OTHER], id="a copy that goes on after others"),
    pytest.param([{"id": "1"}, STATE, A, A, B, OTHER, STATE], [{"id": "1"}, STATE, A, B, OTHER,
                 STATE], id="a state again after a line that was written twice"),
    pytest.param([{"id": "1"}, STATE, STATE, USER, OTHER, USER],
                 [{"id": "1"}, STATE, USER, OTHER, USER], id="a prompt again after a state twice"),
    pytest.param([HEAD, A, STATE, HEAD, B], [HEAD, A, STATE, B], id="a header again"),
])  # fmt: skip
def test_what_tells_a_repeat(
    rows: list[dict[str, Any]], once: list[dict[str, Any]], tmp_path: Path
) -> None:
    """However the file grew to what it is."""
    path = tmp_path / "one.jsonl"
    for cut in range(len(rows) + 1):
        assert taken(path, rows, cut) == once, cut
    assert taken(path, rows, *range(len(rows))) == once


def ways(lines: list[bytes]) -> dict[str, list[bytes]]:
    """Return what a file of lines becomes, by what happens to it."""
    half, third = len(lines) // 2, len(lines) // 3
    chance, first, second, mixed = random.Random(1), lines[::-1], lines[::-1], list[bytes]()
    while first or second:
        longer = chance.choice([one for one in (first, second) if one])
        mixed += [longer.pop() for _ in range(min(len(longer), chance.randint(1, 4)))]
    return {
        "two copies mixed": mixed,
        "torn, and whole": [lines[0], lines[1][:9], *lines],
        "the last lines again": lines + lines[-5:],
        "the second half again": lines + lines[half:],
        "an older copy added": lines + lines[:-3],
        "stopped, and went on": lines[:half] + lines[third:half] + lines[half:],
        "each line twice": [line for line in lines for _ in range(2)],
    }


OF_LINES = [
    sample
    for sample in (*SAMPLES, *MORE)
    if not sample.root.startswith(("cases", "damaged"))
    and not sample.root.endswith((".db", ".md", ".sqlite", ".zip"))
]


@pytest.mark.parametrize("sample", OF_LINES, ids=lambda sample: sample.name)
@pytest.mark.one_in(4)
def test_no_way_of_repeating_lines_counts_them_again(sample: Sample, tmp_path: Path) -> None:
    root = path_of(sample.copied(tmp_path))
    reader = sample.target().source

    def counted() -> dict[str, Any]:
        drafts, _ = read_all(reader, root)
        return {name: [(one.role, len(one.parts), one.metadata.get("usage"),
                        "hidden_at" in one.metadata) for one in draft.messages]
                for name, draft in drafts.items()}  # fmt: skip

    before = counted()
    for path in sorted(root.rglob("*.jsonl"), key=lambda path: path.stat().st_size)[-2:]:
        body = path.read_bytes()
        lines = body.removesuffix(b"\n").split(b"\n")
        wrong, found_ways = [], ways(lines)
        if sample.kind == "cursor":
            # It has neither ids nor times: what is not in one run may have been said twice.
            found_ways = {way: found_ways[way] for way in (
                "the last lines again", "an older copy added", "each line twice",
            )}  # fmt: skip
        for way, found in found_ways.items():
            path.write_bytes(b"\n".join(found) + b"\n")
            wrong += [way] if counted() != before else []
        path.write_bytes(body)
        assert not wrong, path.name


UPGRADED = [sample for sample in OF_LINES if sample.root in (
    "codex/0.36.0", "cursor/home/.cursor", "vibe/session", "goose/sessions",
)]  # fmt: skip


@pytest.mark.parametrize("sample", UPGRADED, ids=lambda sample: sample.name)
def test_what_an_older_version_counted_twice_is_counted_once_after_the_next_sync(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = path_of(sample.copied(tmp_path))
    for path in sorted(root.rglob("*.jsonl"), key=lambda path: path.stat().st_size)[-2:]:
        body = path.read_bytes()
        path.write_bytes(body + b"".join(body.splitlines(keepends=True)[-4:]))

    def counted(name: str) -> tuple[Any, ...]:
        with closing(open_database(tmp_path / name, create=True)) as database:
            summary = Sync(database, Settings(helpers=0)).run([sample.target(tmp_path)])
            return summary.read, dump(database, ("chat_messages", "chat_parts"))

    with monkeypatch.context() as older:
        older.setattr(Repeats, "without", lambda self, records: records)
        older.setattr(Repeats, "rest", lambda self: [])
        older.setattr(units, "ROWS_VERSION", 1)
        _, before = counted("store.db")
    read, after = counted("store.db")
    fresh = counted("fresh.db")
    assert after != before and (read, after) == fresh
    assert counted("store.db")[0] == 0


@pytest.mark.parametrize("kind", [GrowingFile, Rollout, Transcript])
def test_a_file_is_freed_without_the_garbage_collector(kind: Callable[[str], object]) -> None:
    gc.disable()
    try:
        file = kind("session.jsonl")
        freed = weakref.ref(file)
        del file
        assert freed() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("kind", "root", "path", "table"), [
    ("goose", "goose/sessions", "sessions.db", "messages"),
    ("goose", "goose/sessions", "sessions.db", "usage_ledger"),
    ("openai-agents", "openai-agents/agents.db", "", "agent_messages"),
])  # fmt: skip
def test_rows_that_a_merge_copied_under_new_keys_count_once(
    kind: str, root: str, path: str, table: str, tmp_path: Path
) -> None:
    sample = next(one for one in SAMPLES if (one.kind, one.root) == (kind, root))
    folder = path_of(sample.copied(tmp_path))
    reader = sample.target().source
    before = contents(reader, folder)
    with closing(sqlite3.connect(folder / path)) as merged, merged:
        names = [row[1] for row in merged.execute(f"PRAGMA table_info({table})")]
        others = ", ".join(name for name in names if name != "id")
        merged.execute(f"INSERT INTO {table}({others}) SELECT {others} FROM {table} ORDER BY id")
    assert contents(reader, folder) == before
