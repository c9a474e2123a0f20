"""What an agent's own log of typed lines still knows of sessions whose files are gone.

Claude Code and Codex note every line that a person types in one ``history.jsonl``, and keep
it longer than sessions. Where a session has no file of its own any more, its prompts are a
session of prompts only; ``SessionDraft.partial`` keeps it from ever taking the place of one
that was read whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.file_forms import form_of
from store.sources.base.json_lines import LineError, parse_line, read_head, records_of
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.protocol import (
    Fact,
    FileStamp,
    KnownPrompt,
    Library,
    Problem,
    Reading,
    Unit,
)
from store.sources.base.requests import prompt_parts, request_of
from store.sources.base.titles import first_prompt
from store.system.paths import open_regular

NAME = "history.jsonl"
KEY = "history.jsonl/"
"""Begins the keys of units; the session's id follows."""
_HEAD = 65_536
_PICTURE = re.compile(r"\[Image #\d{1,9}\]")
LIMIT = 256 * 1024 * 1024
"""Bytes of the largest log that is read."""
NOTE = "Only the prompts of this session are known: its own file is gone."
NOTE_OF_NOTES = "Only the prompts of this session are known: its own file has no messages."
NOTE_OF_DAY = "Only these prompts are known: the log does not name the sessions they were typed in."
DAY = "prompts-"
"""Begins the ids of sessions that are the prompts of one folder and day."""
_SENT_BEFORE_MS, _SENT_AFTER_MS = 60_000, 3_600_000
"""How much earlier or later a session may have a prompt than the log: it may wait for a turn."""
_COPIED_AFTER_MS = 600_000
"""The same where the log names another session, from which that one may have it as a copy."""
_TAKEN = "typed:"
"""Begins the name of the fact which lines of a session were seen in other sessions.

They are not listed again while the library keeps those sessions, nor where one was forgotten:
whoever forgets one wants its words gone.
"""

_INHERITED = "inherited:"
"""Begins the name of the fact which prompts of a session another one begins with."""


@dataclass(frozen=True, slots=True)
class TypedLine:
    """One line that a person typed.

    Attributes:
        session: Empty where the log does not name it.
        at: Epoch ms.
        folder: The workspace, where the log names it.
        origin: ``human``, ``command`` or ``shell``.
        details: What goes into ``metadata.backscroll``.
        gaps: Matches what is in the text in place of what the log does not hold, such as what was
            pasted.
    """

    session: str
    text: str
    at: int
    folder: str | None = None
    origin: str = "human"
    details: dict[str, Any] = field(default_factory=dict)
    gaps: re.Pattern[str] | None = None


def is_log(path: str, keys: Collection[str]) -> bool:
    """Return whether a file is a log of typed lines, by the keys of its first entries."""
    try:
        with open_regular(path) as file:
            head = read_head(file, _HEAD)
    except OSError:
        return False
    return any(set(keys) <= entry.keys() for entry in records_of(head, 20))


ReadLine = Callable[[dict[str, Any]], TypedLine | None]


class Elsewhere(NamedTuple):
    """Prompts of sessions that are there.

    Attributes:
        prompts: Those of a folder that may be typed lines of the log.
        looked: The files and folders that others may come into.
    """

    prompts: Sequence[KnownPrompt]
    looked: Sequence[FileStamp] = ()


LookElsewhere = Callable[[str | None, int, int], Elsewhere]
"""Takes a folder, and the times (epoch ms) of the first and last prompt that are looked for."""


class Others(NamedTuple):
    """How to look into other sessions.

    Attributes:
        library: Knows which lines were seen in other sessions before.
        all: Returns what other sessions have of prompts, those too whose files are gone.
        files: Returns the paths of the files that may have copies of prompts.
        copies: Returns what these files have. None where copies have other times.
    """

    library: Library
    all: LookElsewhere
    files: Callable[[str | None, int, int], Sequence[str]] | None = None
    copies: LookElsewhere | None = None


