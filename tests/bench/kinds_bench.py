"""Times looking for every kind of session, and a sync with nothing new in a home of many kinds.

The home has a sample of each kind that has a usual place, as the tests read them.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.sources.samples import DATA, FIRST

_ROUNDS = 21
_PATH_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
_LOOK = """
import os, time
from pathlib import Path
from store.config import load_config
from store.sources.registry import all_sources
from store.sync.targets import default_targets
sources, settings = all_sources(), load_config().sources
started = time.perf_counter()
found = default_targets(settings, sources, os.environ, Path.home())
print((time.perf_counter() - started) * 1000, len(sources), len({one.source.kind for one in found}))
"""


def measure(quick: bool) -> dict[str, Any]:
    """Look for all kinds and sync twice, in fresh processes.

    Returns:
        ``kinds`` that are looked for, ``found`` of them; ``look_ms``, median of fresh processes;
        ``empty_ms``, the same in an empty home; ``files`` of the samples; ``again_ms`` of a sync
        with nothing new as it tells itself, and ``again_ms_per_1000_files``; ``first_s``.
    """
    with tempfile.TemporaryDirectory() as folder:
        home, empty = Path(folder) / "home", Path(folder) / "empty"
        empty.mkdir()
        make_home(home)
        rounds = 1 if quick else _ROUNDS
        looks = [_look(home) for _ in range(rounds)]
        nothing = [_look(empty) for _ in range(rounds)]
        files = sum(len(names) for _, _, names in os.walk(home))
        store = Path(folder) / "bench.db"
        first = _sync(home, store)
        again = [_sync(home, store) for _ in range(rounds)]
    if any(one["read"] for one in again):
        raise RuntimeError("a sync with nothing new has read something")
    again_ms = statistics.median(one["seconds"] for one in again) * 1000
    return {
        "kinds": int(looks[0][1]), "found": int(looks[0][2]), "files": files,
        "look_ms": statistics.median(one[0] for one in looks),
        "empty_ms": statistics.median(one[0] for one in nothing),
        "first_s": first["seconds"], "again_ms": again_ms,
        "again_ms_per_1000_files": again_ms * 1000 / files,
    }  # fmt: skip


def make_home(home: Path) -> None:
    """Copy the first sample of each kind to its usual place.

    Args:
        home: The home folder to make.
    """
    for sample in FIRST.values():
        if sample.home is None:
            continue
        origin, place = DATA / sample.root, home / sample.home
        place.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, place, dirs_exist_ok=True)
        else:
            shutil.copy2(origin, place)


def _look(home: Path) -> tuple[float, float, float]:
    milliseconds, kinds, found = _run(home, "-c", _LOOK).split()
    return float(milliseconds), float(kinds), float(found)


def _sync(home: Path, store: Path) -> dict[str, Any]:
    told = _run(home, "-m", "store.sync", "--json", "--store", str(store))
    summary: dict[str, Any] = json.loads(told.splitlines()[-1])
    return summary


def _run(home: Path, *arguments: str) -> str:
    kept = {name: os.environ[name] for name in _PATH_VARIABLES if name in os.environ}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=Path(__file__).parents[2], check=True, text=True,
        capture_output=True, env={**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "cfg")},
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    print(json.dumps(measure("--quick" in sys.argv), indent=2))
