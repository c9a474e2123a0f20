"""Reads rollout files, compressed ones too."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

import orjson

from store.sources.base.json_lines import CHUNK, LINE_LIMIT, LineError, parse_line
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import mapping
from store.sources.codex.names import DOCUMENT, PACKED
from store.sources.codex.rollout import Rollout
from store.system.paths import open_regular
from store.text.compression import unpacked_limit


def read_rollout(rollout: Rollout, problems: list[Problem]) -> FileStamp | None:
    """Read a rollout from its beginning.

    Args:
        rollout: With nothing read.
        problems: Takes a torn last line, a torn compressed file, or why it cannot be read.

    Returns:
        The file's stamp as of this reading, ``offset`` bytes consumed; None when it could
        not be opened.
    """
    path = rollout.path
    try:
        with open_regular(path) as file:
            stat = os.fstat(file.fileno())
            if path.endswith(PACKED):
                offset = _read_packed(rollout, file, stat.st_size, problems)
            elif path.endswith(DOCUMENT):
                offset = _read_document(rollout, file, stat.st_size, problems)
            else:
                _read_plain(rollout, file, stat.st_size)
                offset = None
    except OSError as error:
        problems.append(Problem(path, 0, error.strerror or str(error)))
        return None
    torn = rollout.finish()
    if torn is not None:
        problems.append(torn)
    end = rollout.offset if offset is None else offset
    return FileStamp(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, end)


def _read_plain(rollout: Rollout, file: io.RawIOBase | BinaryIO, left: int) -> None:
    while left > 0 and (chunk := file.read(min(CHUNK, left))):
        rollout.push(chunk)
        left -= len(chunk)


def _read_document(
    rollout: Rollout, file: io.RawIOBase | BinaryIO, size: int, problems: list[Problem]
) -> int:
    """Read ``{session, items}`` as the lines that it would be; return the bytes that were taken."""
    body = file.read(LINE_LIMIT + 1) or b""
    if len(body) > LINE_LIMIT:
        problems.append(Problem(rollout.path, 0, "file is larger than 64 MiB, skipped"))
        return size
    try:
        data, repaired = parse_line(body)
    except LineError as error:
        problems.append(Problem(rollout.path, 0, str(error)))
        return 0
    if repaired:
        problems.append(Problem(rollout.path, 1, repaired))
    items = data.get("items")
    rows = [mapping(data.get("session")), *(items if isinstance(items, list) else ())]
    rollout.push(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return size


_PIECE = 1024
"""Bytes that are unpacked at once: a block of 3 bytes can stand for 128 KiB."""


def _read_packed(
    rollout: Rollout, file: io.RawIOBase | BinaryIO, size: int, problems: list[Problem]
) -> int:
    """Decompress as far as it goes; return the bytes of the file that were taken."""
    # Imported here: few stores have compressed rollouts.
    import zstandard

    unpacker = zstandard.ZstdDecompressor().decompressobj()
    left, begun, room = size, False, unpacked_limit(size)
    try:
        while left > 0 and (chunk := file.read(min(_PIECE, left))):
            left -= len(chunk)
            while chunk:
                if unpacker.eof:
                    unpacker = zstandard.ZstdDecompressor().decompressobj()
                begun = True
                unpacked = unpacker.decompress(chunk)
                room -= len(unpacked)
                if room < 0:
                    most = unpacked_limit(size) >> 20
                    problems.append(Problem(
                        rollout.path, 0,
                        f"compressed file unpacks to more than {most} MiB; the rest is not read",
                    ))
                    return size
                rollout.push(unpacked)
                chunk = unpacker.unused_data
        if begun and not unpacker.eof:
            problems.append(Problem(rollout.path, 0, "compressed file ends too early"))
    except zstandard.ZstdError as error:
        problems.append(Problem(rollout.path, 0, f"compressed file is damaged: {error}"))
    return size - left
