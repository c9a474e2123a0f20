"""What other files of the same project folder tell about a session.

Three things cannot be known from a session's own file: old summary lines are in later
files, an old resume went on in a new file without naming the old one, and a fork taken
after a compaction holds zeroes where the original holds counts. Files are searched as
bytes, only when such a question comes up, and once per state of the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from store.sources.base.drafts import MessageDraft
from store.sources.base.json_lines import LineError, parse_line
from store.sources.base.protocol import Library, NoLibrary
from store.sources.claude_code.discovery import claimed_id
from store.sources.claude_code.relatives import Outline, nearest_parent, outline_in, outline_of
from store.sources.claude_code.rows import Row, epoch_ms, mapping, string
from store.sources.claude_code.usage import larger, usage_of
from store.system.paths import open_regular

_SUMMARY = b'"leafUuid"'
_MESSAGE_ID = re.compile(rb'"id"\s*:\s*"(msg_[^"]{1,200})"')
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"]{1,100})"')
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"]{1,40})"')
_VERSION = re.compile(rb'"version"\s*:\s*"(\d+)\.(\d+)\.(\d+)')
READ_LIMIT = 256 * 1024 * 1024
"""Bytes of the largest neighbour that is searched."""

SUMMARIES_UNTIL = (2, 0, 77)
NEW_FILES_UNTIL = (1, 0, 128)
FORKS_MARKED_FROM = (2, 1, 332)
"""From these versions on no summary lines are written, a resume appends, forks are marked."""
AGENTS = "agents:"
"""Fact: that a session has an agent, of this ``agent_key``."""
HEAD_BYTES = 128 * 1024
"""Bytes of a file's beginning in which the first row of a fork's parent is looked for."""


@dataclass(slots=True)
class _Old:
    """What a file holds that others ask for; of an old version more than of a new one.

    Attributes:
        head: The uuids that are in its beginning.
    """

    stamp: tuple[int, int, int]
    head: frozenset[str] = frozenset()
    summaries: list[tuple[str, str]] = field(default_factory=list)
    messages: set[str] = field(default_factory=set)
    last_at: int = 0


def version_of(rows: Sequence[Row]) -> tuple[int, ...]:
    """Return the version of the first row that names one; empty where none does."""
    for row in rows:
        version = row.data.get("version")
        if isinstance(version, str):
            try:
                return tuple(int(part) for part in version.split(".")[:3])
            except ValueError:
                return ()
    return ()


class Neighbours:
    """The session files of one project folder, looked into on demand."""

    def __init__(
        self, folder: str, match: Callable[[bytes], list[MessageDraft]] | None = None
    ) -> None:
        """Name the folder; nothing is read yet.

        Args:
            folder: The project folder.
            match: Makes messages of what a session file holds, for matching copies.
        """
        self.folder = self._folder = folder
        self._library: Library = NoLibrary()
        self._looked = False
        self._gone_uuids: dict[str, frozenset[str]] = {}
        self._read_messages = match
        self._known: dict[str, _Old] = {}
        self._summaries: dict[str, tuple[int, str]] = {}
        self._holders: dict[str, list[str]] = {}
        self._starting_with: dict[str, list[str]] = {}
        self._uuids: dict[str, tuple[tuple[int, int, int], frozenset[str]]] = {}
        self._elsewhere: dict[str, str] = {}

    def use_library(self, library: Library) -> None:
        """Take the library to look into for files that are gone; what was seen may be old."""
        self._library, self._looked = library, False
        self._gone_uuids.clear()

    def lacks(self, session: str) -> bool:
        """Return whether no file has a session."""
        return not os.path.isfile(self._path(session))

    def content(self, session: str) -> bytes:
        """Return what a session's file holds, or held; none where nobody knows."""
        return self._read(self._path(session)) or self._gone(session)

    def gone_agents(self, session: str, there: Collection[str]) -> dict[str, bytes]:
        """Return what the files of a session's agents held, by ``agent_key``.

        Args:
            session: The session.
            there: The agents whose files are there.
        """
        return {
            fact.value: b"".join(line + b"\n" for line in self._library.records(fact.session))
            for fact in self._library.facts(AGENTS + session)
            if fact.value not in there
        }

    def _gone(self, session: str) -> bytes:
        """Return what the file of a session held that is gone, as far as it was kept."""
        if not self.lacks(session):
            return b""
        return b"".join(record + b"\n" for record in self._library.records(session))

    def _told_by_gone(self, name: str) -> list[str]:
        """Return the sessions of this folder whose files are gone and that told a fact."""
        return [
            fact.session
            for fact in self._library.facts(name)
            if fact.value == self._folder and fact.session not in self._known
        ]

    def titles_for(self, rows: Sequence[Row], session_id: str) -> str | None:
        """Return the newest summary in another file that names one of these rows."""
        if version_of(rows) >= SUMMARIES_UNTIL:
            return None
        self._refresh(session_id)
        found = [self._summaries[row.uuid] for row in rows if row.uuid in self._summaries]
        return max(found)[1] if found else self._title_by_gone({row.uuid for row in rows})

    def _title_by_gone(self, uuids: Collection[str]) -> str | None:
        """Return the newest summary that a file which is gone had of one of some rows."""
        found = [
            (last_at, place, summary)
            for fact in self._library.facts(f"summaries:{self._folder}")
            if fact.session not in self._known
            for last_at, summaries in [json.loads(fact.value)]
            for place, (leaf, summary) in enumerate(summaries)
            if leaf in uuids
        ]
        return str(max(found)[2]) if found else None

    def resumed_from(self, rows: Sequence[Row], session_id: str) -> tuple[str, int] | None:
        """Return the session that an old resume went on from, and where its copies end.

        The parent is the file that shares the most API messages with this one, has the
        fewest others, and ended before the first message that is only here.
        """
        version = version_of(rows)
        if not version or version >= NEW_FILES_UNTIL:
            return None
        self._refresh(session_id)
        first_at: dict[str, int] = {}
        for row in rows:
            if row.type == "assistant":
                first_at.setdefault(row.message_id, row.at)
        candidates = {name for message in first_at for name in self._holders.get(message, ())}
        known = dict(self._known)
        for name in self._told_by_gone(f"api:{next(iter(first_at), '')}"):
            known[name] = _Old((0, 0, 0))
            self._search_in(known[name], self._gone(name))
            candidates.add(name)
        best: tuple[int, int, str] | None = None
        for name in sorted(candidates - {session_id}):
            old = known[name]
            shared = old.messages & first_at.keys()
            own = [at for message, at in first_at.items() if message not in shared]
            if not own or old.last_at > min(own):
                continue
            rank = (len(shared), -len(old.messages - shared), name)
            best = rank if best is None or rank[:2] > best[:2] else best
        if best is None:
            return None
        shared = known[best[2]].messages
        ends = [row.number + 1 for row in rows if row.message_id in shared]
        return best[2], max(ends)

    def forked_from(self, rows: Sequence[Row], session_id: str) -> str | None:
        """Return the session that a fork of a version without marks was taken of."""
        found = self._family(rows, session_id)
        return nearest_parent(*found) if found is not None else None

    def may_become_fork(self, rows: Sequence[Row], session_id: str) -> bool:
        """Return whether one more row could make a session a fork of a version without marks."""
        found = self._family(rows, session_id)
        if found is None:
            return False
        child, candidates = found
        return any(
            child.first_after(shared) is None
            for other in candidates.values()
            if (shared := other.uuids & child.uuids)
        )

    def _family(
        self, rows: Sequence[Row], session_id: str
    ) -> tuple[Outline, dict[str, Outline]] | None:
        """Return a session's outline and those of its possible parents, where nothing is marked.

        None where there can be no parent.
        """
        version = version_of(rows)
        if not version or not NEW_FILES_UNTIL <= version < FORKS_MARKED_FROM:
            return None
        self._refresh(session_id)
        first = next((row.uuid for row in rows if row.type in ("user", "assistant")), "")
        begins_compacted = any(row.data.get("isCompactSummary") for row in rows[:10])
        names = self._known if begins_compacted else self._starting_with.get(first, ())
        candidates = {}
        for name in names:
            if name != session_id and (not begins_compacted or first in self.uuids_in(name)):
                candidates[name] = outline_in(self._read(self._path(name)))
        for name in self._told_by_gone(f"row:{first}"):
            if name != session_id:
                candidates[name] = outline_in(self._gone(name))
        return (outline_of(rows), candidates) if candidates else None

    def that_end_in(
        self, rows: Sequence[Row], session_id: str, parent: str | None, end: int
    ) -> list[str]:
        """Return the files of sessions whose last message a session has too.

        What follows there may not be there yet, as in a folder that is being copied.

        Args:
            rows: The session's rows.
            session_id: Its id.
            parent: The session that it was made from, if it is known.
            end: The number after the last of the rows that it has from there.
        """
        names = {parent} if parent is not None else set[str]()
        version = version_of(rows)
        if version and version < NEW_FILES_UNTIL:
            for row in rows:
                names.update(self._holders.get(row.message_id, ()))
        elif version and version < FORKS_MARKED_FROM:
            first = next((row.uuid for row in rows if row.type in ("user", "assistant")), "")
            names.update(self._starting_with.get(first, ()))
        names.discard(session_id)
        if not names:
            return []
        own = {row.uuid for row in rows} | {row.message_id for row in rows}
        paths = [path for name in sorted(names) if os.path.isfile(path := self._path(name))]
        found = [path for path in paths if _ends_in(path, own)]
        copied = next((row.uuid for row in reversed(rows) if row.number < end), None)
        if parent is not None and copied is not None and copied not in self.uuids_in(parent):
            found += [path for path in paths if path == self._path(parent) and path not in found]
        return found

    def match_copies(self, parent: str, copied: list[MessageDraft]) -> None:
        """Find the original of each copied message that has another id than its copy."""
        originals = self._read_messages(self.content(parent)) if self._read_messages else []
        known = {message.source_id for message in originals}
        unused = [message for message in originals if message.role != "assistant"]
        for message in copied:
            if message.source_id in known:
                continue
            message.inherited_from = None
            for index, original in enumerate(unused):
                if _words(original) == _words(message):
                    message.inherited_from = original.source_id
                    del unused[: index + 1]
                    break

    def uuids_in(self, session: str) -> frozenset[str]:
        """Return the uuids of another session's rows; none where its file is gone."""
        path = self._path(session)
        try:
            stamp = _stamp(os.stat(path))
        except OSError:
            if session not in self._gone_uuids:
                self._gone_uuids[session] = frozenset(_texts(_UUID, self._gone(session)))
            return self._gone_uuids[session]
        known = self._uuids.get(session)
        if known is None or known[0] != stamp:
            found = frozenset(_texts(_UUID, self._read(path)))
            known = self._uuids[session] = (stamp, found)
        return known[1]

    def usage_in(self, session: str, message_id: str) -> dict[str, int] | None:
        """Return the largest usage that another session's file has for an API message."""
        data = self.content(session)
        needle = f'"{message_id}"'.encode("utf-8", "replace")
        usage, start = None, data.find(needle)
        while start >= 0:
            begin, end = data.rfind(b"\n", 0, start) + 1, data.find(b"\n", start)
            end = len(data) if end < 0 else end
            try:
                row, _ = parse_line(data[begin:end])
                message = mapping(row.get("message"))
                if message.get("id") == message_id:
                    usage = larger(usage, usage_of(message))
            except LineError:
                pass  # reported as a problem of its own file
            start = data.find(needle, end)
        return usage

    def _path(self, session: str) -> str:
        """Return where a session's file is, be it in another folder of the projects."""
        name = os.path.basename(session) + ".jsonl"
        path = os.path.join(self._folder, name)
        if os.path.lexists(path):
            return path
        if name not in self._elsewhere or not os.path.isfile(self._elsewhere[name]):
            projects = os.path.dirname(self._folder)
            self._elsewhere[name] = path
            if os.path.basename(projects) != "projects":
                return path
            with contextlib.suppress(OSError), os.scandir(projects) as entries:
                folders = sorted(entry.path for entry in entries)
                found = (os.path.join(folder, name) for folder in folders)
                self._elsewhere[name] = next(filter(os.path.isfile, found), path)
        return self._elsewhere[name]

    @staticmethod
    def _read(path: str) -> bytes:
        """Return a file's bytes; none when it is missing, or larger than is searched."""
        try:
            if os.path.getsize(path) > READ_LIMIT:
                return b""
            with open_regular(path) as file:
                return file.readall()
        except OSError:
            return b""

    def _refresh(self, session_id: str) -> None:
        """Look into the folder again, unless the asking session's file is as it was then."""
        try:
            known = self._known.get(session_id)
            same = known is not None and known.stamp == _stamp(os.stat(self._path(session_id)))
            if same and self._looked:
                return
            with os.scandir(self._folder) as entries:
                files = [entry for entry in entries if _is_session(entry.name)]
        except OSError:
            return
        self._looked = True
        for name in self._known.keys() - {entry.name.removesuffix(".jsonl") for entry in files}:
            del self._known[name]
        for entry in files:
            name = entry.name.removesuffix(".jsonl")
            try:
                stamp = _stamp(entry.stat())
            except OSError:
                continue
            if name not in self._known or self._known[name].stamp != stamp:
                self._known[name] = self._search(entry.path, stamp)
        self._index()

    def _index(self) -> None:
        self._summaries.clear()
        self._holders.clear()
        self._starting_with.clear()
        ordered = sorted(self._known.items(), key=lambda item: (item[1].last_at, item[0]))
        rank = 0
        for name, old in ordered:
            for leaf, summary in old.summaries:
                rank += 1
                self._summaries[leaf] = (rank, summary)
            for uuid in old.head:
                self._starting_with.setdefault(uuid, []).append(name)
            for message in old.messages:
                self._holders.setdefault(message, []).append(name)

    def _search(self, path: str, stamp: tuple[int, int, int]) -> _Old:
        """Search one file; a file of a newer version is closed after its first rows."""
        old = _Old(stamp)
        try:
            with open_regular(path) as file:
                head = file.read(HEAD_BYTES)
                old.head = frozenset(_texts(_UUID, head))
                found = _VERSION.search(head)
                version = tuple(int(part) for part in found.groups()) if found else ()
                if version >= SUMMARIES_UNTIL or stamp[1] > READ_LIMIT:
                    return old
                data = head + file.readall()
        except OSError:
            return old
        self._search_in(old, data)
        return old

    @staticmethod
    def _search_in(old: _Old, data: bytes) -> None:
        """Search all of a file of an old version."""
        found = _VERSION.search(data[:HEAD_BYTES])
        version = tuple(int(part) for part in found.groups()) if found else ()
        old.summaries = list(_summaries(data))
        if version < NEW_FILES_UNTIL:
            old.messages = set(_texts(_MESSAGE_ID, data))
        stamps = _TIMESTAMP.findall(data[-262144:])
        if stamps:
            old.last_at = epoch_ms(stamps[-1].decode("ascii", "replace")) or 0


