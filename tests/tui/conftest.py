"""What the app's tests share: a pilot that waits for all that it sets off, private folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.notifications import Notification

from tests.tui.idle import PATIENCE_S, patient_pilot
from tui.kit import clipboard
from tui.verbs import doing


@pytest.fixture(scope="session", autouse=True)
def _rules_are_read_once() -> Iterator[None]:
    """Keep the rules of a style sheet for the next app with the same theme."""
    made, renewed = Stylesheet.__init__, Stylesheet.set_variables
    kept: dict[tuple[tuple[str, str], ...], LRUCache[tuple[Any, ...], list[RuleSet]]] = {}

    def keep(sheet: Stylesheet) -> None:
        theme = tuple(sorted(sheet._variables.items()))
        sheet._parse_cache = kept.setdefault(theme, LRUCache(1024))

    def make(sheet: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
        made(sheet, variables=variables)
        keep(sheet)

    def renew(sheet: Stylesheet, variables: dict[str, str]) -> None:
        sheet._parse_cache = LRUCache(1)
        renewed(sheet, variables)
        keep(sheet)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "__init__", make)
        patch.setattr(Stylesheet, "set_variables", renew)
        yield


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
