from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from store.errors import StoreError
from store.system.locations import log_path
from tests.tui.stores import browser, put, some
from tui.messages import ProblemOccurred
from tui.start import problems


def test_reasons_are_one_harmless_line() -> None:
    assert problems.reason(StoreError("no store\x1b[2J\nhere")) == "no store␛[2J here"
    assert problems.reason(ValueError("x")) == "ValueError: x"
    assert problems.reason(KeyError()) == "KeyError"


@pytest.fixture
def short_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the log in a folder whose path is short enough to be shown whole in a toast."""
    with TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield


@pytest.mark.usefixtures("short_state")
async def test_a_problem_is_said_and_kept(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))
    async with app.run_test(size=(120, 40)) as pilot:
        app.main.post_message(ProblemOccurred("It broke [/b] [x", OSError("disk [bold full")))
        await pilot.pause()
        (note,) = app._notifications
        assert note.message == (
            f"It broke [/b] [x: OSError: disk [bold full\nlog: {log_path()}"
        )
        assert note.markup is False
        await pilot.press("j")
        assert app.is_running
    kept = log_path().read_text()
    assert "It broke" in kept
    assert "OSError: disk [bold full" in kept
    assert log_path().stat().st_mode & 0o777 == 0o600


async def test_a_failing_worker_does_not_end_the_app(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(3)))

    async def fails() -> None:
        raise RuntimeError("in the background")

    async with app.run_test(size=(120, 40)) as pilot:
        app.main.run_worker(fails(), exit_on_error=False)
        await pilot.pause()
        await pilot.pause()
        assert any("in the background" in note.message for note in app._notifications)
        assert app.is_running
