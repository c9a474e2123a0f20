"""The gptme source: where its conversations are, and how they are listed and read.

Source: the gptme format page, section "Where". The settings of the program, typed lines and the
project that a link in each folder leads to are never opened.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import FileSource, first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
    entries_of,
    is_second_name,
    stamp_of,
)
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import FileStamp, Problem, Program, Unit
from store.sources.base.values import string
from store.sources.gptme.session import (
    BRANCHES,
    CONFIG,
    EVENTS,
    KIND,
    LOSSLESS,
    MAIN,
    STORED,
    Beginnings,
    Folder,
    chat_of,
    session_draft,
)
from store.system.paths import expanded

_BELOW = ("", "logs", "gptme/logs", ".local/share/gptme/logs")
_LOOKED_AT = 200
_ROLES = ("system", "user", "assistant")


class GptmeSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads conversations only.

    Looks into the library for conversations whose files are gone.
    """

    kind = KIND
    label = "gptme"
    tells = ("thoughts", "tokens", "files", "rewinds", "forks")
    program = Program(frozenset({"gptme", "gptme-server"}))
    variables = ("GPTME_LOGS_HOME", "XDG_DATA_HOME")

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._beginnings = Beginnings()

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folder that ``GPTME_LOGS_HOME`` names, else the usual ones."""
        moved, data = (environment.get(name, "").strip() for name in self.variables)
        if moved:
            return [expanded(moved)]
        usual = [(expanded(data) if data else home / ".local" / "share") / "gptme" / "logs"]
        if sys.platform == "darwin":
            usual.append(home / "Library" / "Application Support" / "gptme" / "logs")
        local = environment.get("LOCALAPPDATA", "").strip()
        if sys.platform == "win32" and local:
            usual = [expanded(local) / "gptme" / "gptme" / "logs", expanded(local) / "gptme/logs"]
        return usual

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: the folder of conversations, one around it, or one of them."""
        if not path.is_dir():
            return None
        for below in _BELOW:
            found = islice(_folders(str(path / below), []), _LOOKED_AT)
            if any(_is_conversation(folder) for folder in found):
                return path / below
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the conversations of a folder."""
        for folder in _folders(os.path.abspath(root), problems):
            yield from _unit_of(folder, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the conversations of changed files; None where the folder itself changed."""
        top, found = os.path.abspath(root), dict[str, Unit]()
        for path in paths:
            folder = _owner(path, top)
            if folder is not None:
                found |= {unit.key: unit for unit in _unit_of(folder, [])}
            elif path == top:
                return None
        return list(found.values())

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        depends = Depends()
        return BuiltUnit(partial(self._build, depends), self.line_limit, depends)

    def _build(
        self, depends: Depends, unit: Unit, files: UnitFiles, problems: list[Problem]
    ) -> list[SessionDraft]:
        path = unit.stamps[0].path
        main, folder = files.lines.get(path), os.path.dirname(path)
        if main is None:
            return []
        if main.lines and not any("role" in line.data for line in main.lines):
            problems.append(Problem(path, 0, "no line is one of a conversation"))
            return []
        events = files.lines.get(os.path.join(folder, EVENTS))
        settings = os.path.join(folder, CONFIG)
        draft = session_draft(Folder(
            folder, main, files.lines.get(os.path.join(folder, LOSSLESS)),
            {os.path.basename(each): file for each, file in sorted(files.lines.items())
             if os.path.basename(os.path.dirname(each)) == BRANCHES},
            events.lines if events is not None else [],
            chat_of(files.bodies.get(settings), settings, problems),
            {os.path.basename(each).partition(".")[0]: body
             for each, body in files.bodies.items() if each != settings},
            self._beginnings,
        ), self._library, depends)  # fmt: skip
        return [draft] if draft is not None else []


def _folders(top: str, problems: list[Problem]) -> Iterator[str]:
    """Yield the folders of conversations: a root itself, or those in it."""
    if os.path.isfile(os.path.join(top, MAIN)):
        yield top
        return
    for entry in entries_of(top, problems):
        # The name is the id, so that a second name beside the first would be a second one.
        if not is_second_name(entry) and os.path.isfile(os.path.join(entry.path, MAIN)):
            yield entry.path


def _is_conversation(folder: str) -> bool:
    data = first_record(Path(folder, MAIN)) or {}
    return data.get("role") in _ROLES and isinstance(data.get("content"), str) and (
        string(data.get("timestamp")) is not None)


def _owner(path: str, top: str) -> str | None:
    """Return the folder of the conversation that a changed path is in."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    while folder.startswith(top):
        if os.path.isfile(os.path.join(folder, MAIN)):
            return folder
        folder = os.path.dirname(folder)
    return None


def _unit_of(folder: str, problems: list[Problem]) -> Iterator[Unit]:
    below = [entry.path for name, end in ((BRANCHES, LINES), (STORED, ""))
             for entry in entries_of(os.path.join(folder, name))
             if entry.name.endswith(end) and entry.is_file(follow_symlinks=False)]  # fmt: skip
    names = (MAIN, CONFIG, LOSSLESS, EVENTS)
    stamps: list[FileStamp] = []
    for path in (*(os.path.join(folder, name) for name in names), *below):
        try:
            stamps.append(stamp_of(path, os.stat(path)))
        except OSError as error:
            if os.path.basename(path) == MAIN:
                problems.append(Problem(path, 0, error.strerror or str(error)))
                return
    newest = max(stamp.mtime_ns for stamp in stamps)
    yield Unit(os.path.basename(folder), tuple(stamps), newest // 1_000_000)
