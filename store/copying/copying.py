"""Copies sessions from one store to another, verified by count and hash.

Each session is one transaction in the other store, so a copy that was broken off is gone on with
by the same call: what is there already is compared and left.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from store.copying.outgoing import masked
from store.copying.rows import (
    OF_A_SESSION,
    SessionRows,
    fitted,
    hash_of,
    is_listed_only,
    is_taken,
    put,
    read_rows,
    stored_stamps,
    why_not,
)
from store.engine.database import Database
from store.engine.transactions import explained, transaction
from store.errors import Refused, StoreError
from store.sharing.masks import Masking
from store.sync.locking import LOCK_PATIENCE_S
from store.sync.writer import is_forgotten, log_changes, trim_changes
from store.system.clock import Clock, system_clock


@dataclass(slots=True)
class Copied:
    """What a copy has done.

    Attributes:
        total: Sessions that are copied.
        done: Sessions that were looked at.
        copied: Sessions that were written.
        unchanged: Sessions that the other store had as they are.
        messages: Messages and parts of both.
        hashes: The hash of each session's rows, which both stores have now, by id.
        different: Sessions that the other store has with other rows, which were left.
        failed: Sessions that could not be copied, and why.
        stopped: Whether it was stopped before the end.
    """

    total: int = 0
    done: int = 0
    copied: int = 0
    unchanged: int = 0
    messages: int = 0
    hashes: dict[str, str] = field(default_factory=dict)
    different: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the other store has every session as it is here."""
        return not (self.different or self.failed or self.stopped)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "done"}


def copy_sessions(
    source: Database,
    target: Database,
    session_ids: Sequence[str],
    *,
    replace: bool = False,
    masking: Masking | None = None,
    stopped: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Copied], None] = lambda done: None,
    clock: Clock = system_clock,
) -> Copied:
    """Copy sessions to another store, and compare both.

    Args:
        source: The store that has them, of any form and engine.
        target: A Backscroll store, open for writing.
        session_ids: The sessions.
        replace: Whether a session that is there with other rows gets those of the source.
        masking: What is masked in all texts; None for nothing.
        stopped: Called between sessions; True ends the copy.
        on_progress: Called after each session.
        clock: Gives the time for the change log.

    Raises:
        Refused: The other store belongs to another program, or cannot be written.
        StoreError: A store is locked for long, full, or its server is gone: what was copied stays.
    """
    if target.form.name != "own":
        raise Refused(f"{target.name} belongs to another program: nothing is copied into it")
    if target.read_only:
        raise Refused(target.read_only)
    found = Copied(total=len(session_ids))
    on_progress(found)
    try:
        for session_id in session_ids:
            if stopped():
                found.stopped = True
                break
            _copy(source, target, session_id, found, replace, masking, clock)
            found.done += 1
            on_progress(found)
        if found.copied:
            with transaction(target.connection, wait_s=LOCK_PATIENCE_S,
                             begin=target.beginning_beside_recorders()):  # fmt: skip
                trim_changes(target)
    except sqlite3.Error as error:
        raise explained(error, target.path) from error
    return found


def _copy(
    source: Database,
    target: Database,
    session_id: str,
    found: Copied,
    replace: bool,
    masking: Masking | None,
    clock: Clock,
) -> None:
    rows = read_rows(source, session_id)
    if rows is None:
        found.failed[session_id] = "it is gone from the store"
        return
    if is_listed_only(rows):
        found.failed[session_id] = "its file was not read yet; run `backscroll sync` first"
        return
    if masking is not None:
        rows = masked(rows, masking)
    rows = fitted(target, rows)
    try:
        with transaction(target.connection, wait_s=LOCK_PATIENCE_S,
                         begin=target.beginning_beside_recorders()):  # fmt: skip
            target.lock_session(rows.id)
            written = _write(target, rows, replace, clock)
    except (StoreError, *OF_A_SESSION) as error:
        found.failed[session_id] = why_not(error)
        return
    if written is None:
        found.different.append(session_id)
        return
    found.hashes[session_id] = hash_of(rows.stamps())
    found.messages += rows.count
    found.copied += written
    found.unchanged += not written


def _write(target: Database, rows: SessionRows, replace: bool, clock: Clock) -> bool | None:
    """Write a session; return whether anything was to write, None where other rows are there."""
    before = stored_stamps(target, rows.id)
    if before is not None and hash_of(before) == hash_of(rows.stamps()):
        return False
    if before is not None and not replace:
        return None
    if is_taken(target, rows):
        raise StoreError("the other store has its messages in another session")
    if is_forgotten(target, rows.id):
        raise StoreError("it was forgotten there")
    changed = put(target, rows, before)
    log_changes(target, rows.id, () if before is None else changed, clock)
    return True
