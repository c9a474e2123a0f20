"""The source of SWE-agent's trajectories: where they are, and how they are read.

Source: the SWE-agent format page. Keys lie beside the last run of mini-SWE-agent and are never
opened; runs of batches and of SWE-agent are below folders of any name.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from store.sources.base.document_source import DocumentSource
from store.sources.base.drafts import SessionDraft
from store.sources.base.growing import Depends, entries_of, stamp_of
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import Fact, Problem, Program, Unit
from store.sources.swe_agent import mini, steps
from store.sources.swe_agent.shared import KIND
from store.system.paths import expanded

_ENDINGS = (".traj.json", ".traj")
_BELOW = ("", "mini-swe-agent", ".config/mini-swe-agent")
_RUN = "run:"
"""Begins the name of the fact that a run is in a file."""
_DEEPEST = 5
_FOLDERS_LOOKED_AT, _FILES_LOOKED_AT = 300, 20


class SweAgentSource(DocumentSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads trajectories only.

    Looks into the library for runs whose file has moved.
    """

    kind = KIND
    label = "SWE-agent"
    tells = ("tokens",)
    program = Program(frozenset({"mini", "mini-swe-agent", "sweagent"}))
    variables = ("MSWEA_GLOBAL_CONFIG_DIR",)
    below = _BELOW

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folder of mini-SWE-agent's last run."""
        moved = environment.get("MSWEA_GLOBAL_CONFIG_DIR", "").strip()
        local = environment.get("LOCALAPPDATA", "").strip()
        if moved:
            return [expanded(moved)]
        if sys.platform == "darwin":
            return [home / "Library" / "Application Support" / "mini-swe-agent"]
        if sys.platform == "win32" and local:
            return [expanded(local) / "mini-swe-agent", expanded(local) / "mini-swe-agent" / (
                "mini-swe-agent")]  # fmt: skip
        return [home / ".config" / "mini-swe-agent"]

    def is_document(self, name: str) -> bool:
        """Return whether a file is a trajectory, by its name."""
        return name.endswith(_ENDINGS) and not name.startswith(".")

    def holds_session(self, data: Any) -> bool:
        """Return whether a document is a trajectory."""
        return mini.is_trajectory(data) or steps.is_trajectory(data)

    def draft(self, path: str, data: Any, unit: Unit, depends: Depends) -> SessionDraft:
        """Return the session of a trajectory.

        Args:
            path: Its file.
            data: The document.
            unit: As it was listed.
            depends: Takes where the run is.
        """
        written = next((stamp.mtime_ns for stamp in unit.stamps if stamp.path == path), 0)
        make = mini.mini_draft if mini.is_trajectory(data) else steps.steps_draft
        draft = make(path, data, written // 1_000_000)
        # Its file may have moved with all that is around it.
        run = _RUN + _beginning(draft)
        told = self._library.facts(run)
        here = [fact.session for fact in told if fact.value == path]
        moved = [fact.session for fact in told if not os.path.lexists(fact.value)]
        if all(fact.session != draft.source_id for fact in told):
            draft.source_id = next(iter([*here, *moved]), draft.source_id)
        depends.facts.append(Fact(run, draft.source_id, path))
        return draft

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a trajectory, or a folder with some in it or below it."""
        if path.is_file():
            return path if self.is_document(path.name) and self._is_session(path) else None
        for below in self.below:
            root = path / below
            found = islice(self._documents(str(root), [], _FOLDERS_LOOKED_AT), _FILES_LOOKED_AT)
            if any(self._is_session(Path(each)) for each in found):
                return root
        return None

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the trajectories of a folder, and of those in it."""
        top = os.path.abspath(root)
        paths = [top] if os.path.isfile(top) else self._documents(top, problems, None)
        for path in paths:
            yield from _unit_of(path, top, problems)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the trajectories that changed; None where a folder did."""
        top, found = os.path.abspath(root), dict[str, Unit]()
        for path in paths:
            if self.is_document(os.path.basename(path)) and path.startswith(top):
                found |= {unit.key: unit for unit in _unit_of(path, top, [])}
            elif os.path.isdir(path):
                return None
        return list(found.values())

    def _documents(
        self, top: str, problems: list[Problem], most: int | None
    ) -> Iterator[str]:
        """Yield the trajectories in a folder and below it, the nearest first.

        Args:
            top: The folder.
            problems: Takes what cannot be listed.
            most: How many folders are looked into at most; None for all.
        """
        level, looked = [top], 0
        for _ in range(_DEEPEST):
            below: list[str] = []
            for folder in level:
                looked += 1
                if most is not None and looked > most:
                    return
                for entry in entries_of(folder, problems if folder == top else None):
                    if entry.is_dir(follow_symlinks=False):
                        below += [] if entry.name.startswith(".") else [entry.path]
                    elif self.is_document(entry.name) and entry.is_file():
                        yield entry.path
            level = below


def _beginning(draft: SessionDraft) -> str:
    """Return what a run begins with, which is the same wherever its file is."""
    said = [part.data for message in draft.messages[:3] for part in message.parts]
    named = draft.source_id.removeprefix(draft.path)
    words = orjson.dumps([named, said], option=orjson.OPT_SORT_KEYS, default=str)
    return hashlib.blake2b(words, digest_size=12).hexdigest()


def _unit_of(path: str, top: str, problems: list[Problem]) -> Iterator[Unit]:
    try:
        stamp = stamp_of(path, os.stat(path))
    except OSError as error:
        problems.append(Problem(path, 0, error.strerror or str(error)))
        return
    key = os.path.basename(path) if path == top else os.path.relpath(path, top)
    yield Unit(key, (stamp,), stamp.mtime_ns // 1_000_000)
