"""Finds the processes of sessions on demand, for a library without a watcher.

A watcher stores what it finds in ``live_activity``. Without one, commands look in the same
places: the files that Claude Code's processes write, and this machine's processes. Nothing is
stored; answers are cached for ``HOLDS_S``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from store.activity.attendance import Processes, running_processes
from store.activity.states import ALIVE, GONE
from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.ids import derived_session_id
from store.sources.base.protocol import ActivitySource, RunningSession
from store.sources.registry import all_sources, programs
from store.system.processes import Process, boot_id, host_name, is_alive, lock_is_held, process_of

HOLDS_S = 1.0
"""Seconds for which an answer is cached."""
_DEEPEST = 4


@dataclass(slots=True)
class _Words:
    """The sessions that processes of a library's roots report in their files.

    Attributes:
        said: By session: the report, and the process as ``Process.as_json``.
        pids: By kind: living processes and the sessions that they report.
    """

    said: dict[str, tuple[RunningSession, dict[str, Any]]] = field(default_factory=dict)
    pids: dict[str, dict[int, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Answers:
    asked_at: float
    watched: bool
    words: _Words
    processes: Processes | None = None


_answers: dict[Path, _Answers] = {}


def forget_answers() -> None:
    """Clear the cached answers."""
    _answers.clear()


def said_by_processes(db: Database) -> Mapping[str, object]:
    """Return the sessions that a process reports in its own file, by id."""
    answers = _current(db)
    return {} if answers.watched else answers.words.said


def presence(db: Database, session_ids: Sequence[str], now: int) -> dict[str, dict[str, Any]]:
    """Return the processes of some sessions, in the form of ``live_activities``.

    Args:
        db: The library.
        session_ids: Sessions that seem to be running, and those of ``said_by_processes``.
        now: The current time, epoch ms.

    Returns:
        By session; unknown ones are missing. Empty if a watcher runs for the library.
    """
    answers = _current(db)
    if answers.watched:
        return {}
    lines = _lines(db, session_ids)
    found = {}
    for session_id, workspace, updated_at, metadata in db.connection.execute(
        "SELECT s.id, s.workspace_root, s.updated_at, s.metadata_json"
        f" FROM {db.sql.texts('$1', 'j')} JOIN chat_sessions s ON s.id = j.value",
        {"1": orjson.dumps(list(session_ids)).decode()},
    ).fetchall():
        source = decoded(text(metadata) or "").get("source")
        if not isinstance(source, dict) or source.get("kind") not in programs():
            continue
        line = lines.get(session_id, [session_id])
        at = number(updated_at)
        newer = newer_beside(db, str(source["kind"]), text(workspace), at)
        known = _by_its_word(answers, line) or _by_its_process(
            answers, source, text(workspace), line, now - at, newer
        )
        if known is not None:
            found[session_id] = {"from": "stored", "since": 0, "seen": now} | known
    return found


def newer_beside(db: Database, kind: str, workspace: str | None, updated_at: int) -> int:
    """Return how many sessions of a kind and folder were written later than one of them.

    A process runs one session at a time, so the newest sessions of a folder belong to its
    processes. Subagents are not counted: they run in another session's process.

    Args:
        db: The store.
        kind: The source's kind.
        workspace: The folder; None if unknown.
        updated_at: When the session was last written, epoch ms.
    """
    if workspace is None:
        return 0
    lineage = db.form.fact("s", "lineage.kind")
    (count,) = db.connection.execute(
        "SELECT count(*) FROM chat_sessions s WHERE s.archived_at IS NULL AND s.updated_at > $1"
        f" AND s.workspace_root = $2 AND {db.form.fact('s', 'source.kind')} = $3"
        f" AND coalesce({lineage}, '') <> 'subagent'",
        {"1": updated_at, "2": workspace, "3": kind},
    ).fetchone()
    return int(count)


def _current(db: Database) -> _Answers:
    known, moment = _answers.get(db.path), time.monotonic()
    if known is not None and moment - known.asked_at < HOLDS_S:
        return known
    watched = lock_is_held(str(db.path) + ".watch-lock") is True
    _answers[db.path] = _Answers(moment, watched, _Words() if watched else _words(db))
    return _answers[db.path]


def _words(db: Database) -> _Words:
    """Return the sessions that processes report in their files."""
    found = _Words()
    for source in all_sources():
        if not isinstance(source, ActivitySource):
            continue
        roots = db.connection.execute(
            "SELECT DISTINCT root FROM source_units WHERE kind = $1", {"1": source.kind}
        ).fetchall()
        for (root,) in roots:
            for one in source.running(Path(root)):
                name = derived_session_id(source.kind, one.source_id)
                process = Process(one.pid, host_name(), one.started, boot_id()).as_json()
                found.said[name] = one, process
                if is_alive(process):
                    found.pids.setdefault(source.kind, {})[one.pid] = name
    return found


def _lines(db: Database, session_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return each session with its ancestors if it is a subagent, itself first."""
    lines: dict[str, list[str]] = {}
    wanted = db.sql.as_id("j.value")
    for session_id, at in db.connection.execute(
        f"WITH RECURSIVE line(id, at, depth) AS (SELECT {wanted}, {wanted}, 0"
        f" FROM {db.sql.texts('$1', 'j')}"
        " UNION ALL SELECT line.id, s.parent_id, depth + 1 FROM line"
        " JOIN chat_sessions s ON s.id = line.at"
        f" WHERE depth < {_DEEPEST} AND s.parent_id IS NOT NULL"
        f" AND {db.form.fact('s', 'lineage.kind')} = 'subagent')"
        " SELECT id, at FROM line ORDER BY depth",
        {"1": orjson.dumps(list(session_ids)).decode()},
    ).fetchall():
        lines.setdefault(session_id, []).append(at)
    return lines