class _Span(NamedTuple):
    """Where and when the lines of a session were typed.

    Attributes:
        folder: The workspace of the first line.
        first: The earliest time of a line, epoch ms.
        last: The latest one.
        newest: The time that the session is listed by; None where it has no prompt.
    """

    folder: str | None
    first: int
    last: int
    newest: int | None


@dataclass(slots=True)
class _Session:
    """The entries of one session as they are in the log."""

    records: list[bytes] = field(default_factory=list)
    _span: _Span | None = None

    def lines(self, read_line: ReadLine) -> Iterator[tuple[int, TypedLine]]:
        """Yield what the entries say was typed, each with its record's number."""
        for number, record in enumerate(self.records):
            try:
                line = read_line(parse_line(record)[0])
            except LineError:
                continue  # reported when the log was read
            if line is not None and line.text.strip():
                yield number, line

    def span(self, read_line: ReadLine) -> _Span:
        """Return where and when the lines were typed; call it once all entries are there."""
        if self._span is None:
            lines = [line for _, line in self.lines(read_line)]
            asked = next((line.at for line in lines if line.origin == "human"), None)
            times = [line.at for line in lines]
            self._span = _Span(
                lines[0].folder if lines else None, min(times, default=0), max(times, default=0),
                None if asked is None else max(asked, times[-1]),
            )  # fmt: skip
        return self._span

    def stamp(self, path: str, session: str, copies: Sequence[str]) -> FileStamp:
        """Return what changes when the session's lines do, in the form of a file's stamp.

        Args:
            path: The log.
            session: The session's id.
            copies: The paths of the files that may have copies of the lines.
        """
        names = [os.fsencode(name) for name in sorted(copies)]
        digest = hashlib.blake2b(b"\n".join([*self.records, *names]), digest_size=7).digest()
        mark, count = int.from_bytes(digest, "big"), len(self.records)
        return FileStamp(f"{path}#{session}", 0, count, mark, count)


@dataclass(slots=True)
class _Log:
    """A log as it was read; its damage is reported each time it is listed."""

    stamp: tuple[int, int, int]
    sessions: dict[str, _Session] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _by_folder: dict[str | None, list[TypedLine]] | None = None

    def between(
        self, read_line: ReadLine, folder: str | None, since: int, until: int
    ) -> list[TypedLine]:
        """Return the lines of all sessions that were typed in a folder.

        Args:
            read_line: Returns the line of an entry.
            folder: The workspace.
            since: Epoch ms of the first line.
            until: Epoch ms of the last one.
        """
        if self._by_folder is None:
            self._by_folder = {}
            for session in self.sessions.values():
                for _, line in session.lines(read_line):
                    self._by_folder.setdefault(line.folder, []).append(line)
            for lines in self._by_folder.values():
                lines.sort(key=_typed_at)
        lines = self._by_folder.get(folder, [])
        first = bisect_left(lines, since, key=_typed_at)
        return lines[first : bisect_right(lines, until, key=_typed_at)]


def _typed_at(line: TypedLine) -> int:
    return line.at


def inherited_prompts(parent: str, draft: SessionDraft) -> list[Fact]:
    """Return as a fact which prompts a session has from another one, whatever their times.

    Args:
        parent: The other one's id.
        draft: The session.
    """
    texts = {
        str(part.data.get("text"))
        for message in draft.messages if message.role == "user" and message.inherited_from
        for part in message.parts if part.type == "text"
    }  # fmt: skip
    names = sorted(map(_digest_of_text, texts))
    return [Fact(_INHERITED + parent, draft.source_id, json.dumps(names))] if names else []


def _digest_of_text(text: str) -> str:
    return _digest(text.strip().encode("utf-8", "surrogatepass"))


