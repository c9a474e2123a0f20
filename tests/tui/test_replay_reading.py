"""Reading a session for its replay: in pieces, and what was written of it later."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.queries.sessions import get
from store.queries.transcript import Keyset
from store.replay.reading import timed_page
from store.store import Store
from tests.store.making import add_message, add_part, add_session, contract
from tests.tui.seeded import SESSION, START, long_talk, make_store, message_id
from tui.replay import reading
from tui.replay.document import ReplayDocument
from tui.replay.reading import SessionReading
from tui.transcript.item import Setting


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Keyset | None]:
    """Pages of two messages; what each was asked for with."""
    seen: list[Keyset | None] = []

    def page(db: Database, session_id: str, after: Keyset | None, limit: int) -> Any:
        seen.append(after)
        return timed_page(db, session_id, after, limit)

    monkeypatch.setattr(reading, "timed_page", page)
    for name, value in (("PAGE", 2), ("GROWTH", 2), ("BEFORE", 2), ("AFTER", 2)):
        monkeypatch.setattr(reading, name, value)
    return seen


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(make_store(tmp_path / "s.db", long_talk(9))) as store:
        yield store


async def reading_of(store: Store, session_id: str = SESSION) -> SessionReading:
    row = await store.read(get, session_id)
    assert row is not None
    return SessionReading(store, row, lambda: START, lambda: Setting(80, 80))


async def renewed(found: SessionReading) -> ReplayDocument | None:
    row = await found.store.read(get, found.row.id)
    assert row is not None
    piece = await found.renewed(row)
    return piece and piece.document


def shape(document: ReplayDocument) -> list[object]:
    """What a document would show, and when."""
    skeleton, timeline = document.recording
    return [skeleton.message_ids, list(skeleton.flags), list(skeleton.index), list(skeleton.sizes),
            list(skeleton.states), list(skeleton.turns), list(timeline.starts),
            list(timeline.ends), list(timeline.moments), timeline.rewinds]


async def whole(store: Store, session_id: str = SESSION) -> list[object]:
    found = await reading_of(store, session_id)
    return shape([piece async for piece in found.pieces(None) if piece][-1].document)


async def test_the_first_messages_come_at_once(store: Store, asked: list[Keyset | None]) -> None:
    pieces = (await reading_of(store)).pieces(None)
    first = await anext(pieces)
    assert first is not None and first.left is not None and first.left[:2] == (2, 18)
    assert asked == [None] and first.document.recording.skeleton.message_ids == [
        message_id(0), message_id(1)]
    later = [piece.left for piece in [one async for one in pieces] if piece]
    assert [left and left.done for left in later] == [4, 8, 16, None]
    assert len(asked) == 10


async def test_a_message_to_begin_at_comes_at_once(
    store: Store, asked: list[Keyset | None]
) -> None:
    pieces = (await reading_of(store)).pieces(message_id(13))
    first = await anext(pieces)
    assert first is not None and first.is_window and len(asked) == 1
    assert first.document.timeline.begin_of(message_id(13)) is not None
    assert first.document.recording.skeleton.message_ids == [message_id(n) for n in range(11, 15)]
    later = [piece async for piece in pieces if piece]
    assert [piece.is_window for piece in later] == [False] * len(later)
    assert all(piece.document.timeline.begin_of(message_id(13)) for piece in later)


def write(store: Store, *statements: str) -> None:
    database = open_database(store.path)
    for statement in statements:
        database.connection.execute(statement)
    database.close()


async def test_only_what_was_written_is_read_again(
    store: Store, asked: list[Keyset | None]
) -> None:
    found = await reading_of(store)
    assert [piece async for piece in found.pieces(None)]
    assert await renewed(found) is None
    changes = "INSERT INTO changes(changed_at, session_id, message_id) VALUES"
    writes = (
        (f"UPDATE chat_parts SET data_json = '{{}}' WHERE message_id = '{message_id(17)}'",
         f"{changes} (1, '{SESSION}', '{message_id(17)}')"),
        (f"INSERT INTO chat_messages VALUES ('msg_new', '{SESSION}', 'user', '{{}}', {START * 2},"
         " 1)", f"{changes} (1, '{SESSION}', 'msg_new')"),
        (f"UPDATE chat_messages SET metadata_json = '{{\"hidden_at\":{START + 1}}}'"
         f" WHERE id = '{message_id(16)}'", f"{changes} (1, '{SESSION}', '{message_id(16)}')"),
        (f"UPDATE chat_messages SET metadata_json = '{{\"queued_at\":{START + 1}}}'"
         f" WHERE id = '{message_id(17)}'", f"{changes} (1, '{SESSION}', '{message_id(17)}')"),
        (f"UPDATE chat_messages SET metadata_json = '{{}}'"
         f" WHERE id = '{message_id(17)}'", f"{changes} (1, '{SESSION}', '{message_id(17)}')"),
        (f"DELETE FROM chat_messages WHERE id = '{message_id(15)}'",
         f"{changes} (1, '{SESSION}', '{message_id(15)}')"),
    )  # fmt: skip
    for statements in writes:
        asked.clear()
        write(store, *statements)
        document = await renewed(found)
        assert document is not None and len(asked) <= 4 and None not in asked
        assert shape(document) == await whole(store), statements


async def test_what_logs_no_changes_is_found_by_its_time_or_read_whole(
    tmp_path: Path, asked: list[Keyset | None]
) -> None:
    path = contract(tmp_path / "host.db")
    for connection in opened(path):
        add_session(connection, "ses_1", START)
        for number in range(9):
            add_message(connection, "ses_1", f"m{number}", START + number)
            add_part(connection, "ses_1", f"m{number}", f"said {number}", 0,
                     updated_at=START + number)
    async with Store.open(path) as store:
        found = await reading_of(store, "ses_1")
        assert [piece async for piece in found.pieces(None)]
        for statement, is_whole in (
            (f"UPDATE chat_parts SET updated_at = {START + 99} WHERE message_id = 'm8'", False),
            ("DELETE FROM chat_messages WHERE id = 'm2'", True),
        ):
            asked.clear()
            for connection in opened(path):
                connection.execute(statement)
            document = await renewed(found)
            assert document is not None and (None in asked) == is_whole
            assert shape(document) == await whole(store, "ses_1")


def opened(path: Path) -> Iterator[Any]:
    import sqlite3

    connection = sqlite3.connect(path)
    yield connection
    connection.commit()
    connection.close()
