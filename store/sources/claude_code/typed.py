"""Lines of Claude Code's ``history.jsonl``: what was typed in which session.

One is ``{display, pastedContents, timestamp, project, sessionId}``; versions before 2.0.70
name no session. Pasted text is in ``pastedContents`` by its number, and in ``display`` as
``[Pasted text #1 +20 lines]``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from store.sources.base.content_blocks import text_of
from store.sources.base.growing import entries_of
from store.sources.base.json_lines import records_of
from store.sources.base.prompt_history import Elsewhere, TypedLine, is_log
from store.sources.base.protocol import FileStamp, KnownPrompt, Library
from store.sources.claude_code.agents import AGENT, ROWS
from store.sources.claude_code.origins import is_local_name
from store.sources.claude_code.printed import unescaped
from store.sources.claude_code.rows import epoch_ms, mapping, string
from store.system.paths import open_regular

_PASTED = re.compile(r"\[(?:Pasted text|\.\.\.Truncated text) #(\d{1,9})[^\]\n]{0,40}\]")
_KEYS = ("display", "timestamp")
_NO_LETTER = re.compile(r"[^A-Za-z0-9]")
_LONGEST_NAME = 200
_TIME = re.compile(rb'"timestamp"\s*:\s*"([0-9T:.Z+-]{10,40})"')
_HEAD = 16_384
_TAG = re.compile(r"<(command-name|command-args|bash-input)>(.*?)</\1>", re.S)


def is_history(path: str) -> bool:
    """Return whether a file is the agent's log of typed lines."""
    return is_log(path, _KEYS)


def typed_line(entry: dict[str, Any]) -> TypedLine | None:
    """Return what an entry says was typed, if it says that."""
    session, text = string(entry.get("sessionId")) or "", string(entry.get("display"))
    if text is None or "/" in session:
        return None
    pasted = mapping(entry.get("pastedContents"))

    def whole(found: re.Match[str]) -> str:
        return string(mapping(pasted.get(found[1])).get("content")) or found[0]

    at, folder = epoch_ms(entry.get("timestamp")) or 0, string(entry.get("project"))
    if folder is not None and folder.startswith("/"):
        folder = os.path.normpath(folder)
    origin, details = _kind_of(text)
    return TypedLine(session, _PASTED.sub(whole, text), at, folder, origin, details, _PASTED)


def _kind_of(text: str) -> tuple[str, dict[str, Any]]:
    if text.startswith("!") and text[1:].strip():
        return "shell", {"shell": text[1:].strip()}
    name, _, args = text.strip().partition(" ")
    if name.startswith("/") and is_local_name(name):
        return "command", {"command": {"name": name, "args": args.strip()}}
    return "human", {}


class TypedInSessions:
    """The prompts of the session files that are there, each file read again when it moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._known: dict[str, tuple[FileStamp, list[KnownPrompt]]] = {}
        self._begun: dict[tuple[str, int], int] = {}
        self._listed: dict[str, tuple[FileStamp, list[tuple[str, int, int]]]] = {}

    def list_anew(self) -> None:
        """Look again when the files changed: one that grew leaves its folder as it was."""
        self._listed.clear()

    def elsewhere(
        self, projects: Path, library: Library, folder: str | None, since: int, until: int
    ) -> Elsewhere:
        """Return what sessions of a folder have of prompts, in files and in the library.

        Args:
            projects: The folder of all projects.
            library: What was read of files that are gone.
            folder: The workspace.
            since: Epoch ms of the first prompt that is of interest.
            until: Epoch ms of the last one.
        """
        known = [KnownPrompt(at, _as_typed(text))
                 for at, text in library.prompts(folder, since, until)]  # fmt: skip
        said = set(known)
        for path in self.files(projects, folder, since, until):
            known += [one for one in self._prompts(path) if one not in said]
        looked = [FileStamp.now(path) for path in _project_folders(projects, folder)]
        return Elsewhere(known, looked)

    def copies(
        self, projects: Path, folder: str | None, since: int, until: int
    ) -> Elsewhere:
        """Return what the session files of a folder have of prompts.

        Args:
            projects: The folder of all projects.
            folder: The workspace.
            since: Epoch ms of the first prompt that is of interest.
            until: Epoch ms of the last one.
        """
        files = self.files(projects, folder, since, until)
        return Elsewhere([one for path in files for one in self._prompts(path)])

    def files(
        self, projects: Path, folder: str | None, since: int, until: int
    ) -> list[str]:
        """Return the session files of a folder that may have prompts of a time.

        Args:
            projects: The folder of all projects.
            folder: The workspace.
            since: Epoch ms of the first prompt that is of interest.
            until: Epoch ms of the last one.
        """
        return [
            path for place in _project_folders(projects, folder)
            for path, begun, changed in self._files(FileStamp.now(place))
            if begun <= until and changed >= since
        ]

    def _files(self, folder: FileStamp) -> list[tuple[str, int, int]]:
        """Return a folder's session files, each with the times of its first entry and change."""
        known = self._listed.get(folder.path)
        if known is None or known[0] != folder:
            found = []
            for entry in entries_of(folder.path):
                if entry.name.endswith(ROWS) and not entry.name.startswith(AGENT):
                    begun = self._begun.get((entry.path, entry.inode()))
                    if begun is None:
                        begun = self._begun[entry.path, entry.inode()] = _begun_at(entry.path)
                    changed = FileStamp.now(entry.path).mtime_ns // 1_000_000
                    found.append((entry.path, begun, changed))
            known = self._listed[folder.path] = folder, found
        return known[1]

    def _prompts(self, path: str) -> list[KnownPrompt]:
        stamp = FileStamp.now(path)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = stamp, list(_prompts_in(path))
        return known[1]


def _begun_at(path: str) -> int:
    """Return the earliest time that a file's first entries name; 0 where they name none."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except OSError:
        return 0
    times = [epoch_ms(found.decode()) for found in _TIME.findall(head)]
    return min((at for at in times if at is not None), default=0)


def _project_folders(projects: Path, folder: str | None) -> list[str]:
    """Return where a workspace's sessions are, whether or not there are any."""
    name = _NO_LETTER.sub("-", folder or "")
    if len(name) <= _LONGEST_NAME:
        return [str(projects / name)] if name else []
    start = f"{name[:_LONGEST_NAME]}-"
    return [one.path for one in entries_of(str(projects)) if one.name.startswith(start)]


def _prompts_in(path: str) -> Iterator[KnownPrompt]:
    try:
        with open_regular(path) as file:
            lines = [line for line in file if b'"user"' in line and b'"tool_result"' not in line]
    except OSError:
        return
    for row in records_of(b"".join(lines), len(lines)):
        at = epoch_ms(row.get("timestamp"))
        if row.get("type") == "user" and at is not None:
            yield KnownPrompt(at, _as_typed(text_of(mapping(row.get("message")).get("content"))))


def _as_typed(text: str) -> str:
    """Return a prompt as it was typed: commands and shell lines stand in tags of their own."""
    tags = dict(_TAG.findall(text)) if text.lstrip().startswith("<") else {}
    if "bash-input" in tags:
        return f"!{unescaped(tags['bash-input'])}"
    if "command-name" in tags:
        return f"{tags['command-name']} {tags.get('command-args', '')}".strip()
    return text
