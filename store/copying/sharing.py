"""Brings a person's sessions from the library on their machine into the store of a team.

Each session is one transaction there, with a note of what was brought: a run that was broken off
is gone on with, and one that changes nothing reads nothing but the change log of the library. A
session has its owner's name in its metadata. What others changed in the team's store stays.
"""

from __future__ import annotations

import getpass
import hashlib
import platform
import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from store.copying.outgoing import OWNER, masked, other_id, pointing, renamed, with_owner
from store.copying.rows import (
    MESSAGES,
    METADATA,
    OF_A_SESSION,
    PARTS,
    SESSIONS,
    SessionRows,
    fitted,
    hash_of,
    is_listed_only,
    is_taken,
    metadata_of,
    parents_first,
    put,
    read_rows,
    stored_stamps,
    why_not,
)
from store.engine import changes
from store.engine.connection import Connection
from store.engine.database import Database
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.transactions import explained, transaction
from store.errors import Refused, StoreError
from store.sharing.masks import Masking
from store.sharing.settings import checked_masking
from store.sync.jsontext import json_text
from store.sync.locking import LOCK_PATIENCE_S
from store.sync.user_overrides import message_metadata
from store.sync.writer import is_forgotten, log_changes, trim_changes
from store.system.clock import Clock, system_clock
from store.system.paths import real_path

if TYPE_CHECKING:
    from store.config import Config

_PARENT = REQUIRED_COLUMNS[SESSIONS].index("parent_id")
_UPDATED = REQUIRED_COLUMNS[SESSIONS].index("updated_at")
_ARCHIVED = REQUIRED_COLUMNS[SESSIONS].index("archived_at")
_READING = 2
"""Raised where more is looked at for what is masked: all sessions are compared once more then."""


@dataclass(slots=True)
class Shared:
    """What a run has done.

    Attributes:
        total: Sessions that were looked at or will be.
        done: Sessions that were looked at.
        new: Sessions that were not in the team's store.
        updated: Sessions that were there and differed.
        unchanged: Sessions that were there as they are.
        skipped: Sessions that were not brought, and why: forgotten there, or another library of
            the same person has more of them.
        failed: Sessions that could not be brought, and why.
        stopped: Whether it was stopped before the end.
    """

    total: int = 0
    done: int = 0
    new: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the team's store has everything that was to be brought."""
        return not (self.failed or self.stopped)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "done"}


class Person(NamedTuple):
    """Whose sessions are brought.

    Attributes:
        owner: The name in the team's store.
        library: Names the library on the machine; two machines of a person have two.
        masking: What is masked; None for nothing.
    """

    owner: str
    library: str
    masking: Masking | None


def person_of(config: Config, library: Path, *, mask: bool = True) -> Person:
    """Return whose library it is, by the config.

    Args:
        config: Names the owner, and says what is masked.
        library: The file.
        mask: False masks nothing.

    Raises:
        Refused: ``[masks]`` has a mistake, or there is no name.
    """
    owner = (config.team.owner or "").strip() or _login()
    if not owner:
        raise Refused("Whose sessions are these? Set owner in [team] of the config to your name.")
    return Person(owner, name_of_library(library), checked_masking(config) if mask else None)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""  # A user of a container often has no name.


