"""The small inputs that once failed (``tests/data/cases``): copies of them, read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.protocol import Problem, Source
from store.sources.claude_code import ClaudeCodeSource
from store.sources.codex import CodexSource

CASES = Path(__file__).parent.parent / "data" / "cases"
SOURCES: dict[str, Callable[[], Source]] = {
    ".claude": ClaudeCodeSource, "claude": ClaudeCodeSource, ".codex": CodexSource,
}  # fmt: skip


def case_home(name: str, folder: Path) -> Path:
    """Copy a case's HOME and return the copy."""
    return Path(shutil.copytree(CASES / name, folder / "home"))


def case_drafts(name: str, folder: Path) -> list[SessionDraft]:
    """Read a case's sessions, which gives no problems."""
    drafts: list[SessionDraft] = []
    for below in case_home(name, folder).iterdir():
        source = SOURCES[below.name]()
        problems: list[Problem] = []
        for unit in source.units(below, problems):
            reading = source.read(below, unit)
            problems += reading.problems
            drafts += reading.sessions
        assert problems == []
    return drafts
