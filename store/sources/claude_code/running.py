"""What running processes do, by ``sessions/<pid>.json`` of the config folder.

Source: the Claude Code format page, section 7: the file is there from start to exit, its
``status`` follows the run, and it stays behind, still busy, when the process is killed. So
whoever uses this asks for the process, by its number and by its start (``procStart`` is
field 22 of ``/proc/PID/stat``, or a date where there is no ``/proc``). A status ``waiting``
comes with what is waited for, in words.
The ``.key`` files beside them are secrets and are never opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from store.sources.base.protocol import RunningSession
from store.sources.claude_code.rows import string
from store.system.paths import open_regular

MOST_BYTES = 64 * 1024
STATES = {"busy": "running", "shell": "running", "idle": "idle"}
_APPROVALS = ("permission", "approv", "sandbox request", "allow")


def sessions_folder(root: Path) -> Path:
    """Return the folder that a root's processes write their files into."""
    config = root.parent if root.name == "projects" else root
    return config / "sessions"


class Words:
    """What the processes of config folders said last."""

    def __init__(self) -> None:
        """Begin with nothing that was said."""
        self._last: dict[Path, dict[str, RunningSession | None]] = {}

    def running(self, root: Path) -> list[RunningSession]:
        """Return what a folder's processes say; the newest word of a session counts.

        A file that is being written is cut first; until it is whole its last word holds.
        """
        folder = sessions_folder(root)
        before = self._last.get(folder, {})
        words: dict[str, RunningSession | None] = {}
        for name, number in _names(folder):
            try:
                words[name] = _session_of(_object_in(folder / name), number)
            except orjson.JSONDecodeError:
                words[name] = before.get(name)
        self._last[folder] = words
        found: dict[str, RunningSession] = {}
        for session in filter(None, words.values()):
            known = found.get(session.source_id)
            if known is None or known.since <= session.since:
                found[session.source_id] = session
        return list(found.values())


def _names(folder: Path) -> list[tuple[str, int]]:
    """Return the files of processes, with the number of each."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    numbers = ((name, name.removesuffix(".json")) for name in names)
    return [(name, int(stem)) for name, stem in numbers if stem != name and stem.isdecimal()]


def _object_in(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one where it went away.

    Raises:
        orjson.JSONDecodeError: It is not whole.
    """
    try:
        with open_regular(path) as file:
            value = orjson.loads(file.read(MOST_BYTES))
    except OSError:
        return {}
    return value if isinstance(value, dict) else {}


def _session_of(data: dict[str, Any], pid: int) -> RunningSession | None:
    session_id, status = string(data.get("sessionId")), string(data.get("status"))
    state = STATES.get(status or "")
    if status == "waiting":
        reason = (string(data.get("waitingFor")) or "").lower()
        approval = any(word in reason for word in _APPROVALS)
        state = "waiting-approval" if approval else "waiting-input"
    if not session_id or state is None or data.get("pid") != pid:
        return None
    started = string(data.get("procStart"))
    since = data.get("statusUpdatedAt")
    return RunningSession(
        session_id,
        state,
        since if type(since) is int else 0,
        pid,
        int(started) if started and started.isdecimal() else _words(started),
    )


def _words(started: str | None) -> str | None:
    """Return a date as ``ps -o lstart=`` prints it, with single spaces."""
    return " ".join(started.split()) if started else None
