"""``backscroll serve`` in a real web browser.

One Chromium, two servers and a page of each serve all tests here: each starts in the list of
sessions, and leaves its page there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from aiohttp import web

from store.system.programs import CommandLine
from tests.chromium import Chromium, Page
from tests.serve.processes import gone, is_there
from tests.tui.seeded import Said, make_store, text
from tests.tui.stores import put, some
from tests.tui.verbs_app import query
from tui.serve.gate import Gate
from tui.serve.server import answering, write_link
from tui.serve.web import Web
from tui.state.limits import BY_OPTION

pytestmark = pytest.mark.asyncio(loop_scope="module")

CATCH = """
Object.defineProperty(Object.prototype, "canvasAddon", {configurable: true, set(value) {
  window.served = this;
  Object.defineProperty(this, "canvasAddon", {value, writable: true, configurable: true});
}});
"""
"""Keeps textual-serve's object of the terminal, which is in no variable of the page."""
SCREEN = """(() => {
  const shown = window.served && window.served.terminal, lines = [];
  for (let row = 0; shown && row < shown.rows; row++)
    lines.push(shown.buffer.active.getLine(row).translateToString(true, 0, shown.cols));
  return lines.join("\\n");
})()"""
WITHOUT_GPU = "Automatic fallback to software WebGL"


@dataclass
class Visit:
    """A page of the server, open in Chromium."""

    page: Page

    async def shows(self, words: str) -> str:
        """Wait until the terminal shows some words; return all that it shows."""
        await self.page.until(f"{SCREEN}.includes({json.dumps(words)})")
        return str(await self.page.evaluate(SCREEN))

    async def click(self, words: str) -> None:
        """Click the first place in the terminal that shows some words."""
        x, y = await self.page.evaluate(
            f"(() => {{ const lines = {SCREEN}.split('\\n'), words = {json.dumps(words)};"
            " const row = lines.findIndex(line => line.includes(words)), shown = served.terminal;"
            " const at = document.querySelector('.xterm-screen').getBoundingClientRect();"
            " return [at.x + (lines[row].indexOf(words) + 0.5) * at.width / shown.cols,"
            " at.y + (row + 0.5) * at.height / shown.rows]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            await self.page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                                 clickCount=1)

    async def hides(self, words: str) -> None:
        await self.page.until(f"!{SCREEN}.includes({json.dumps(words)})")


@dataclass
class Served:
    """The servers: of a store that may be changed, and of the same store read only.

    Attributes:
        link: The link by which ``looking`` was opened.
        looking: A page of the read-only server.
        file: What led ``changing`` to its link, as with ``--open``.
        changing: A page of the other server.
    """

    browser: Chromium
    store: Path
    open: Web
    read_only: Web
    link: str
    looking: Visit
    file: Path
    changing: Visit

    def pids(self) -> set[int]:
        """The processes of the open read-only pages."""
        return {page.pid for page in self.read_only.browsers if page.pid}


async def visited(browser: Chromium, url: str, *expected: str) -> Visit:
    """Open a page of a server, and wait until its terminal shows some words."""
    page = await browser.open("about:blank", width=1300, height=700)
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=CATCH)
    await page.goto(url)
    visit = Visit(page)
    for words in expected:
        await visit.shows(words)
    return visit


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    said = [Said("user", [text("where is the needle")]), Said("assistant", [text("in the hay")])]
    path = make_store(folder / "sessions.db", said)
    put(path, some(3))
    line = CommandLine.python("tui.serve.page")
    async with AsyncExitStack() as stack:
        browser = await stack.enter_async_context(Chromium())
        servers = []
        for first in (line, line.flag("--read-only")):
            servers.append(Web(Gate(), first.option("--store", str(path)), "127.0.0.1"))
            await stack.enter_async_context(answering(servers[-1]))
        changed, read_only = servers
        file, link = folder / "link.html", read_only.new_link()
        write_link(file, changed.new_link())
        looking, changing = await asyncio.gather(
            visited(browser, link, "Session 0", "changed"),
            visited(browser, file.as_uri(), "Session 0", "changed"))
        yield Served(browser, path, changed, read_only, link, looking, file, changing)


async def test_the_page_shows_the_list_and_nothing_comes_from_elsewhere(served: Served) -> None:
    visit = served.looking
    first = await visit.shows("Session 2")
    assert first.splitlines()[0].startswith(" backscroll  sessions.db  read only")
    page = visit.page
    port = served.read_only.port
    assert await page.evaluate("location.href") == f"http://127.0.0.1:{port}/"
    assert "token" not in await page.evaluate("JSON.stringify(performance.getEntries())")
    assert {urlsplit(one.url).netloc for one in page.requests} == {f"127.0.0.1:{port}"}
    assert {one.failure for one in page.requests} == {None}
    assert [one for one in page.problems if WITHOUT_GPU not in one] == []
    assert await page.evaluate("document.cookie") == ""
    assert await page.evaluate("document.fonts.check(\"15px 'Roboto Mono'\")")

    # Nor could a script load anything from elsewhere, or run from a string.
    for script in ("fetch('http://127.0.0.1:1/')", "import('data:text/javascript,1')",
                   "new Promise((y, n) => { const i = new Image(); i.onload = y; i.onerror = n;"
                   " i.src = 'http://127.0.0.1:1/x.png'; })"):
        assert await page.evaluate(f"{script}.then(() => 'loaded', () => 'blocked')") == "blocked"
    assert await page.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.head.append(s); return window.ran === undefined; })()")
    assert any("Content Security Policy" in one for one in page.problems)

    # The link is used up, in this browser too.
    again = await served.browser.open(served.link)
    assert "used already" in await again.evaluate("document.body.innerText")
    await again.close()


