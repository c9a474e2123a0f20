"""What the app's tests share: a pilot that waits for all that it sets off, private folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.notifications import Notification

from tests.tui.idle import PATIENCE_S, patient_pilot
from tui.kit import clipboard
from tui.verbs import doing


@pytest.fixture(autouse=True)
def _patient_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    patient_pilot(monkeypatch)


@pytest.fixture(autouse=True)
def _any_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on how long something takes for a user does not for a test."""
    monkeypatch.setattr(doing, "WAITS_AT_MOST_S", PATIENCE_S)
    monkeypatch.setattr(doing, "BUSY_AFTER_S", PATIENCE_S)
    monkeypatch.setattr(clipboard, "TMUX_SECONDS", PATIENCE_S)
    monkeypatch.setattr(Notification, "has_expired", False)


@pytest.fixture(autouse=True)
def _private_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "CONFIG", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "xdg" / name.lower()))
    monkeypatch.delenv("NO_COLOR", raising=False)
