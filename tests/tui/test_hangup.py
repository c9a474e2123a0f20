"""The app ends when its terminal goes away, also where no signal tells it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tui.start.hangup import EXIT_CODE

PACKAGES = Path(__file__).parents[2]
IGNORING = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); "


@pytest.mark.parametrize("before", ["", IGNORING], ids=["heard", "ignored"])
@pytest.mark.one_in(2)
def test_in_a_session_of_its_own(tmp_path: Path, before: str) -> None:
    run = f"{before}import sys; from tui.__main__ import main; sys.exit(main(['--demo']))"
    terminal, side = pty.openpty()
    environment = {
        **os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color",
        "PYTHONPATH": str(PACKAGES),
    }  # fmt: skip
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        environment[f"XDG_{name}_HOME"] = str(tmp_path / name)
    app = subprocess.Popen(
        [sys.executable, "-c", run], stdin=side, stdout=side, stderr=side,
        env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(side)
    try:
        received = b""
        while b"Sessions" not in received:
            received += os.read(terminal, 65536)
        os.close(terminal)
        assert app.wait(120) == EXIT_CODE
    finally:
        app.kill()
        app.wait()
