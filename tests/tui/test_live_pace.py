"""How often the store is looked at, and what moved is drawn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from store.engine import changes
from tests.tui.live import check, live
from tui.live import watcher as watching
from tui.live.watcher import Pace


async def test_the_pace_is_slower_while_the_terminal_has_no_focus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live(tmp_path / "s.db") as shown:
        main = shown.app.main
        paces: list[int] = []
        monkeypatch.setattr(main.watcher.poller, "start", paces.append)
        main.watcher.pace = Pace(50, 250)
        main.start_following()
        shown.app.app_focus = False
        await shown.quiet()
        shown.app.app_focus = True
        await shown.quiet()
        assert paces == [50, 250, 50]


def counted_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets where each pass over the changes begins, from now on."""
    passes: list[int] = []

    def read(db: Any, seq: int) -> Any:
        passes.append(seq)
        return since(db, seq)

    since = changes.since
    monkeypatch.setattr(changes, "since", read)
    return passes


@pytest.mark.parametrize("pace", [Pace(repaint_ms=3_600_000), Pace(repaint_ms=0, rests=10**9)])
async def test_many_writes_are_drawn_at_once_and_then_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pace: Pace
) -> None:
    monkeypatch.setattr(watching, "LONGEST_REST_S", 3_600.0)
    async with live(tmp_path / "s.db") as shown:
        main = shown.app.main
        passes, watcher = counted_passes(monkeypatch), main.watcher
        watcher.passed_at, watcher.pace = -7200.0, pace
        for number in range(20):
            shown.write(("new_message", 31 + number))
            main.watcher.poller.poll(file=True)
            await shown.quiet()
        assert len(passes) == 1
        assert watcher.pass_due is not None
        watcher.pass_due.stop()
        watcher.pace = Pace(repaint_ms=0, rests=0)
        watcher.pass_now()
        await shown.quiet()
        assert len(passes) == 2
        await shown.see()
        check(shown, tmp_path / "s.db")


async def test_a_pass_that_is_all_but_due_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else none is made any more, as each later one waits for it."""
    async with live(tmp_path / "s.db") as shown:
        passes, watcher = counted_passes(monkeypatch), shown.app.main.watcher
        watcher.passed_at, watcher.pace = 0.0, Pace(repaint_ms=50)
        clock = iter((0.05 - 1e-9,))
        monkeypatch.setattr(
            watching, "time", SimpleNamespace(monotonic=lambda: next(clock, 1.0)))
        shown.write(("new_message", 31))
        watcher.poller.poll(file=True)
        async with asyncio.timeout(10):
            while not passes:
                await asyncio.sleep(0.005)
        monkeypatch.undo()
        await shown.quiet()
        await shown.see()
        check(shown, tmp_path / "s.db")
