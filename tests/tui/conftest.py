"""What the app's tests share: fast waiting, private folders, seeded stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import _wait


@pytest.fixture(autouse=True)
def _quick_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot waits in steps of 20 ms for each key; a test need not."""
    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", 0.001)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", 0.0005)


@pytest.fixture(autouse=True)
def _private_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "CONFIG", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "xdg" / name.lower()))
    monkeypatch.delenv("NO_COLOR", raising=False)
