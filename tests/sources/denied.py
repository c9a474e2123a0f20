"""Denies each folder of each sample in turn, and prints those whose loss is not reported.

Run as a program, by a process without the right to read what is denied.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from store.sources.base.protocol import Problem
from store.sync.roots import units_of
from store.sync.targets import Target
from tests.sources.samples import SAMPLES, path_of


def read(target: Target) -> tuple[dict[str, tuple[int, ...]], set[tuple[str, str]]]:
    """Return how much there is of each session, and what could not be read."""
    problems: list[Problem] = []
    found: dict[str, tuple[int, ...]] = {}
    for unit in units_of(target.source, path_of(target), problems):
        reading = target.source.read(path_of(target), unit)
        problems += reading.problems
        for draft in reading.sessions:
            parts = sum(len(message.parts) for message in draft.messages)
            found[draft.source_id] = (len(draft.messages), parts, len(draft.attachments))
    return found, {(problem.path, problem.reason) for problem in problems}


def silent_losses(folder: Path) -> Iterator[str]:
    """Yield each folder that costs something of a session when denied, and is no problem."""
    for sample in SAMPLES:
        root = path_of(sample.copied(folder))
        if not root.is_dir():
            continue
        whole, known = read(sample.target(folder))
        for denied in [path for path in sorted(root.rglob("*")) if path.is_dir()]:
            denied.chmod(0)
            try:
                left, told = read(sample.target(folder))
            finally:
                denied.chmod(0o755)
            if left != whole and not told - known:
                yield f"{sample.name}: {os.path.relpath(denied, root)}"


if __name__ == "__main__":
    for line in silent_losses(Path(sys.argv[1])):
        print(line)
