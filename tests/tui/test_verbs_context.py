from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.queries.context import context_ids
from store.queries.context_usage import ContextUsage
from tests.tui.seeded import SESSION, START, Said, make_store, message_id, text, tool
from tests.tui.verbs_app import Running, drawn, running
from tui.transcript.context import meter_lines, meter_of


def usage(tokens: int) -> dict[str, Any]:
    return {"usage": {"input": tokens, "output": 0, "reasoning": 0, "cache_read": 0,
                      "cache_write": 0}}


def compacted(*, told_after: bool) -> list[Said]:
    marker = {"type": "data-compaction", "data": {
        "summary": "s" * 400, "tail_start_id": message_id(3), "auto": True}}
    return [
        Said("user", [text("u" * 80)]),
        Said("assistant", [text("a" * 40)], usage(9_000)),
        Said("user", [text("hidden")], {"hidden_at": START + 50}),
        Said("user", [text("u" * 100)]),
        Said("assistant", [
            {"type": "reasoning", "text": "r" * 60}, text("a" * 200),
            tool("Read", {"file_path": "x"}, "o" * 300, call="c1"),
        ], usage(20_000)),
        Said("user", [marker]),
        Said("user", [text("go on")]),
        Said("assistant", [text("a" * 40)], usage(1_000) if told_after else {}),
        Said("user", [text("queued")], {"queued_at": START + 9_000}),
    ]


def shown(run: Running) -> list[str]:
    return list(run.transcript.document.skeleton.message_ids)


def wanted(path: Path) -> list[str]:
    database = open_database(path, write=False)
    try:
        return context_ids(database, SESSION)
    finally:
        database.close()


async def test_it_is_exactly_what_the_model_would_be_sent(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", compacted(told_after=True))
    async with running(path, size=(220, 40)) as run:
        await run.open(SESSION, message_id(0))
        assert len(shown(run)) == 9
        await run.press("c")
        assert shown(run) == wanted(path) == [
            message_id(n) for n in (5, 3, 4, 6, 7)]
        screen = drawn(run.app.screen)
        assert "Sent to the model now  1.0k tokens, counted by it" in screen
        assert "5 messages" in screen
        await run.press("c")
        assert len(shown(run)) == 9
        assert "Sent to the model" not in drawn(run.app.screen)


async def test_it_keeps_the_place_and_follows_writes(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", compacted(told_after=False))
    async with running(path, size=(220, 40)) as run:
        await run.open(SESSION, message_id(4))
        await run.press("c")
        assert run.transcript.shown.message_id == message_id(4)
        assert "guessed from characters" in drawn(run.app.screen)
        other = open_database(path)
        other.connection.execute(
            "INSERT INTO chat_messages VALUES (?,?,?,?,?,?)",
            ("msg_new", SESSION, "user", "{}", START + 20_000, START + 20_000))
        other.connection.execute(
            "INSERT INTO chat_parts VALUES (?,?,?,?,?,?,?,?,?,?)",
            ("prt_new", "msg_new", SESSION, 0, "text", '{"type":"text","text":"fresh"}', None,
             None, START + 20_000, START + 20_000))
        other.close()
        await run.app.main.watcher.show_written()
        run.transcript.follower.check_whole_now()
        await run.quiet()
        assert shown(run) == wanted(path)
        assert shown(run)[-1] == "msg_new"
        await run.press("c")
        assert run.transcript.shown.message_id == message_id(4)


async def test_a_rewind_shrinks_it(tmp_path: Path) -> None:
    said = [Said("user" if n % 2 == 0 else "assistant", [text(f"words {n}")],
                 {} if n % 2 == 0 else usage(100 * n)) for n in range(6)]
    path = make_store(tmp_path / "s.db", said)
    async with running(path, size=(220, 40)) as run:
        await run.open(SESSION, message_id(1))
        await run.press("c")
        assert "500 tokens" in drawn(run.app.screen)
        await run.press("r", "enter")
        run.transcript.follower.check_whole_now()
        await run.quiet()
        assert shown(run) == [message_id(0), message_id(1)]
        assert "100 tokens" in drawn(run.app.screen)


async def test_another_session_opens_with_all_that_happened(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", compacted(told_after=True))
    make_other = open_database(path)
    make_other.connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, created_at, updated_at)"
        " VALUES ('ses_other', 'x', '{}', '{}', 1, 1)")
    make_other.close()
    async with running(path, size=(220, 40)) as run:
        await run.open(SESSION, message_id(0))
        await run.press("c")
        await run.open("ses_other")
        await run.open(SESSION, message_id(0))
        assert len(shown(run)) == 9
        assert not run.transcript.context.is_shown


def test_what_no_text_explains_is_the_systems() -> None:
    usage = ContextUsage(counted=1_000, since=40)
    usage.characters["user"] = 400
    meter = meter_of(usage)
    assert (meter.tokens, meter.counted, meter.rest) == (1_010, True, True)
    assert (meter.kinds["user"], meter.kinds["system"]) == (100, 910)
    usage.characters["system"] = 400
    meter = meter_of(usage)
    assert (meter.kinds["user"], meter.kinds["system"], meter.rest) == (505, 505, False)


def test_without_a_count_it_is_guessed() -> None:
    usage = ContextUsage()
    usage.characters["tool output"], usage.characters["assistant"] = 300, 100
    meter = meter_of(usage)
    assert (meter.tokens, meter.counted) == (100, False)
    assert meter.kinds["tool output"] == 75


@pytest.mark.parametrize("width", [40, 78, 140])
def test_the_bar_fills_the_line(width: int) -> None:
    usage = ContextUsage(counted=5_000)
    for number, kind in enumerate(usage.characters):
        usage.characters[kind] = 90 * (number + 1) ** 3
    _title, bar, *legend = meter_lines(meter_of(usage), 3, width)
    assert len(bar.text) == width - 2
    words = " ".join(line.text for line in legend)
    assert all(kind in words for kind in usage.characters)
    assert all(len(line.text) <= width - 2 for line in legend)
