"""What side files say about threads: names, archive, times, the current segment.

Source: the Codex format page, sections 3.1, 3.3 and 3.5. ``session_index.jsonl`` holds
names, the last line of a thread wins; ``state_<n>.sqlite`` holds the table ``threads``.
``queue_<n>.sqlite`` holds prompts that wait. Only these files are opened, and of ``threads``
only these columns are read. What a row said that is gone, or a file of names, is known from
the library; what they say no longer is not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TypeVar

from store.engine.access import open_for_reading, read_header
from store.engine.companions import signature
from store.errors import StoreError
from store.sources.base.json_lines import JsonLines
from store.sources.base.protocol import Fact, FileStamp, Library, Problem
from store.sources.base.values import string
from store.sources.codex.names import rollout_name
from store.sources.codex.queue import Queued, read_queue
from store.system.paths import open_regular, real_path

INDEX = "session_index.jsonl"
STAMP = "#facts"
SIDE = "side:"
"""Begins the fact of what side files say about a thread."""
_NUMBERED = re.compile(r"(state|queue)(?:_(\d+))?\.sqlite")
_Read = TypeVar("_Read")
_COLUMNS = (
    "id", "rollout_path", "name", "archived", "archived_at", "created_at_ms", "updated_at_ms",
    "agent_nickname", "agent_role", "title",
)  # fmt: skip
INDEX_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Facts:
    """What side files say about one thread; None where they do not.

    Attributes:
        name: What a user named it.
        head: The physical key of the current file.
        archived_at: Epoch ms.
        queued: Prompts that wait for their turn.
        title: What Codex's own list shows, made of the first prompt.
        has_row: Whether the state database has the thread.
        in_index: Whether the name is one of ``session_index.jsonl``.
        unnamed: Whether ``session_index.jsonl`` says last that it has no name.
    """

    name: str | None = None
    head: str | None = None
    archived_at: int | None = None
    created_at: int | None = None
    updated_at: int | None = None
    nickname: str | None = None
    role: str | None = None
    queued: tuple[Queued, ...] = ()
    title: str | None = None
    has_row: bool = False
    in_index: bool = False
    unnamed: bool = False

    @property
    def tells_title(self) -> bool:
        """Whether a title that is not here is none: its name was taken back."""
        return self.has_row or self.unnamed

    def stamp(self, home: str) -> FileStamp:
        """Return what changes when these facts do, in the form of a file's stamp."""
        text = repr(astuple(self)).encode("utf-8", "surrogatepass")
        digest = int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")
        return FileStamp(os.path.join(home, INDEX + STAMP), 0, len(text), digest, len(text))


