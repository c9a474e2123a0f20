"""The Gemini CLI source: where its sessions are, and how they are read."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from store.sources.base.documents import parse_document
from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.file_source import FileSource
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
    stamp_of,
)
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.json_values import LineError
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import FileStamp, Problem, Program, Unit
from store.sources.base.values import string
from store.sources.gemini import places
from store.sources.gemini.checkpoints import (
    POINTS,
    add_checkpoints,
    is_checkpoint,
    mark_restore_points,
    points_at,
)
from store.sources.gemini.heads import Heads
from store.sources.gemini.imports import imported_from, original_of, shared_facts
from store.sources.gemini.places import CHATS, OUTPUTS, SessionFiles
from store.sources.gemini.session import (
    KIND,
    Built,
    Kept,
    Log,
    SessionLogs,
    attach,
    build_session,
    by_session,
    link_agent,
)
from store.system.paths import expanded


class NoSession(Exception):
    """A file that holds no session; the message is the reason."""


def legacy_log(path: str, body: bytes) -> tuple[Log, str | None]:
    """Return the older single object as the lines that it would be.

    Returns:
        The lines, and what had to be repaired to read the object, if anything.

    Raises:
        NoSession: It is none.
    """
    try:
        data, repaired = parse_document(body)
    except LineError as error:
        raise NoSession(str(error)) from error
    if not isinstance(data, dict) or not string(data.get("sessionId")):
        raise NoSession("no session of Gemini CLI")
    messages = data.pop("messages", None)
    rows: list[dict[str, Any]] = [data]
    rows += [row for row in messages if isinstance(row, dict)] if isinstance(messages, list) else []
    return Log(path, [orjson.dumps(row) for row in rows], list(enumerate(rows))), repaired


class GeminiSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads only, and only known file names.

    Looks into the library for files that are gone.
    """

    kind = KIND
    label = "Gemini CLI"
    folders = ("tmp",)
    tells = ("thoughts", "tokens", "rewinds", "compactions", "subagents")
    version = 2
    program = Program(frozenset({"gemini"}), ("/@google/gemini-cli/",))
    variables = ("GEMINI_CLI_HOME",)

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._heads = Heads()

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``.gemini`` of ``GEMINI_CLI_HOME``, which replaces the home, or of home."""
        named = environment.get("GEMINI_CLI_HOME", "").strip()
        base = expanded(named) if named else home
        return list(dict.fromkeys([base / ".gemini", home / ".gemini"]))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read when a file or folder is Gemini CLI's."""
        return places.recognise(path)

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root."""
        for files in self._files(root, problems):
            yield files.unit()

    def _files(self, root: Path, problems: list[Problem]) -> Iterator[SessionFiles]:
        path = os.path.abspath(root)
        if not path.endswith(places.SUFFIXES):
            found = places.projects(path, problems)
            copied = places.copied_on(found)
            for project in found:
                for files in places.sessions(project, problems):
                    if files.name not in copied.get(project, ()):
                        yield files
            return
        project = _project_of(path)
        name = places.short_name(os.path.basename(path))
        for files in places.sessions(project, problems, {name}):
            if any(stamp.path == path for stamp in (*files.main, *files.agents)):
                yield files
                return
        try:
            stamp = stamp_of(path, os.stat(path))
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
            return
        yield SessionFiles(os.path.dirname(path), name, [stamp])

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions that changed files belong to.

        Returns:
            None where the whole root must be listed.
        """
        if root.is_file():
            return None
        problems: list[Problem] = []
        found: list[Unit] = []
        folders = places.projects(os.path.abspath(root))
        copied = places.copied_on(folders)
        for project in folders:
            names = _touched(project, paths)
            if names != set():
                found += [
                    files.unit()
                    for files in places.sessions(project, problems, names)
                    if files.name not in copied.get(project, ())
                ]
        return found

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        kept: defaultdict[str, Kept] = defaultdict(Kept)
        depends = Depends()
        build = partial(self._build, root, kept, depends)
        return BuiltUnit(build, self.line_limit, depends)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folders whose changes below them concern this root."""
        if root.is_file():
            return [root.parent]
        below = root / "tmp"
        return [below if below.is_dir() else root]

    def _build(
        self,
        root: Path,
        kept: dict[str, Kept],
        depends: Depends,
        unit: Unit,
        files: UnitFiles,
        problems: list[Problem],
    ) -> list[SessionDraft]:
        logs = list(_logs(files, problems))
        agents = [log for log in logs if _parent_of(log.path) is not None]
        main = by_session(log for log in logs if _parent_of(log.path) is None)
        project = _project_of((logs or [_NOTHING])[0].path)
        workspace = places.workspace_of(project, problems)
        told_in = places.told_in(project)
        depends.looked += map(FileStamp.now, told_in if workspace is None else told_in[:1])
        built = [
            self._main(root, project, session, workspace, kept[session.session_id], depends)
            for session in main
        ]
        if built:
            first, bodies = built[0].draft, files.bodies
            attach(first, {path: bodies[path] for path in bodies if _is_output(path)})
            saved = {path: bodies[path] for path in bodies if is_checkpoint(path)}
            add_checkpoints(first, saved, problems)
        parents = {one.draft.source_id: one for one in built}
        drafts = [one.draft for one in built]
        points = points_at(project)
        for draft in drafts:
            mark_restore_points(draft, points)
        for session in by_session(iter(agents)):
            known = kept[f"agent {session.session_id}"]
            child = build_session(session, workspace, known, known.bring_up(session)).draft
            parent_id = _parent_of(session.logs[0].path) or ""
            link_agent(child, parent_id, parents.get(parent_id))
            drafts.append(child)
        return drafts

    def _main(
        self,
        root: Path,
        project: str,
        session: SessionLogs,
        workspace: str | None,
        kept: Kept,
        depends: Depends,
    ) -> Built:
        records = kept.bring_up(session)
        started = min((log.said_start for log in session.logs), default="")
        facts = list(shared_facts(project, session.session_id, started, kept.history))
        depends.facts += facts
        depends.wants.update(fact.name for fact in facts)
        paths = [log.path for log in session.logs]
        original = original_of(
            os.path.abspath(root), project, session.session_id, paths, kept.history,
            self._heads, self._library,
        )
        if original is None:
            built = build_session(session, workspace, kept, records)
            given = imported_from(kept.history)
            if given is not None:
                built.draft.metadata["imported_from"] = given
            return built
        if original.path and original.ends:
            depends.looked.append(FileStamp.now(original.path))
        built = build_session(session, workspace, kept, records, original.inherited)
        built.draft.lineage = LineageDraft("fork", original.session_id, original.last)
        return built


_NOTHING = Log("", [], [])


def _logs(files: UnitFiles, problems: list[Problem]) -> Iterator[Log]:
    """Return the session files that were read; others are reported."""
    for path, file in files.lines.items():
        lines = [(line.number, line.data) for line in file.lines]
        log = Log(path, file.records, lines, file.lines)
        if log.session_id is not None:
            yield log
        elif file.lines:
            problems.append(Problem(path, 0, "no line names its session"))
    for path, body in files.bodies.items():
        if _is_output(path) or is_checkpoint(path):
            continue
        try:
            log, repaired = legacy_log(path, body)
        except NoSession as error:
            problems.append(Problem(path, 0, str(error)))
            continue
        if repaired:
            problems.append(Problem(path, 1, repaired))
        yield log


def _is_output(path: str) -> bool:
    return f"{os.sep}{OUTPUTS}{os.sep}" in path


def _parent_of(path: str) -> str | None:
    """Return the session that a subagent's file is below; None for a session's own file."""
    folder = os.path.dirname(path)
    if os.path.basename(os.path.dirname(folder)) != CHATS:
        return None
    return os.path.basename(folder)


def _project_of(path: str) -> str:
    folder = os.path.dirname(path)
    while os.path.basename(folder) != CHATS and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.path.dirname(folder) if os.path.basename(folder) == CHATS else os.path.dirname(path)


def _touched(project: str, paths: Iterable[str]) -> set[str] | None:
    """Return the names of the sessions that paths belong to; None for all of a project's."""
    names: set[str] = set()
    for path in paths:
        if path == project or path == os.path.join(project, CHATS):
            return None
        if not path.startswith(project + os.sep):
            continue
        rest = path[len(project) + 1 :].split(os.sep)
        if len(rest) > 1 and rest[0] == CHATS:
            is_file = rest[1].endswith((LINES, ".json"))
            names.add(places.short_name(rest[1]) if is_file else rest[1])
        elif is_checkpoint(path) or rest[0] == POINTS:
            return None
        elif len(rest) > 1 and rest[0] == OUTPUTS:
            names.add(rest[1].removeprefix("session-")[:8])
    return names
