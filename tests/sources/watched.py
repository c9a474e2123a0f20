"""Notes which files are opened and which SQL is run while a source is read."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from store.engine.access import Opened, open_for_reading
from store.sources.registry import source
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.samples import path_of


@dataclass
class Watched:
    """What was done: paths of files, and statements."""

    files: list[str] = field(default_factory=list)
    sql: list[str] = field(default_factory=list)

    def names(self) -> set[str]:
        return {os.path.basename(path) for path in self.files}


_watching: list[Watched] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | os.PathLike):
        for each in _watching:
            each.files.append(os.fspath(arguments[0]))


sys.addaudithook(_note)


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    """Give what is opened and asked until the block ends."""
    found = Watched()

    def opened(*arguments: Any, **options: Any) -> Opened:
        made = open_for_reading(*arguments, **options)
        made.connection.set_trace_callback(found.sql.append)
        found.files.append(str(made.path))
        return made

    _watching.append(found)
    try:
        with mock.patch("store.sources.base.databases.open_for_reading", opened):
            yield found
    finally:
        _watching.remove(found)


def reading(target: Target) -> Watched:
    """Return what is done to find, list, read and follow all of a target."""
    root, one = path_of(target), source(target.source.kind)
    with watched() as found:
        assert one.recognise(root) == root
        drafts, _ = grown.read_all(one, root)
        list(one.watch_paths(root))
        one.default_roots({}, root.parent)
    assert drafts
    return found
