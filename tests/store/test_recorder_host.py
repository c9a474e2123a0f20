"""``store.Recorder``: the same for a host in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import store
from store.recorder.backoff import Backoff
from store.recorder.policy import SavePolicy
from store.recorder.reading import read_ui_message
from tests.store.recording import VECTORS, plain

DELTA = {"type": "text-delta", "id": "t", "delta": "word "}


async def opened(folder: Path, **options: Any) -> tuple[store.Store, store.Recorder]:
    held = await store.Store.open(folder / "store.db", create=True)
    return held, await store.Recorder.open(held, **options)


async def held_by_another(
    held: store.Store, recorder: store.Recorder
) -> tuple[str, sqlite3.Connection]:
    """Begin a message with a text, and let another connection hold the store.

    Returns:
        The message's id, and that connection.
    """
    await held.write(lambda db: db.connection.execute("PRAGMA busy_timeout = 0").fetchall())
    await recorder.feed({"type": "text-start", "id": "t"})
    message_id = recorder.message_id
    assert message_id is not None
    other = sqlite3.connect(held.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return message_id, other


@pytest.mark.parametrize("name", ["tool-static-two-steps", "metadata-usage-per-step"])
async def test_a_stream(name: str, tmp_path: Path) -> None:
    vector = VECTORS[name]
    held, recorder = await opened(tmp_path, agent="host")
    async with held, recorder:
        await recorder.user_message("hello")
        for chunk, snapshot in zip(vector["chunks"], vector["snapshots"], strict=True):
            await recorder.feed(chunk)
            assert plain(recorder.message) == snapshot
        message_id = recorder.message_id
        assert message_id is not None
        await recorder.finish()
        assert recorder.message is None
        assert await held.read(read_ui_message, message_id) == vector["final"]


async def test_what_waits_is_saved_by_itself(tmp_path: Path) -> None:
    held, recorder = await opened(tmp_path, policy=SavePolicy(save_buffer_ms=1))
    async with held:
        await recorder.feed({"type": "text-start", "id": "t"})
        for _ in range(50):
            await recorder.feed(DELTA)
        message_id = recorder.message_id
        assert message_id is not None
        found: Any = None
        async with asyncio.timeout(120):
            while not found or found["parts"][0]["text"] != "word " * 50:
                found = await held.read(read_ui_message, message_id)
        await recorder.close()
        await recorder.close()


async def test_a_store_that_is_held_for_long_hinders_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.recorder.backoff.FIRST_S", 0)
    problems: list[str] = []
    held, recorder = await opened(tmp_path, problem=problems.append)
    async with held:
        message_id, other = await held_by_another(held, recorder)
        await recorder.feed(DELTA)
        await recorder.feed({"type": "text-end", "id": "t"})
        with pytest.raises(store.Refused, match="locked"):
            await recorder.flush()
        await recorder.feed({"type": "text-start", "id": "u"})
        assert problems and "locked" in problems[0]
        found = await held.read(read_ui_message, message_id)
        assert found is not None and found["parts"][0]["text"] == ""
        other.execute("ROLLBACK")
        other.close()
        async with asyncio.timeout(120):
            while len(found["parts"]) < 2:
                found = await held.read(read_ui_message, message_id)
                assert found is not None
        assert found["parts"][0] == {"type": "text", "text": "word ", "state": "done"}
        await recorder.close()


async def test_what_waits_is_bounded_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.recorder.recorder.MOST_WAITING", 2_000)
    monkeypatch.setattr("store.recorder.backoff.FIRST_S", 3600)
    monkeypatch.setattr("store.recorder.backoff.LONGEST_S", 3600)
    problems: list[str] = []
    held, recorder = await opened(tmp_path, problem=problems.append)
    async with held:
        message_id, other = await held_by_another(held, recorder)
        taken = 0
        with pytest.raises(store.Refused, match=r"locked.*feed it again"):
            while taken < 10_000:
                await recorder.feed({"type": "text-delta", "id": "t", "delta": f"word {taken} "})
                taken += 1
                if taken == 1:
                    with pytest.raises(store.Refused, match="locked"):
                        await recorder.flush()
        assert 100 < taken < 2_000 and len(problems) == 2
        other.execute("ROLLBACK")
        other.close()
        for number in (taken, taken + 1):
            await recorder.feed({"type": "text-delta", "id": "t", "delta": f"word {number} "})
        await recorder.close()
        found = await held.read(read_ui_message, message_id)
        assert found is not None and found["parts"][0]["text"] == "".join(
            f"word {number} " for number in range(taken + 2))


def test_waits_double_up_to_a_bound_and_differ() -> None:
    backoff = Backoff(lambda: 1.0)
    assert [backoff.failed() for _ in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    backoff.went_well()
    assert not backoff.is_hopeless and backoff.failed() == 0.1
    assert Backoff(lambda: 0.0).failed() == 0.05
    assert len({Backoff().failed() for _ in range(20)}) > 1


async def test_answers_and_usage(tmp_path: Path) -> None:
    held, recorder = await opened(tmp_path)
    async with held, recorder:
        await recorder.add_message({"id": "a1", "role": "assistant", "parts": [
            {"type": "tool-sh", "toolCallId": "c", "state": "approval-requested", "input": {},
             "approval": {"id": "ap"}}]})
        assert await recorder.respond_approval("a1", "ap", False, "no")
        assert not await recorder.respond_approval("a1", "ap", True)
        await recorder.feed({"type": "start", "messageId": "a1"})
        await recorder.feed({"type": "tool-output-denied", "toolCallId": "c"})
        assert await recorder.report_step_usage({"input": 3})
        assert not await recorder.report_step_usage({"cost": 3})
        assert recorder.message is not None
        assert recorder.message["parts"][0]["state"] == "output-denied"
        assert await recorder.set_tool_output("a1", "c", {"x": 1})
        with pytest.raises(store.NotFound):
            await recorder.set_tool_output("zz", "c", 1)
        with pytest.raises(ValueError, match="type"):
            await recorder.feed({"no": "chunk"})


async def test_many_tasks_may_feed(tmp_path: Path) -> None:
    held, recorder = await opened(tmp_path)
    async with held, recorder:
        await recorder.feed({"type": "text-start", "id": "t"})
        await asyncio.gather(*(recorder.feed(DELTA) for _ in range(100)))
        await recorder.flush()
        message_id = recorder.message_id
        assert message_id is not None
        found = await held.read(read_ui_message, message_id)
        assert found is not None and found["parts"][0]["text"] == "word " * 100


async def test_a_task_that_is_cancelled_leaves_the_recording_whole(tmp_path: Path) -> None:
    held, recorder = await opened(tmp_path)
    usage = {"usage": {"input": 5, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0}}
    chunks: list[Any] = [
        {"type": "start"}, {"type": "text-start", "id": "t"}, DELTA,
        {"type": "text-end", "id": "t"}, {"type": "finish", "messageMetadata": usage},
    ]
    async with held:
        async def stream() -> None:
            async with recorder:
                for chunk in chunks:
                    await recorder.feed(chunk)

        for turns in range(1, 9):
            task = asyncio.create_task(stream())
            for _ in range(turns):
                await asyncio.sleep(0)
            while not task.done():
                # As a web server's scope does: each await is cancelled anew.
                task.cancel()
                await asyncio.sleep(0)
            session = recorder.session_id
            async with asyncio.timeout(60):
                while True:
                    with contextlib.suppress(store.Refused):
                        recorder = await store.Recorder.open(held, session=session)
                        break
                    await asyncio.sleep(0)
        async with recorder:
            for chunk in chunks:
                await recorder.feed(chunk)
        messages = [one for one in await held.messages(session) if one.get("metadata")]
        told = sum(one["metadata"]["usage"]["input"] for one in messages if one["metadata"])
        row = await held.session(session)
        assert row.usage.input == told >= 5
        assert row.metadata["activity"]["state"] in ("idle", "interrupted")


async def test_what_is_no_json_is_kept_as_text(tmp_path: Path) -> None:
    held, recorder = await opened(tmp_path)
    async with held, recorder:
        await recorder.user_message("x", metadata={"folder": Path("/work")})
        await recorder.feed({"type": "start"})
        await recorder.feed({"type": "tool-input-available", "toolCallId": "c", "toolName": "t",
                             "input": {}})
        await recorder.feed({"type": "tool-output-available", "toolCallId": "c",
                             "output": [Path("/a"), {"n": 2**70}]})
        messages = await held.messages(recorder.session_id)
        assert messages[0]["metadata"]["folder"] == "/work"
        assert messages[1]["parts"][0]["output"] == ["/a", {"n": 2**70}]
