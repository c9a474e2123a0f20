"""Damage in a file of JSON lines costs itself only, in every source that has such files."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from store.sources.base.growing import Changed, GrowingFile
from store.sources.base.protocol import Problem, Source
from store.sources.base.salvage import whole_records
from tests.sources.samples import SAMPLES, Sample, path_of

Lines = list[bytes]
Damage = Callable[[Lines, int], bytes]


def joined(lines: Lines) -> bytes:
    return b"\n".join(lines) + b"\n"


def with_line(line: bytes) -> Damage:
    """Put a line before another one."""
    return lambda lines, at: joined([*lines[:at], line, *lines[at:]])


def before_record(damage: bytes) -> Damage:
    """Put bytes before a record, on its line."""
    return lambda lines, at: joined([*lines[:at], damage + lines[at], *lines[at + 1 :]])


def glued(lines: Lines, at: int) -> bytes:
    return joined([*lines[:at], lines[at] + lines[at + 1], *lines[at + 2 :]])


def three_glued_with_zeros(lines: Lines, at: int) -> bytes:
    return joined([*lines[:at], b"\0\0".join(lines[at : at + 3]), *lines[at + 3 :]])


def torn_at(part: float) -> Damage:
    """Put the beginning of a record before the whole of it, on one line."""

    def damage(lines: Lines, at: int) -> bytes:
        torn = lines[at][: max(int(len(lines[at]) * part), 1)]
        return joined([*lines[:at], torn + lines[at], *lines[at + 1 :]])

    return damage


def tail_left(lines: Lines, at: int) -> bytes:
    """Put the end of a record before the next, as where a block was lost."""
    torn = lines[at][len(lines[at]) // 2 :]
    return joined([*lines[:at], torn + lines[at], *lines[at + 1 :]])


def torn_last_after_whole(lines: Lines, at: int) -> bytes:
    return b"\n".join(lines) + lines[-1][: len(lines[-1]) // 2]


DAMAGE: dict[str, Damage] = {
    "garbage line": with_line(b"not json"),
    "zeros": with_line(b"\0" * 5000),
    "binary": with_line(b"\x89PNG\r\x1a\xff\xfe"),
    "list": with_line(b"[1,2]"),
    "many garbage lines": with_line(b"\n".join([b"x"] * 4)),
    "endless nesting": with_line(b'{"a":' * 2000),
    "half a record": lambda lines, at: with_line(lines[at][: len(lines[at]) // 2])(lines, at),
    "zeros before a record": before_record(b"\0" * 700),
    "text before a record": before_record(b"oops "),
    "glued": glued,
    "three glued with zeros": three_glued_with_zeros,
    "torn early": torn_at(0.05),
    "torn in the middle": torn_at(0.5),
    "torn late": torn_at(0.95),
    "end of a record": tail_left,
    "torn end on the last line": torn_last_after_whole,
}
TOLD = {"many garbage lines": 4}
"""How many problems a kind of damage is; one where it is not here."""


def pretty(body: bytes) -> bytes:
    return b"\n".join(json.dumps(json.loads(line), indent=2).encode() for line in body.splitlines())


def listed(body: bytes) -> bytes:
    return json.dumps([json.loads(line) for line in body.splitlines()], indent=4).encode()


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "UTF-8 with mark": lambda body: b"\xef\xbb\xbf" + body,
    "UTF-16 with mark": lambda body: body.decode().encode("utf-16"),
    "UTF-16 big endian with mark": lambda body: b"\xfe\xff" + body.decode().encode("utf-16-be"),
    "UTF-16 without mark": lambda body: body.decode().encode("utf-16-le"),
    "UTF-16 big endian without mark": lambda body: body.decode().encode("utf-16-be"),
    "UTF-16 with CRLF": lambda body: body.replace(b"\n", b"\r\n").decode().encode("utf-16"),
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "pretty": pretty,
    "list": listed,
    "list with a record a line": lambda body: b"[" + body.rstrip().replace(b"\n", b",\n") + b"]",
}


def read(source: Source, root: Path) -> tuple[dict[str, list[list[str]]], list[Problem]]:
    """Return the words and calls of each session's messages, and what was reported."""
    problems: list[Problem] = []
    found: dict[str, list[list[str]]] = {}
    for unit in source.units(root, problems):
        reading = source.read(root, unit)
        problems += reading.problems
        for draft in reading.sessions:
            found[draft.source_id] = [
                [part.data.get("text") or part.tool_call_id or part.type for part in message.parts]
                for message in draft.messages
            ]
    return found, problems


