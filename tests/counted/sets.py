"""The sample sets that are counted twice, and which reader counts each."""

from __future__ import annotations

import importlib
from pathlib import Path

from store.sync.targets import Target
from tests.counted.answers import Counted
from tests.sources.samples import DATA, SAMPLES, Sample, path_of

_READERS = {"kilo": "opencode"}
"""Readers that are not named as their source."""
_UNCOUNTED: frozenset[str] = frozenset()
"""Sources that report no tokens, costs or answers."""


def _cases() -> list[Sample]:
    folders = sorted((DATA / "cases").glob("*/*/.*"))
    return [Sample(kind, str(folder.relative_to(DATA))) for folder in folders
            for name, kind in ((".claude", "claude-code"), (".codex", "codex"))
            if folder.name == name]  # fmt: skip


SETS = [
    *(sample for sample in SAMPLES if sample.kind not in _UNCOUNTED),
    Sample("codex", "codex/0.36.0"),
    Sample("codex", "codex/0.58.0"),
    Sample("claude-code", "cases/16-call-ids-repeated/claude"),
    Sample("claude-code", "damaged/nul"),
    Sample("claude-code", "damaged/glued"),
    *_cases(),
]


def counted(kind: str, root: Path) -> list[Counted]:
    """Return what the reader of a source counts."""
    name = _READERS.get(kind, kind.replace("-", "_"))
    found: list[Counted] = importlib.import_module(f"tests.counted.{name}").counted(root)
    return found


def counted_in(target: Target) -> list[Counted]:
    return counted(target.source.kind, path_of(target))
