"""Size limits for decompression: a few kilobytes can expand to gigabytes."""

from __future__ import annotations

from store.errors import StoreError

LARGEST = 256 << 20
"""Most bytes of an unpacked record block or side file; sync writes none that large."""
_RATIO = 200
_LEAST = 64 << 20
_MOST = 1 << 30
_STEP = 1 << 20


class DamagedFrame(StoreError):
    """Compressed bytes in a store cannot be unpacked; the message says why."""


def unpacked_limit(size: int) -> int:
    """Return how many bytes a source's compressed file may unpack to.

    Transcripts compress to between a tenth and a thirtieth of their size, never to a 200th.

    Args:
        size: Bytes of the file, or of the part that was read.
    """
    return max(_LEAST, min(_MOST, size * _RATIO))


def unpack_stream(body: bytes) -> bytes:
    """Return the unpacked content of a source's zstd frame, which need not say its size.

    Raises:
        DamagedFrame: It is no zstd frame, or unpacks to more than ``unpacked_limit`` allows.
    """
    import zstandard

    limit, found = unpacked_limit(len(body)), bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(body) as reader:
            while part := reader.read(_STEP):
                found += part
                if len(found) > limit:
                    raise DamagedFrame(f"it unpacks to more than {limit >> 20} MiB")
    except (zstandard.ZstdError, MemoryError) as error:
        raise DamagedFrame(f"it is not a zstd frame ({error})") from error
    return bytes(found)


def unpack_frame(body: bytes) -> bytes:
    """Return the unpacked content of a zstd frame in a store.

    Raises:
        DamagedFrame: It is not a zstd frame, is truncated, or unpacks to over ``LARGEST``.
    """
    # Imported here: the start path reads nothing compressed.
    import zstandard

    try:
        if zstandard.frame_content_size(body) > LARGEST:
            raise DamagedFrame(f"it unpacks to more than {LARGEST >> 20} MiB")
        return zstandard.ZstdDecompressor().decompress(body, max_output_size=LARGEST)
    except (zstandard.ZstdError, TypeError, MemoryError) as error:
        raise DamagedFrame(f"it is not a zstd frame ({error})") from error
