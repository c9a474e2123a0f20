"""The droid source: where its sessions are, and how they are read.

Source: the droid format page, section 1. What lies beside the folder of sessions (accounts,
keys of models, logs) is never opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
)
from store.sources.base.library_source import LibrarySource
from store.sources.base.project_files import ProjectFilesSource
from store.sources.base.protocol import Library, Problem, Program, Unit
from store.sources.base.side_file import SideFile
from store.sources.base.values import string
from store.sources.droid.session import KIND, SETTINGS, Kept, session_draft
from store.system.paths import expanded


class DroidSource(ProjectFilesSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source``; reads sessions and their settings only.

    Looks into the library for sessions whose files are gone.
    """

    kind = KIND
    label = "Factory Droid"
    tells = ("thoughts", "tokens", "compactions", "forks", "continuations", "subagents")
    program = Program(frozenset({"droid"}), ("/@factory/cli", "/node_modules/droid/"))
    variables = ("FACTORY_HOME_OVERRIDE",)
    below = (".factory/sessions", "sessions", "")
    beside = SETTINGS

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the sessions of the home folder, and of the one that replaces it."""
        moved = environment.get("FACTORY_HOME_OVERRIDE", "").strip()
        homes = [*([expanded(moved)] if moved else []), home]
        return list(dict.fromkeys(each / ".factory" / "sessions" for each in homes))

    def is_session(self, path: Path) -> bool:
        """Return whether a file begins as droid's sessions do."""
        data = first_record(path)
        return data is not None and (
            data.get("type") == "session_start" and string(data.get("id")) is not None
        )

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        kept: defaultdict[str, Kept] = defaultdict(Kept)
        depends = Depends()
        build = partial(_build, kept, self._library, depends)
        return BuiltUnit(build, self.line_limit, depends)


def _build(
    kept: dict[str, Kept],
    library: Library,
    depends: Depends,
    unit: Unit,
    files: UnitFiles,
    problems: list[Problem],
) -> list[SessionDraft]:
    drafts: list[SessionDraft] = []
    for path, file in files.lines.items():
        built = kept[path].bring_up(file.lines)
        if not built.start and not built.found:
            problems += [Problem(path, 0, "no line is one of a session")] if file.lines else []
            continue
        beside = path.removesuffix(LINES) + SETTINGS
        settings = SideFile.read(beside, files.bodies.get(beside), problems)
        drafts.append(session_draft(path, file.records, built, settings, library, depends))
    return drafts
