"""Bounds for what is decompressed: a few kilobytes can stand for gigabytes."""

from __future__ import annotations

from store.errors import StoreError

LARGEST = 256 << 20
"""Bytes of the largest record block or side file of a store; sync writes none as large."""
_RATIO = 200
_LEAST = 64 << 20
_MOST = 1 << 30


class DamagedFrame(StoreError):
    """Compressed bytes of a store that cannot be unpacked; the message says why."""


def unpacked_limit(size: int) -> int:
    """Return how many bytes a source's compressed file may unpack to.

    Transcripts shrink to a tenth or a thirtieth of their size, never to a 200th.

    Args:
        size: Bytes of the file, or of what was read of it.
    """
    return max(_LEAST, min(_MOST, size * _RATIO))


def unpack_frame(body: bytes) -> bytes:
    """Return what a zstd frame of a store holds.

    Raises:
        DamagedFrame: It is no zstd frame, is cut off, or holds more than ``LARGEST``.
    """
    # Imported here: the start path reads nothing that is compressed.
    import zstandard

    try:
        if zstandard.frame_content_size(body) > LARGEST:
            raise DamagedFrame(f"it unpacks to more than {LARGEST >> 20} MiB")
        return zstandard.ZstdDecompressor().decompress(body, max_output_size=LARGEST)
    except (zstandard.ZstdError, TypeError, MemoryError) as error:
        raise DamagedFrame(f"it is no zstd frame ({error})") from error
