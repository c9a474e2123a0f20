"""Whatever another process writes, the panes hold what a fresh read of the file gives."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tui.live import FORMS, check, live
from tests.tui.live_writer import CHANGES

pytestmark = pytest.mark.long

NAMES = sorted({change.__name__ for change in CHANGES})
STEPS = st.lists(
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 200)), min_size=1, max_size=3),
    min_size=4, max_size=14,
)
KEYS = st.sampled_from(["", "", "G", "k", "pageup", "g", "H", "down"])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, keys=st.lists(KEYS, min_size=14, max_size=14))
def test_the_screen_holds_what_the_file_holds(
    form: str, steps: list[list[tuple[str, int]]], keys: list[str]
) -> None:
    async def play(path: Path) -> None:
        async with live(path, form) as shown:
            shown.app.main.panes.focus("transcript")
            shown.transcript.finder.start("Words")
            await shown.quiet()
            for changes, key in zip(steps, keys, strict=False):
                if key:
                    await shown.pilot.press(key)
                    await shown.quiet()
                # A write that nobody tells of shows, where it is not hidden among told ones.
                untold = [change for change in changes if change[0] == "silently"]
                shown.write(*(untold or changes))
                await shown.see()
                check(shown, path)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder) / "s.db"))
