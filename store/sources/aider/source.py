"""The aider source: where its histories are, and how their sessions are read.

Source: the aider section of the format page.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from store.sources.aider.blocks import typed_at
from store.sources.aider.identity import known_as, shared_fact
from store.sources.aider.regions import HEADER, Region, Regions
from store.sources.aider.session import KIND, session_draft
from store.sources.base.drafts import SessionDraft
from store.sources.base.file_forms import form_of
from store.sources.base.growing import SIDE_FILE_LIMIT, stamp_of
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import (
    FileStamp,
    Problem,
    Program,
    Reading,
    Unit,
)
from store.system.paths import expanded, open_regular

HISTORY = ".aider.chat.history.md"
INPUT = ".aider.input.history"
_HEAD = 65536
_LEAD = 16
"""Bytes of empty lines that the program writes before a session."""


class AiderSource(LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads the two history files only.

    aider has no folder of its own: a history is in each repository. Found are those that
    the environment names, of the current folder and of home; others are added in the
    config file.

    Looks into the library for sessions whose file has moved.
    """

    kind = KIND
    label = "aider"
    tells = ("thoughts", "tokens", "cost", "continuations")
    version = 1
    program = Program(frozenset({"aider"}))
    variables = ("AIDER_CHAT_HISTORY_FILE",)
    places = "the chat history in the repository you are in, and in your home folder"

    def __init__(self) -> None:
        """Make a source."""
        self._regions = Regions()

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``AIDER_CHAT_HISTORY_FILE``, the current repository's history, and home's."""
        roots: list[Path] = []
        named = environment.get("AIDER_CHAT_HISTORY_FILE", "").strip()
        if named:
            roots.append(expanded(named))
        here = environment.get("PWD", "")
        if here.startswith("/"):
            place = Path(here)
            tops = [folder for folder in (place, *place.parents) if (folder / ".git").exists()]
            roots.append((tops[0] if tops else place) / HISTORY)
        return list(dict.fromkeys([*roots, home / HISTORY]))

    def recognise(self, path: Path) -> Path | None:
        """Return the history to read: a file, or that of a folder which is no repository.

        A repository's folder is left a workspace, in which other agents worked too.
        """
        if path.is_dir():
            history = path / HISTORY
            return history if not (path / ".git").exists() and _is_history(history) else None
        return path if _is_history(path) else None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions of a history, or of a folder's."""
        path = _history_of(root)
        try:
            status, regions = self._regions.of(path)
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
            return
        if status.st_size > _LEAD and (not regions or regions[0].start > _LEAD):
            form = form_of(_head_of(path))
            reason = "before the first line that begins a session there is text, not read"
            if form is not None and not regions:
                reason = f"{form.name}, where plain UTF-8 belongs; not read"
            problems.append(Problem(path, 1, reason))
        for region in regions:
            yield _unit(path, status, region, last=region is regions[-1])

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of the history where it, or the prompts beside it, changed."""
        path = _history_of(root)
        ours = {path, os.path.join(os.path.dirname(path), INPUT)}
        if ours.isdisjoint(paths):
            return []
        return list(self.units(root, []))

    def follower(self, root: Path, unit: Unit) -> _Follower:
        """Return a follower; it reads the session's own part of the file."""
        return _Follower(self, root)

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one session; where it went away meanwhile it costs just itself."""
        path = _history_of(root)
        problems: list[Problem] = []
        try:
            status, regions = self._regions.of(path)
            place = next((i for i, one in enumerate(regions) if one.name == unit.key), None)
            if place is None:
                problems.append(Problem(path, 0, "the session is no longer in the history"))
                return Reading([], problems, ())
            draft = self._draft(path, regions, place, problems)
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
            return Reading([], problems, ())
        last = place == len(regions) - 1
        stamps = _unit(path, status, regions[place], last=last).stamps
        prompts = FileStamp.now(os.path.join(os.path.dirname(path), INPUT))
        # The times in it that are there already stay; only that it comes changes anything.
        looked = () if last or prompts.inode else (prompts,)
        facts = [shared_fact(path, regions[place], draft.source_id)]
        return Reading([draft], problems, stamps, looked=looked, facts=facts)

    def _draft(
        self, path: str, regions: list[Region], place: int, problems: list[Problem]
    ) -> SessionDraft:
        draft = _draft(path, regions, place, problems)
        draft.source_id = self._known_as(path, regions[place], draft)
        if draft.lineage is not None:
            # It continues with the session before it.
            before = _draft(path, regions, place - 1, [])
            draft.lineage.parent_source_id = self._known_as(path, regions[place - 1], before)
        return draft

    def _known_as(self, path: str, region: Region, draft: SessionDraft) -> str:
        return known_as(path, region, draft.records, self._library, self._holds)

    def _holds(self, path: str, name: str) -> bool:
        """Return whether a file has a session of a name now."""
        try:
            _, regions = self._regions.of(path)
        except OSError:
            return False
        return any(region.name == name for region in regions)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folder of the history."""
        return [Path(_history_of(root)).parent]


class _Follower:
    """Reads a session's own part of the file; it holds nothing between two readings."""

    def __init__(self, source: AiderSource, root: Path) -> None:
        self._source, self._root = source, root

    def read(self, unit: Unit) -> Reading:
        """Return what reading the unit whole would."""
        return self._source.read(self._root, unit)


def _draft(path: str, regions: list[Region], place: int, problems: list[Problem]) -> SessionDraft:
    region = regions[place]
    length = region.end - region.start
    if length > SIDE_FILE_LIMIT:
        problems.append(Problem(path, 0, "session is longer than 64 MiB, cut"))
    with open_regular(path) as file:
        file.seek(region.start)
        body = file.read(min(length, SIDE_FILE_LIMIT))
    until = regions[place + 1].started if place + 1 < len(regions) else None
    typed = [
        (at, words)
        for at, words in _typed(path)
        if at >= region.started and (until is None or at < until)
    ]
    before = regions[place - 1] if place else None
    return session_draft(path, region, body, typed, before)


def _typed(path: str) -> list[tuple[int, str]]:
    try:
        with open_regular(os.path.join(os.path.dirname(path), INPUT)) as file:
            return typed_at(file.read(SIDE_FILE_LIMIT))
    except OSError:
        return []  # Without it prompts have the time at which their session began.


def _unit(path: str, status: os.stat_result, region: Region, *, last: bool) -> Unit:
    """Return a session's unit; only the last one moves when the file does.

    The stamp of another session says where in the file it is, not when the file changed.
    """
    size = region.end - region.start
    if not last:
        stamp = FileStamp(path, status.st_ino, size, region.start, size)
        return Unit(region.name, (stamp,), region.started)
    stamps = [FileStamp(path, status.st_ino, size, status.st_mtime_ns, size)]
    prompts = os.path.join(os.path.dirname(path), INPUT)
    with contextlib.suppress(OSError):  # Not there; see ``_typed``.
        stamps.append(stamp_of(prompts, os.stat(prompts)))
    return Unit(region.name, tuple(stamps), status.st_mtime_ns // 1_000_000)


def _history_of(root: Path) -> str:
    path = os.path.abspath(root)
    return os.path.join(path, HISTORY) if os.path.isdir(path) else path


def _head_of(path: str) -> bytes:
    """Return the first bytes of a file; none of one that cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(_LEAD) or b""
    except OSError:
        return b""


def _is_history(path: Path) -> bool:
    """Return whether a Markdown file's beginning holds a session of aider's."""
    if path.suffix != ".md":
        return False
    try:
        with open_regular(str(path)) as file:
            return HEADER.search(file.read(_HEAD)) is not None
    except OSError:
        return False
