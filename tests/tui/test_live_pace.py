"""How often the store is looked at, and what moved is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from store.engine import changes
from tests.tui.live import check, live


async def test_the_pace_is_slower_while_the_terminal_has_no_focus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live(tmp_path / "s.db") as shown:
        main = shown.app.main
        paces: list[int] = []
        monkeypatch.setattr(main.poller, "start", paces.append)
        main._poll_ms = 50
        main.start_following()
        shown.app.app_focus = False
        await shown.quiet()
        shown.app.app_focus = True
        await shown.quiet()
        assert paces == [50, 250, 50]


async def test_many_writes_are_drawn_at_once_and_then_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []

    def read(db: Any, seq: int) -> Any:
        passes.append(seq)
        return since(db, seq)

    since = changes.since
    async with live(tmp_path / "s.db") as shown:
        main = shown.app.main
        monkeypatch.setattr(changes, "since", read)
        main._passed_at, main._repaint_s = -7200.0, 3600.0
        for number in range(20):
            shown.write(("new_message", 31 + number))
            main.poller.poll(file=True)
            await shown.quiet()
        assert len(passes) == 1
        assert main._pass_due is not None
        main._pass_due.stop()
        main._repaint_s = 0.0
        main._pass_now()
        await shown.quiet()
        assert len(passes) == 2
        await shown.see()
        check(shown, tmp_path / "s.db")
