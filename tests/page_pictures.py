"""``python -m tests.page_pictures``: draws an exported page into screenshots/. Needs Chromium."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from store.demo import make_demo
from store.engine.database import open_database
from store.exports.files import prepare
from store.exports.registry import FORMATS
from store.queries.sessions import resolve
from tests.chromium import Chromium
from tui.screenshots.shots import NOW, fixed_environment

FOLDER = Path(__file__).parents[1] / "screenshots"
WIDTH, HEIGHT = 1400, 900


async def draw(page_path: Path, out: Path) -> None:
    """Draw the page's beginning in dark colours, and what a search finds in light ones."""
    async with Chromium() as browser:
        address = page_path.as_uri()
        dark = await browser.open(address, width=WIDTH, height=HEIGHT, scheme="dark")
        await dark.screenshot(out / "page.png")
        light = await browser.open(address, width=WIDTH, height=HEIGHT, scheme="light")
        await light.press("/")
        await light.type("test_gives_up")
        await light.press("enter")
        await light.screenshot(out / "page-light.png")


def main() -> None:
    """Export a session of the demo and draw it."""
    parser = argparse.ArgumentParser(prog="python -m tests.page_pictures", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder (screenshots)")
    out = parser.parse_args().out.absolute()
    with tempfile.TemporaryDirectory() as name:
        os.environ.update(fixed_environment(Path(name)))
        time.tzset()
        database = open_database(make_demo(Path(name) / "demo.db", lambda: NOW), write=False)
        session = resolve(database, "retry-loop").id
        page = Path(name) / "page.html"
        prepare(database, session, FORMATS["html"]).write(page)
        database.close()
        asyncio.run(draw(page, out))
    print(out / "page.png", out / "page-light.png", sep="\n")


if __name__ == "__main__":
    main()
