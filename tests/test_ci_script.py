"""What ``.ci/run`` makes of tests that fail: run once more when they are few, named when flaky."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"
PYTEST = """#!/bin/sh
case "$*" in "-m pytest"*) ;; *) exec python3 "$@" ;; esac
case "$*" in
    *--last-failed*) [ ! -e fails_again ] ;;
    *) mkdir -p .pytest_cache/v/cache && cp results .pytest_cache/v/cache/lastfailed; exit 1 ;;
esac
"""


def run(folder: Path, failures: int, *, again: bool = False) -> str:
    """Return what the script prints where tests fail, and nothing can be installed."""
    (folder / ".ci").mkdir()
    shutil.copy(SCRIPT, folder / ".ci" / "run")
    (folder / "README.md").write_text(".venv/bin/python -m pytest\n")
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTEST)
    python.chmod(0o755)
    names = ", ".join(f'"tests/a.py::test[{number} x]": true' for number in range(failures))
    installer = folder / "bin" / "apt-get"
    installer.parent.mkdir()
    installer.write_text("#!/bin/sh\nexit 1\n")
    installer.chmod(0o755)
    (folder / "results").write_text(f"{{{names}}}")
    if again:
        (folder / "fails_again").touch()
    path = os.pathsep.join((str(installer.parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=folder, env={**os.environ, "HOME": str(folder), "PATH": path},
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stdout


@pytest.mark.parametrize("failures", [1, 3])
def test_few_failures_that_pass_alone_are_flaky(tmp_path: Path, failures: int) -> None:
    shown = run(tmp_path, failures)
    assert "== tests: passed" in shown
    flaky = [line for line in shown.splitlines() if line.startswith("FLAKY: ")]
    assert flaky == [
        f"FLAKY: tests/a.py::test[{number} x] (failed, then passed alone)"
        for number in range(failures)
    ]


@pytest.mark.parametrize(("failures", "again"), [(1, True), (3, True), (4, False)])
def test_other_failures_are_failures(tmp_path: Path, failures: int, again: bool) -> None:
    shown = run(tmp_path, failures, again=again)
    assert "== tests: FAILED" in shown and "FLAKY" not in shown