def name_of_library(library: Path) -> str:
    """Return what tells a library from those of other machines; it does not tell where it is."""
    try:
        machine = Path("/etc/machine-id").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        machine = f"{uuid.getnode():x}"
    words = (machine, platform.node(), str(real_path(library.absolute())))
    return hashlib.blake2b(
        "\0".join(words).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def brought(target: Database, library: Path) -> frozenset[str]:
    """Return the ids that sessions have in a library, of those that a team's store has from it.

    Args:
        target: The team's store; a store of another program has none.
        library: The file of the library.
    """
    if target.form.name != "own":
        return frozenset()
    return frozenset(one for (one,) in target.connection.execute(
        "SELECT original_id FROM shared_sessions WHERE library = ?", (name_of_library(library),)))


class _Known(NamedTuple):
    """A note of the team's store: as what a session came, and the hash of its rows then.

    The owner is the one under whose name it came first.
    """

    session_id: str
    digest: str
    owner: str


def share(
    source: Database,
    target: Database,
    person: Person,
    *,
    stopped: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Shared], None] = lambda done: None,
    clock: Clock = system_clock,
) -> Shared:
    """Bring what changed in a library since the last run into a team's store.

    Args:
        source: The library.
        target: The team's store, open for writing.
        person: Whose library it is.
        stopped: Called between sessions; True ends the run.
        on_progress: Called after each session.
        clock: Gives the time for the change log.

    Raises:
        Refused: The team's store belongs to another program, or cannot be written.
        StoreError: It is locked for long, full, or its server is gone: what was brought is kept.
    """
    if target.form.name != "own":
        raise Refused(f"{target.name} belongs to another program: sessions cannot be shared there")
    if target.read_only:
        raise Refused(target.read_only)
    newest = changes.newest(source)
    found = Shared()
    try:
        ids = _changed(source, target, person, newest)
        found.total = len(ids)
        on_progress(found)
        former = _former_names(target, person) if ids else ()
        for session_id in ids:
            if stopped():
                found.stopped = True
                return found
            _Bringing(source, target, person, former, clock, found).bring(session_id)
            found.done += 1
            on_progress(found)
        if not found.failed:
            _note(target, person, newest)
    except sqlite3.Error as error:
        raise explained(error, target.path) from error
    return found


def _changed(source: Database, target: Database, person: Person, newest: int) -> list[str]:
    """Return the sessions that may have changed since the last run, the newest first.

    A session comes after its parent, so that it can name it.
    """
    row = target.connection.execute(
        "SELECT seq, masking FROM shared_libraries WHERE owner = ? AND library = ?",
        (person.owner, person.library)).fetchone()
    everything = parents_first(source)
    if row is None or row[1] != _name_of(person.masking):
        return everything
    if row[0] == newest:
        return []
    _, moved = changes.since(source, row[0])
    return everything if moved.vague else [one for one in everything if one in moved.sessions]


def _former_names(target: Database, person: Person) -> tuple[str, ...]:
    """Return other names under which a library was brought, as one sets it after the first run."""
    return tuple(owner for (owner,) in target.connection.execute(
        "SELECT DISTINCT owner FROM shared_sessions WHERE library = ? AND owner <> ?"
        " ORDER BY owner", (person.library, person.owner)).fetchall())


