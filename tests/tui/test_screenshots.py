from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tui.screenshots import SHOTS

ROOT = Path(__file__).parents[2]


def test_they_show_the_app_as_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui.screenshots", "--out", str(tmp_path)], cwd=ROOT,
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {f"{shot.name}.svg" for shot in SHOTS}
    assert {path.name for path in (ROOT / "screenshots").glob("*.svg")} == names
    stale = [
        name for name in sorted(names)
        if (tmp_path / name).read_bytes() != (ROOT / "screenshots" / name).read_bytes()
    ]
    assert stale == [], "run: python -m tui.screenshots"
