"""The demo store: sessions of all kinds, made on the spot and always the same.

Ages are relative to the clock; everything else is fixed. The file is one of our own form.
"""

from __future__ import annotations

from pathlib import Path

from store.engine.database import Database, open_database
from store.system.clock import Clock, system_clock

_SESSIONS = f"INSERT INTO chat_sessions VALUES ({','.join('?' * 18)})"
_MESSAGES = f"INSERT INTO chat_messages VALUES ({','.join('?' * 6)})"
_PARTS = f"INSERT INTO chat_parts VALUES ({','.join('?' * 10)})"
_PROMPTS = "INSERT OR IGNORE INTO system_prompts VALUES (?, ?)"


def make_demo(path: Path, clock: Clock = system_clock) -> Path:
    """Make the demo store.

    Args:
        path: The file to make; one that is there is replaced.
        clock: Returns the present as epoch ms; ages count from it.

    Returns:
        The path.
    """
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    open_database(path, create=True).close()
    fill_demo(path, clock)
    return path


def fill_demo(path: Path, clock: Clock = system_clock) -> None:
    """Fill an empty store of our own form, in one transaction.

    Args:
        path: The store, which others may have open.
        clock: Returns the present as epoch ms; ages count from it.
    """
    database = open_database(path)
    try:
        _fill(database, clock())
    finally:
        database.close()


def _fill(database: Database, now: int) -> None:
    from store.demo import api_scenes, retry_loop, site_scenes, text_scenes
    from store.demo.long_scene import long_scene
    from store.demo.originals import write_originals
    from store.demo.rows import digest_of, played

    scenes = (
        *retry_loop.SCENES, *api_scenes.SCENES, *site_scenes.SCENES, *text_scenes.SCENES,
        long_scene(),
    )
    write = database.connection
    # A demo that a crash tears is made again, so nothing waits for the disk.
    write.execute("PRAGMA synchronous = OFF")
    write.execute("BEGIN")
    for player in played(scenes, now):
        write.execute(_SESSIONS, player.session)
        write.executemany(_MESSAGES, player.messages)
        write.executemany(_PARTS, player.parts)
        write_originals(database, player)
        if player.scene.system_prompt:
            prompt = player.scene.system_prompt
            write.execute(_PROMPTS, (digest_of(prompt), prompt))
    write.execute("COMMIT")
