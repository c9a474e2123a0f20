"""Names each answer of a model, so that copies in other sessions are recognized.

The name is in ``metadata_json.source.answer`` as ``[name, request, words]``: digests of
the API's id of the answer, of its request id (null where the source does not record it), and
of the answer's content. An answer without an API id is named by its time and content,
``[name]``. Equal names are interpreted on reading (``store.queries.shared_answers``), so
that the order in which files are synced does not matter.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from hashlib import blake2b
from struct import Struct
from typing import Any

import orjson

from store.sources.base.drafts import MessageDraft

_SIZE = 9
"""Bytes of a digest; 12 characters."""
_begun = blake2b(digest_size=_SIZE).copy
_NUMBER = re.compile(r"(?:[a-z]{1,12}[-_:]?)?[0-9]{1,6}", re.IGNORECASE)
"""Ids of gateways that number each session's answers from 0 or 1."""
_SIZE_OF = Struct(">Q").pack
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def answer_name(kind: str, message: MessageDraft) -> list[str | None] | None:
    """Return the name of an assistant message's answer; None for other roles.

    Args:
        kind: The source's kind; ids of different agents are never compared.
        message: The message as its source read it.
    """
    if message.role != "assistant":
        return None
    words = _words(message)
    answer = message.answer
    if answer is None:
        return [_digest(kind.encode(), str(message.created_at).encode(), *words)]
    if answer.request is None and _NUMBER.fullmatch(answer.id):
        # Only the time distinguishes two such answers with the same words.
        words.append(str(message.created_at).encode())
    request = None if answer.request is None else _digest(_text(answer.request))
    return [_digest(kind.encode(), _text(answer.id)), request, _digest(*words)]


def _words(message: MessageDraft) -> list[bytes]:
    """Return an answer's texts and tool inputs, without tool outputs."""
    found: list[bytes] = []
    for part in message.parts:
        data = part.data
        if part.tool_call_id is not None:
            found += (_text(part.type), _json(data.get("input")))
        elif isinstance(text := data.get("text"), str):
            found += (_text(part.type), _text(text))
    return found or [_json(message.metadata.get("usage"))]


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=_SORTED)
    except TypeError:
        return _text(repr(value))


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(*values: bytes) -> str:
    digest = _begun()
    for value in values:
        digest.update(_SIZE_OF(len(value)) + value)
    return b2a_base64(digest.digest(), newline=False).translate(_URL_SAFE).decode()