def files_of(sample: Sample, root: Path) -> list[Path]:
    """Return the largest files of JSON lines that sessions of a sample are read from."""
    units = sample.target().source.units(root, [])
    paths = {Path(stamp.path) for unit in units for stamp in unit.stamps}
    files = [
        path
        for path in paths
        if path.suffix == ".jsonl" and path.is_file() and len(lines_of(path)) > 3
    ]
    return sorted(files, key=lambda path: (-path.stat().st_size, path.name))[:2]


def lines_of(path: Path) -> Lines:
    return [line for line in path.read_bytes().split(b"\n") if line]


OF_LINES = [sample for sample in SAMPLES if files_of(sample, path_of(sample.target()))]


def test_every_source_of_lines_is_tried() -> None:
    known = {"claude-code", "codex", "gemini", "pi", "copilot", "viben", "y-agent"}
    assert {sample.kind for sample in OF_LINES} >= known and len(OF_LINES) > 11


@pytest.fixture(params=OF_LINES, ids=lambda sample: sample.name)
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Sample, Path]:
    return request.param, path_of(request.param.copied(tmp_path))


@pytest.mark.one_in(4)
def test_damage_costs_itself(copied: tuple[Sample, Path]) -> None:
    sample, root = copied
    make = type(sample.target().source)
    whole, problems = read(make(), root)
    assert whole and files_of(sample, root)
    for path in files_of(sample, root):
        body, lines = path.read_bytes(), lines_of(path)
        for name, damage in DAMAGE.items():
            path.write_bytes(damage(lines, len(lines) // 2))
            found, told = read(make(), root)
            new = [problem for problem in told if problem not in problems]
            assert found == whole, name
            assert [Path(p.path) for p in new] == [path] * TOLD.get(name, 1), (name, new)
            assert all(problem.line > 1 for problem in new), (name, new)
        path.write_bytes(body)


@pytest.mark.one_in(3)
def test_another_form_is_one_problem(copied: tuple[Sample, Path]) -> None:
    sample, root = copied
    make = type(sample.target().source)
    whole, problems = read(make(), root)
    for path in files_of(sample, root)[:1]:
        body = path.read_bytes()
        for name, form in FORMS.items():
            path.write_bytes(form(body))
            found, told = read(make(), root)
            new = [problem for problem in told if problem not in problems]
            assert found == whole, name
            assert [(Path(p.path), p.line) for p in new] == [(path, 1)], (name, new)
            if sample.kind in ("claude-code", "codex", "gemini", "pi"):
                assert make().recognise(path) is not None, name
        path.write_bytes(body)


def test_a_file_of_something_else_is_one_problem(copied: tuple[Sample, Path]) -> None:
    sample, root = copied
    make = type(sample.target().source)
    _, problems = read(make(), root)
    for path in files_of(sample, root)[:1]:
        body = path.read_bytes()
        for other in (b"<html>\n" * 500, b"\x89PNG\r\x1a\xff\xfe\n" * 500, b"\0" * 4000):
            path.write_bytes(other)
            new = [p for p in read(make(), root)[1] if p not in problems and p.path == str(path)]
            assert len(new) == 1, new
        path.write_bytes(body)


@pytest.mark.parametrize(
    ("kind", "folder", "words", "lines"),
    [
        ("claude-code", "nul", ["first", "a", "second", "b", "third", "after nul"], [3, 6]),
        ("claude-code", "glued", ["first", "a", "second", "b", "third", "c"], [3]),
        ("copilot", "copilot", ["ask\u2028two", "first answer", "again", "second answer"], [5]),
    ],
)
def test_whole_records_beside_damage_are_kept(
    kind: str, folder: str, words: list[str], lines: list[int]
) -> None:
    sample = Sample(kind, f"damaged/{folder}")
    found, problems = read(sample.target().source, path_of(sample.target()))
    ((_, messages),) = found.items()
    assert [text for message in messages for text in message] == words
    torn = [p for p in problems if p.reason.startswith("unfinished last line")]
    assert [problem.line for problem in problems if problem not in torn] == lines


@pytest.mark.parametrize(
    ("line", "records"),
    [
        (b'{"a":1}{"b":2}', [{"a": 1}, {"b": 2}]),
        (b'{"a":1},{"b":2}', [{"a": 1}, {"b": 2}]),
        (b'[{"a":1},{"b":2}]', [{"a": 1}, {"b": 2}]),
        (b'{"t":"x","m":{"r":"u"}{"t":"y","m":{}}', [{"t": "y", "m": {}}]),
        (b'{"t":"x","m":{"t":"y","m":{}}', [{"t": "y", "m": {}}]),
        (b'{"id":1,"calls":[{"id":2,"id2":3}{"id":4,"calls":[]}', [{"id": 4, "calls": []}]),
        (b'{"a":1}345,"m":{"r":"u"}}', [{"a": 1}]),
        (b'{"text":"use {} or {x: 1}', []),
        (b'{"t":"x","content":[{"type":"text","text":"hi"}', []),
        (b'{"t":"x","m":{"r":"u"}', []),
        (b'ent":"hi"},"m":{"r":"u"}}', []),
        (b'{"r":"u"},"uuid":"x"}', []),
        (b'[{"r":"u"}],"uuid":"x"}', []),
        (b'{"r":{"s":1}}}{"a":1}', [{"a": 1}]),
        (b'{"a":1},', [{"a": 1}]),
        (b'{"a":"\\ud83d"}\xff\xfe{"b":"\xff"}', [{"a": "\ufffd"}, {"b": "\ufffd"}]),
    ],
)
def test_what_is_a_whole_record_of_a_line(line: bytes, records: list[object]) -> None:
    pieces = whole_records(line)
    assert [data for _, data in pieces if data is not None] == records


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":' * 200_000,
        b'{"a":[' * 100_000,
        b'{"a":"' * 200_000,
        b'{"' * 500_000,
        b'{"a":{"b":1}' * 100_000,
        b'x{"a":1},' * 100_000,
    ],
)
def test_hostile_lines_are_given_up_soon(line: bytes) -> None:
    assert b"".join(raw for raw, _ in whole_records(line))


