"""The Continue source: where its sessions are, and how they are read.

Source: the Continue format page, sections 1 and 2. The list of sessions alone says when each was
begun; keys and settings beside the folder are never opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from store.sources.base.document_source import DocumentSource, unit_of
from store.sources.base.drafts import SessionDraft
from store.sources.base.growing import FACT, Depends
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.protocol import FileStamp, Program, Unit
from store.sources.base.values import mapping, plausible_ms, string
from store.sources.continue_dev.session import KIND, session_draft
from store.sources.continue_dev.siblings import Siblings
from store.system.paths import expanded, open_regular

LIST = "sessions.json"
_NAME = re.compile(r"[0-9A-Za-z-]{8,64}\.json")
_CREATED = f"{FACT}created"
_LONGEST_LIST = 64 * 1024 * 1024


class ContinueSource(DocumentSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads sessions and their list only."""

    kind = KIND
    label = "Continue"
    tells = ("thoughts", "tokens", "files", "compactions", "forks")
    program = Program(frozenset({"cn"}), ("/@continuedev/cli/",))
    variables = ("CONTINUE_GLOBAL_DIR",)
    below = (".continue/sessions", "sessions", "")

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._siblings = Siblings(self.is_document)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the sessions below ``CONTINUE_GLOBAL_DIR`` or ``~/.continue``."""
        named = environment.get("CONTINUE_GLOBAL_DIR", "").strip()
        return [(expanded(named) if named else home / ".continue") / "sessions"]

    def is_document(self, name: str) -> bool:
        """Return whether a file is a session's, by its name."""
        return name != LIST and _NAME.fullmatch(name) is not None

    def holds_session(self, data: Any) -> bool:
        """Return whether a document is a session."""
        return isinstance(data, dict) and (
            string(data.get("sessionId")) is not None and isinstance(data.get("history"), list))

    def units_of(self, stamps: list[FileStamp]) -> Iterator[Unit]:
        """Return the units of sessions, each with the time at which it was begun."""
        lists: dict[str, dict[str, int]] = {}
        for stamp in stamps:
            folder, name = os.path.split(stamp.path)
            if folder not in lists:
                lists[folder] = _begun(os.path.join(folder, LIST))
            created = lists[folder].get(name.removesuffix(".json"), 0)
            yield unit_of(stamp, FileStamp(os.path.join(folder, _CREATED), created, 0, 0))

    def draft(self, path: str, data: Any, unit: Unit, depends: Depends) -> SessionDraft:
        """Return a session.

        Args:
            path: Its file.
            data: The document.
            unit: As it was listed.
            depends: Takes the other session that a fork was compared with.
        """
        created = next((stamp.inode for stamp in unit.stamps
                        if os.path.basename(stamp.path) == _CREATED), 0)  # fmt: skip
        moved = next((stamp.mtime_ns for stamp in unit.stamps if stamp.path == path), 0)
        return session_draft(path, data, created, moved // 1_000_000, self._siblings, depends)


def _begun(path: str) -> dict[str, int]:
    """Return when each session of the list was begun, epoch ms; empty where it is damaged."""
    try:
        with open_regular(path) as file:
            listed, _ = parse_json(file.read(_LONGEST_LIST) or b"")
    except (OSError, LineError):
        return {}
    found: dict[str, int] = {}
    for entry in map(mapping, listed if isinstance(listed, list) else ()):
        name, created = string(entry.get("sessionId")), entry.get("dateCreated")
        if isinstance(created, str) and created.isdecimal() and len(created) < 16:
            created = int(created)
        at = plausible_ms(created) if isinstance(created, int | float) else None
        if name is not None and at is not None:
            found[name] = at
    return found
