"""Deletes sessions permanently: later syncs skip them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from store.engine.database import Database
from store.errors import NotFound, Refused, StoreError
from store.sync.links import relink_children
from store.sync.locking import transaction
from store.sync.writer import log_changes, trim_changes
from store.system.clock import Clock, system_clock
from store.system.locations import last_screens


def forget(
    database: Database, session_ids: Iterable[str], *, clock: Clock = system_clock
) -> list[str]:
    """Delete sessions and their subagents permanently and return their ids; forks stay.

    A session that was deleted, and that undo could bring back, can be forgotten too. All text
    is overwritten in the file, its search index and its statistics, and the write-ahead logs are
    truncated unless a reader uses them.

    Args:
        database: The library.
        session_ids: The sessions.
        clock: Gives the time for the change log.

    Returns:
        The ids that were removed, subagents included.

    Raises:
        NotFound: A session is not in the store; nothing is removed then.
        Refused: The file is not a library.
        StoreError: The store cannot be written; or only a file beside it, which the message
            names: the sessions are gone from the store then.
    """
    if database.form.name != "own":
        raise Refused(f"{database.name} belongs to another program: its sessions stay")
    chosen = list(dict.fromkeys(session_ids))
    return forget_chosen(database, lambda: chosen, clock=clock)


def forget_chosen(
    database: Database, choose: Callable[[], list[str]], *, clock: Clock = system_clock
) -> list[str]:
    """Delete the sessions of a library that are chosen in the same transaction, as ``forget``.

    Args:
        database: The library.
        choose: Returns their ids; runs once no other program can write.
        clock: Gives the time for the change log.

    Returns:
        The ids that were removed, subagents included.

    Raises:
        NotFound: A session is not in the store; nothing is removed then.
        StoreError: As ``forget`` raises it.
    """
    if database.server is None:
        database.connection.execute("PRAGMA secure_delete = ON")
    family = _forget(database, choose, clock, alone=database.server is None)
    if family is None:
        family = _forget(database, choose, clock, alone=True)
    if family and database.server is None:
        database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if family:
        take_out(database, family)
    return family or []


def _forget(
    database: Database, choose: Callable[[], list[str]], clock: Clock, *, alone: bool
) -> list[str] | None:
    """Delete sessions in a transaction, and return their ids.

    Args:
        database: The library.
        choose: As in ``forget_chosen``.
        clock: Gives the time for the change log.
        alone: Whether nobody else writes meanwhile. Else recorders of other sessions may, and
            None is returned where that cannot be: they might add events, or begin to use a
            system prompt that is deleted.
    """
    from store.events.log import forget_events, has_events
    from store.verbs.log import drop_kept

    connection = database.connection
    begin = None if alone else database.beginning_beside_recorders()
    family: list[str] = []

    def found() -> list[str]:
        family[:] = _with_subagents(database, choose())
        return [*family, *_children_of(database, family)]

    with transaction(connection, database.path, begin=begin):
        database.lock_sessions(found)
        if not alone and (has_events(database) or _prompts_of(database, family)):
            return None
        now = clock()
        connection.executemany(
            "INSERT INTO forgotten_sessions(session_id, forgotten_at) VALUES (?, ?)"
            " ON CONFLICT DO NOTHING",
            ((session_id, now) for session_id in family),
        )
        _delete_facts(database, family)
        delete_sessions(database, family)
        connection.executemany(
            "DELETE FROM verb_log WHERE session_id = ?", ((one,) for one in family)
        )
        drop_kept(database, family)
        forget_events(database, family, now)
        for session_id in family:
            orphan_children(database, session_id, clock)
            log_changes(database, session_id, (), clock)
        if alone:
            trim_changes(database)
    return family


def _children_of(database: Database, session_ids: list[str]) -> list[str]:
    """Return the sessions that lose their parent with some sessions."""
    return [
        child for session_id in session_ids for (child,) in database.connection.execute(
            "SELECT id FROM chat_sessions WHERE parent_id = $1 UNION"
            " SELECT session_id FROM session_links WHERE parent_id = $1", {"1": session_id}
        ).fetchall()
    ]


def take_out(database: Database, session_ids: Sequence[str]) -> None:
    """Take deleted sessions out of all that is beside the store; call it after the commit.

    That is the search index and the statistics; pictures of screens, which may show them, are
    deleted.

    Raises:
        StoreError: One of these files cannot be written.
    """
    # Imported here: most syncs take nothing out, and these rooms take 20 ms in each process.
    from store.search.index import forgetting as in_index
    from store.stats import forgetting as in_statistics

    _delete_pictures()
    in_statistics.forget(database.path, session_ids)
    in_index.forget(database.path, session_ids)


def _delete_pictures() -> None:
    """Delete the pictures of last screens.

    Raises:
        StoreError: One cannot be deleted.
    """
    folder = last_screens()
    try:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            os.unlink(os.path.join(folder, name))
    except FileNotFoundError:
        pass  # Another process deletes them.
    except OSError as error:
        raise StoreError(
            f"{error.filename} cannot be deleted ({error.strerror}); it is a picture of the last"
            " screen and may show a text that was forgotten: delete it yourself") from error


def _delete_facts(database: Database, session_ids: Sequence[str]) -> None:
    """Delete the facts about sessions, which can contain parts of their text."""
    kind, name = database.form.source_kind("s"), database.form.source_id("s")
    for session_id in session_ids:
        database.connection.execute(
            f"DELETE FROM unit_facts WHERE (kind, session) IN (SELECT {kind}, {name}"
            " FROM chat_sessions s WHERE s.id = ?)",
            (session_id,),
        )


def delete_sessions(database: Database, session_ids: Sequence[str]) -> int:
    """Delete sessions with their messages and parts, within the caller's transaction.

    A later sync may import them again. The caller calls ``take_out`` once the transaction is
    committed.

    Returns:
        How many of them existed.
    """
    connection = database.connection
    digest_of = database.form.fact("m", "system_prompt_digest")
    prompts = _prompts_of(database, session_ids)
    count = 0
    for session_id in session_ids:
        count += connection.execute(
            "DELETE FROM chat_sessions WHERE id = ?", (session_id,)
        ).rowcount
    for digest in prompts:
        connection.execute(
            "DELETE FROM system_prompts WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM "
            f"chat_messages m WHERE {digest_of} = ?)",
            (digest, digest),
        )
    return count


def _prompts_of(database: Database, session_ids: Sequence[str]) -> set[str]:
    """Return the digests of the system prompts that sessions name."""
    digest_of = database.form.fact("m", "system_prompt_digest")
    return {
        row[0]
        for session_id in session_ids
        for row in database.connection.execute(
            f"SELECT DISTINCT {digest_of} FROM chat_messages m WHERE m.session_id = ?",
            (session_id,),
        )
        if row[0] is not None
    }


def _with_subagents(database: Database, session_ids: list[str]) -> list[str]:
    from store.verbs.log import deleted_session

    connection = database.connection
    family = list(session_ids)
    for session_id in session_ids:
        if not connection.execute(
            "SELECT 1 FROM chat_sessions WHERE id = ?", (session_id,)
        ).fetchone():
            kept = deleted_session(database, session_id)
            if not kept:
                raise NotFound(f"no session {session_id}")
            family.extend(one for one in kept if one not in family)
    for parent in family:
        children = connection.execute(
            "SELECT s.id FROM chat_sessions s WHERE s.parent_id = ?"
            f" AND {database.form.fact('s', 'lineage.kind')} = 'subagent' ORDER BY s.id",
            (parent,),
        )
        # The list grows during iteration: subagents have subagents.
        family.extend(child for (child,) in children if child not in family)
    return family


def delete_session(database: Database, session_id: str, clock: Clock) -> list[str]:
    """Delete a session as ``delete_sessions`` does, and note it in the change log.

    Args:
        database: The library, in a transaction.
        session_id: The session.
        clock: Gives the time for the change log.

    Returns:
        The ids of the session and of the children that lost it; none where it did not exist.
    """
    if not delete_sessions(database, [session_id]):
        return []
    log_changes(database, session_id, (), clock)
    return [session_id, *orphan_children(database, session_id, clock)]


def orphan_children(database: Database, session_id: str, clock: Clock) -> list[str]:
    """Remove the parent link of a deleted session's children; return their ids.

    Args:
        database: The library, in a transaction.
        session_id: The deleted session.
        clock: Gives the time for the change log.
    """
    connection = database.connection
    changed = relink_children(connection, session_id, only_pending=False)
    own_forks = connection.execute(
        "SELECT id FROM chat_sessions WHERE parent_id = ?", (session_id,)
    ).fetchall()
    connection.execute(
        "UPDATE chat_sessions SET parent_id = NULL, parent_message_id = NULL WHERE parent_id = ?",
        (session_id,),
    )
    children = list(dict.fromkeys([*changed, *(fork for (fork,) in own_forks)]))
    for child in children:
        log_changes(database, child, (), clock)
    return children
