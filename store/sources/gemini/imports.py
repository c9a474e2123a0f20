"""Sessions that began as a copy of another: ``--session-file``, and forks made by hand.

A copy has its original's message ids and counts, so it has to be known as one for nothing
to be counted twice. Both begin with the same turn; the original is the one that began
first. Of an import the file's name tells (an epoch stamp in the place of the date), or a
notice in it.

Source: the Gemini CLI format page, sections 4.1, 4.3 and 4.5.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain

import orjson

from store.sources.base.growing import entries_of
from store.sources.base.protocol import Fact, Library
from store.sources.gemini.content import text_of
from store.sources.gemini.entry import Entry
from store.sources.gemini.heads import TURNS, Head, Heads
from store.sources.gemini.history import History
from store.sources.gemini.places import CHATS, SUFFIXES, projects
from store.system.paths import open_regular

_IMPORTED = re.compile(r"session-\d{12,14}-.+\.jsonl?")
_NOTICE = "Imported session from"
_FILE_LIMIT = 64 * 1024 * 1024
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"]{1,200})"')
_TURN = re.compile(rb'"type"\s*:\s*"(?:user|gemini)"')
_STARTED = re.compile(rb'"startTime"\s*:\s*"([^"]{1,40})"')
TURN = "turn:"
"""Fact: that a session begins with a turn; when it began, and in which project."""


@dataclass(frozen=True, slots=True)
class Original:
    """What a session was copied from.

    Attributes:
        session_id: Of the original.
        inherited: The ids of the entries that both have.
        last: The id of the last of them.
        path: The original's file; "" where it is gone.
        ends: Whether the original ends with it: more that both have may not be there yet.
    """

    session_id: str
    inherited: frozenset[str]
    last: str
    path: str
    ends: bool


def original_of(
    root: str,
    project: str,
    session_id: str,
    paths: list[str],
    history: History,
    heads: Heads,
    library: Library,
) -> Original | None:
    """Find the session that one was copied from; None where there is none.

    Args:
        root: Whose projects are searched.
        project: The session's own, searched first.
        session_id: Its id.
        paths: Its files.
        history: What they hold.
        heads: How the files of projects begin.
        library: Has what files held that are gone.
    """
    turns = [entry for entry in history.entries.values() if entry.kind in TURNS]
    if not turns:
        return None
    if not _is_imported(paths, history):
        there = heads.beginning_with(project, turns[0].id)
        gone = _gone(library, turns[0].id, {*(head.session_id for head in there), session_id})
        elder = _eldest([*there, *(head for head in gone if head.path == project)])
        if elder is None or elder.session_id == session_id:
            return None
        return _original(elder, turns, library)
    needle = orjson.dumps(turns[0].id)
    folders = dict.fromkeys([project, *projects(root)])
    copies: list[Head] = []
    for path in chain.from_iterable(_files_of(folder) for folder in folders):
        body = b"" if path in paths else _read(path)
        found = _SESSION_ID.search(body) if needle in body else None
        if found is not None and found[1].decode("utf-8", "replace") != session_id:
            started = _STARTED.search(body)
            at = started[1].decode("utf-8", "replace") if started else ""
            copies.append(Head(at, path, found[1].decode("utf-8", "replace"), turns[0].id))
    gone = _gone(library, turns[0].id, {*(head.session_id for head in copies), session_id})
    elder = _eldest([*copies, *gone])
    return None if elder is None else _original(elder, turns, library)


def _eldest(heads: list[Head]) -> Head | None:
    """Return the head that began first; of two that did, the same one when its file is gone."""
    return min(heads, key=lambda head: (head.started, head.session_id), default=None)


def shared_facts(project: str, session_id: str, started: str, history: History) -> Iterator[Fact]:
    """Yield what a session tells others that begin as it does.

    Args:
        project: Its project's folder.
        session_id: Its id.
        started: When it began, as its header has it.
        history: What its files hold.
    """
    turn = next((each for each in history.entries.values() if each.kind in TURNS), None)
    if turn is not None:
        yield Fact(TURN + turn.id, session_id, orjson.dumps([started, project]).decode())


def _gone(library: Library, turn: str, there: Collection[str]) -> list[Head]:
    """Return how sessions began that no file has any more, with their projects as paths."""
    found: list[Head] = []
    for fact in library.facts(TURN + turn):
        if fact.session not in there:
            started, project = orjson.loads(fact.value)
            found.append(Head(started, project, fact.session, turn))
    return found


def imported_from(history: History) -> str | None:
    """Return the path of the file that a session was imported from, as its notice says."""
    notices = (
        text_of(entry.data.get("content"))
        for entry in history.entries.values()
        if entry.kind == "info"
    )
    found = (text for text in notices if text.startswith(f"{_NOTICE} "))
    return next((text.removeprefix(f"{_NOTICE} ") for text in found), None)


def _original(head: Head, turns: list[Entry], library: Library) -> Original | None:
    body = _read(head.path)
    path, body = (head.path, body) if body else ("", b"\n".join(library.records(head.session_id)))
    copies = [entry.id for entry in turns if orjson.dumps(entry.id) in body]
    if not copies:
        return None  # It went away meanwhile.
    after = body[body.rfind(orjson.dumps(copies[-1])):]
    ends = len(_TURN.findall(after)) < 2  # The first is its own.
    return Original(head.session_id, frozenset(copies), copies[-1], path, ends)


def _is_imported(paths: list[str], history: History) -> bool:
    if any(_IMPORTED.fullmatch(os.path.basename(path)) for path in paths):
        return True
    return imported_from(history) is not None


def _files_of(project: str) -> list[str]:
    """Return a project's session files, imported ones last: the oldest is the original."""
    names = [entry.name for entry in entries_of(os.path.join(project, CHATS))]
    names = [name for name in names if name.startswith("session-") and name.endswith(SUFFIXES)]
    names.sort(key=lambda name: (bool(_IMPORTED.fullmatch(name)), name))
    return [os.path.join(project, CHATS, name) for name in names]


def _read(path: str) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(_FILE_LIMIT)
    except OSError:
        return b""  # It went away; the copy then counts as a session of its own.
