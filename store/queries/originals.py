"""The original records behind a part, a message or a session, and a session's side files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from store.engine.database import Database
from store.errors import NotFound
from store.system.compression import DamagedFrame, unpack_frame
from store.text.stored_json import DamagedJson, loads


def records_of_part(database: Database, part_id: str) -> list[str]:
    """Return the source's records that a part was made of, verbatim, in their order.

    A copy that has none of its own has those of what it was copied from. Bytes that are no
    UTF-8 are shown as U+FFFD. Empty where nothing was kept.
    """
    row = database.connection.execute(
        'SELECT session_id, message_id, "index" FROM chat_parts WHERE id = $1', {"1": part_id}
    ).fetchone()
    if row is None or database.form.name != "own":
        return []
    own_session, message_id, index = row
    for session_id, groups in _owners(database, own_session, message_id):
        # The last group belongs to the message as a whole, not to a part.
        numbers = groups[index] if index < len(groups) - 1 else []
        if numbers:
            return _texts(database, session_id, numbers)
    return []


def records_of_message(database: Database, message_id: str) -> list[str]:
    """Return all records of a message, those of its parts included, each once."""
    row = database.connection.execute(
        "SELECT session_id FROM chat_messages WHERE id = $1", {"1": message_id}
    ).fetchone()
    if row is None or database.form.name != "own":
        return []
    for session_id, groups in _owners(database, row[0], message_id):
        numbers = {number for group in groups for number in group}
        if numbers:
            return _texts(database, session_id, sorted(numbers))
    return []


def record_count(database: Database, session_id: str) -> int:
    """Return how many original records of a session are kept."""
    if database.form.name != "own":
        return 0
    (count,) = database.connection.execute(
        "SELECT coalesce(sum(count), 0) FROM original_records WHERE session_id = $1",
        {"1": session_id},
    ).fetchone()
    return int(count)


def records_of_session(database: Database, session_id: str) -> Iterator[bytes]:
    """Yield every kept record of a session as its source wrote it, in order.

    Those that the source no longer has come last. Blocks that are damaged are left out.
    """
    return (record for _, record in numbered_records(database, session_id))


def numbered_records(database: Database, session_id: str) -> Iterator[tuple[int, bytes]]:
    """Yield the same with the numbers that ``record_refs`` has for them."""
    if database.form.name != "own":
        return
    for first, count, body in database.connection.execute(
        "SELECT first, count, body FROM original_records WHERE session_id = $1 ORDER BY first",
        {"1": session_id},
    ):
        try:
            records = _unpack(count, body)
        except DamagedFrame:
            continue  # Exports then make the record from the rows.
        yield from enumerate(records, first)


def attachment(database: Database, session_id: str, name: str) -> bytes:
    """Return a side file of a session.

    Args:
        database: The store.
        session_id: The session's id.
        name: The file's name.

    Raises:
        NotFound: The store has none of that name.
    """
    row = None
    if database.form.name == "own":
        row = database.connection.execute(
            "SELECT body FROM attachments WHERE session_id = $1 AND name = $2",
            {"1": session_id, "2": name},
        ).fetchone()
    if row is None:
        raise NotFound(f"no file {name} stored for session {session_id}")
    try:
        return unpack_frame(row[0])
    except DamagedFrame as error:
        raise NotFound(f"the stored file {name} is damaged: {error}") from error


def attachments(database: Database, session_id: str) -> list[tuple[str, str, int]]:
    """Return name, media type and size in bytes of a session's side files."""
    if database.form.name != "own":
        return []
    return list(
        database.connection.execute(
            "SELECT name, media_type, size FROM attachments WHERE session_id = $1 ORDER BY name",
            {"1": session_id},
        )
    )


def _owners(
    database: Database, session_id: str, message_id: str
) -> Iterator[tuple[str, list[list[int]]]]:
    """Yield session and record numbers of a message, then of what it was copied from."""
    seen: set[str] = set()
    current: str | None = message_id
    while current is not None and current not in seen:
        seen.add(current)
        yield session_id, _groups(database, current)
        row = database.connection.execute(
            "SELECT o.session_id, o.id FROM chat_messages m JOIN chat_messages o"
            f" ON o.id = {database.form.rare_fact('m', 'inherited_from')} WHERE m.id = $1",
            {"1": current},
        ).fetchone()
        session_id, current = row if row is not None else (session_id, None)


def _groups(database: Database, message_id: str) -> list[list[int]]:
    row = database.connection.execute(
        "SELECT records_json FROM record_refs WHERE message_id = $1", {"1": message_id}
    ).fetchone()
    try:
        groups = [] if row is None else loads(row[0])
    except DamagedJson:
        return []
    return [[number for number in group if type(number) is int] if isinstance(group, list) else []
            for group in groups] if isinstance(groups, list) else []


def _texts(database: Database, session_id: str, numbers: Sequence[int]) -> list[str]:
    found: dict[int, bytes] = {}
    for number in numbers:
        if number in found:
            continue
        row = database.connection.execute(
            "SELECT first, count, body FROM original_records "
            "WHERE session_id = $1 AND first <= $2 ORDER BY first DESC LIMIT 1",
            {"1": session_id, "2": number},
        ).fetchone()
        if row is not None:
            try:
                found.update(enumerate(_unpack(row[1], row[2]), row[0]))
            except DamagedFrame as error:
                found[number] = f"damaged in the store: {error}".encode()
    return [found[number].decode("utf-8", "replace") for number in numbers if number in found]


def _unpack(count: int, body: bytes) -> list[bytes]:
    raw = unpack_frame(body)
    return [raw] if count == 1 else raw.split(b"\n")
