"""Examines a store and what belongs to it, and mends what can be mended without loss."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from store.activity.states import OPEN_STATES
from store.engine import changes
from store.engine.companions import beside, size_of
from store.engine.database import Database, in_transaction, open_database
from store.engine.event_log import VERSION as FORMAT
from store.engine.json_edits import set_json
from store.engine.sidecars import Sidecar, remove_files, store_identity, value_of
from store.engine.snapshots import PARTIAL, integrity_of
from store.engine.transactions import explained
from store.errors import StoreError
from store.events import checking as events_checking
from store.events.log import is_lacking, log_state, switch_on
from store.search.index import checking as index_checking
from store.search.index.sidecar import EVERYTHING, INDEX, number_of
from store.stats import checking as statistics_checking
from store.stats.tables import STATISTICS
from store.system.clock import Clock, system_clock
from store.system.holders import holders
from store.system.locations import PRIVATE_FILE, PRIVATE_FOLDER, data_dir
from store.system.paths import real_path
from store.system.processes import is_alive
from store.text.figures import count_of
from store.text.stored_json import loads
from store.upkeep.sizes import size_on_disk
from store.verbs import rollups
from store.verbs.log import note_change

Name = Literal[
    "integrity", "foreign keys", "orphans", "rollups", "search index", "statistics",
    "permissions", "free space", "running sessions", "left files", "event log", "json",
]  # fmt: skip

LEAST_FREE = 64 << 20
"""Bytes without which a store can hardly be written."""
LARGE_LOG = 256 << 20
_MOST = 20
"""Problems of the integrity that are listed."""


@dataclass(slots=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        check: The check that found it.
        words: What is wrong, with numbers.
        way_out: What to do about it.
        count: How many rows or files it is about.
        mend: Mends it without any loss; None if nothing can.
        mended: Whether it was mended.
        is_note: Whether the store works as it should all the same.
    """

    check: Name
    words: str
    way_out: str
    count: int = 1
    mend: Callable[[], None] | None = None
    mended: bool = False
    is_note: bool = False


@dataclass(slots=True)
class Examined:
    """What an examination found.

    Attributes:
        checks: The checks that ran, in order.
    """

    checks: list[Name] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        """Whether nothing is left that must be seen to."""
        return all(one.mended or one.is_note for one in self.findings)


