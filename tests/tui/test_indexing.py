"""The app's indexer: it runs beside the app, reports trouble once, and ends with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from store.search.index.checking import check
from store.search.index.reading import open_index
from store.search.index.sidecar import index_path
from tests.store.talks import Talk, make_store
from tui.live.indexing import Indexing


async def until(true: object) -> None:
    async with asyncio.timeout(60):
        while not true():  # type: ignore[operator]
            await asyncio.sleep(0.02)


def is_whole(store: Path) -> bool:
    index = open_index(store)
    return index is not None and index.coverage().whole


async def test_the_index_is_kept_while_the_app_runs(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "store.db", "own"))
    talk.message(talk.session("Title"), text="words")
    reports: list[str] = []
    indexing = Indexing(talk.db.path, lambda summary, error: reports.append(summary), (0.01,))
    running = asyncio.ensure_future(indexing.run())
    await until(lambda: is_whole(talk.db.path))
    await indexing.stop()
    await running
    assert check(talk.db.path) == []
    assert reports == []


async def test_trouble_is_reported_once_and_tried_again(tmp_path: Path) -> None:
    talk = Talk(make_store(tmp_path / "store.db", "own"))
    talk.message(talk.session("Title"), text="words")
    path = index_path(talk.db.path)
    path.mkdir()
    reports: list[str] = []
    indexing = Indexing(talk.db.path, lambda summary, error: reports.append(summary), (0.01,))
    running = asyncio.ensure_future(indexing.run())
    await until(lambda: reports)
    path.rmdir()
    await until(lambda: is_whole(talk.db.path))
    await indexing.stop()
    await running
    assert len(reports) == 1 and "index" in reports[0]