def _by_its_word(answers: _Answers, line: Sequence[str]) -> dict[str, Any] | None:
    """Return the report of the living process of a session or its ancestors."""
    for depth, name in enumerate(line):
        said, process = answers.words.said.get(name, (None, {}))
        if said is not None and is_alive(process) is True:
            return process | {"state": ALIVE if depth else said.state, "since": said.since}
    return None


def _by_its_process(
    answers: _Answers, source: Mapping[str, Any], workspace: str | None, line: Sequence[str],
    quiet_for_ms: int, newer: int,
) -> dict[str, Any] | None:
    """Return the process of a session, or that it has ended; None if unknown.

    Args:
        answers: The cached answers.
        source: ``metadata_json.source`` of the session.
        workspace: Its folder.
        line: The session and its ancestors.
        quiet_for_ms: Time since its last write.
        newer: Number of sessions of its program in its folder that were written later.
    """
    if answers.processes is None:
        answers.processes = running_processes()
    processes, kind, path = answers.processes, str(source.get("kind")), str(source.get("path"))
    others = [
        pid for pid, name in answers.words.pids.get(kind, {}).items() if name not in line
    ]
    candidates = processes.of_session(kind, workspace, [path], others, newer)
    alive = [one for one in candidates if is_alive(process_of(one.pid).as_json())]
    if any(one.is_sure for one in alive):
        return process_of(alive[0].pid).as_json() | {"state": ALIVE}
    if any(one.is_sure for one in candidates):
        return {"state": GONE}  # it ended after the processes were listed
    said = next((answers.words.said[name] for name in line if name in answers.words.said), None)
    if said is not None and os.path.lexists(path):
        return said[1] | {"state": GONE, "since": said[0].since}
    if alive or workspace is None or not os.path.isdir(workspace):
        return None  # without the folder the agent runs on another machine or in a container
    over = processes.is_over(kind, workspace, path, quiet_for_ms, others, newer)
    return {"state": GONE} if over else None
