"""What running processes do, by ``sessions/<pid>.json`` of the config folder.

Source: the Claude Code format page, section 7: the file is there from start to exit, its
``status`` follows the run, and it stays behind, still busy, when the process is killed. So
whoever uses this asks for the process, by its number and by its start (``procStart`` is
field 22 of ``/proc/PID/stat``). A status ``waiting`` comes with what is waited for, in words.
The ``.key`` files beside them are secrets and are never opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from store.sources.claude_code.rows import string
from store.sources.protocol import RunningSession

MOST_BYTES = 64 * 1024
STATES = {"busy": "running", "shell": "running", "idle": "idle"}
_APPROVALS = ("permission", "approv", "sandbox request", "allow")


def sessions_folder(root: Path) -> Path:
    """Return the folder that a root's processes write their files into."""
    config = root.parent if root.name == "projects" else root
    return config / "sessions"


def running_sessions(root: Path) -> list[RunningSession]:
    """Return what a config folder's processes say; the newest word of a session counts."""
    found: dict[str, RunningSession] = {}
    folder = sessions_folder(root)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    for name in names:
        number = name.removesuffix(".json")
        if number == name or not number.isdecimal():
            continue
        session = _session_of(_object_in(folder / name), int(number))
        if session is None:
            continue
        known = found.get(session.source_id)
        if known is None or known.since <= session.since:
            found[session.source_id] = session
    return list(found.values())


def _object_in(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one where it went away or is being written."""
    try:
        with path.open("rb") as file:
            value = orjson.loads(file.read(MOST_BYTES))
    except (OSError, orjson.JSONDecodeError):
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
    started = data.get("procStart")
    since = data.get("statusUpdatedAt")
    return RunningSession(
        session_id,
        state,
        since if type(since) is int else 0,
        pid,
        int(started) if isinstance(started, str) and started.isdecimal() else None,
    )