def _name_of(masking: Masking | None) -> str:
    """Return a digest of what is masked, which does not tell what is let through."""
    if masking is None:
        return ""
    words = [_READING, masking.secrets, masking.emails, masking.home,
             sorted(masking.own_rules.items()), sorted(masking.let_through)]
    return hashlib.blake2b(repr(words).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _note(target: Database, person: Person, seq: int) -> None:
    with transaction(target.connection, wait_s=LOCK_PATIENCE_S,
                     begin=target.beginning_beside_recorders()):  # fmt: skip
        target.connection.execute(
            "DELETE FROM shared_libraries WHERE library = ? AND owner <> ?",
            (person.library, person.owner))
        target.connection.execute(
            "INSERT INTO shared_libraries(owner, library, seq, masking) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (owner, library) DO UPDATE SET seq = excluded.seq,"
            " masking = excluded.masking",
            (person.owner, person.library, seq, _name_of(person.masking)))
        trim_changes(target)


@dataclass(slots=True)
class _Bringing:
    """Brings one session after the other."""

    source: Database
    target: Database
    person: Person
    former: tuple[str, ...]
    clock: Clock
    found: Shared

    def bring(self, session_id: str) -> None:
        """Bring a session, or note why not; a lost server or full disk raises."""
        rows = self._rows(session_id)
        if rows is None:
            return
        known = self._known(session_id)
        if known is not None and known.digest == hash_of(rows.stamps()) and self._is_there(known):
            self.found.unchanged += 1
            return
        try:
            with transaction(self.target.connection, wait_s=LOCK_PATIENCE_S,
                             begin=self.target.beginning_beside_recorders()):  # fmt: skip
                self._write(rows, session_id)
        except (StoreError, *OF_A_SESSION) as error:
            self.found.failed[session_id] = why_not(error)

    def _rows(self, session_id: str) -> SessionRows | None:
        """Return a session as it leaves the machine; None if it is gone or not read yet."""
        rows = read_rows(self.source, session_id)
        if rows is None or is_listed_only(rows):
            return None
        if self.person.masking is not None:
            rows = masked(rows, self.person.masking)
        return fitted(self.target, with_owner(rows, self.person.owner))

    def _known(self, original: str) -> _Known | None:
        for owner in (self.person.owner, *self.former):
            row = self.target.connection.execute(
                "SELECT session_id, digest, owner FROM shared_sessions"
                " WHERE owner = ? AND library = ? AND original_id = ?",
                (owner, self.person.library, original)).fetchone()
            if row is not None:
                return _Known(*row)
        return None

    def _is_there(self, known: _Known) -> bool:
        return self.target.connection.execute(
            "SELECT 1 FROM chat_sessions WHERE id = ?", (known.session_id,)).fetchone() is not None

    def _write(self, rows: SessionRows, original: str) -> None:
        """Write a session; call it in a transaction of the team's store."""
        digest = hash_of(rows.stamps())
        known = self._known(original)
        placed = self._placed(rows, known)
        if isinstance(placed, str):
            self.found.skipped[original] = placed
            return
        parent = placed.session[_PARENT]
        if parent is not None and (other := self._name_there(parent)) != parent:
            placed = pointing(placed, {parent: other})
        if why := self._forgotten(placed):
            self.found.skipped[original] = why
            return
        self.target.lock_session(placed.id)
        before = stored_stamps(self.target, placed.id)
        kept: frozenset[str] = frozenset()
        if before is not None and hash_of(before) != hash_of(placed.stamps()) and (
            known is None or known.digest != hash_of(before)
        ):
            placed, kept = _with_marks_of(self.target, placed)
        changed = put(self.target, placed, before, kept)
        self.target.connection.execute(
            "INSERT INTO shared_sessions(session_id, owner, library, original_id, digest)"
            " VALUES (?, ?, ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
            " owner = excluded.owner, library = excluded.library,"
            " original_id = excluded.original_id, digest = excluded.digest",
            # The ids that it got depend on the name that was the first.
            (placed.id, known.owner if known is not None else self.person.owner,
             self.person.library, original, digest))
        if before is not None and not changed and before[SESSIONS] == placed.stamps()[SESSIONS]:
            self.found.unchanged += 1
            return
        log_changes(self.target, placed.id, changed if before is not None else (), self.clock)
        if before is None:
            self.found.new += 1
        else:
            self.found.updated += 1

    def _forgotten(self, rows: SessionRows) -> str | None:
        ids = [rows.id, other_id(rows.id, self.person.owner)]
        lineage = metadata_of(rows.session[METADATA]).get("lineage")
        parent = rows.session[_PARENT]
        if parent is not None and isinstance(lineage, dict) and lineage.get("kind") == "subagent":
            ids.append(parent)
        gone = any(is_forgotten(self.target, one) for one in ids)
        return "it was forgotten there" if gone else None

    def _placed(self, rows: SessionRows, known: _Known | None) -> SessionRows | str:
        """Return a session under the id that it has in the team's store, or why it has none.

        Where another person's session has the id, it gets one of its own. Where another library
        of the same person has brought it, the one stays that has all messages of the other.
        """
        if known is not None:
            return rows if known.session_id == rows.id else self._under(rows, known)
        names = self._names_for(rows)
        return names if isinstance(names, SessionRows) else (
            "another library of yours has brought more of it" if names is None
            else self._renamed(rows, names))

    def _names_for(self, rows: SessionRows) -> SessionRows | tuple[str, ...] | None:
        row = self.target.connection.execute(
            "SELECT metadata_json FROM chat_sessions WHERE id = ?", (rows.id,)).fetchone()
        if row is None:
            return (self.person.owner,) if is_taken(self.target, rows) else rows
        if metadata_of(row[0]).get(OWNER) != self.person.owner:
            return (self.person.owner,)
        there = _ids(self.target.connection, MESSAGES, rows.id)
        here = {str(one[0]) for one in rows.tables[MESSAGES]}
        if there == here:
            return None if self._has_more_there(rows) else rows
        if there <= here:
            return rows
        return None if here <= there else (self.person.owner, self.person.library)

    def _has_more_there(self, rows: SessionRows) -> bool:
        """Return whether the team's store has more of a session with the same messages.

        That is so where another machine has the last message whole.
        """
        (updated_at,) = self.target.connection.execute(
            "SELECT updated_at FROM chat_sessions WHERE id = ?", (rows.id,)).fetchone()
        if updated_at != rows.session[_UPDATED]:
            return bool(updated_at > rows.session[_UPDATED])
        here = {str(one[0]) for one in rows.tables[PARTS]}
        return here < _ids(self.target.connection, PARTS, rows.id)

    def _under(self, rows: SessionRows, known: _Known) -> SessionRows:
        for names in ((known.owner,), (known.owner, self.person.library)):
            if other_id(rows.id, *names) == known.session_id:
                return self._renamed(rows, names)
        raise StoreError(f"it is {known.session_id} there, which was made in another way")

    def _renamed(self, rows: SessionRows, names: tuple[str, ...]) -> SessionRows:
        return renamed(rows, names, self._name_there)

    def _name_there(self, session_id: str) -> str:
        """Return the id that another session of the library has, or will have, there."""
        known = self._known(session_id)
        if known is not None:
            return known.session_id
        row = self.target.connection.execute(
            "SELECT metadata_json FROM chat_sessions WHERE id = ?", (session_id,)).fetchone()
        if row is None or metadata_of(row[0]).get(OWNER) == self.person.owner:
            return session_id
        mine = self.source.connection.execute(
            "SELECT 1 FROM chat_sessions WHERE id = ?", (session_id,)).fetchone()
        return session_id if mine is None else other_id(session_id, self.person.owner)


def _ids(connection: Connection, table: str, session_id: str) -> set[str]:
    return {one for (one,) in connection.execute(
        f"SELECT id FROM {table} WHERE session_id = ?", (session_id,)).fetchall()}


def _with_marks_of(
    target: Database, rows: SessionRows
) -> tuple[SessionRows, frozenset[str]]:
    """Return a session with what was changed in the team's store, and the ids that stay there.

    Titles, stars, tags and labels, the archive, and messages that a rewind hid stay; so do
    messages that no source has, as they were written there.

    Args:
        target: The team's store, which has the session.
        rows: The session as it comes.
    """
    there = read_rows(target, rows.id)
    if there is None:
        return rows, frozenset()
    before, now = (metadata_of(one.session[METADATA]) for one in (there, rows))
    session = list(rows.session)
    if isinstance(user := before.get("user"), dict):
        own = now.get("user")
        session[METADATA] = json_text(
            {**now, "user": {**(own if isinstance(own, dict) else {}), **user}})
    if there.session[_ARCHIVED] is not None:
        session[_ARCHIVED] = there.session[_ARCHIVED]
    stored = {row[0]: row[3] for row in there.tables[MESSAGES]}
    messages = [
        (*row[:3], message_metadata(row[3], stored.get(row[0]), None), *row[4:])
        for row in rows.tables[MESSAGES]
    ]
    here = {row[0] for row in messages}
    written = {row[0] for row in there.tables[MESSAGES]
               if row[0] not in here and "source" not in metadata_of(row[3])}
    kept = written | {row[0] for row in there.tables[PARTS] if row[1] in written}
    return replace(
        rows, session=tuple(session), tables={**rows.tables, MESSAGES: messages}), frozenset(kept)
