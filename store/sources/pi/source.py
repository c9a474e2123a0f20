"""The pi source: where its sessions are, and how they are read.

Source: the pi section of the format page. Sessions are below the folder that is read, so
the settings and accounts beside it are never opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import first_record
from store.sources.base.growing import (
    BuiltUnit,
    Depends,
    UnitFiles,
)
from store.sources.base.json_lines import LINE_LIMIT
from store.sources.base.project_files import ProjectFilesSource
from store.sources.base.protocol import Library, Problem, Program, Unit
from store.sources.base.values import string
from store.sources.pi.session import KIND, Kept, session_draft
from store.sources.pi.siblings import Siblings
from store.system.paths import expanded


class PiSource(ProjectFilesSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads session files only."""

    kind = KIND
    label = "pi"
    tells = ("thoughts", "tokens", "cost", "rewinds", "compactions", "forks")
    version = 2
    program = Program(frozenset({"pi"}), ("/pi-coding-agent/",))
    variables = ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR")
    below = ("agent/sessions", "sessions", "")

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Make a source.

        Args:
            line_limit: Bytes of the longest line that is read.
        """
        super().__init__(line_limit)
        self._siblings = Siblings()

    def use_library(self, library: Library) -> None:
        """Take the library to look into for files that are gone."""
        self._siblings.use_library(library)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the sessions below ``PI_CODING_AGENT_DIR`` or ``~/.pi/agent``.

        ``PI_CODING_AGENT_SESSION_DIR`` names the sessions' folder itself.
        """
        roots = [home / ".pi" / "agent" / "sessions"]
        agent = environment.get("PI_CODING_AGENT_DIR", "").strip()
        if agent:
            roots.insert(0, expanded(agent) / "sessions")
        sessions = environment.get("PI_CODING_AGENT_SESSION_DIR", "").strip()
        if sessions:
            roots.insert(0, expanded(sessions))
        return list(dict.fromkeys(roots))

    def is_session(self, path: Path) -> bool:
        """Return whether a file begins with pi's header."""
        data = first_record(path)
        return data is not None and (
            data.get("type") == "session"
            and string(data.get("id")) is not None
            and ("cwd" in data or "version" in data)
        )

    def reader(self, root: Path, unit: Unit) -> BuiltUnit:
        """Return a reader of a unit that has read nothing."""
        kept: defaultdict[str, Kept] = defaultdict(Kept)
        depends = Depends()
        build = partial(_build, kept, self._siblings, depends)
        return BuiltUnit(build, self.line_limit, depends)


def _build(
    kept: dict[str, Kept],
    siblings: Siblings,
    depends: Depends,
    unit: Unit,
    files: UnitFiles,
    problems: list[Problem],
) -> list[SessionDraft]:
    drafts: list[SessionDraft] = []
    for path, file in files.lines.items():
        draft = session_draft(path, file.lines, file.records, kept[path], siblings, depends)
        if draft is not None:
            drafts.append(draft)
        elif file.lines:
            problems.append(Problem(path, 0, "no line names its session"))
    return drafts