class PromptHistory:
    """The logs of an agent, each read again when it moved."""

    def __init__(
        self,
        kind: str,
        key: str,
        read_line: ReadLine,
        name: Callable[[str], str] = str,
        *,
        inherits: bool = False,
    ) -> None:
        """Start with nothing read.

        Args:
            kind: The source's kind.
            key: The key that names an entry's session.
            read_line: Returns the line that an entry of the log is; None for one without words.
            name: Returns a session's id as the source has it.
            inherits: Whether the source tells by ``inherited_prompts`` which prompts a session
                has from another one.
        """
        self._kind = kind
        self._inherits = inherits
        self._session_id = re.compile(rb'"%s"\s*:\s*"([^"\\/]{1,200})"' % key.encode())
        self._read_line = read_line
        self._name = name
        self._known: dict[str, _Log] = {}

    def units(
        self, path: str, there: Collection[str], others: Others, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session that the log knows and that has no file.

        Args:
            path: The log.
            there: The ids of the sessions that have one.
            others: Looks into them.
            problems: Takes why the log cannot be read.
        """
        for name, session in self._sessions(path, problems).items():
            if name in there:
                continue
            span = session.span(self._read_line)
            if span.newest is not None:
                copies: Sequence[str] = ()
                if others.files is not None and not name.startswith(DAY):
                    copies = others.files(*_sent(name, span))
                yield Unit(KEY + name, (session.stamp(path, name, copies),), span.newest)

    def read(self, path: str, unit: Unit, others: Others) -> Reading:
        """Read one of the units.

        Args:
            path: The log.
            unit: The unit.
            others: Looks into other sessions.
        """
        name = unit.key.removeprefix(KEY)
        # What is wrong with the log is a problem of the listing, not of each of its sessions.
        if name not in self._sessions(path, []):
            return Reading([], [], ())
        reading = Reading([], [], unit.stamps)
        why = NOTE_OF_DAY if name.startswith(DAY) else NOTE
        self._add_prompts(reading, path, name, why, others)
        return reading

    def in_place_of(
        self, reading: Reading, path: str, name: str, others: Others
    ) -> Reading:
        """Return the reading of a session's own file, with its prompts if no message is there.

        Args:
            reading: The reading.
            path: The log.
            name: The session's id.
            others: Looks into other sessions.
        """
        if any(draft.messages for draft in reading.sessions) or not reading.stamps:
            return reading
        reading.looked = [*reading.looked, FileStamp.now(path)]
        self._add_prompts(reading, path, name, NOTE_OF_NOTES, others)
        return reading

    def _add_prompts(
        self,
        reading: Reading,
        path: str,
        name: str,
        why: str,
        others: Others,
    ) -> None:
        """Add the session of those lines of the log that no other session has.

        Args:
            reading: The reading.
            path: The log.
            name: The session's id.
            why: The note at its end.
            others: Looks into other sessions.
        """
        session = self._sessions(path, []).get(name)
        if session is None or session.span(self._read_line).newest is None:
            return
        if self._inherits:
            reading.wants = {*reading.wants, _INHERITED + name}
        inherited = {
            digest for fact in others.library.facts(_INHERITED + name) if fact.session != name
            for digest in json.loads(fact.value)
        }  # fmt: skip
        left = lines = [
            one for one in session.lines(self._read_line)
            if _digest_of_text(one[1].text) not in inherited
        ]  # fmt: skip
        look = others.all if name.startswith(DAY) else others.copies
        if look is not None:
            first = session.span(self._read_line).first
            # Of a session that went with its file, the lines are listed again.
            known = [
                fact.value for fact in others.library.facts(_TAKEN + name)
                if others.library.keeps_deleted or others.library.forgot_since(first)
            ]  # fmt: skip
            before = {digest for value in known for digest in json.loads(value)}
            sent = _sent(name, session.span(self._read_line))
            prompts = look(*sent)
            reading.looked = [*reading.looked, *prompts.looked]
            found = self._not_elsewhere(path, name, lines, prompts.prompts, sent)
            there = {number for number, _ in found}
            digests = {number: _digest(session.records[number]) for number, _ in lines}
            taken = {
                digest for number, digest in digests.items()
                if digest in before or number not in there
            }
            if taken:
                fact = Fact(_TAKEN + name, name, json.dumps(sorted(taken)))
                reading.facts = [*reading.facts, fact]
            left = [one for one in lines if digests[one[0]] not in taken]
        if any(line.origin == "human" for _, line in left):
            reading.sessions = [self._draft(path, name, session, left, why)]
        else:
            reading.withdrawn = [name]

    def _not_elsewhere(
        self,
        path: str,
        name: str,
        lines: Sequence[tuple[int, TypedLine]],
        prompts: Sequence[KnownPrompt],
        sent: _Sent,
    ) -> Sequence[tuple[int, TypedLine]]:
        """Return the lines of a session that are no prompts of other sessions.

        Args:
            path: The log.
            name: The session's id.
            lines: Its lines, with the numbers of their records.
            prompts: The prompts.
            sent: Where and when they were looked for.
        """
        if not prompts:
            return lines
        mine = Counter((line.session, line.at, line.text) for _, line in lines)
        others: list[TypedLine] = []
        folder, since, until = sent
        # Other lines may be what the prompts are of: of those, a prompt is the nearest one's.
        for line in self._known[path].between(
            self._read_line, folder, since - _SENT_AFTER_MS, until + _SENT_BEFORE_MS
        ):
            key = line.session, line.at, line.text
            if mine[key]:
                mine[key] -= 1
            else:
                others.append(line)
        return _not_among(lines, others, prompts, _after(name))

    def _draft(
        self,
        path: str,
        name: str,
        session: _Session,
        lines: Sequence[tuple[int, TypedLine]],
        why: str,
    ) -> SessionDraft:
        messages = [_message(line, number, session.records[number]) for number, line in lines]
        messages.sort(key=lambda message: message.created_at)
        first, last = messages[0].created_at, messages[-1].created_at
        number = lines[-1][0]
        note = data_part("event", {"name": "prompts only", "details": why}, last, number)
        messages.append(MessageDraft("prompts-only", "system", last, last, {}, [note]))
        draft = SessionDraft(
            name, path, self._kind, first, last,
            title=first_prompt(messages),
            title_from="first-prompt",
            workspace_root=next((line.folder for _, line in lines if line.folder), None),
            messages=messages,
            records=session.records,
            partial=True,
        )  # fmt: skip
        draft.metadata["backscroll"] = {"prompts_only": True}
        draft.metadata["activity"] = {"state": "ended", "from": "stored", "since": last}
        return draft

    def _sessions(self, path: str, problems: list[Problem]) -> dict[str, _Session]:
        try:
            now = os.stat(path)
            stamp = now.st_ino, now.st_size, now.st_mtime_ns
            log = self._known.get(path)
            if log is None or log.stamp != stamp:
                log = self._known[path] = _Log(stamp)
                log.sessions = self._read(path, log.problems)
        except FileNotFoundError:
            return {}
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
            return {}
        problems += log.problems
        return log.sessions

    def _read(self, path: str, problems: list[Problem]) -> dict[str, _Session]:
        found_as = os.stat(path)
        if not stat.S_ISREG(found_as.st_mode):
            problems.append(Problem(path, 0, "not a regular file"))
            return {}
        if found_as.st_size > LIMIT:
            problems.append(Problem(path, 0, "log is larger than 256 MiB, skipped"))
            return {}
        found: dict[str, _Session] = {}
        with open_regular(path) as file:
            body = file.read()
        form = form_of(body[:8])
        if form is not None:
            problems.append(Problem(path, 0, form.reason))
            body = form.decode(body)
        lines, wrong = body.split(b"\n"), list[Problem]()
        for place, line in enumerate(lines):
            named = self._session_id.search(line)
            if named is not None and line.rstrip().endswith(b"}"):
                name = self._name(named[1].decode("utf-8", "replace"))
                found.setdefault(name, _Session()).records.append(line.rstrip(b"\r"))
            elif line.strip():
                try:
                    self._take_unnamed(found, line.rstrip(b"\r"))
                except LineError as error:
                    if place < len(lines) - 1:
                        wrong.append(Problem(path, place + 1, str(error)))
        if len(wrong) > 1 and not found:
            reason = f"no JSON object a line, as the log has: {len(wrong)} lines are not read"
            wrong = [Problem(path, 0, reason)]
        problems += wrong
        return found

    def _take_unnamed(self, found: dict[str, _Session], record: bytes) -> None:
        """Add a record that names no session to those of its folder and day."""
        line = self._read_line(parse_line(record)[0])
        if line is None or line.session or not line.text.strip():
            return
        folder = hashlib.blake2b((line.folder or "").encode("utf-8", "replace"), digest_size=6)
        name = f"{DAY}{_day(line.at)}-{folder.hexdigest()}"
        found.setdefault(name, _Session()).records.append(record)


_Sent = tuple[str | None, int, int]
"""A folder, and between which times (epoch ms) the lines typed in it may be sent."""


def _sent(name: str, span: _Span) -> _Sent:
    """Return where and when a session's lines may be sent."""
    return span.folder, span.first - _SENT_BEFORE_MS, span.last + _after(name)


def _after(name: str) -> int:
    """Return how much later than a session's line a session may have it, in ms."""
    return _SENT_AFTER_MS if name.startswith(DAY) else _COPIED_AFTER_MS


def _digest(record: bytes) -> str:
    return hashlib.blake2b(record, digest_size=8).hexdigest()


def _not_among(
    lines: Sequence[tuple[int, TypedLine]],
    others: Sequence[TypedLine],
    prompts: Sequence[KnownPrompt],
    after: int,
) -> list[tuple[int, TypedLine]]:
    """Return the lines that are no prompts of other sessions, each prompt being one line.

    Args:
        lines: The lines of a session, with the numbers of their records.
        others: Lines of other sessions, which may be the prompts too.
        prompts: The prompts.
        after: How much later than a line it may be sent, in ms.
    """
    said: dict[str, list[int]] = {}
    for prompt in dict.fromkeys(prompts):
        said.setdefault(_plain(prompt.text), []).append(prompt.at)
    typed = [line for _, line in lines]
    pairs = sorted(
        (abs(at - line.at), place, at, text)
        for place, line in enumerate((*typed, *others))
        for text in _same_words(line, said) for at in said[text]
        if -_SENT_BEFORE_MS <= at - line.at <= (after if place < len(typed) else _SENT_AFTER_MS)
    )
    sent: set[int] = set()
    for _, place, at, text in pairs:
        if place not in sent and at in said[text]:
            said[text].remove(at)
            sent.add(place)
    return [one for place, one in enumerate(lines) if place not in sent]


def _same_words(line: TypedLine, said: Collection[str]) -> list[str]:
    """Return which of some prompts may be a typed line."""
    words = _plain(line.text)
    if words in said or line.gaps is None or not line.gaps.search(words):
        return [words] if words in said else []
    held = [piece.strip() for piece in line.gaps.sub("\0", words).split("\0")]
    return [text for text in said if _holds_in_order(text, held)]


def _holds_in_order(text: str, held: Sequence[str]) -> bool:
    """Return whether a text begins with the first of some pieces, ends with the last, has all."""
    first, *others, last = held
    at = len(first)
    for piece in others:
        at = text.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return text.startswith(first) and text.endswith(last) and at + len(last) <= len(text)


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()


def _plain(text: str) -> str:
    """Return a prompt's words, without marks of pictures and what was put around them."""
    return " ".join(_PICTURE.sub(" ", request_of(text)).split())


def _message(line: TypedLine, number: int, record: bytes) -> MessageDraft:
    metadata: dict[str, Any] = {"origin": line.origin}
    if line.details:
        metadata["backscroll"] = line.details
    parts = [text_part(line.text, line.at, number)]
    if line.origin == "human":
        parts = prompt_parts(parts)
    return MessageDraft(f"{_digest(record)}-{number}", "user", line.at, line.at, metadata, parts)


class HistoryFollower:
    """Reads a unit of a log whole each time: it is small."""

    def __init__(self, read: Callable[[Unit], Reading]) -> None:
        """Follow by reading."""
        self._read = read

    def read(self, unit: Unit) -> Reading:
        """Return what reading the unit whole would."""
        return self._read(unit)
