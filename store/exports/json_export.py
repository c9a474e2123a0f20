"""``--to json``: one document with every row of a session.

``{"session": row, "messages": [{"message": row, "parts": [row, ...]}, ...]}``; rows by
column name, JSON columns decoded and named without ``_json``.
"""

from __future__ import annotations

from collections.abc import Iterator

from store.exports.reading import SessionReading
from store.text.exact_json import encode_for_output


def write_json(reading: SessionReading) -> Iterator[str]:
    """Yield the document in pieces, one line per message."""
    yield f'{{"session":{encode_for_output(reading.session)},"messages":['
    between = "\n"
    for item in reading.messages:
        yield between + encode_for_output({"message": item.message, "parts": item.parts})
        between = ",\n"
    yield "\n]}\n" if between != "\n" else "]}\n"
