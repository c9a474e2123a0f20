"""The OpenHands source: where its conversations are, and how they are listed and read.

Source: the OpenHands format page, sections 1 and 6. Settings with keys lie beside the folder of
conversations and are never opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource
from store.sources.base.growing import BuiltUnit, Depends, UnitFiles, entries_of, stamped
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import Problem, Program, Unit
from store.sources.openhands.conversation import (
    EVENTS,
    KIND,
    STATE,
    Parsed,
    conversation_drafts,
    event_order,
)
from store.system.paths import expanded

_ID = re.compile(r"[0-9a-f]{32}")
_SUBAGENTS = "subagents"
_BELOW = ("", "conversations", ".openhands/conversations")
_FOLDERS_LOOKED_AT = 200


class OpenHandsSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads states and events only.

    Looks into the library for subagents, and for states that cannot be read.
    """

    kind = KIND
    label = "OpenHands"
    tells = ("thoughts", "tokens", "cost", "subagents")
    program = Program(frozenset({"openhands"}))
    variables = ("OPENHANDS_CONVERSATIONS_DIR", "OPENHANDS_PERSISTENCE_DIR")

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folder of conversations."""
        own, base = (environment.get(name, "").strip() for name in self.variables)
        usual = (expanded(base) if base else home / ".openhands") / "conversations"
        return [expanded(own) if own else usual]

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: the folder of conversations, one around it, or one of them."""
        if not path.is_dir():
            return None
        if _is_conversation(str(path)):
            return path
        for below in _BELOW:
            root = path / below
            folders = islice(_folders(str(root), []), _FOLDERS_LOOKED_AT)
            if any(_is_conversation(folder) for folder in folders):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the conversations of a folder, and those of their subagents."""
        path = os.path.abspath(root)
        folders = [path] if _is_conversation(path) else _folders(path, problems)
        for folder in folders:
            yield from _units_of(folder, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the conversations of changed files; None where the folder itself changed."""
        top = os.path.abspath(root)
        found: dict[str, Unit] = {}
        for path in paths:
            folder = _folder_of(path, top)
            if folder is None:
                return None
            found |= {unit.key: unit for unit in _units_of(folder, [])}
        return list(found.values())

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        depends = Depends()
        build = partial(self._build, depends, Parsed())
        return BuiltUnit(build, self.line_limit, depends)

    def _build(
        self, depends: Depends, parsed: Parsed, unit: Unit, files: UnitFiles,
        problems: list[Problem],
    ) -> list[SessionDraft]:
        times = {stamp.path: stamp.mtime_ns for stamp in files.stamps}
        parsed.take(files.bodies, times, problems)
        folder = _top_of(unit.stamps[0].path)
        return conversation_drafts(folder, parsed, self._library, depends)


def _is_conversation(folder: str) -> bool:
    if not _ID.fullmatch(os.path.basename(folder)):
        return False
    events = entries_of(os.path.join(folder, EVENTS))
    return any(event_order(entry.name) is not None for entry in events) or (
        os.path.isfile(os.path.join(folder, STATE)))


def _folders(folder: str, problems: list[Problem] | None) -> Iterator[str]:
    for entry in entries_of(folder, problems):
        if _ID.fullmatch(entry.name) and entry.is_dir():
            yield entry.path


def _top_of(path: str) -> str:
    """Return the folder of a conversation that a file is of."""
    folder = os.path.dirname(path)
    return os.path.dirname(folder) if os.path.basename(folder) == EVENTS else folder


def _folder_of(path: str, top: str) -> str | None:
    """Return the nearest conversation around a path below a root; None where there is none."""
    while path.startswith(top):
        if _ID.fullmatch(os.path.basename(path)) and (
            path == top or os.path.dirname(path) == top
            or os.path.basename(os.path.dirname(path)) == _SUBAGENTS
        ):  # fmt: skip
            return path if os.path.isdir(path) else None
        path = os.path.dirname(path)
    return None


def _units_of(folder: str, problems: list[Problem]) -> Iterator[Unit]:
    """Yield a conversation that has events, then those of its subagents."""
    state = [entry for entry in entries_of(folder, problems) if entry.name == STATE]
    place = os.path.join(folder, EVENTS)
    events = [entry for entry in entries_of(place) if event_order(entry.name) is not None]
    events.sort(key=lambda entry: event_order(entry.name) or (0, ""))
    stamps = [stamp for entry in (*state, *events) for stamp in stamped(entry, problems)]
    if stamps:
        newest = max(stamp.mtime_ns for stamp in stamps)
        yield Unit(os.path.basename(folder), tuple(stamps), newest // 1_000_000)
    for below in _folders(os.path.join(folder, _SUBAGENTS), None):
        yield from _units_of(below, problems)