Check = Callable[["Patient"], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Patient:
    """The store that is examined.

    Attributes:
        database: Open for writing if anything is to be mended.
        quick: Whether pages and rows are not read one by one.
    """

    database: Database
    clock: Clock
    quick: bool

    @property
    def is_own(self) -> bool:
        """Whether it is a library."""
        return self.database.form.name == "own"

    @property
    def real(self) -> Path:
        """The store's file."""
        return real_path(self.database.path)

    def fixes(self, does: str) -> str:
        """Return the way out of what ``--fix`` mends, which it does in a library only."""
        if self.is_own:
            return f"`backscroll doctor --fix` {does}"
        return "it belongs to another program, which is left to mend it"

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.database.connection.execute(sql, values).fetchall()

    def change(self, *statements: str) -> Callable[[], None]:
        """Return a function that runs statements in one transaction."""
        def run(db: Database) -> None:
            for statement in statements:
                db.connection.execute(statement)

        return lambda: in_transaction(self.database, run)


def examine(
    database: Database, *, fix: bool = False, quick: bool = False,
    clock: Clock = system_clock, telling: Callable[[Name], None] = lambda check: None,
    checks: Mapping[Name, Check] | None = None,
) -> Examined:
    """Return what is not as it should be with a store and the files beside it.

    Args:
        database: The store; open for writing with ``fix``.
        fix: Whether to mend what can be mended without loss.
        quick: Whether to leave out what reads every page and every text.
        clock: Gives the present.
        telling: Takes the check that begins.
        checks: Those that run; None for all of a file.

    Raises:
        StoreError: The store cannot be read, or not be mended.
    """
    patient, found = Patient(database, clock, quick), Examined()
    try:
        for name, check in (CHECKS if checks is None else checks).items():
            telling(name)
            found.checks.append(name)
            for finding in list(check(patient)):
                found.findings.append(finding)
                if fix and finding.mend is not None:
                    finding.mend()
                    finding.mended = True
            if name == "integrity" and not found.is_well:
                break  # What else is read may be wrong.
    except sqlite3.Error as error:
        raise explained(error, database.path) from error
    return found


def _integrity(patient: Patient) -> Iterator[Finding]:
    connection = patient.database.file
    problems = (
        [row[0] for row in patient.rows(f"PRAGMA quick_check({_MOST})") if row[0] != "ok"]
        if patient.quick else integrity_of(connection, most=_MOST)
    )
    if problems:
        yield Finding(
            "integrity", f"the file is damaged: {'; '.join(problems[:3])}",
            "restore a backup with `backscroll restore-backup`, or save what it still has with"
            f" `sqlite3 {patient.database.path.name} .recover`", len(problems))


def _foreign_keys(patient: Patient) -> Iterator[Finding]:
    found: dict[tuple[str, str], int] = {}
    for table, _, parent, _ in patient.rows("PRAGMA foreign_key_check"):
        found[table, parent] = found.get((table, parent), 0) + 1
    for (table, parent), count in found.items():
        yield Finding(
            "foreign keys", f"{count_of(count, 'row')} of {table} without a row of {parent}",
            "another program deleted rows without foreign keys; restore a backup, or keep them:"
            " they are not shown", count)


_ORPHANS = (
    ("parts are not in the session of their message",
     "SELECT count(*) FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
     " WHERE p.session_id {other} m.session_id", "chat_parts",
     "UPDATE chat_parts SET session_id = (SELECT m.session_id FROM chat_messages m"
     " WHERE m.id = message_id) WHERE EXISTS (SELECT 1 FROM chat_messages m"
     " WHERE m.id = message_id AND m.session_id {other} chat_parts.session_id)"),
    ("sessions are listed as unread, and do not exist",
     "SELECT count(*) FROM outlines WHERE session_id NOT IN (SELECT id FROM chat_sessions)",
     "outlines",
     "DELETE FROM outlines WHERE session_id NOT IN (SELECT id FROM chat_sessions)"),
)  # fmt: skip
"""What it is, how many there are, their table, and what mends it without loss."""


def orphans(patient: Patient) -> Iterator[Finding]:
    """Yield rows that belong to nothing, or to something else than they say."""
    other = patient.database.sql.other
    for words, count_sql, table, mending in _ORPHANS:
        if table == "outlines" and not patient.is_own:
            continue
        ((count,),) = patient.rows(count_sql.format(other=other))
        if count:
            yield Finding(
                "orphans", f"{count:,} {words}", patient.fixes("corrects it"), count,
                patient.change(mending.format(other=other)) if patient.is_own else None)
    pending = " AND s.id NOT IN (SELECT session_id FROM session_links)" if patient.is_own else ""
    ((count,),) = patient.rows(
        "SELECT count(*) FROM chat_sessions s WHERE s.parent_id IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM chat_sessions o WHERE o.id = s.parent_id){pending}")
    if count:
        yield Finding(
            "orphans", f"{count:,} sessions name a parent that is not in the store",
            "nothing to do: they are shown without it", count, is_note=True)


def sums(patient: Patient) -> Iterator[Finding]:
    """Yield sessions whose sums are not those of their messages."""
    stale = rollups.stale(patient.database)
    if not stale:
        return

    def mend() -> None:
        in_transaction(patient.database, _recount, stale, patient.clock())

    some = ", ".join(stale[:3]) + (" and others" if len(stale) > 3 else "")
    yield Finding(
        "rollups", f"{len(stale):,} sessions have other sums than their messages ({some})",
        patient.fixes("counts them again"), len(stale),
        # Another program may count by a rule of its own.
        mend if patient.is_own else None, is_note=not patient.is_own)


def _recount(db: Database, sessions: list[str], now: int) -> None:
    for session_id in sessions:
        rollups.write(db, session_id)
        note_change(db, session_id, now)


def _sidecar(
    patient: Patient, name: Name, sidecar: Sidecar, check: Callable[[Path], list[str]],
    settled: Callable[[sqlite3.Connection], bool],
) -> Iterator[Finding]:
    """Yield a finding if a file beside the store does not agree with it.

    What is not in it yet is no difference: it is being made, and made on.

    Args:
        patient: The store.
        name: Of the check.
        sidecar: The kind of file.
        check: Returns the differences.
        settled: Returns whether everything is in it.
    """
    path = sidecar.path(patient.database.path)
    if not path.exists():
        return

    def mend() -> None:
        remove_files(path)

    way_out = (f"`backscroll doctor --fix` deletes {path.name}; it is made again from the store")
    if _is_begun(sidecar, path):
        return
    damaged = sidecar.is_damaged(path)
    if not damaged and _is_of_another_file(patient, sidecar, path):
        yield Finding(
            name, f"{path.name} was made of another file, as after the folder was copied",
            "nothing to do: it is made again", mend=mend, is_note=True)
        return
    problems = ["it is damaged"] if damaged else []
    if not damaged and not patient.quick:
        file = sidecar.open_for_reading(path)
        try:
            if file is not None and value_of(file, "store") is not None and settled(file):
                problems = check(patient.database.path)
        except sqlite3.DatabaseError:
            problems = ["it is damaged"]
        finally:
            if file is not None:
                file.close()
    if not problems:
        return
    busy = holders([path])
    yield Finding(
        name, f"{path.name} does not agree with the store: {problems[0]}"
        + (f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""),
        f"end {busy[0]}, then {way_out}" if busy else way_out, len(problems),
        None if busy else mend)


def _is_begun(sidecar: Sidecar, path: Path) -> bool:
    """Return whether a file is only begun, or of another version: it is made anew then."""
    try:
        file = sidecar.open_existing(path)
    except sqlite3.DatabaseError:
        return False
    if file is not None:
        file.close()
    return file is None


def _is_of_another_file(patient: Patient, sidecar: Sidecar, path: Path) -> bool:
    file = sidecar.open_for_reading(path)
    if file is None:
        return False
    with contextlib.closing(file):
        made_of = value_of(file, "store")
    return made_of is not None and made_of != store_identity(patient.database.path)


def _index(patient: Patient) -> Iterator[Finding]:
    def settled(file: sqlite3.Connection) -> bool:
        return number_of(file, "since") == EVERYTHING and _is_up_to_date(patient, file)

    yield from _sidecar(patient, "search index", INDEX, index_checking.check, settled)


def kept_statistics(patient: Patient) -> Iterator[Finding]:
    """Yield a finding if the statistics beside the store do not agree with it."""
    def settled(file: sqlite3.Connection) -> bool:
        ((waiting,),) = file.execute("SELECT count(*) FROM session WHERE counted = 0").fetchall()
        return bool(value_of(file, "whole")) and not waiting and _is_up_to_date(patient, file)

    yield from _sidecar(
        patient, "statistics", STATISTICS, statistics_checking.check, settled)


def _is_up_to_date(patient: Patient, file: sqlite3.Connection) -> bool:
    """Return whether a library's log has no change that the file does not know."""
    if not patient.is_own:
        return False
    if patient.database.server is not None:
        return not changes.since(patient.database, number_of(file, "seq"))[1]
    ((newest,),) = patient.rows("SELECT coalesce(max(seq), 0) FROM changes")
    return number_of(file, "seq") == newest and not number_of(file, "backlog")


def _permissions(patient: Patient) -> Iterator[Finding]:
    if not patient.is_own or os.name == "nt":
        return
    real = patient.real
    # The folder of a store elsewhere, such as a host's own, is also for other files.
    wanted = [(real.parent, PRIVATE_FOLDER)] if real.parent == real_path(data_dir()) else []
    wanted += [(real.with_name(name), PRIVATE_FILE) for name in sorted(os.listdir(real.parent))
               if name == real.name or name.startswith((f"{real.name}-", f"{real.name}."))]
    for path, mode in wanted:
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue  # SQLite has just removed it.
        is_folder = path == real.parent
        if is_folder and (status.st_mode & stat.S_ISVTX or status.st_uid != os.geteuid()):
            continue  # A folder such as /tmp is not for the library alone.
        if stat.S_ISLNK(status.st_mode) or not status.st_mode & 0o077:
            continue
        others = "a folder that others can enter" if is_folder else "readable by others"
        yield Finding(
            "permissions", f"{path} is {others} ({stat.S_IMODE(status.st_mode):04o})",
            f"`backscroll doctor --fix`, or `chmod {mode:o}`",
            mend=lambda path=path, mode=mode: path.chmod(mode))  # type: ignore[misc]


def _free_space(patient: Patient) -> Iterator[Finding]:
    free, size = shutil.disk_usage(patient.real.parent).free, size_on_disk(patient.real)
    if free < LEAST_FREE:
        yield Finding("free space", f"the disk of the store has {free:,} bytes left",
                      "free some space; `backscroll prune` and `backscroll vacuum` may help")
    elif free < 2 * size:
        yield Finding(
            "free space", f"the disk of the store has {free:,} bytes left, too few for a vacuum of"
            f" {size:,} bytes", "free some space before the next migration or vacuum", is_note=True)
    log = size_of(beside(patient.real, "-wal"))
    if log > LARGE_LOG:
        yield Finding("free space", f"the write-ahead log has {log:,} bytes",
                      "`backscroll checkpoint` empties it", is_note=True)


def running(patient: Patient) -> Iterator[Finding]:
    """Yield sessions that are stored as running, by processes that have ended."""
    has_activity = patient.database.sql.contains("metadata_json", "'\"activity\"'")
    dead = [
        session_id for session_id, text in patient.rows(
            f"SELECT id, metadata_json FROM chat_sessions WHERE {has_activity}")
        if text and _is_dead(text)
    ]
    if dead:
        yield Finding(
            "running sessions", f"{len(dead):,} sessions are stored as running, and their processes"
            f" have ended ({', '.join(dead[:3])})",
            patient.fixes("stores that they were interrupted"), len(dead),
            (lambda: in_transaction(patient.database, _interrupt, dead, patient.clock()))
            if patient.is_own else None)
    if not patient.is_own:
        return
    gone = [
        session_id for session_id, watcher in patient.rows(
            "SELECT session_id, watcher_json FROM live_activity")
        if is_alive(_decoded(watcher)) is False
    ]
    if gone:
        yield Finding(
            "running sessions", f"{len(gone):,} facts about running sessions are from a watcher"
            " that has ended", "nothing to do: they are ignored, and the next watcher removes them",
            len(gone), lambda: in_transaction(patient.database, _drop_live, gone), is_note=True)


def _decoded(text: object) -> dict[str, Any]:
    try:
        found = loads(str(text))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_dead(metadata: str) -> bool:
    activity = _decoded(metadata).get("activity")
    return (
        isinstance(activity, dict) and activity.get("state") in OPEN_STATES
        and "pid" in activity and is_alive(activity) is False
    )


def _interrupt(db: Database, sessions: list[str], now: int) -> None:
    for session_id in sessions:
        (since,) = db.connection.execute(
            "SELECT updated_at FROM chat_sessions WHERE id = ?", (session_id,)).fetchone()
        set_json(
            db, "chat_sessions", session_id, "json_set($json, '$.activity',"
            " json_object('state', 'interrupted', 'from', 'stored', 'since', $since))",
            {"since": since})
        note_change(db, session_id, now)


_JSON: tuple[tuple[str, str, type | None, str], ...] = (
    ("chat_sessions", "metadata_json", dict, "no metadata"),
    ("chat_sessions", "permissions_json", list, "no permissions"),
    ("chat_sessions", "model_json", None, "no model"),
    ("chat_messages", "metadata_json", dict, "no metadata"),
    ("chat_parts", "data_json", dict, "a part without content"),
)
"""Table and column, what its JSON has to be (None for any), and what else it is read as."""
_STARTS: dict[type, str] = {dict: "{", list: "["}
_TYPES: dict[type, str] = {dict: "no JSON object", list: "no JSON array"}


def damaged_json(patient: Patient) -> Iterator[Finding]:
    """Yield columns whose text is no JSON, or not of the type that the contract has there."""
    for table, column, kind, read_as in _JSON:
        if patient.quick and table == "chat_parts":
            continue
        odd = f"NOT {patient.database.sql.is_json(column)}"
        if kind is not None:
            odd += f" OR substr(ltrim(CAST({column} AS text)), 1, 1) <> '{_STARTS[kind]}'"
        found = [row_id for row_id, text in patient.rows(
            f"SELECT id, CAST({column} AS text) FROM {table} WHERE {column} IS NOT NULL"
            f" AND ({odd}) ORDER BY id") if not _is_json_of(text, kind)]
        if found:
            rows, what = count_of(len(found), "row"), "no JSON" if kind is None else _TYPES[kind]
            some = ", ".join(map(str, found[:3])) + (" and others" if len(found) > 3 else "")
            yield Finding(
                "json", f"{column} of {rows} of {table} is {what} ({some})",
                f"it is read as {read_as} and kept as it is; what wrote it has to correct it",
                len(found), is_note=not patient.is_own)


def _is_json_of(text: object, kind: type | None) -> bool:
    try:
        value = loads(text if isinstance(text, bytes) else str(text))
    except ValueError:
        return False
    return kind is None or isinstance(value, kind)


def _drop_live(db: Database, sessions: list[str]) -> None:
    db.connection.executemany(
        "DELETE FROM live_activity WHERE session_id = ?", ((one,) for one in sessions))


def _left_files(patient: Patient) -> Iterator[Finding]:
    """Yield files that a killed backup or restore has left."""
    if not patient.is_own:
        return
    start = f".{patient.real.name}."
    for name in sorted(os.listdir(patient.real.parent)):
        path = patient.real.with_name(name)
        middle = PARTIAL in name and name.startswith(start)
        if middle and path.is_file() and not path.is_symlink() and not holders([path]):
            yield Finding(
                "left files", f"{name} is what a backup that was killed has left",
                "`backscroll doctor --fix` deletes it",
                mend=lambda path=path: path.unlink(missing_ok=True))  # type: ignore[misc]


def event_log(patient: Patient) -> Iterator[Finding]:
    """Yield a finding if the store cannot be made of its event log."""
    db = patient.database
    state = log_state(db)
    if state is None or not state.is_on:
        return
    if state.version > FORMAT:
        yield Finding("event log", f"it has the newer version {state.version}",
                      "update Backscroll to use it", is_note=True)
        return

    def again() -> None:
        switch_on(db, clock=patient.clock)

    def mending(sessions: list[str]) -> Callable[[], None]:
        return lambda: events_checking.mend(db, sessions, patient.clock())

    lacks = is_lacking(db)
    if lacks or not state.complete:
        yield Finding(
            "event log", "its table or triggers are missing or were changed, so changes may be"
            " missing too" if lacks else "it does not have every session yet",
            patient.fixes("completes it with the present state, as `backscroll events --on`"),
            mend=again)
        return
    broken = events_checking.with_gaps(db)
    if broken:
        yield Finding(
            "event log", f"events of {len(broken):,} sessions are missing"
            f" ({', '.join(broken[:3])})",
            patient.fixes("numbers the others again, and adds the present state"), len(broken),
            mending(broken))
    odd = [] if patient.quick or broken else events_checking.not_as_told(db)
    if odd:
        yield Finding(
            "event log", f"{len(odd):,} sessions are not as it says ({', '.join(odd[:3])})",
            patient.fixes("adds the present state"), len(odd), mending(odd))


CHECKS: dict[Name, Check] = {
    "integrity": _integrity, "foreign keys": _foreign_keys, "orphans": orphans,
    "rollups": sums, "search index": _index, "statistics": kept_statistics,
    "permissions": _permissions, "free space": _free_space, "running sessions": running,
    "left files": _left_files, "event log": event_log, "json": damaged_json,
}  # fmt: skip


def examine_file(
    path: Path, *, fix: bool = False, quick: bool = False, clock: Clock = system_clock,
    telling: Callable[[Name], None] = lambda check: None,
) -> Examined:
    """Return what is not as it should be with a store, also one that cannot be opened.

    Args:
        path: The store's file.
        fix: Whether to mend what can be mended without loss.
        quick: Whether to leave out what reads every page and every text.
        clock: Gives the present.
        telling: Takes the check that begins.
    """
    try:
        database = open_database(path, write=fix)
    except StoreError as error:
        message, _, way_out = str(error).partition("; ")
        found = Finding("integrity", message, way_out or "restore a backup")
        return Examined(["integrity"], [found])
    with contextlib.closing(database):
        return examine(database, fix=fix and database.read_only is None, quick=quick,
                       clock=clock, telling=telling)