class FactsReader:
    """Reads the side files of a Codex home when they moved since the last time."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._seen: dict[str, tuple[object, dict[str, Facts], list[Problem]]] = {}

    def read(self, home: Path, databases: Path, problems: list[Problem]) -> dict[str, Facts]:
        """Return facts by thread.

        Args:
            home: The folder with ``session_index.jsonl``.
            databases: The folder with the state database, mostly the same.
            problems: Takes what could not be read.
        """
        index, state = home / INDEX, newest(databases, "state")
        queue = newest(databases, "queue")
        signs = (_file_sign(index), _sign(state), _sign(queue))
        known = self._seen.get(str(home))
        if known is None or known[0] != signs:
            found: list[Problem] = []
            facts = _read_database(state, _threads, found) if state is not None else {}
            for thread, name in _read_index(index, found).items():
                before = facts.get(thread, Facts())
                facts[thread] = replace(
                    before, name=before.name or name or None, unnamed=not name,
                    in_index=before.name is None and bool(name),
                )  # fmt: skip
            waiting = _read_database(queue, read_queue, found) if queue is not None else {}
            for thread, queued in waiting.items():
                facts[thread] = replace(facts.get(thread, Facts()), queued=queued)
            known = self._seen[str(home)] = (signs, facts, found)
        problems += known[2]
        return known[1]


_KEPT = ("name", "archived_at", "created_at", "updated_at", "nickname", "role", "title")


def shared_facts(thread: str, facts: Facts | None) -> list[Fact]:
    """Return what is to be known of a thread when its row, or the file of names, is gone."""
    values = [getattr(facts, name) for name in _KEPT] if facts is not None else []
    if facts is None or not any(values):
        return []
    return [Fact(SIDE + thread, thread, json.dumps([*values, facts.in_index]))]


def with_known(
    facts: Facts | None, thread: str, library: Library, *, has_index: bool
) -> Facts | None:
    """Return what side files say about a thread, or told before they went away.

    Args:
        facts: What they tell now.
        thread: The thread's id.
        library: What earlier syncs brought in.
        has_index: Whether there is a ``session_index.jsonl``.
    """
    now = facts or Facts()
    if now.has_row and (now.name or has_index):
        return facts
    found = library.facts(SIDE + thread)
    if not found:
        return facts
    *values, in_index = json.loads(found[-1].value)
    known = dict(zip(_KEPT, values, strict=True))
    if now.unnamed or (has_index if in_index else now.has_row):
        del known["name"]
    if now.has_row:
        known = {"name": known.get("name")}
    more = {key: value for key, value in known.items() if not getattr(now, key)}
    return replace(now, **more, in_index=now.in_index or ("name" in more and in_index))


def _file_sign(path: Path) -> tuple[int, ...] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _sign(path: Path | None) -> object:
    return path and (path, signature(path, "copy"))


def newest(folder: Path, kind: str) -> Path | None:
    """Return the database with the highest number of those of a kind, ``state`` or ``queue``."""
    try:
        found = [_NUMBERED.fullmatch(entry.name) for entry in os.scandir(folder)]
    except OSError:
        return None
    numbers = {int(name[2] or 0): name[0] for name in found if name and name[1] == kind}
    return folder / numbers[max(numbers)] if numbers else None


def _read_index(path: Path, problems: list[Problem]) -> dict[str, str]:
    """Return names by thread; an empty one where the last line of a thread has none."""
    names: dict[str, str] = {}
    try:
        with open_regular(path) as file:
            body = file.read(INDEX_LIMIT)
    except FileNotFoundError:
        return {}
    except OSError as error:
        problems.append(Problem(str(path), 0, error.strerror or str(error)))
        return {}
    content = JsonLines(str(path))
    found = content.push(body)
    problems += content.problems
    for record in found + content.finish()[0]:
        thread, name = string(record.data.get("id")), record.data.get("thread_name")
        if thread and isinstance(name, str):
            names[thread.lower()] = name
    return names


def _read_database(
    path: Path,
    read: Callable[[sqlite3.Connection], dict[str, _Read]],
    problems: list[Problem],
) -> dict[str, _Read]:
    try:
        opened = open_for_reading(
            real_path(path), read_header(real_path(path)), ours=False, prepare=_prepare
        )
    except (StoreError, sqlite3.Error, OSError) as error:
        problems.append(Problem(str(path), 0, f"cannot be opened: {error}"))
        return {}
    try:
        return read(opened.connection)
    except sqlite3.Error as error:
        problems.append(Problem(str(path), 0, f"cannot be read: {error}"))
        return {}
    finally:
        opened.close()


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = 1")
    connection.execute("PRAGMA busy_timeout = 250")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def _threads(connection: sqlite3.Connection) -> dict[str, Facts]:
    there = {row[1] for row in connection.execute("PRAGMA table_info(threads)")}
    if "id" not in there:
        return {}
    columns = ", ".join(name if name in there else "NULL" for name in _COLUMNS)
    facts = {}
    for row in connection.execute(f"SELECT {columns} FROM threads"):
        thread, path, name, archived, archived_at, created, updated, nickname, role, title = row
        file = rollout_name(path) if isinstance(path, str) else None
        at = _integer(archived_at)
        facts[str(thread).lower()] = Facts(
            string(name),
            file.key if file else None,
            at * 1000 if at is not None and archived else None,
            _integer(created),
            _integer(updated),
            string(nickname),
            string(role),
            title=string(title),
            has_row=True,
        )
    return facts


def _integer(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 53 else None
