"""A JSON document that a file holds twice, or that holds its messages twice, counts once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store.sources.base.documents import SEVERAL, parse_document
from store.sources.base.json_values import LineError
from tests.sources.grown import contents
from tests.sources.samples import SAMPLES, Sample, path_of

ASKED = {"role": "user", "content": "Where is the limit?"}
CALL = {"role": "assistant", "content": "I look.", "tool_calls": [{"name": "read"}]}
RESULT = {"role": "tool", "content": "no such file"}
ANSWER = {"role": "assistant", "content": "It is in limit.py, line 4."}
SHORT = {"role": "assistant", "content": "No."}
DOCUMENT = {"id": "T-1", "title": "A longer one", "messages": [ASKED, CALL, RESULT, ANSWER]}


def body(*messages: dict[str, Any]) -> bytes:
    return json.dumps(DOCUMENT | {"messages": messages}).encode()


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("value", [DOCUMENT, DOCUMENT["messages"]], ids=["object", "list"])
def test_a_whole_document_is_found_beside_copies_and_torn_ones(value: Any, indent: int) -> None:
    whole = json.dumps(value, indent=indent).encode()
    torn = whole[: 2 * len(whole) // 3]
    assert parse_document(whole) == (value, None)
    for found in (whole * 2, whole + b"\n" + whole, whole + torn, torn + whole,
                  torn + b"\n" + whole, torn + torn + whole + torn):  # fmt: skip
        assert parse_document(found) == (value, SEVERAL), found


def test_of_two_versions_the_longer_one_is_read() -> None:
    older, newer = body(ASKED), body(ASKED, ANSWER)
    for found in (older + newer, newer + older):
        assert parse_document(found)[0]["messages"] == [ASKED, ANSWER]


@pytest.mark.parametrize("raw", [body(ASKED)[:-9], b"", b"{", b"[1, 2", b"\0" * 99])
def test_what_holds_no_whole_document_is_none(raw: bytes) -> None:
    with pytest.raises(LineError):
        parse_document(raw)


@pytest.mark.parametrize(("messages", "once"), [
    ([ASKED, CALL, RESULT, ANSWER] * 2, [ASKED, CALL, RESULT, ANSWER]),
    ([ASKED, *[CALL, RESULT] * 3, ANSWER], [ASKED, *[CALL, RESULT] * 3, ANSWER]),
    ([ASKED, SHORT] * 2, [ASKED, SHORT] * 2),
    ([ASKED | {"ts": 1795700000000}, SHORT | {"ts": 1795700001000}] * 2,
     [ASKED | {"ts": 1795700000000}, SHORT | {"ts": 1795700001000}]),
    ([ASKED | {"id": "a"}, ASKED | {"id": "b"}, SHORT | {"id": "c"}] * 2,
     [ASKED | {"id": "a"}, ASKED | {"id": "b"}, SHORT | {"id": "c"}]),
])  # fmt: skip
def test_messages_of_a_document_that_were_copied_count_once(
    messages: list[dict[str, Any]], once: list[dict[str, Any]]
) -> None:
    assert parse_document(body(*messages))[0]["messages"] == once


OF_DOCUMENTS = [sample for sample in SAMPLES if sample.root in (
    "amp/threads", "continue/sessions", "cline/sdk", "cline/legacy", "qwen/legacy-0.1.4",
    "opencode/legacy", "vibe/session", "openhands/conversations",
)]  # fmt: skip


@pytest.mark.parametrize("sample", OF_DOCUMENTS, ids=lambda sample: sample.name)
def test_a_doubled_document_of_each_program_is_read(sample: Sample, tmp_path: Any) -> None:
    root = path_of(sample.copied(tmp_path))
    reader = sample.target().source
    before = contents(reader, root)
    for path in sorted(root.rglob("*.json"), key=lambda path: path.stat().st_size)[-3:]:
        path.write_bytes(path.read_bytes() * 2)
    assert contents(reader, root) == before