async def test_keys_the_mouse_and_the_size_of_the_window_reach_the_browser(
    served: Served,
) -> None:
    visit = served.changing
    await visit.click("Session 1")
    await visit.page.until(f"{SCREEN}.split('\\n')[1].includes('Session 1')")
    await visit.page.press("j", "g", "enter")
    await visit.shows("where is the needle")
    await visit.page.press("?")
    await visit.shows("Keys: Transcript")
    await visit.page.press("escape")
    await visit.hides("Keys: Transcript")
    columns = await visit.page.evaluate("served.terminal.cols")
    await visit.page.resize(700, 500)
    await visit.page.until(f"served.terminal.cols < {columns}")
    await visit.page.until(f"{SCREEN}.trimEnd().endsWith('? keys')")
    await visit.page.resize(1300, 700)
    await visit.page.until(f"served.terminal.cols == {columns}")
    await visit.page.press("1")
    await visit.shows("Session 0")


async def test_a_page_that_may_change_the_store_does_and_one_that_may_not_says_why(
    served: Served,
) -> None:
    may_not, may = served.looking, served.changing
    await may_not.page.press("a")
    await may_not.shows(BY_OPTION[:20])
    starred = "SELECT count(*) FROM chat_sessions WHERE metadata_json LIKE '%\"star\":true%'"
    assert query(served.store, starred) == [(0,)]

    await may.page.press("C")
    await may.shows("A web page cannot start")
    await may.page.press("escape", "*")
    await may.shows("★")
    assert query(served.store, starred) == [(1,)]
    # Both look at one store.
    await may_not.shows("★")
    await may.page.press("U")
    for visit in (may, may_not):
        await visit.hides("★")


async def test_copied_text_goes_to_the_clipboard_of_the_page(served: Served) -> None:
    visit = served.changing
    await visit.page.evaluate(
        "navigator.clipboard.writeText = text => (window.copied = text, Promise.resolve())")
    await visit.page.press("y")
    await visit.page.until("window.copied")
    assert str(await visit.page.evaluate("window.copied")).startswith("ses_")
    await visit.shows("Sent ")


@pytest.mark.long
async def test_two_pages_of_one_web_browser_have_a_process_each(served: Served) -> None:
    first = served.looking
    (one,) = served.pids()
    second = await visited(
        served.browser, f"http://127.0.0.1:{served.read_only.port}/", "Session 0")
    (two,) = served.pids() - {one}
    await second.page.close()
    await gone(two)
    assert is_there(one)
    await first.page.press("q")
    await gone(one)
    await first.page.until("getComputedStyle(document.getElementById('ended')).display != 'none'")
    await first.page.click("#again")
    await first.shows("Session 0")


async def test_a_page_from_another_port_of_this_machine_gets_nothing(served: Served) -> None:
    """Its site is the same, so that the web browser even sends it our cookie."""
    visit = served.looking
    key = await visit.page.evaluate("localStorage.getItem('backscroll')")
    target = f"127.0.0.1:{served.read_only.port}"

    async def answer(request: web.Request) -> web.Response:
        assert f"backscroll-{served.read_only.port}" in request.cookies
        return web.Response(text="<!doctype html><title>other</title>", content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        other = await served.browser.open(f"http://127.0.0.1:{port}/")
        assert await other.evaluate("localStorage.getItem('backscroll')") is None
        opened = ("new Promise(done => { const s = new WebSocket('ws://%s/ws/%s');"
                  " s.onopen = () => done('open'); s.onerror = () => done('refused'); })")
        assert await other.evaluate(opened % (target, key)) == "refused"
        for mode in ("cors", "no-cors"):
            fetched = f"fetch('http://{target}/', {{mode: '{mode}', credentials: 'include'}})"
            assert await other.evaluate(f"{fetched}.then(() => 'got', () => 'refused')") == (
                "refused")
        await other.evaluate(
            "new Promise(done => { const f = document.createElement('iframe'); f.onload = done;"
            f" f.src = 'http://{target}/'; document.body.append(f); }})")
        assert any("frame" in one.lower() for one in other.problems)
        assert len(served.read_only.browsers) == 1
        await other.close()
    finally:
        await runner.cleanup()


@pytest.mark.long
async def test_a_link_that_a_file_leads_to_lets_in(served: Served) -> None:
    """As with ``--open``; the cookie is kept back from what another site has led to."""
    assert served.file.stat().st_mode & 0o777 == 0o600
    page = served.changing.page
    assert page.requests[0].url == served.file.as_uri()
    assert await page.evaluate("location.href") == f"http://127.0.0.1:{served.open.port}/"
