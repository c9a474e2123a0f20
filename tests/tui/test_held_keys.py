"""Keys that are held: all of them count, and nothing is left to run behind the last one."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from textual import events
from textual.geometry import Region
from textual.strip import Strip

from tests.store.talks import Talk, make_store
from tests.tui.stores import browser, put, settled, some
from tests.tui.workers import inputs_done
from tui.app import BackscrollApp

HELD = [45, pytest.param(600, marks=pytest.mark.long)]
"""Less than a second at 60 keys a second, and ten seconds."""


async def hold(app: BackscrollApp, key: str, count: int) -> None:
    """Send keys faster than any can be answered; return with the frame after the last."""
    for number in range(count):
        app.post_message(events.Key(key, None))
        if number % 7 == 0:
            # Some come while others run.
            await app.wait_for_refresh()
    await inputs_done(app)
    await app.wait_for_refresh()


@pytest.mark.parametrize("held", HELD)
async def test_held_keys_in_the_list(tmp_path: Path, held: int) -> None:
    app = browser(put(tmp_path / "s.db", some(held + 20)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        view = app.main.sessions.view
        assert view.cursor == 0
        await hold(app, "down", held)
        assert view.cursor == held
        await hold(app, "up", held - 1)
        assert view.cursor == 1


@pytest.mark.parametrize("held", HELD)
async def test_held_keys_in_the_transcript(tmp_path: Path, held: int) -> None:
    talk = Talk(make_store(tmp_path / "s.db", "own"))
    session = talk.session()
    for number in range(held + 50):
        talk.message(session, "assistant" if number % 2 else "user", text=f"Message {number}")
    talk.db.close()
    app = browser(tmp_path / "s.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("enter", "g")
        await settled(app, pilot)
        pane = app.main.transcript
        assert pane is not None
        first, top = pane.cursor, pane.view.position
        await hold(app, "full_stop", held)
        assert pane.cursor == first + held
        await hold(app, "comma", held)
        assert pane.cursor == first
        await hold(app, "down", held)
        below = pane.view.position
        assert (below.part, below.line) != (top.part, top.line)
        await hold(app, "up", held)
        above = pane.view.position
        assert (above.part, above.line) == (top.part, top.line)


async def test_frames_are_left_out_while_a_held_key_is_behind(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(100)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        view, drawn = app.main.sessions.view, list[int | None]()
        render = view.render_lines

        def watched(crop: Region) -> list[Strip]:
            drawn.append(view.cursor)
            return render(crop)

        with patch.object(view, "render_lines", watched):
            for _ in range(80):
                app.post_message(events.Key("down", None))
            await inputs_done(app)
            await app.wait_for_refresh()
            assert view.cursor == 80
            # The last one is drawn, and not each of those before.
            assert drawn[-1] == 80 and len(set(drawn)) < 60
            # Keys that take turns are drawn as ever.
            await pilot.press("up", "down")
            assert view.cursor == 80
