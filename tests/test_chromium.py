"""The driver of Chromium reports what the tests of pages rely on."""

from __future__ import annotations

from pathlib import Path

from tests.chromium import Chromium

PAGE = """<!doctype html><meta charset=utf-8>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; connect-src http:">
<title>t</title><input id=field autofocus>
<img src="http://127.0.0.1:9/blocked.png">
<script>
var keys = [];
addEventListener('keydown', e => keys.push((e.ctrlKey ? 'ctrl+' : '') + e.key));
console.log('hello', 1);
fetch('http://127.0.0.1:9/refused').catch(() => 0);
setTimeout(() => { alert('boo'); throw new Error('late') }, 0);
</script>
"""


async def test_a_page_is_driven_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    async with Chromium() as browser:
        page = await browser.open(path.as_uri(), scheme="light", width=700)
        assert await page.evaluate("Promise.resolve([innerWidth, document.title])") == [700, "t"]
        assert await page.evaluate("matchMedia('(prefers-color-scheme: light)').matches") is True
        await page.click("#field")
        await page.press("j", "N", "ctrl+p", "enter", "down")
        assert await page.evaluate("keys") == ["j", "N", "ctrl+p", "Enter", "ArrowDown"]
        assert await page.until("field.value") == "jN"
        await page.happened(lambda: page.dialogs == ["boo"], "the alert")
        await page.happened(lambda: any("late" in one for one in page.problems), "the error")
        failures = {each.url: each.failure for each in page.requests}
        assert failures["http://127.0.0.1:9/blocked.png"] == "csp"
        assert failures["http://127.0.0.1:9/refused"]
        assert ("log", "hello 1") in page.console
        assert any("Content Security Policy" in one for one in page.problems)
        assert (await page.screenshot()).startswith(b"\x89PNG")
        assert (await page.pdf()).startswith(b"%PDF")
        quiet = await browser.open(path.as_uri(), scripts=False)
        assert await quiet.evaluate("window.keys") is None and not quiet.dialogs
