"""Large values are written in pieces and read as they were given."""

from __future__ import annotations

import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from backscroll import Store
from store.recorder.json_text import dump
from store.recorder.large_json import LARGE, STEP, is_large, pieces, weight
from tests.store.recording import feed_output

DEEP: Any = "x" * STEP * 2
for _ in range(200):
    DEEP = [DEEP]
VALUES: list[Any] = [
    "", "é\"\\\n€" * STEP, ["x" * (STEP + 1), 1, None], [], {}, {"a": {"b": "y" * 3 * STEP}},
    list(range(STEP)), [{"n": n, "t": "text " * 9} for n in range(9_000)], DEEP,
    {"k" * 20: [[1.5, True], ["z" * STEP] * 3, {}], "e": "\U0001f600" * STEP},
    [2**70, "x" * 2 * STEP], "\ud83d" + "x" * (STEP - 2) + "\ud83d\ude00" + "x" * STEP,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_pieces_make_the_same_value(value: Any) -> None:
    found = list(pieces(value))
    assert json.loads("".join(found)) == json.loads(dump(value))
    assert all(len(piece) <= 7 * STEP for piece in found) or value in (DEEP, [DEEP])


def test_weighing_ends_early() -> None:
    assert not is_large({"text": "x" * 1000, "state": "done"})
    assert is_large({"text": "x" * LARGE}) and is_large([[0] * LARGE])
    assert weight(["x" * 10] * 100, 50) > 50


@pytest.mark.parametrize("output", [VALUES[1], VALUES[7]], ids=["text", "rows"])
async def test_a_large_output_is_stored_as_it_came(output: Any, location: str) -> None:
    async with Store.open(location) as store:
        session = await store.create_session("a")
        async with store.recorder(session) as recorder:
            await recorder.feed({"type": "start"})
            await feed_output(recorder, output)
            message_id = recorder.message_id
            await recorder.feed({"type": "finish"})
        (message,) = await store.messages(session)
        assert message["parts"][0]["output"] == output
        rows = await store.read(lambda db: db.connection.execute(
            f"SELECT {db.sql.text('data_json')}, tool_state FROM chat_parts"
            " WHERE message_id = $1", {"1": message_id}).fetchall())
        ((data, state),) = rows
        assert (json.loads(data)["output"], state) == (output, "output-available")


async def test_a_message_with_a_large_output_goes_on(location: str) -> None:
    output = VALUES[7]
    async with Store.open(location) as store:
        session = await store.create_session("a")
        for text in ("", "more"):
            async with store.recorder(session) as recorder:
                await recorder.feed({"type": "start", "messageId": "one"})
                if not text:
                    await recorder.feed({"type": "tool-input-available", "toolCallId": "c",
                                         "toolName": "t", "input": {}})
                    await recorder.feed({"type": "tool-output-available", "toolCallId": "c",
                                         "output": output})
                else:
                    await recorder.feed({"type": "text-start", "id": "t"})
                    await recorder.feed({"type": "text-delta", "id": "t", "delta": text})
                assert recorder.message is not None
                assert recorder.message["parts"][0]["output"] == output
        (message,) = await store.messages(session)
        assert [part["type"] for part in message["parts"]] == ["tool-t", "text"]


async def test_what_was_read_is_free_once_its_reader_drops_it(tmp_path: Path) -> None:
    class Value:
        pass

    async with Store.open(tmp_path / "s.db", create=True) as store:
        value = await store.read(lambda db: Value())
        kept = weakref.ref(value)
        del value
        assert kept() is None
