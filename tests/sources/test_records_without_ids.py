"""Records without an id of their own are shown in file order, and a lost one hides no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from tests.sources import grown
from tests.sources.samples import SAMPLES, Sample, path_of
from tests.sources.test_damaged_lines import files_of, lines_of

HEADS = ("session", "session.start", "session.resume")
OF_IDS = [sample for sample in SAMPLES if sample.ids]


def read(sample: Sample, root: Path) -> dict[str, SessionDraft]:
    return grown.read_all(type(sample.target().source)(), root)[0]


def said(draft: SessionDraft) -> list[str]:
    """Return the words and tools of all visible messages, in order."""
    return [
        str(part.data.get("text") or part.type)
        for message in grown.visible(draft)
        for part in message.parts
        if part.type in ("text", "reasoning") or part.tool_call_id is not None
    ]


@pytest.fixture(params=OF_IDS, ids=lambda sample: sample.name)
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Sample, Path]:
    return request.param, path_of(request.param.copied(tmp_path))


def without_id(line: bytes, fields: tuple[str, ...]) -> bytes:
    row: dict[str, Any] = json.loads(line)
    if row.get("type") not in HEADS and "sessionId" not in row:
        for field in fields:
            row.pop(field, None)
    return json.dumps(row).encode()


def test_no_record_has_an_id(copied: tuple[Sample, Path]) -> None:
    sample, root = copied
    whole = read(sample, root)
    for path in files_of(sample, root):
        lines = [without_id(line, sample.ids) for line in lines_of(path)]
        path.write_bytes(b"\n".join(lines) + b"\n")
    found = read(sample, root)
    assert found.keys() == whole.keys()
    for name, draft in whole.items():
        grown.check_records(found[name])
        # What was recorded twice under one id can no longer be told to be one.
        assert [text for text in said(found[name]) if text in said(draft)] or not said(draft)
        left = said(found[name])
        for text in said(draft):
            assert text in left, (name, text)


@pytest.mark.one_in(4)
def test_a_line_that_is_lost_hides_no_other(copied: tuple[Sample, Path]) -> None:
    sample, root = copied
    if sample.root == "pi/1.6.0":
        pytest.skip("where a person took up an old branch, nothing tells which without its line")
    whole = read(sample, root)
    for path in files_of(sample, root)[:1]:
        body, lines = path.read_bytes(), lines_of(path)
        for at in range(1, len(lines)):
            path.write_bytes(b"\n".join([*lines[:at], lines[at][:-9], *lines[at + 1 :]]) + b"\n")
            found = read(sample, root)
            lost = sum(len(said(draft)) - len(said(found[name])) for name, draft in whole.items())
            assert lost <= most_parts(lines[at]), (at, lines[at][:200])
        path.write_bytes(body)


def most_parts(line: bytes) -> int:
    """Return how many parts one record may be: each of its texts, thoughts and calls."""
    return (
        1
        + line.count(b'"text"')
        + line.count(b"oughts")
        + line.count(b'"name"')
        + line.count(b"reasoning")
    )