def _ends_in(path: str, names: Collection[str]) -> bool:
    """Return whether the last message of a file is among some, by its id or its row's."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - HEAD_BYTES))
            tail = file.readall()
    except OSError:
        return False
    last = [found[-1] for pattern in (_UUID, _MESSAGE_ID) if (found := list(_texts(pattern, tail)))]
    return not last or any(name in names for name in last)


def _stamp(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _is_session(name: str) -> bool:
    stem = name.removesuffix(".jsonl")
    return stem != name and not name.startswith("agent-") and claimed_id(stem) == stem


def _texts(pattern: re.Pattern[bytes], data: bytes) -> Iterator[str]:
    return (found.decode("utf-8", "replace") for found in pattern.findall(data))


def _summaries(data: bytes) -> list[tuple[str, str]]:
    found = []
    start = data.find(_SUMMARY)
    while start >= 0:
        begin, end = data.rfind(b"\n", 0, start) + 1, data.find(b"\n", start)
        end = len(data) if end < 0 else end
        try:
            note, _ = parse_line(data[begin:end])
        except LineError:
            note = {}  # reported as a problem of its own file
        leaf, summary = string(note.get("leafUuid")), string(note.get("summary"))
        if note.get("type") == "summary" and leaf and summary:
            found.append((leaf, summary))
        start = data.find(_SUMMARY, end)
    return found


def _words(message: MessageDraft) -> tuple[str, list[object]]:
    return message.role, [part.data.get("text") or part.data.get("url") for part in message.parts]
