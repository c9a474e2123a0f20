"""Masks JSON texts, records and files of a session, so that nothing in them is passed over.

A text is sent as it is only where nothing in it is masked, in whatever bytes it is written.
"""

from __future__ import annotations

import json
import re
from os.path import commonprefix
from typing import Any

import orjson

from store.sharing.masks import Masks
from store.sync.jsontext import json_text
from store.text.exact_json import NotJson, decode

_MARKED = {b"\xff\xfe\0\0": "utf-32-le", b"\0\0\xfe\xff": "utf-32-be",
           b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}  # fmt: skip
"""How a text is encoded, by the byte order mark that it begins with."""
_LOOKED_AT = 8192
"""Bytes in which a file that is no text has a NUL, as git decides it."""
_READABLE = re.compile(rb"[\t\n\r -~]{20,}|[\w.@+:=/!-]{12,}")
"""Text in a file that is none. In 500 MB of a compressed picture, chance makes about one address
of so many characters."""


def masked_json(masks: Masks, text: str) -> str:
    """Return JSON with its texts masked; the text as it is where nothing in it is masked."""
    try:
        value = decode(text)
    except NotJson:
        return masks.mask(text)
    found = masks.mask_json(value)
    return text if found == value and not _is_hidden_in(masks, text, value) else json_text(found)


def _is_hidden_in(masks: Masks, text: str, value: Any) -> bool:
    """Return whether JSON has something to mask that its value lacks, as a name comes again."""
    try:
        if orjson.dumps(value) == text.encode():
            return False  # As most of it is written: each name comes once.
    except (TypeError, UnicodeEncodeError):
        pass
    hidden = False

    def object_of(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal hidden
        found = dict(members)
        if len(found) < len(members):
            hidden = hidden or any(masks.mask_json({name: one}) != {name: one}
                                   for name, one in members if found[name] is not one)
        return found

    json.loads(text, object_pairs_hook=object_of)
    return hidden


def masked_bytes(masks: Masks, raw: bytes) -> bytes:
    """Return a record or file with its texts masked, in the encoding that it has.

    Of what is no text, such as an image, only the readable pieces are looked at. Such a file stays
    as long as it is, as lengths and places are written in it.
    """
    mark, encoding = _encoding_of(raw)
    if encoding is None:
        return _READABLE.sub(
            lambda found: _as_long(found[0], masks.mask(found[0].decode()).encode()), raw)
    errors = "surrogateescape" if encoding == "utf-8" else "surrogatepass"
    try:
        text = raw[len(mark) :].decode(encoding, errors)
    except UnicodeDecodeError:  # It was cut in the middle of a character.
        text = raw[len(mark) :].decode(encoding, "replace")
    found = masked_json(masks, text)
    return raw if found == text else mark + found.encode(encoding, errors)


def _as_long(raw: bytes, masked: bytes) -> bytes:
    """Return a masked piece of a file with what differs cut or filled up to its former length."""
    begin = len(commonprefix((raw, masked)))
    end = len(commonprefix((raw[begin:][::-1], masked[begin:][::-1])))
    room = len(raw) - begin - end
    words = masked[begin : len(masked) - end][:room]
    return raw[:begin] + words.ljust(room) + raw[len(raw) - end :]


def _encoding_of(raw: bytes) -> tuple[bytes, str | None]:
    """Return the byte order mark of a text and its encoding; None where it is no text."""
    for mark, encoding in _MARKED.items():
        if raw.startswith(mark):
            return mark, encoding
    head = raw[:_LOOKED_AT]
    if b"\0" not in head:
        return b"", "utf-8"
    # Every other byte of English in UTF-16 is 0.
    even, odd = head[::2], head[1::2]
    if 2 * odd.count(0) > len(odd) and not even.count(0):
        return b"", "utf-16-le"
    if 2 * even.count(0) > len(even) and not odd.count(0):
        return b"", "utf-16-be"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return b"", None
    return b"", "utf-8"
