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
case "$*" in *"-m long"*) these=long ;; *) these=short ;; esac
case "$*" in
    *--last-failed*)
        grep -q "tests/$these" .pytest_cache/v/cache/lastfailed && [ ! -e fails_again ] ;;
    *)
        [ -e "$these" ] || exit 0
        mkdir -p .pytest_cache/v/cache && cp "$these" .pytest_cache/v/cache/lastfailed; exit 1 ;;
esac
"""


STEPS = {"short": "tests", "long": "long tests"}


def run(folder: Path, failures: dict[str, int], *, again: bool = False) -> str:
    """Return what the script prints where tests fail, and nothing can be installed.

    Args:
        folder: Where it is run.
        failures: How many tests of each kind fail.
        again: Whether they fail when they are run once more.
    """
    (folder / ".ci").mkdir()
    shutil.copy(SCRIPT, folder / ".ci" / "run")
    (folder / "README.md").write_text(".venv/bin/python -m pytest\n")
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTEST)
    python.chmod(0o755)
    for kind, count in failures.items():
        names = ", ".join(f'"tests/{kind}.py::test[{number} x]": true' for number in range(count))
        (folder / kind).write_text(f"{{{names}}}")
    installer = folder / "bin" / "apt-get"
    installer.parent.mkdir()
    installer.write_text("#!/bin/sh\nexit 1\n")
    installer.chmod(0o755)
    if again:
        (folder / "fails_again").touch()
    path = os.pathsep.join((str(installer.parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=folder, env={**os.environ, "HOME": str(folder), "PATH": path},
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stdout


def flaky(kind: str, failures: int) -> list[str]:
    return [
        f"FLAKY: tests/{kind}.py::test[{number} x] (failed, then passed alone)"
        for number in range(failures)
    ]


@pytest.mark.parametrize("failures", [
    {"short": 1}, {"short": 3}, {"long": 1}, {"long": 3}, {"short": 3, "long": 2}])
def test_few_failures_that_pass_alone_are_flaky(tmp_path: Path, failures: dict[str, int]) -> None:
    shown = run(tmp_path, failures)
    assert "== tests: passed" in shown and "== long tests: passed" in shown
    assert [line for line in shown.splitlines() if line.startswith("FLAKY: ")] == [
        line for kind, count in failures.items() for line in flaky(kind, count)]


@pytest.mark.parametrize("kind", ["short", "long"])
@pytest.mark.parametrize(("failures", "again"), [(1, True), (3, True), (4, False)])
def test_other_failures_are_failures(
    tmp_path: Path, kind: str, failures: int, again: bool
) -> None:
    shown = run(tmp_path, {kind: failures}, again=again)
    passed = {"short": "long", "long": "short"}[kind]
    assert f"== {STEPS[kind]}: FAILED" in shown and "FLAKY" not in shown
    assert f"== {STEPS[passed]}: passed" in shown
