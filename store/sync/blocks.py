"""Original records in compressed blocks, and attachments, as stored in the side tables."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import zstandard

from store.engine.connection import Connection
from store.sources.base.drafts import AttachmentDraft
from store.sync.jsontext import clean
from store.system.compression import unpack_frame

BLOCK_BYTES = 192 * 1024
"""Raw bytes after which a block is closed; showing one record decompresses one block."""
LEVEL = 1
KEPT_FROM = 1 << 40
"""First number of records that the source no longer has, so that a growing session does not
renumber them."""

# One compressor for the process: each takes some megabytes, and creating one costs more
# than compressing a small block. Nothing here runs on two threads at once.
_compressor = zstandard.ZstdCompressor(level=LEVEL)


@dataclass(slots=True)
class Block:
    """Consecutive records of a session, joined by newlines.

    Attributes:
        first: Number of its first record, from 0.
        checksum: CRC-32 of ``raw``.
        raw: The bytes before compression; None once compressed.
        body: The zstd frame; None until compressed.
    """

    first: int
    count: int
    checksum: int
    raw: bytes | None = field(compare=False)
    body: bytes | None = field(compare=False)

    def compressed(self) -> bytes:
        """Return the zstd frame."""
        if self.body is None:
            assert self.raw is not None
            self.body = _compressor.compress(self.raw)
            self.raw = None
        return self.body


    def records(self) -> list[bytes]:
        """Return the block's records."""
        if self.raw is None:
            assert self.body is not None
            return unpacked(self.count, self.body)
        return [self.raw] if self.count == 1 else self.raw.split(b"\n")


def packed(raw: bytes) -> bytes:
    """Return bytes compressed."""
    return _compressor.compress(raw)


def unpacked(count: int, body: bytes) -> list[bytes]:
    """Return the records of a stored block."""
    raw = unpack_frame(body)
    return [raw] if count == 1 else raw.split(b"\n")


@dataclass(slots=True)
class Attachment:
    """A side file, compressed; ``size`` is the uncompressed bytes."""

    name: str
    media_type: str
    size: int
    body: bytes


def cut_blocks(records: Sequence[bytes], *, compress: bool, start: int = 0) -> list[Block]:
    """Return records in blocks, cut at the same places whether read at once or in steps.

    Args:
        records: The records, starting at the first one of a block.
        compress: Whether to compress the blocks now.
        start: The number of the first record.
    """
    blocks = []
    for first, group in _groups(records):
        raw = b"\n".join(group)
        block = Block(start + first, len(group), zlib.crc32(raw), raw, None)
        if compress:
            block.compressed()
        blocks.append(block)
    return blocks


def _groups(records: Sequence[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield groups by size; a record that contains a newline gets a block of its own."""
    group: list[bytes] = []
    first = size = 0
    for number, record in enumerate(records):
        alone = b"\n" in record
        if group and (alone or size >= BLOCK_BYTES):
            yield first, group
            group, first, size = [], number, 0
        group.append(record)
        size += len(record) + 1
        if alone:
            yield first, group
            group, first, size = [], number + 1, 0
    if group:
        yield first, group


def pack_attachment(draft: AttachmentDraft) -> Attachment:
    """Return a side file ready to write."""
    return Attachment(
        clean(draft.name),
        clean(draft.media_type),
        len(draft.body),
        _compressor.compress(draft.body),
    )


def write_blocks(connection: Connection, session_id: str, blocks: list[Block]) -> None:
    """Replace a session's stored blocks, writing only what differs.

    Args:
        connection: In a transaction.
        session_id: The session.
        blocks: All blocks that it is to have.
    """
    stored = {
        first: (count, checksum)
        for first, count, checksum in connection.execute(
            "SELECT first, count, checksum FROM original_records WHERE session_id = ?",
            (session_id,),
        )
    }
    _make_stored(connection, session_id, stored, blocks)


def _make_stored(
    connection: Connection,
    session_id: str,
    stored: Mapping[int, tuple[int, int]],
    blocks: list[Block],
) -> None:
    wanted = {block.first for block in blocks}
    gone = [(session_id, first) for first in stored if first not in wanted]
    if gone:
        connection.executemany(
            "DELETE FROM original_records WHERE session_id = ? AND first = ?", gone
        )
    connection.executemany(
        "INSERT INTO original_records(session_id, first, count, checksum, body) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT(session_id, first) DO UPDATE SET "
        "count = excluded.count, checksum = excluded.checksum, body = excluded.body",
        (
            (session_id, block.first, block.count, block.checksum, block.compressed())
            for block in blocks
            if stored.get(block.first) != (block.count, block.checksum)
        ),
    )


def write_blocks_from(
    connection: Connection, session_id: str, number: int, records: Sequence[bytes]
) -> None:
    """Replace a session's stored records from a number on; earlier ones stay.

    Args:
        connection: In a transaction.
        session_id: The session.
        number: The number of the first record.
        records: The records from that number on.
    """
    row = connection.execute(
        "SELECT first, body FROM original_records WHERE session_id = ? AND first <= ? "
        "ORDER BY first DESC LIMIT 1",
        (session_id, number),
    ).fetchone()
    start, before = number, list[bytes]()
    if row is not None and row[0] < number:
        start = row[0]
        before = unpack_frame(row[1]).split(b"\n")[: number - start]
    blocks = cut_blocks([*before, *records], compress=False, start=start)
    stored = connection.execute(
        "SELECT first, count, checksum FROM original_records WHERE session_id = ? AND first >= ?",
        (session_id, start),
    ).fetchall()
    _make_stored(connection, session_id, {row[0]: row[1:] for row in stored}, blocks)


def write_attachments(
    connection: Connection, session_id: str, attachments: list[Attachment]
) -> bool:
    """Insert or update attachments; those whose file is gone are kept.

    Args:
        connection: In a transaction.
        session_id: The session.
        attachments: Its side files.

    Returns:
        Whether anything was written.
    """
    before = connection.total_changes
    connection.executemany(
        "INSERT INTO attachments(session_id, name, media_type, size, body) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT(session_id, name) DO UPDATE SET "
        "media_type = excluded.media_type, size = excluded.size, body = excluded.body "
        "WHERE media_type <> excluded.media_type OR size <> excluded.size "
        "OR body <> excluded.body",
        ((session_id, item.name, item.media_type, item.size, item.body) for item in attachments),
    )
    return connection.total_changes > before
