"""Keys that reach the end of the first window wait for the rest of the session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store.store import Store
from tests.tui.seeded import Said, long_talk, make_store, text, tool
from tests.tui.test_transcript_pane import Harness, lines, quick_pilot, settled
from tui.panes.transcript import TranscriptPane
from tui.transcript.item import Setting
from tui.transcript.moving import MovingPane
from tui.transcript.reader import SessionReader

assert quick_pilot
PAGES = 12
WINDOW = 64
"""Parts that are read before the session is counted."""
NOW = 1_796_000_000_000


async def seen_after(
    path: Path, keys: list[str], *, message: str | None = None
) -> tuple[list[str], int, list[str]]:
    """Return the lines on the screen, the selected part and the notices after some keys."""
    store = await Store.open(path, clock=lambda: NOW)
    app = Harness(store, {"message_id": message})
    try:
        async with asyncio.timeout(60), app.run_test(size=(100, 30)) as pilot:
            pane = app.query_one(TranscriptPane)
            while app.focused is not pane.view:
                await pilot.pause()
            await pilot.press(*keys)
            await settled(app)
            assert pane.document.complete
            told = [notice.message for notice in app._notifications]
            return lines(pane), pane.cursor, told
    finally:
        await store.close()


@pytest.fixture
def slow_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rest of a session come no earlier than a key asks for it."""
    asked = asyncio.Event()
    calls: list[MovingPane] = []
    until_whole, skeleton = MovingPane.until_whole, SessionReader.skeleton

    async def counted(self: MovingPane) -> None:
        calls.append(self)
        if len(calls) > 1:
            asked.set()
        await until_whole(self)

    async def gated(self: SessionReader, setting: Setting) -> object:
        await asked.wait()
        return await skeleton(self, setting)

    monkeypatch.setattr(MovingPane, "until_whole", counted)
    monkeypatch.setattr(SessionReader, "skeleton", gated)


def a_talk(path: Path) -> Path:
    said: list[Said] = [Said("user", [text("go on")])]
    said += [Said("assistant", [tool("Read", {}, f"line {n}", call=f"c{n}")]) for n in range(300)]
    said[20] = Said("assistant", [tool("Bash", {}, "no", state="output-error", call="x")])
    return make_store(path, said)


@pytest.mark.parametrize(("key", "times"), [("pageup", PAGES), ("pagedown", PAGES), ("up", 300)])
async def test_lines_and_pages_go_on_past_the_window(
    tmp_path: Path, slow_counting: None, key: str, times: int
) -> None:
    path = make_store(tmp_path / "s.db", long_talk(120))
    _, cursor, told = await seen_after(path, ["g"] * (key == "pagedown") + [key] * times)
    assert told == []
    if key == "pagedown":
        assert cursor > WINDOW
    else:
        assert cursor < 600 - WINDOW


@pytest.mark.parametrize("key", ["E", "["])
async def test_steps_to_what_stands_before_the_window(
    tmp_path: Path, request: pytest.FixtureRequest, key: str
) -> None:
    path = a_talk(tmp_path / "s.db")
    at_once = await seen_after(path, [key])
    assert at_once[2] == []
    request.getfixturevalue("slow_counting")
    assert await seen_after(path, [key]) == at_once


@pytest.mark.parametrize("key", ["K", ","])
async def test_steps_from_part_to_part_go_on_past_the_window(
    tmp_path: Path, slow_counting: None, key: str
) -> None:
    path = a_talk(tmp_path / "s.db")
    _, cursor, told = await seen_after(path, [key] * 150)
    assert told == []
    assert cursor < 301 - 2 * WINDOW
