r"""``--to jsonl``: one line per row of a session.

``{"type": "session" | "message" | "part", "data": row}``; the session first, then each
message followed by its parts, in display order. ``import`` reads this format.
"""

from __future__ import annotations

from collections.abc import Iterator

from store.exports.reading import Row, SessionReading
from store.text.exact_json import encode_for_output


def write_jsonl(reading: SessionReading) -> Iterator[str]:
    """Yield the lines, with their newlines."""
    yield _line("session", reading.session)
    for item in reading.messages:
        yield _line("message", item.message)
        for part in item.parts:
            yield _line("part", part)


def _line(kind: str, row: Row) -> str:
    return encode_for_output({"type": kind, "data": row}) + "\n"
