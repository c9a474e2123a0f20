"""The Claude Code source: where its sessions are, and how one is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from store.sources.base.drafts import MessageDraft
from store.sources.base.file_source import FileSource
from store.sources.base.growing import stamp_of
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.library_source import LibrarySource
from store.sources.base.prompt_history import KEY, NAME, HistoryFollower, Others, PromptHistory
from store.sources.base.protocol import (
    Follower,
    Known,
    Library,
    Place,
    Problem,
    Program,
    Reading,
    RunningSession,
    Step,
    Unit,
)
from store.sources.claude_code.agents import AGENT, META, ROWS, session_folder
from store.sources.claude_code.assemble import KIND, build_thread
from store.sources.claude_code.discovery import Discovery, SessionFiles, claimed_id
from store.sources.claude_code.neighbours import Neighbours
from store.sources.claude_code.reader import SessionReader
from store.sources.claude_code.recognition import recognise
from store.sources.claude_code.running import Words, sessions_folder
from store.sources.claude_code.sidechains import split_sidechains
from store.sources.claude_code.steps import SessionSteps
from store.sources.claude_code.touched import touched_sessions
from store.sources.claude_code.transcript import Transcript
from store.sources.claude_code.typed import TypedInSessions, is_history, typed_line
from store.system.paths import expanded


class ClaudeCodeSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads only, and only known file names."""

    kind = KIND
    knows_copies = True
    label = "Claude Code"
    folders = ("projects",)
    tells = ("thoughts", "tokens", "files", "rewinds", "compactions", "forks", "subagents")
    version = 4
    program = Program(
        frozenset({"claude"}), ("/@anthropic-ai/claude-code/", "/claude-agent-sdk/")
    )
    variables = ("CLAUDE_CONFIG_DIR",)

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._discovery = Discovery()
        self._neighbours: dict[str, Neighbours] = {}
        self._words = Words()
        self._history = PromptHistory(KIND, "sessionId", typed_line)
        self._typed = TypedInSessions()

    def use_library(self, library: Library) -> None:
        """Take the library to look into for files that are gone."""
        super().use_library(library)
        for neighbours in self._neighbours.values():
            neighbours.use_library(library)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``CLAUDE_CONFIG_DIR`` (a comma list), ``~/.claude``, ``~/.config/claude``."""
        named = environment.get("CLAUDE_CONFIG_DIR", "").split(",")
        roots = [expanded(name.strip()) for name in named if name.strip()]
        config = environment.get("XDG_CONFIG_HOME")
        roots += [home / ".claude", (Path(config) if config else home / ".config") / "claude"]
        return list(dict.fromkeys(roots))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read when a file or folder is Claude Code's."""
        return recognise(path)

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions below a root, each file of a session that has several."""
        there: set[str] = set()
        for files in self._files(root, problems):
            if files.main is not None and files.main.size:
                there.add(files.session_id)
            if files.main or files.agents:
                yield files.unit()
        history = history_of(root)
        if history is not None:
            self._typed.list_anew()
            yield from self._history.units(history, there, self._others(history), problems)

    def _files(self, root: Path, problems: list[Problem]) -> Iterator[SessionFiles]:
        path = str(root)
        if root.is_file() or path.endswith(ROWS):
            yield from self._one_file(path, problems)
            return
        for folder in self._discovery.projects(path, problems):
            yield from self._discovery.sessions(folder, problems)

    def _one_file(self, path: str, problems: list[Problem]) -> Iterator[SessionFiles]:
        """List the one session of a file; for an agent's file only that agent."""
        folder, name = os.path.split(os.path.abspath(path))
        if not name.startswith(AGENT):
            only = {name.removesuffix(ROWS)}
            for files in self._discovery.sessions(folder, problems, only):
                if files.main is not None and files.main.path == os.path.abspath(path):
                    yield files
            return
        try:
            stamp = stamp_of(os.path.abspath(path), os.stat(path))
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
            return
        above = session_folder(stamp.path)
        if above is not None:
            folder, session_id = os.path.split(above)
        else:
            session_id = self._discovery.owner(stamp, problems)
        meta = stamp.path.removesuffix(ROWS) + META
        side = [stamp_of(meta, os.stat(meta))] if os.path.isfile(meta) else []
        yield SessionFiles(folder, session_id, None, [stamp], side)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions that changed files belong to, wherever they are below the root.

        Returns:
            None where the whole root must be listed.
        """
        problems: list[Problem] = []
        touched = touched_sessions(self._discovery, root, paths, problems)
        if touched is None:
            return None
        found: list[SessionFiles] = []
        for folder, names in touched.items():
            found += self._discovery.sessions(folder, problems, names)
        return [files.unit() for files in found if files.main or files.agents]

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        if unit.key.startswith(KEY):
            return HistoryFollower(lambda now: self.read(root, now))
        return super().follower(root, unit)

    def running(self, root: Path) -> list[RunningSession]:
        """Return what ``sessions/<pid>.json`` says of the processes that wrote it."""
        return self._words.running(root)

    def reader(self, root: Path, unit: Unit) -> SessionReader:
        """Return a reader of a unit that has read nothing."""
        folder_name, _, name = unit.key.rpartition("/")
        folder = _project_folder(unit, folder_name)
        if folder not in self._neighbours:
            self._neighbours[folder] = Neighbours(folder, _messages_of)
            self._neighbours[folder].use_library(self._library)
        main = os.path.join(folder, name + ROWS)
        has_main = any(stamp.path == main for stamp in unit.stamps)
        return SessionReader(
            claimed_id(name), main if has_main else None, self._neighbours[folder],
            self.line_limit,
        )  # fmt: skip

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one unit whole; a file that went away meanwhile costs just itself."""
        history = history_of(root)
        if history is None:
            return super().read(root, unit)
        others = self._others(history)
        if unit.key.startswith(KEY):
            return self._history.read(history, unit, others)
        name = claimed_id(unit.key.rpartition("/")[2])
        return self._history.in_place_of(super().read(root, unit), history, name, others)

    def _others(self, history: str) -> Others:
        """Return how prompts of the log are looked for in sessions."""
        projects, typed = Path(history).parent / "projects", self._typed
        return Others(
            self._library, partial(typed.elsewhere, projects, self._library),
            partial(typed.files, projects), partial(typed.copies, projects),
        )  # fmt: skip

    def steps(
        self,
        root: Path,
        unit: Unit,
        start: Place | None,
        known: Known,
        *,
        fresh: bool,
        whole: bool = True,
    ) -> Iterator[Step]:
        """Read a unit in steps, or continue where its file was read to.

        Args:
            root: The root.
            unit: The unit as it is now.
            start: Where the last reading can be continued; None for the beginning.
            known: Tells whether names were passed before that.
            fresh: Whether nothing of the unit is in the library yet.
            whole: Whether to read it whole where steps cannot go on.
        """
        if unit.key.startswith(KEY):
            return iter([Step(self.read(root, unit))])
        reader = SessionSteps(partial(self.reader, root), self.line_limit, unit, known)
        return reader.steps(start, fresh=fresh, whole=whole)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folders whose changes below them concern this root."""
        if root.is_file():
            return [root.parent]
        projects = root / "projects"
        running = sessions_folder(root)
        paths = [projects if projects.is_dir() else root]
        return [*paths, running] if running.is_dir() else paths


def history_of(root: Path) -> str | None:
    """Return the log of typed lines of a config folder; None for any other root."""
    config = root.parent if root.name == "projects" else root
    path = str(config / NAME)
    return path if (config / "projects").is_dir() or is_history(path) else None


def _messages_of(content: bytes) -> list[MessageDraft]:
    """Make messages of what a session file holds, for finding the originals of copies."""
    transcript = Transcript("")
    transcript.push(content)
    transcript.finish()
    return build_thread(split_sidechains(transcript.rows)[0], transcript.leaf).messages


def _project_folder(unit: Unit, name: str) -> str:
    """Return the project folder that a unit's files are in."""
    folder = os.path.dirname(unit.stamps[0].path)
    while os.path.basename(folder) != name and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder
