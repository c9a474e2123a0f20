"""The session that another one of Kiro's files was made from: what is copied from it.

Source: the Kiro format page, sections "K2" and "K3". A rewind makes a file that begins with
copies under the same ids; what was converted from the second engine has its words alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from store.sources.base.growing import LINES, Depends, entries_of
from store.sources.base.json_lines import LineError, parse_line
from store.sources.base.protocol import SESSION_FACT, FileStamp, Library
from store.sources.base.values import mapping, string
from store.system.paths import open_regular

CLI = "cli"
MESSAGES = f"messages{LINES}"
_CONVERTED = re.compile(r"cli_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_[0-9A-Za-z]{1,16}")


def converted_from(session_id: str) -> str | None:
    """Return the session of the second engine that one of the third was converted from."""
    found = _CONVERTED.fullmatch(session_id)
    return found[1] if found else None


class Parent:
    """The records of a parent: of its file, or of the library where that is gone."""

    def __init__(
        self, sessions: str, session_id: str, library: Library, depends: Depends
    ) -> None:
        """Look for its file.

        Args:
            sessions: The folder of all sessions.
            session_id: The parent's id.
            library: Has the sessions whose files are gone.
            depends: Takes what was looked for.
        """
        self.id = session_id
        self._library, self._depends = library, depends
        self._path = _file_of(sessions, session_id)
        if self._path is None:
            depends.wants.add(SESSION_FACT + session_id)

    def ids(self) -> frozenset[str]:
        """Return the ids of its records and messages."""
        names = (string(record.get("id")) or string(mapping(record.get("data")).get("message_id"))
                 for record in self._records())  # fmt: skip
        return frozenset(name for name in names if name)

    def said(self) -> list[tuple[str, str]]:
        """Return id and words of what was said since a session of the second engine was cleared."""
        found: list[tuple[str, str]] = []
        for record in self._records():
            data = mapping(record.get("data"))
            if record.get("kind") == "Clear":
                found = []
            elif record.get("kind") in ("Prompt", "AssistantMessage"):
                content = data.get("content")
                blocks = map(mapping, content if isinstance(content, list) else ())
                texts = [one.get("data") for one in blocks if one.get("kind") == "text"]
                words = "".join(text for text in texts if isinstance(text, str))
                found.append((string(data.get("message_id")) or "", words))
        return found

    def _records(self) -> Iterator[dict[str, Any]]:
        for line in self._lines():
            try:
                yield parse_line(line)[0]
            except LineError:
                continue

    def _lines(self) -> Sequence[bytes]:
        if self._path is None:
            return self._library.records(self.id)
        self._depends.looked.append(FileStamp.now(self._path))
        try:
            with open_regular(self._path) as file:
                return [line for line in file.readall().split(b"\n") if line.strip()]
        except OSError:
            return ()


def _file_of(sessions: str, session_id: str) -> str | None:
    name = os.path.basename(session_id)
    beside = os.path.join(sessions, CLI, name + LINES)
    places = (os.path.join(entry.path, name, MESSAGES) for entry in entries_of(sessions))
    return next((each for each in (beside, *places) if os.path.isfile(each)), None)
