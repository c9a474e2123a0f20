"""Pages in headless Chromium: they load, fold, find and print, and nothing leaves them."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio

from store.engine.database import Database, open_database
from store.exports.files import prepare
from store.exports.registry import FORMATS
from tests.chromium import Chromium, Page
from tests.exports.exporting import session_id
from tests.hostile import hostile_store, page_attacks

pytestmark = pytest.mark.asyncio(loop_scope="module")
COUNT = "document.getElementById('count').value"
HERE = "document.querySelector('.m.here')"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Chromium]:
    async with Chromium() as browser:
        yield browser


def written(database: Database, ids: Sequence[str], path: Path) -> str:
    made = prepare(database, ids[0], FORMATS["html"], further=ids[1:], masked=False)
    made.write(path)
    database.connection.execute("COMMIT")
    return path.as_uri()


@pytest.fixture
def demo_page(demo: Database, tmp_path: Path) -> str:
    return written(demo, [session_id(demo, "retry-loop")], tmp_path / "page.html")


async def test_it_opens_from_a_file_without_requests_or_errors(
    chromium: Chromium, demo_page: str
) -> None:
    page = await chromium.open(demo_page)
    assert await page.evaluate("document.title") == "Retry loop in the sync worker"
    assert [each.url for each in page.requests] == [demo_page]
    assert page.problems == [] and page.console == []


async def test_keys_go_from_message_to_message_and_turn_to_turn(
    chromium: Chromium, demo_page: str
) -> None:
    page = await chromium.open(demo_page)
    await page.press("j", "j")
    first = await page.evaluate(f"{HERE}.previousElementSibling.classList.contains('user')")
    assert first and await page.evaluate(f"{HERE}.matches('.assistant')")
    await page.press("k")
    assert await page.evaluate(f"{HERE}.matches('.user')")
    await page.press("]", "]")
    assert "Only the 401" in await page.evaluate(f"{HERE}.textContent")
    marked = "document.querySelector('.turns [aria-current]').textContent"
    assert "Only the 401" in await page.evaluate(marked)
    await page.press("e")
    assert await page.evaluate(f"Boolean({HERE}.querySelector('.p.error'))")
    await page.press("G")
    assert await page.evaluate(f"{HERE} === [...document.querySelectorAll('.m')].pop()")
    await page.press("g")
    assert await page.until("scrollY === 0")


async def test_letters_act_by_their_place_on_other_layouts(
    chromium: Chromium, demo_page: str
) -> None:
    page = await chromium.open(demo_page)
    down = {"key": "о", "code": "KeyJ", "text": "о", "type": "keyDown"}
    await page.send("Input.dispatchKeyEvent", **down)
    assert await page.evaluate(f"Boolean({HERE})")


async def test_folds_open_by_keys_and_clicks(chromium: Chromium, demo_page: str) -> None:
    page = await chromium.open(demo_page)
    read = "[...document.querySelectorAll('.call > details')].find(" \
           "d => d.textContent.startsWith('Read')).open"
    closed = "document.querySelectorAll('.call > details:not([open], .empty)').length"
    assert await page.evaluate(read) is False
    await page.press("t")
    assert await page.evaluate(closed) == 0 and await page.evaluate(read) is True
    await page.press("t")
    assert await page.evaluate(read) is False
    thought = "document.querySelector('.reasoning details').open"
    await page.press("i")
    assert await page.evaluate(thought) is True
    await page.click(".reasoning summary")
    assert await page.evaluate(thought) is False
    await page.press("g", "j", "j", "o")
    assert await page.evaluate(f"{HERE}.querySelector('.p > details').open") is True
    await page.press("o")
    assert await page.evaluate(f"{HERE}.querySelector('.p > details').open") is False


async def test_finding_opens_what_hides_a_hit(chromium: Chromium, demo_page: str) -> None:
    page = await chromium.open(demo_page)
    await page.press("/")
    await page.type("RETRYING_ALL")
    await page.until(f"{COUNT} === 'not here'")
    await page.press("escape", "/")
    await page.type("raise_for_status")
    # Of what was typed so far more may be found.
    first = "[...CSS.highlights.get('hits')][0]?.toString()"
    found = await page.until(f"{first} === 'raise_for_status' && {COUNT}")
    await page.press("enter")
    assert await page.evaluate(COUNT) == f"1 of {found.split()[0]}"
    hit = "[...CSS.highlights.get('hit')][0]"
    assert (await page.evaluate(f"{hit}.toString()")) == "raise_for_status"
    hidden = f"(e => {{ while (e) {{ if (e.tagName === 'DETAILS' && !e.open) return true;" \
             f" e = e.parentElement }} return false }})({hit}.startContainer.parentElement)"
    assert await page.evaluate(hidden) is False
    box = await page.evaluate(f"JSON.stringify({hit}.getBoundingClientRect())")
    assert 0 < json.loads(box)["top"] < 900
    assert await page.evaluate("CSS.highlights.get('hits').size") == int(found.split()[0])
    await page.evaluate("document.activeElement.blur()")
    await page.press("n")
    assert (await page.evaluate(COUNT)).startswith("2 of ")
    await page.press("N", "N")
    total = found.split()[0]
    assert await page.evaluate(COUNT) == f"{total} of {total}"


async def test_a_link_leads_to_its_message(chromium: Chromium, demo_page: str) -> None:
    page = await chromium.open(demo_page)
    anchors = await page.evaluate("[...document.querySelectorAll('.m > .at')].map(a => a.hash)")
    assert len(anchors) == len(set(anchors)) > 10
    linked = await chromium.open(demo_page + anchors[9])
    assert await linked.until(f"{HERE} && '#' + {HERE}.id") == anchors[9]
    top = await linked.evaluate(f"{HERE}.getBoundingClientRect().top")
    assert 0 < top < 900


async def test_it_is_dark_and_light_by_the_system_and_by_a_switch(
    chromium: Chromium, demo_page: str
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    dark, light = "rgb(20, 22, 27)", "rgb(247, 248, 250)"
    page = await chromium.open(demo_page, scheme="dark")
    assert await page.evaluate(ground) == dark
    await page.prefer("light")
    assert await page.evaluate(ground) == light
    await page.press("D")
    assert await page.evaluate(ground) == dark
    await page.click("#theme")
    assert await page.evaluate(ground) == light


async def test_without_scripts_it_is_whole(chromium: Chromium, demo_page: str) -> None:
    page = await chromium.open(demo_page, scripts=False)
    assert await page.evaluate("getComputedStyle(document.getElementById('find')).display") != ""
    shown = "getComputedStyle(document.querySelector('.find')).display"
    assert await page.evaluate(shown) == "none"
    await page.click(".reasoning summary")
    assert await page.evaluate("document.querySelector('.reasoning details').open") is True
    assert "endless retry" in await page.evaluate("document.querySelector('main').innerText")


async def test_it_prints_in_light_colours_without_bars(chromium: Chromium, demo_page: str) -> None:
    page = await chromium.open(demo_page, scheme="dark")
    pdf = await page.pdf()
    pages = len(re.findall(rb"/Type /Page\n", pdf))
    assert pdf.startswith(b"%PDF") and 2 <= pages <= 9
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.S)
    packed = [zlib.decompressobj() for _ in streams]
    assert any(b"BT" in each.decompress(stream)
               for each, stream in zip(packed, streams, strict=True) if stream[:1] == b"x")
    await page.send("Emulation.setEmulatedMedia", media="print")
    for part in (".bar", ".turns", ".keys"):
        shown = f"getComputedStyle(document.querySelector('{part}')).display"
        assert await page.evaluate(shown) == "none"
    ink = "getComputedStyle(document.querySelector('h1')).color"
    assert await page.evaluate(ink) == "rgb(29, 34, 44)"


async def test_a_narrow_window_is_not_wider_than_it_is(chromium: Chromium, demo_page: str) -> None:
    page = await chromium.open(demo_page, width=360, height=740)
    await page.press("t", "i")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360


@asynccontextmanager
async def listener() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Yield the address of a server on this machine, and what was asked of it."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_hostile_sessions_run_nothing_and_ask_for_nothing(
    chromium: Chromium, tmp_path: Path
) -> None:
    async with listener() as (address, asked):
        path = hostile_store(tmp_path / "h.db", page_attacks(address))
        database = open_database(path, write=False)
        ids = [row[0] for row in database.connection.execute("SELECT id FROM chat_sessions")]
        page = await chromium.open(written(database, ids, tmp_path / "hostile.html"))
        database.close()
        await press_everything(page)
        assert page.problems == [] and page.dialogs == [] and page.popups == []
        assert [each.url for each in page.requests] == [(tmp_path / "hostile.html").as_uri()]
        assert asked == []
        odd = "document.querySelectorAll('script, iframe, object, embed, link, form, base, svg')"
        assert await page.evaluate(f"[...{odd}].map(e => e.tagName)") == ["LINK", "SCRIPT"]
        handlers = "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])" \
                   ".filter(a => /^on|^style$|^srcdoc$|^ping$/.test(a.name)).length"
        assert await page.evaluate(handlers) == 0


async def press_everything(page: Page) -> None:
    """Open all folds, find what is there, and press every key."""
    await page.press("t", "i", "j", "o", "k", "]", "[", "e", "E", "D")
    await page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    await page.press("/")
    await page.type("script>alert")
    await page.until(f"{COUNT}.endsWith('found')")
    await page.press("enter", "enter", "escape", "G", "g")
    await page.evaluate("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))")


def long_session(path: Path, parts: int) -> Database:
    """Return a store with a session of so many parts, eight of nine of them calls."""
    database = open_database(path, create=True)
    connection = database.connection
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, created_at, updated_at)"
        " VALUES ('s', 'x', '{}', '{}', 1, 1)")
    messages, rows = [], []
    for number in range(parts // 9):
        at = 1_790_000_000_000 + number
        role = "assistant" if number % 2 else "user"
        messages.append((f"m{number}", "s", role, "{}", at, at))
        for place in range(9):
            data = {"type": "text", "text": f"words {number}"} if not place else {
                "type": "tool-Bash", "toolCallId": f"c{number}-{place}",
                "state": "output-available", "input": {"command": f"run {number}.{place}"},
                "output": f"first line\nsecond line\nneedle-{number}-{place}\nlast line"}
            rows.append((f"m{number}-{place}", f"m{number}", "s", place, data["type"],
                         json.dumps(data), data.get("toolCallId"), data.get("state"), at, at))
    connection.executemany("INSERT INTO chat_messages VALUES (?, ?, ?, ?, ?, ?)", messages)
    connection.executemany("INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.execute("COMMIT")
    return database


async def test_ten_thousand_parts_are_found_folded_and_walked(
    chromium: Chromium, tmp_path: Path
) -> None:
    database = long_session(tmp_path / "long.db", 10_008)
    page = await chromium.open(written(database, ["s"], tmp_path / "long.html"))
    database.close()
    assert await page.evaluate("document.querySelectorAll('.p').length") == 10_008
    drawn = "[...document.querySelectorAll('.m')].filter(" \
            "m => m.checkVisibility({contentVisibilityAuto: true}) && m.querySelector('.p')" \
            ".checkVisibility({contentVisibilityAuto: true})).length"
    assert await page.evaluate(drawn) < 60
    await page.press("/")
    await page.type("needle-1000-")
    await page.until(f"{COUNT} === '8 found'")
    await page.press("enter")
    await page.until(f"{COUNT} === '1 of 8'")
    hit = "[...CSS.highlights.get('hit')][0]"
    assert await page.evaluate(f"{hit}.startContainer.parentElement.closest('details').open")
    await page.until(f"(t => t > 0 && t < innerHeight)({hit}.getBoundingClientRect().top)")
    await page.evaluate("document.activeElement.blur()")
    # All folds above it are drawn anew; it stays where it is.
    place = f"Math.round({HERE}.getBoundingClientRect().top)"
    before = await page.evaluate(place)
    await page.press("t")
    await page.evaluate(frames(4))
    assert await page.evaluate(place) == before
    await page.press("G")
    await page.until(f"{HERE} && {HERE}.id === 'm-m1111'")
    await page.press("t", "[")
    await page.until(f"{HERE} && {HERE}.id === 'm-m1110'")
    assert page.problems == []


def frames(number: int, then: str = "") -> str:
    """Return a script that runs another one after some frames, before the next one's scripts."""
    return f"""(async () => {{
        for (let frame = 0; frame < {number}; frame += 1)
            await new Promise(done => requestAnimationFrame(() => {{
                const channel = new MessageChannel();
                channel.port1.onmessage = done;
                channel.port2.postMessage(0);
            }}));
        {then}
    }})()"""


