"""``python -m tests.serve.picture``: draws the served demo as a web browser shows it, to a PNG."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from store.demo import make_demo
from store.system.programs import CommandLine
from tests.chromium import Chromium
from tests.serve.test_pages import CATCH, SCREEN
from tui.serve.gate import Gate
from tui.serve.server import answering
from tui.serve.web import Web

PICTURE = Path("screenshots/served.png")
WIDTH, HEIGHT = 1400, 780


async def draw(out: Path) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("DATA", "CONFIG", "CACHE", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name}"
        path = Path(folder, "demo.db")
        make_demo(path)
        line = CommandLine.python("tui.serve.page", "--read-only").option("--store", str(path))
        pages = Web(Gate(), line, "127.0.0.1")
        async with answering(pages), Chromium() as browser:
            page = await browser.open("about:blank", width=WIDTH, height=HEIGHT)
            await page.send("Page.addScriptToEvaluateOnNewDocument", source=CATCH)
            await page.goto(pages.new_link())
            await page.until(f"{SCREEN}.includes('Retry loop')")
            await page.press("enter")
            await page.until(f"{SCREEN}.includes('f fork here') || {SCREEN}.includes('inspect')")
            await page.screenshot(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.serve.picture", description=__doc__)
    parser.add_argument("--out", type=Path, default=PICTURE)
    asyncio.run(draw(parser.parse_args().out))
