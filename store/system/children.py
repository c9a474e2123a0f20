"""The environment of processes that run modules of these packages."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]


def child_environment() -> dict[str, str]:
    """Return the environment with this copy of the packages first on ``PYTHONPATH``."""
    path = [str(PACKAGES), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
