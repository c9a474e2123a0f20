"""Denies folders of each sample in turn, and prints what is lost in silence or raises an error.

Run as a program, by a process without the right to read what is denied: with ``roots`` only the
root of each sample is denied, with ``all`` each folder below it too.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from store.errors import StoreError
from store.sources.base.protocol import ActivitySource, Problem
from store.sources.registry import recognised
from store.sync.roots import configured_root, units_at, units_of, watched_paths
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


def folders(root: Path, which: str) -> list[Path]:
    """Return the folders to deny, the root first."""
    below = [path for path in sorted(root.rglob("*")) if path.is_dir()] if which == "all" else []
    return [root, *below]


def losses(folder: Path, which: str) -> Iterator[str]:
    """Yield each folder that costs something when denied and is no problem, or raises an error."""
    for number, sample in enumerate(SAMPLES):
        root = path_of(sample.copied(folder / str(number)))
        if not root.is_dir():
            continue
        whole, known = read(sample.target(folder / str(number)))
        for denied in folders(root, which):
            name = f"{sample.name}: {os.path.relpath(denied, root)}"
            for mode in (0, 0o400):
                denied.chmod(mode)
                try:
                    target = sample.target(folder / str(number))
                    left, told = read(target)
                    ask(target, denied)
                    if left != whole and not told - known:
                        yield f"{name} is lost in silence"
                except OSError as error:
                    yield f"{name} raises {error}"
                finally:
                    denied.chmod(0o755)


def ask(target: Target, denied: Path) -> None:
    """Ask a source what else is asked of it while one of its folders is denied."""
    source, root = target.source, path_of(target)
    watched_paths(source, root)
    units_at(source, root, [str(denied), str(denied / "new.jsonl")])
    configured_root(source, str(root))
    with contextlib.suppress(StoreError):
        recognised(root.parent, [source])
    if isinstance(source, ActivitySource):
        source.running(root)


if __name__ == "__main__":
    for line in losses(Path(sys.argv[1]), sys.argv[2]):
        print(line)
