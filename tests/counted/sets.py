"""The sample sets that are counted twice, and which reader counts each."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

from store.sync.targets import Target
from tests.counted.answers import Counted
from tests.sources.samples import DATA, SAMPLES, Sample, path_of

_READERS = {"kilo": "opencode", "continue": "continue_"}
"""Readers that are not named as their source."""
UNTIMED = frozenset({"continue"})
"""Sources whose files have no times, so that days are those of the files themselves."""
UNANSWERED = frozenset({"goose", "vibe"})
"""Sources that do not tell where an answer ends."""

MIRRORED = frozenset({"cursor/home/.cursor"})
"""Sets with sessions that another set has too, in which they are read."""


def _has_reader(sample: Sample) -> bool:
    return importlib.util.find_spec(f"tests.counted.{_reader(sample.kind)}") is not None


def _reader(kind: str) -> str:
    return _READERS.get(kind, kind.replace("-", "_"))


def _cases() -> list[Sample]:
    folders = sorted((DATA / "cases").glob("*/*/.*"))
    return [Sample(kind, str(folder.relative_to(DATA))) for folder in folders
            for name, kind in ((".claude", "claude-code"), (".codex", "codex"))
            if folder.name == name and any(folder.rglob("*.jsonl"))]  # fmt: skip


SETS = [
    *filter(_has_reader, SAMPLES),
    Sample("opencode", "opencode/0.5.29"),
    Sample("codex", "codex/0.36.0"),
    Sample("codex", "codex/0.58.0"),
    Sample("claude-code", "cases/16-call-ids-repeated/claude"),
    *_cases(),
]


def counted(kind: str, root: Path) -> list[Counted]:
    """Return what the reader of a source counts."""
    reader = importlib.import_module(f"tests.counted.{_reader(kind)}")
    found: list[Counted] = reader.counted(root)
    return found


def counted_in(target: Target) -> list[Counted]:
    return counted(target.source.kind, path_of(target))
