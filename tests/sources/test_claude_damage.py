"""Damage costs just itself: lines, files and folders that are not as they should be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.sources.base.drafts import SessionDraft
from store.sources.base.json_lines import LineError, LineSplitter, parse_line
from store.sources.base.protocol import Problem
from store.sources.claude_code import ClaudeCodeSource, SessionReader
from store.sources.claude_code.neighbours import Neighbours
from store.sources.claude_code.transcript import UNREAD_NOTES
from tests.sources.claude_rows import SESSION, START, File, read, read_one, shape, tool


def good() -> File:
    file = File()
    file.user("one")
    file.assistant("two", tool("t1"), id="msg_1")
    file.result("t1", "three")
    file.assistant("four", id="msg_2")
    return file


def read_bytes(body: bytes, folder: Path) -> tuple[SessionDraft | None, list[Problem]]:
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(body)
    drafts, problems = read(path)
    return drafts.get(SESSION), problems


def every_kind() -> File:
    """Rows of every kind that has a meaning of its own."""
    file = good()
    last = file.last
    file.row("system", subtype="compact_boundary", parent=None, logicalParentUuid=last)
    file.lines[-1]["compactMetadata"] = {
        "trigger": "auto",
        "preservedSegment": {"headUuid": last, "tailUuid": last},
        "preservedMessages": {"uuids": [last]},
    }
    file.user("summary", isCompactSummary=True, summarizeMetadata={"direction": "from"})
    file.row("system", subtype="api_error", error={"status": 500}, retryInMs=1)
    file.row("system", subtype="turn_duration", durationMs=1)
    file.row("attachment", attachment={"type": "queued_command", "prompt": "q", "origin": {}})
    snapshot = {"type": "prompt_snapshot", "systemPrompt": ["a"], "tools": [{"name": "x"}]}
    file.row("attachment", attachment=snapshot)
    file.user("p", isSidechain=True, forkedFrom={"sessionId": "s"}, origin={"kind": "human"})
    for kind in ("last-prompt", "summary", "queue-operation", "custom-title", "cost-state"):
        file.note(kind, leafUuid=last, summary="s", operation="enqueue", content="c")
    return file


LINES = good().text().encode().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json\n", "no JSON"),
        (b'{"type":"user","uuid":"x"\n', "no JSON"),
        (b"[1,2]\n", "JSON list where an object belongs"),
        (b"7\n", "JSON int where an object belongs"),
        (b"\0\0\0\0\n", "binary data"),
        (b"\x89PNG\r\x1a\xff\xfe\n", "binary data"),
        (b"[" * 100_000 + b"\n", "no JSON"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n", "nested deeper than 100 levels"),
        (b'{"k":"' + b"x" * (1 << 20) + b'"}\n', "longer than"),
    ],
)
def test_a_damaged_line_costs_itself(line: bytes, reason: str, tmp_path: Path) -> None:
    draft, problems = read_bytes(b"".join([*LINES[:2], line, *LINES[2:]]), tmp_path)
    assert draft is not None
    assert [text for _, text in shape(draft)] == ["one", "two|tool-Bash", "four"]
    (problem,) = problems
    assert (problem.line, problem.path) == (3, draft.path)
    assert reason in problem.reason


def test_torn_last_line_waits(tmp_path: Path) -> None:
    body = b"".join(LINES)
    source = ClaudeCodeSource()
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(body[:-10])
    (unit,) = source.units(path, [])
    reading = source.read(path, unit)
    assert [text for _, text in shape(reading.sessions[0])] == ["one", "two|tool-Bash"]
    assert reading.stamps[0].offset == len(b"".join(LINES[:-1]))
    assert reading.stamps[0].size == len(body) - 10
    (problem,) = reading.problems
    assert problem.line == 5 and "unfinished last line" in problem.reason


def test_whole_last_line_needs_no_newline(tmp_path: Path) -> None:
    draft, problems = read_bytes(b"".join(LINES)[:-1], tmp_path)
    assert problems == [] and draft is not None
    assert shape(draft)[-1] == ("assistant", "four")


def test_crlf_and_blank_lines(tmp_path: Path) -> None:
    body = b"\n\n".join(line.rstrip() + b"\r" for line in LINES) + b"\n  \n"
    draft, problems = read_bytes(body, tmp_path)
    assert problems == [] and draft is not None
    assert len(shape(draft)) == 3


@pytest.mark.parametrize("body", [b"", b"\n\n", b'{"type":"mode","mode":"x","sessionId":"s"}\n'])
def test_files_without_rows_give_nothing(body: bytes, tmp_path: Path) -> None:
    assert read_bytes(body, tmp_path) == (None, [])


def test_lone_surrogates_and_bad_utf8_are_replaced(tmp_path: Path) -> None:
    lines = [LINES[0].replace(b"one", b"a\\ud83dz"), LINES[1].replace(b"two", b"b\xff\xfe")]
    draft, problems = read_bytes(b"".join([*lines, *LINES[2:]]), tmp_path)
    assert draft is not None
    assert [text for _, text in shape(draft)][:2] == ["a\ufffdz", "b\ufffd\ufffd|tool-Bash"]
    assert [(p.line, p.reason) for p in problems] == [(2, "invalid UTF-8, replaced by U+FFFD")]
    assert draft.records[0] == lines[0].rstrip()


def test_pairs_of_surrogates_are_kept() -> None:
    value, repaired = parse_line(b'{"a":"\\ud83d\\ude00 \\udc00","b":["\\ud800"]}')
    assert value == {"a": "\U0001f600 \ufffd", "b": ["\ufffd"]}
    assert repaired is None


def test_a_line_that_is_too_long_is_never_held() -> None:
    splitter = LineSplitter(limit=1000)
    assert splitter.push(b'{"a":1}\n' + b"x" * 900) == [b'{"a":1}']
    for _ in range(50):
        assert splitter.push(b"y" * 900) == []
        assert len(splitter.tail) <= 1000
    assert splitter.push(b'z\n{"b":2}\n') == [b"", b'{"b":2}']
    assert splitter.skipped == [2]
    assert splitter.lines == 3
    assert splitter.consumed == 8 + 900 + 50 * 900 + 2 + 8


def test_file_that_goes_away_before_it_is_read(tmp_path: Path) -> None:
    source = ClaudeCodeSource()
    path = good().write(tmp_path)
    side = tmp_path / SESSION / "tool-results"
    side.mkdir(parents=True)
    (side / "a.txt").write_text("x")
    (unit,) = source.units(tmp_path, [])
    (side / "a.txt").unlink()
    reading = source.read(tmp_path, unit)
    assert len(reading.sessions) == 1
    assert [problem.path for problem in reading.problems] == [str(side / "a.txt")]
    path.unlink()
    reading = source.read(tmp_path, unit)
    assert reading.sessions == [] and reading.stamps == ()


def test_folders_and_pipes_named_like_sessions(tmp_path: Path) -> None:
    good().write(tmp_path)
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    drafts, problems = read(tmp_path)
    assert list(drafts) == [SESSION]
    assert sorted(Path(problem.path).name for problem in problems) == [
        "folder.jsonl",
        "gone.jsonl",
        "pipe.jsonl",
    ]


def test_damaged_side_files(tmp_path: Path) -> None:
    path = good().write(tmp_path)
    side = tmp_path / SESSION
    (side / "subagents").mkdir(parents=True)
    (side / "custom-title.json").write_text("{")
    (side / "archived.json").write_text("[]")
    (side / "subagents" / "agent-a.meta.json").write_text('{"agentType": 7, "toolUseId": []}')
    (side / "subagents" / "agent-a.jsonl").write_text("garbage\n")
    drafts, problems = read(path)
    assert list(drafts) == [SESSION]
    assert sorted(Path(problem.path).name for problem in problems) == [
        "agent-a.jsonl",
        "archived.json",
        "custom-title.json",
    ]


def test_rows_of_impossible_shapes(tmp_path: Path) -> None:
    odd: list[Any] = [
        {"type": "user", "uuid": "o1", "parentUuid": 7, "message": "just text"},
        {"type": "user", "uuid": "o2", "parentUuid": None, "message": {"content": 5}},
        {"type": "assistant", "uuid": "o3", "message": {"id": [], "content": [1, None]}},
        {"type": "assistant", "uuid": "o4", "message": {"usage": {"output_tokens": "many"}}},
        {"type": "assistant", "uuid": "o5", "message": {"content": [{"type": ["x"]}]}},
        {"type": "user", "uuid": "o6", "message": {"content": [{"type": "tool_result"}]}},
        {"type": "attachment", "uuid": "o7", "attachment": "text"},
        {"type": "system", "uuid": "o8", "subtype": {"a": 1}, "timestamp": 1e300},
        {"type": {"x": 1}, "uuid": "o9"},
        {"uuid": "o10"},
        {},
    ]
    body = b"".join([*LINES, *(json.dumps(line).encode() + b"\n" for line in odd)])
    draft, problems = read_bytes(body, tmp_path)
    assert problems == [] and draft is not None
    assert draft.messages[0].created_at == START + 1000
    assert ("user", "just text") in [
        (m.role, m.parts[0].data.get("text")) for m in draft.messages if m.parts
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = sorted(
    {key for line in every_kind().lines for key in line}
    | {"isMeta", "toolUseResult", "permissionDecision", "toolDenialKind", "costUSD", "subtype"}
    | {"customTitle", "totalCostUSD", "interruptedMessageId", "isApiErrorMessage", "effort"}
)
SAMPLES = every_kind().text().encode().splitlines(keepends=True)
BLOCK_KEYS = ["type", "id", "name", "input", "text", "tool_use_id", "content", "is_error"]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """One good line with bytes cut, changed or put in, or with values replaced."""
    line = draw(st.sampled_from(SAMPLES))
    if draw(st.booleans()):
        line = line.replace(b"1111-row", b"9999-row")
    how = draw(st.sampled_from(("cut", "flip", "insert", "value", "block", "inner", "bytes")))
    if how == "bytes":
        return draw(st.binary(max_size=60)).replace(b"\n", b"")
    place = draw(st.integers(0, len(line) - 2))
    if how == "cut":
        return line[:place]
    if how == "flip":
        return line[:place] + draw(st.binary(min_size=1, max_size=1)) + line[place + 1 : -1]
    if how == "insert":
        return line[:place] + draw(st.binary(max_size=5)) + line[place:-1]
    row = json.loads(line)
    if how == "value":
        row[draw(st.sampled_from(KEYS))] = draw(JSON)
    elif how == "inner":
        objects = [value for value in row.values() if isinstance(value, dict) and value]
        if objects:
            inner = draw(st.sampled_from(objects))
            inner[draw(st.sampled_from(sorted(inner)))] = draw(JSON)
    else:
        block = {draw(st.sampled_from(BLOCK_KEYS)): draw(JSON)}
        row["message"] = {
            **row.get("message", {}),
            "content": [{"type": "text", **block}, draw(JSON)],
        }
    row["uuid"] = draw(st.sampled_from(["n1", "n2", "1111-row-1", "1111-row-3"]))
    return json.dumps(row).encode()


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(damaged(), min_size=1, max_size=4), places=st.lists(st.integers(0, 5)))
def test_any_damage_costs_only_itself(lines: list[bytes], places: list[int]) -> None:
    """Whatever is put between good lines, no good row is lost and nothing raises."""
    body = [line.rstrip(b"\n") for line in LINES]
    for index, raw in enumerate(lines):
        line = raw.replace(b"\n", b" ")
        place = places[index] if index < len(places) else len(body)
        body.insert(min(place, len(body)), line)
    reader = SessionReader(SESSION, "x.jsonl", Neighbours("/nowhere"))
    assert reader.main is not None
    reader.main.push(b"\n".join(body) + b"\n")
    drafts = reader.build()
    grown = SessionReader(SESSION, "x.jsonl", Neighbours("/nowhere"))
    assert grown.main is not None
    for line in body:
        grown.main.push(line + b"\n")
        grown.build()
    assert grown.build() == drafts
    for draft in drafts:
        owned = _owned(draft)
        ids = [message.source_id for message in draft.messages]
        assert len(ids) == len(set(ids))
        assert all(0 <= number < len(draft.records) for number in owned)
        json.dumps([(m.metadata, [p.data for p in m.parts]) for m in draft.messages])
    if not any(b"1111-row" in line for line in lines):
        good_records = {reader.main.records.index(line.rstrip(b"\n")) for line in LINES}
        assert good_records <= _owned(drafts[0])
    told = {problem.line for problem in reader.problems}
    for number, line in enumerate(body, 1):
        if line.strip() and number not in told and not line.startswith(UNREAD_NOTES):
            assert parse_line(line)


def _owned(draft: SessionDraft) -> set[int]:
    """Return the numbers of the records that some message or part was made of."""
    return {
        number
        for message in draft.messages
        for numbers in (message.records, *(part.records for part in message.parts))
        for number in numbers
    }


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_parse_line_raises_nothing_else(line: bytes) -> None:
    try:
        value, _ = parse_line(line)
    except LineError:
        return
    json.dumps(value).encode("utf-8")


@settings(max_examples=100, deadline=None)
@given(cuts=st.lists(st.integers(0, len(b"".join(LINES))), max_size=8))
def test_bytes_may_come_in_any_pieces(cuts: list[int]) -> None:
    body = b"".join(LINES)
    edges = [0, *sorted(cuts), len(body)]
    reader = SessionReader(SESSION, "x.jsonl", Neighbours("/nowhere"))
    assert reader.main is not None
    for start, end in zip(edges, edges[1:], strict=False):
        reader.main.push(body[start:end])
        reader.build()
    whole = SessionReader(SESSION, "x.jsonl", Neighbours("/nowhere"))
    assert whole.main is not None
    whole.main.push(body)
    assert reader.build() == whole.build()
    assert reader.main.offset == len(body)


def test_units_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert list(ClaudeCodeSource().units(tmp_path / "none", problems)) == []
    assert [problem.path for problem in problems] == [str(tmp_path / "none")]


@pytest.mark.parametrize("place", ["beside", "result", "meta"])
def test_a_pipe_is_never_waited_on(tmp_path: Path, place: str) -> None:
    """A session without a version makes the reader look into every file beside it."""
    file = File(version="")
    file.user("p")
    folder = file.write(tmp_path).parent
    inner = folder / SESSION / {"beside": "", "result": "tool-results", "meta": "subagents"}[place]
    inner.mkdir(parents=True)
    name = {"beside": "other.jsonl", "result": "x.txt", "meta": "agent-a.meta.json"}[place]
    os.mkfifo((folder if place == "beside" else inner) / name)
    draft = read(tmp_path)[0][SESSION]
    assert shape(draft) == [("user", "p")]


def test_a_file_that_became_a_pipe_after_it_was_listed(tmp_path: Path) -> None:
    file = File()
    file.user("p")
    path = file.write(tmp_path)
    source = ClaudeCodeSource()
    (unit,) = source.units(tmp_path, [])
    path.unlink()
    os.mkfifo(path)
    reading = source.read(tmp_path, unit)
    assert reading.sessions == []
    assert [(p.path, p.reason) for p in reading.problems] == [(str(path), "not a regular file")]


def test_negative_counts_are_no_counts(tmp_path: Path) -> None:
    file = File()
    file.user("p")
    file.assistant("a", id="msg_1", usage={"input_tokens": -5, "output_tokens": -4})
    usage = read_one(file, tmp_path).messages[1].metadata["usage"]
    assert set(usage.values()) == {0}
