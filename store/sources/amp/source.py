"""The Amp source: where its threads are, and how they are read.

Source: the Amp format page, section 1. Keys and settings beside the threads are never opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from store.sources.amp.thread import KIND, thread_draft
from store.sources.base.document_source import DocumentSource
from store.sources.base.drafts import SessionDraft
from store.sources.base.growing import Depends
from store.sources.base.protocol import Program, Unit
from store.system.paths import expanded

_NAME = re.compile(r"T-[0-9A-Za-z-]+\.json")
"""A temporary copy ends with ``.json.amptmp``."""


class AmpSource(DocumentSource):
    """Fulfils ``store.sources.base.protocol.Source``; reads thread files only."""

    kind = KIND
    label = "Amp"
    tells = ("thoughts", "tokens", "forks", "subagents")
    program = Program(frozenset({"amp"}), ("/@sourcegraph/amp/", "/@ampcode/cli/"))
    variables = ("XDG_DATA_HOME",)
    below = ("amp/threads", "threads", "")

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the threads below ``XDG_DATA_HOME`` or ``~/.local/share``, on all systems."""
        data = environment.get("XDG_DATA_HOME", "").strip()
        folder = expanded(data) if data else home / ".local" / "share"
        return [folder / "amp" / "threads"]

    def is_document(self, name: str) -> bool:
        """Return whether a file is a thread's, by its name."""
        return _NAME.fullmatch(name) is not None

    def holds_session(self, data: Any) -> bool:
        """Return whether a document is a thread."""
        return isinstance(data, dict) and (
            str(data.get("id")).startswith("T-") and isinstance(data.get("messages"), list))

    def draft(self, path: str, data: Any, unit: Unit, depends: Depends) -> SessionDraft:
        """Return the session of a thread.

        Args:
            path: Its file.
            data: The thread.
            unit: As it was listed.
            depends: Is not needed: a fork says itself what it copied.
        """
        return thread_draft(path, data)
