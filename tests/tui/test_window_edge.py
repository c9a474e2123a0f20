"""Keys that reach the end of the first window wait for the rest of the session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from store.store import Store
from tests.tui.seeded import Said, long_talk, make_store, message_id, text, tool
from tests.tui.test_transcript_pane import Harness, lines, quick_pilot, settled
from tui.kit.selection import offset_y
from tui.transcript.document import Document
from tui.transcript.item import Setting
from tui.transcript.pane import TranscriptPane
from tui.transcript.placement import Placement
from tui.transcript.reader import SessionReader

assert quick_pilot
PAGES = 12
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
    calls: list[Placement] = []
    until_whole, skeleton = Placement.until_whole, SessionReader.skeleton

    async def counted(self: Placement) -> None:
        calls.append(self)
        if len(calls) > 1:
            asked.set()
        await until_whole(self)

    async def gated(self: SessionReader, setting: Setting) -> object:
        await asked.wait()
        return await skeleton(self, setting)

    monkeypatch.setattr(Placement, "until_whole", counted)
    monkeypatch.setattr(SessionReader, "skeleton", gated)


def a_talk(path: Path) -> Path:
    said: list[Said] = [Said("user", [text("go on")])]
    said += [Said("assistant", [tool("Read", {}, f"line {n}", call=f"c{n}")]) for n in range(300)]
    said[20] = Said("assistant", [tool("Bash", {}, "no", state="output-error", call="x")])
    return make_store(path, said)


@pytest.mark.parametrize("key", [
    "pageup", "pagedown", pytest.param("up", marks=pytest.mark.long)])
async def test_lines_and_pages_go_on_past_the_window(
    tmp_path: Path, request: pytest.FixtureRequest, key: str
) -> None:
    path = make_store(tmp_path / "s.db", long_talk(120))
    keys = ["g"] * (key == "pagedown") + [key] * (300 if key == "up" else PAGES)
    at_once = await seen_after(path, keys)
    request.getfixturevalue("slow_counting")
    assert await seen_after(path, keys) == at_once


@pytest.mark.parametrize("key", [
    "E", "[", *(pytest.param(key, marks=pytest.mark.long) for key in "K,")])
async def test_steps_to_what_stands_before_the_window(
    tmp_path: Path, request: pytest.FixtureRequest, key: str
) -> None:
    path = a_talk(tmp_path / "s.db")
    keys = [key] * (150 if key in "K," else 1)
    lines_at_once, cursor, told = await seen_after(path, keys)
    assert told == []
    request.getfixturevalue("slow_counting")
    assert await seen_after(path, keys) == (lines_at_once, cursor, told)


KEYS = ("up", "down", "pageup", "pagedown", "ctrl+u", "ctrl+d", "home", "end", "[", "]", "J", "K",
        ".", ",", "w", "b", "o", "t", "m", "H")


async def seen_from_the_middle(path: Path, key: str, *, without_rows: bool) -> object:
    store = await Store.open(path, clock=lambda: NOW)
    app = Harness(store, {"message_id": message_id(120)})
    try:
        async with asyncio.timeout(60), app.run_test(size=(100, 30)) as pilot:
            pane = app.query_one(TranscriptPane)
            while app.focused is not pane.view:
                await pilot.pause()
            if without_rows:
                assert not pane.document.complete
                pane.document.keep_rows(())
            await pilot.press(key)
            await settled(app)
            assert pane.document.complete
            return lines(pane), pane.document.skeleton.key(pane.cursor), pane.view.at_end
    finally:
        await store.close()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.one_in(4)
async def test_the_rest_comes_while_a_key_waits_for_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    path = make_store(tmp_path / "s.db", long_talk(120))
    at_once = await seen_from_the_middle(path, key, without_rows=False)
    wanted = asyncio.Event()
    skeleton, have, open_window = SessionReader.skeleton, SessionReader.have, SessionReader.open

    async def gated(self: SessionReader, setting: Setting) -> object:
        await wanted.wait()
        return await skeleton(self, setting)

    async def counted_first(self: SessionReader, document: Document, parts: Iterable[int]) -> bool:
        parts = list(parts)
        if not document.complete and document.missing(p for p in parts if 0 <= p < len(document)):
            wanted.set()
            while not document.complete:
                await asyncio.sleep(0)
        return await have(self, document, parts)

    async def counted_first_too(
        self: SessionReader, setting: Setting, around: str | None, *, at_end: bool
    ) -> Document:
        document = await open_window(self, setting, around, at_end=at_end)
        if around is None:
            wanted.set()
            for _ in range(1_000):
                await asyncio.sleep(0)
        return document

    monkeypatch.setattr(SessionReader, "skeleton", gated)
    monkeypatch.setattr(SessionReader, "have", counted_first)
    monkeypatch.setattr(SessionReader, "open", counted_first_too)
    assert await seen_from_the_middle(path, key, without_rows=True) == at_once


async def test_selected_text_stays_selected_when_the_rest_comes(
    tmp_path: Path, slow_counting: None
) -> None:
    path = make_store(tmp_path / "s.db", long_talk(120))
    store = await Store.open(path, clock=lambda: NOW)
    app = Harness(store, {})
    try:
        async with asyncio.timeout(60), app.run_test(size=(100, 30)) as pilot:
            pane = app.query_one(TranscriptPane)
            while app.focused is not pane.view:
                await pilot.pause()
            first, last = pane.view.rows()[3], pane.view.rows()[9]
            chosen = Selection(Offset(5, offset_y(first.part, first.line)),
                               Offset(9, offset_y(last.part, last.line)))
            app.screen.selections = {pane.view: chosen}
            before, parts = app.screen.get_selected_text(), len(pane.document)
            assert before and not pane.document.complete
            await pilot.press(*["pageup"] * PAGES)
            await settled(app)
            assert pane.document.complete and len(pane.document) > parts
            assert app.screen.get_selected_text() == before
    finally:
        await store.close()