def read_on(file: GrowingFile, torn: list[Problem]) -> GrowingFile:
    """Read what was added, or all again where the file was not just added to."""
    try:
        file.read(torn)
    except Changed:
        torn.clear()
        file = GrowingFile(file.path)
        file.read(torn)
    return file


def test_a_whole_record_before_a_torn_end_is_there_before_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}{"n":3,"t')
    file, torn = GrowingFile(str(path)), list[Problem]()
    file.read(torn)
    assert [line.data for line in file.lines] == [{"n": 1}, {"n": 2}]
    assert [problem.line for problem in file.problems + torn] == [2]
    with path.open("ab") as more:
        more.write(b'":0}\n{"n":4}\n')
    file = read_on(file, torn)
    assert [line.data["n"] for line in file.lines] == [1, 2, 3, 4]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.one_in(3)
def test_another_form_is_read_as_it_grows(form: Callable[[bytes], bytes], tmp_path: Path) -> None:
    rows = [{"n": n, "text": "é\u2028{", "in": {"list": [{}, [1]]}} for n in range(5)]
    body = form(b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in rows))
    path = tmp_path / "x.jsonl"
    file = GrowingFile(str(path))
    for end in range(len(body)):
        path.write_bytes(body[: end + 1])
        os.utime(path, ns=(end, end))
        torn: list[Problem] = []
        file = read_on(file, torn)
    assert [line.data for line in file.lines] == rows
    assert [(problem.line, problem.path) for problem in file.problems + torn] == [(1, str(path))]


@pytest.mark.parametrize(
    "form", [form for name, form in FORMS.items() if "UTF" in name or name in ("gzip", "zstd")]
)
@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if s.root in ("gemini_0_20", "opencode/legacy")], ids=str
)
def test_a_document_in_another_form_is_read(
    sample: Sample, form: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    root = path_of(sample.copied(tmp_path))
    make = type(sample.target().source)
    whole, problems = read(make(), root)
    for path in root.rglob("*.json"):
        if path.name.startswith(("session-", "ses_", "msg_", "prt_")):
            path.write_bytes(form(path.read_bytes()))
    found, told = read(make(), root)
    assert found == whole
    if sample.kind == "gemini":
        assert len(told) - len(problems) == len(list(root.rglob("session-*.json")))


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_compressed_file_that_is_cut_is_one_problem(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    rows = [{"n": n, "text": hashlib.sha256(b"%d" % n).hexdigest()} for n in range(9000)]
    body = compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    path = tmp_path / "x.jsonl"
    path.write_bytes(body[: len(body) // 2])
    torn: list[Problem] = []
    file = read_on(GrowingFile(str(path)), torn)
    found = [line.data for line in file.lines]
    (problem,) = file.problems + torn
    assert 0 < len(found) < len(rows) and found == rows[: len(found)]
    assert problem.line == 1 and "cut off" in problem.reason


@pytest.mark.parametrize("name", ["UTF-16 with mark", "gzip", "zstd"])
def test_an_aider_history_in_another_form_is_one_problem(name: str, tmp_path: Path) -> None:
    (sample,) = [sample for sample in SAMPLES if sample.root == "aider/.aider.chat.history.md"]
    root = path_of(sample.copied(tmp_path))
    root.write_bytes(FORMS[name](root.read_bytes()))
    found, (problem,) = read(sample.target().source, root)
    assert not found and "where plain UTF-8 belongs" in problem.reason
