"""A few rounds of ``python -m tests.faults``; ``.ci/run`` runs them for longer."""

from __future__ import annotations

import re
import subprocess
import sys


def test_some_rounds() -> None:
    """Takes over a second: a process that starts, and forks one for each round."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "recorder", "verbs", "--rounds", "1",
         "--fault", "kill", "--seed", "4"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"2 rounds of .* 0 failed", done.stdout)
