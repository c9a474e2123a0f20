"""Side files of a session: its title, agents' meta files, and ``tool-results/``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import AttachmentDraft
from store.sources.base.growing import SIDE_FILE_LIMIT
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.protocol import Problem
from store.sources.claude_code.agents import META, ROWS, agent_key
from store.sources.claude_code.rows import epoch_ms, string
from store.system.paths import open_regular

TITLE = "custom-title.json"
ARCHIVED = "archived.json"
RESULTS = "tool-results"
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".gif": "image/gif",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".md": "text/markdown",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".zip": "application/zip",
}
"""By extension, the same on every machine."""


def is_rows(path: str) -> bool:
    """Tell a file of rows from a side file."""
    return path.endswith(ROWS) and os.path.basename(os.path.dirname(path)) != RESULTS


@dataclass(slots=True)
class SideFiles:
    """What a session's side files hold.

    Attributes:
        title: Of ``custom-title.json``; empty where that file has none any more.
        archived_at: Epoch ms, of ``archived.json``.
        meta: The agents' meta files by ``agent_key``.
        attachments: The files of ``tool-results/``.
    """

    title: str | None = None
    archived_at: int | None = None
    meta: dict[str, dict[str, Any]] = field(default_factory=dict)
    attachments: list[AttachmentDraft] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def take(self, path: str) -> bool:
        """Read one side file again; a file that went away meanwhile is left out.

        Returns:
            Whether it was read.
        """
        name = os.path.basename(path)
        self.problems = [problem for problem in self.problems if problem.path != path]
        try:
            if os.path.getsize(path) > SIDE_FILE_LIMIT:
                self.problems.append(Problem(path, 0, "side file is larger than 64 MiB, skipped"))
                return False
            with open_regular(path) as file:
                body = file.readall()
        except OSError as error:
            self.problems.append(Problem(path, 0, error.strerror or str(error)))
            return False
        if os.path.basename(os.path.dirname(path)) == RESULTS:
            self._attach(name, body)
        else:
            self._take_object(path, name, body)
        return True

    def is_damaged(self, path: str) -> bool:
        """Return whether a side file has a problem."""
        return any(problem.path == path for problem in self.problems)

    def _attach(self, name: str, body: bytes) -> None:
        kind = os.path.splitext(name)[1].lower()
        unknown = "application/octet-stream" if b"\0" in body[:8192] else "text/plain"
        media_type = MEDIA_TYPES.get(kind, unknown)
        kept = [known for known in self.attachments if known.name != name]
        self.attachments = [*kept, AttachmentDraft(name, media_type, body)]

    def _take_object(self, path: str, name: str, body: bytes) -> None:
        try:
            data, repaired = parse_json(body)
        except LineError as error:
            self.problems.append(Problem(path, 0, str(error)))
            return
        self.problems += [Problem(path, 0, repaired)] if repaired else []
        if not isinstance(data, dict):
            self.problems.append(Problem(path, 0, "no JSON object"))
        elif name == TITLE:
            self.title = string(data.get("customTitle")) or ""
        elif name == ARCHIVED:
            archived = data.get("archived", True)
            self.archived_at = (epoch_ms(data.get("at")) or None) if archived else None
        elif name.endswith(META):
            self.meta[agent_key(path)] = data
