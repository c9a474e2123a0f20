"""The Codex source: where its sessions are, and how one is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from store.sources.base.file_source import FileSource
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.library_source import LibrarySource
from store.sources.base.prompt_history import (
    KEY,
    NAME,
    Elsewhere,
    HistoryFollower,
    Others,
    PromptHistory,
)
from store.sources.base.protocol import (
    Follower,
    Known,
    Library,
    Place,
    Problem,
    Program,
    Reading,
    Step,
    Unit,
)
from store.sources.base.values import string
from store.sources.codex.assemble import KIND
from store.sources.codex.discovery import (
    ARCHIVED,
    COPY_MARK,
    IN_USE,
    home_of,
    thread_files,
    thread_of,
)
from store.sources.codex.facts import INDEX, Facts, FactsReader, newest, with_known
from store.sources.codex.names import rollout_name
from store.sources.codex.neighbours import Neighbours
from store.sources.codex.reader import ThreadReader
from store.sources.codex.recognition import recognise
from store.sources.codex.steps import ThreadSteps
from store.sources.codex.typed import is_history, typed_line
from store.system.paths import expanded, open_regular, resolved
from store.text.toml_text import NotToml, parse_toml

# Source: the Codex format page, section 3.1: ``CODEX_SQLITE_HOME``, or ``sqlite_home`` of
# ``config.toml``. That file may hold secrets, so it is only opened where a
# home lacks its databases, and only that setting is looked at.
CONFIG = "config.toml"
_CONFIG_LIMIT = 1 << 20


def named_home(environment: Mapping[str, str]) -> Path | None:
    """Return ``CODEX_HOME``; None where it names nothing."""
    named = environment.get("CODEX_HOME", "").strip()
    return expanded(named) if named else None


def database_folder(home: Path, environment: Mapping[str, str], user_home: Path) -> Path:
    """Return the folder with a home's databases.

    Args:
        home: A Codex home.
        environment: Says it only of the home that Codex itself would take by it.
        user_home: The user's home folder.
    """
    named = environment.get("CODEX_SQLITE_HOME", "").strip()
    in_use = named_home(environment) or user_home / ".codex"
    if named and resolved(in_use) == resolved(home):
        return expanded(named)
    configured = _configured(home) if newest(home, "state") is None else None
    return home if configured is None else home / configured


def _configured(home: Path) -> Path | None:
    try:
        with open_regular(str(home / CONFIG)) as file:
            body = file.read(_CONFIG_LIMIT)
    except OSError:
        return None
    if b"sqlite_home" not in body:
        return None
    try:
        named = string(parse_toml(body.decode("utf-8", "replace")).get("sqlite_home"))
    except NotToml:
        return None
    return expanded(named) if named else None


class CodexSource(FileSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads only, and only known file names."""

    kind = KIND
    knows_copies = True
    label = "Codex"
    folders = (IN_USE, ARCHIVED)
    tells = ("thoughts", "tokens", "files", "rewinds", "compactions", "forks", "subagents")
    version = 4
    program = Program(frozenset({"codex"}), ("/@openai/codex/",))
    variables = ("CODEX_HOME",)

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._facts = FactsReader()
        self._history = PromptHistory(KIND, "session_id", typed_line, str.lower, inherits=True)
        self._neighbours: dict[str, Neighbours] = {}
        self._environment: Mapping[str, str] = os.environ
        self._user_home: Path | None = None

    def use_library(self, library: Library) -> None:
        """Take the library to look into for files that are gone."""
        super().use_library(library)
        for neighbours in self._neighbours.values():
            neighbours.use_library(library)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``CODEX_HOME`` and ``~/.codex``."""
        self._environment, self._user_home = environment, home
        named = named_home(environment)
        return list(dict.fromkeys([*([named] if named else []), home / ".codex"]))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read when a file or folder is Codex's."""
        return recognise(path)

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the threads below a root, each with all its segments."""
        home, facts = home_of(root), self._facts_of(root, problems)
        there: set[str] = set()
        for files in thread_files(root, problems):
            there.add(files.thread)
            yield files.unit(facts.get(files.thread), home)
        history = history_of(root)
        if history is not None:
            yield from self._history.units(history, there, self._others(), problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the threads of changed files; None where a folder changed."""
        wanted: set[str] = set()
        for path in paths:
            name = rollout_name(path)
            if name is not None:
                wanted.add(name.thread)
            elif os.path.basename(path) == INDEX or _is_queue(path):
                # They are small, and what they say about most threads is unchanged.
                wanted.update(self._facts_of(root, []))
            else:
                return None
        return [unit for unit in self.units(root, []) if thread_of(unit.key) in wanted]

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        if unit.key.startswith(KEY):
            return HistoryFollower(lambda now: self.read(root, now))
        return super().follower(root, unit)

    def reader(self, root: Path, unit: Unit) -> ThreadReader:
        """Return a reader of a thread below a root that has read nothing."""
        if str(root) not in self._neighbours:
            self._neighbours[str(root)] = Neighbours(root)
            self._neighbours[str(root)].use_library(self._library)
        return ThreadReader(
            self._neighbours[str(root)], partial(self.facts_of, root), self.line_limit,
            is_copy=COPY_MARK in unit.key,
        )  # fmt: skip

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one thread whole; a file that went away meanwhile costs just itself."""
        history = history_of(root)
        if history is None:
            return super().read(root, unit)
        if unit.key.startswith(KEY):
            return self._history.read(history, unit, self._others())
        return self._history.in_place_of(
            super().read(root, unit), history, thread_of(unit.key), self._others()
        )

    def _others(self) -> Others:
        return Others(self._library, lambda *span: Elsewhere(self._library.prompts(*span)))

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
        facts = self.facts_of(root, unit)
        reader = ThreadSteps(partial(self.reader, root), facts, unit, known)
        return reader.steps(start, fresh=fresh, whole=whole)

    def facts_of(self, root: Path, unit: Unit) -> Facts | None:
        """Return what side files say about a thread, or told before they went away."""
        thread = thread_of(unit.key)
        has_index = (home_of(root) / INDEX).exists()
        facts = self._facts_of(root, []).get(thread)
        return with_known(facts, thread, self._library, has_index=has_index)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the folders whose changes below them concern this root, and small side files."""
        if root.is_file():
            return [root.parent]
        found = [root / name for name in (IN_USE, ARCHIVED) if (root / name).is_dir()]
        if not found:
            return [root]
        home = home_of(root)
        queue = newest(self._databases_of(home), "queue")
        queues = [queue, queue.with_name(f"{queue.name}-wal")] if queue is not None else []
        return [*found, home / INDEX, *queues]

    def _facts_of(self, root: Path, problems: list[Problem]) -> dict[str, Facts]:
        home = home_of(root)
        return self._facts.read(home, self._databases_of(home), problems)

    def _databases_of(self, home: Path) -> Path:
        return database_folder(home, self._environment, self._user_home or Path.home())


def history_of(root: Path) -> str | None:
    """Return the log of typed lines of a Codex home; None for a root that is part of one."""
    path = str(root / NAME)
    is_home = (root / IN_USE).is_dir() or (root / ARCHIVED).is_dir() or is_history(path)
    return path if is_home else None


def _is_queue(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith("queue") and name.removesuffix("-wal").endswith(".sqlite")