async def test_a_key_right_after_another_starts_from_what_that_chose(
    chromium: Chromium, tmp_path: Path
) -> None:
    database = long_session(tmp_path / "long.db", 1_800)
    address = written(database, ["s"], tmp_path / "long.html")
    database.close()
    page = await chromium.open(address)
    for before, after in product((0, 1, 2), (0, 1)):
        await page.goto(address)
        await page.evaluate(
            "window.key = key => dispatchEvent(new KeyboardEvent('keydown', {key}))")
        # What is unfolded and in sight gets its size in the next frames, and moves the page.
        await page.evaluate(frames(2, "key('t'); key('G')"))
        await page.evaluate(frames(before, "key('t')"))
        await page.evaluate(frames(after, "key('[')"))
        assert await page.evaluate(f"{HERE}.id") == "m-m198"


async def test_a_hit_that_was_gone_to_stays_when_all_is_typed(
    chromium: Chromium, demo_page: str
) -> None:
    page = await chromium.open(demo_page)
    await page.press("/")
    await page.type("raise_for_status")
    await page.press("enter")
    shown = await page.evaluate(COUNT)
    assert shown.startswith("1 of ")
    # Later than what was typed is found by itself.
    await page.evaluate("new Promise(done => setTimeout(done, 200))")
    assert await page.evaluate(COUNT) == shown
    assert await page.evaluate("CSS.highlights.get('hit').size") == 1


async def test_the_policy_allows_nothing_else(chromium: Chromium, demo_page: str) -> None:
    page = await chromium.open(demo_page)
    policy = await page.evaluate("document.querySelector('meta[http-equiv]').content")
    rules = [re.sub(r"'sha256-[^']+'", "HASH", each.strip()) for each in policy.split(";")]
    assert rules == [
        "default-src 'none'", "style-src HASH", "script-src HASH", "img-src data:",
        "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"]
