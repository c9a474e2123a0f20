"""The graph of a chat of Cursor's command line: blobs by their hash, and roots that list them.

Source: the Cursor format page, section 3. A root is protobuf: field 1 names the messages in
order, 5 says how full the context is, 9 is the workspace, 26 a time. A blob that begins with
``{`` is a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from store.sources.base.uris import path_of_uri
from store.sources.base.values import epoch_ms

_ID_BYTES = 32
_MESSAGES, _CONTEXT, _WORKSPACE, _TIME = 1, 5, 9, 26
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}


@dataclass(slots=True)
class Root:
    """What a root says.

    Attributes:
        messages: The ids of the messages, in order.
        context: Tokens that are in the context now; None where it does not say.
        workspace: The folder.
        at: When it was written, epoch ms.
    """

    messages: list[str] = field(default_factory=list)
    context: int | None = None
    workspace: str | None = None
    at: int | None = None


def root_of(data: bytes) -> Root | None:
    """Return what a blob says as a root; None where it is none."""
    root = Root()
    try:
        for number, value in _fields(data):
            if number == _MESSAGES:
                if not isinstance(value, bytes) or len(value) != _ID_BYTES:
                    return None
                root.messages.append(value.hex())
            elif number == _CONTEXT and isinstance(value, bytes):
                root.context = _total(value)
            elif number == _WORKSPACE and isinstance(value, bytes):
                text = value.decode("utf-8", "replace")
                root.workspace = path_of_uri(text) or text or None
            elif number == _TIME and isinstance(value, int):
                root.at = epoch_ms(value)
    except ValueError:
        return None
    return root if root.messages else None


def _total(context: bytes) -> int | None:
    """Return how many tokens a breakdown of the context comes to."""
    for number, value in _fields(context):
        if number == 1 and isinstance(value, bytes):
            totals = [one for inner, one in _fields(value) if inner == 1]
            return totals[0] if totals and isinstance(totals[0], int) else None
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protobuf message: their numbers, and whole numbers or bytes.

    Raises:
        ValueError: It is none.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, form = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("no field")
        if form == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        length, at = _varint(data, at) if form == _BYTES else (_FIXED.get(form, -1), at)
        if length < 0 or at + length > len(data):
            raise ValueError("no length")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
    raise ValueError("no number")


@dataclass(slots=True)
class Listed:
    """A message in the order of the chat.

    Attributes:
        id: Its blob.
        at: When the first root that names it was written, epoch ms; None where that is not known.
        now: Whether the newest root has it.
    """

    id: str
    at: int | None
    now: bool


def history(roots: Sequence[Root], newest: Root) -> list[Listed]:
    """Return all messages that any root names, in the order in which they came.

    Args:
        roots: All roots in the order in which they were written.
        newest: The one that the chat is now.
    """
    found: list[Listed] = []
    had: Counter[str] = Counter()
    for root in [*(one for one in roots if one is not newest), newest]:
        here: Counter[str] = Counter()
        for name in root.messages:
            here[name] += 1
            if here[name] > had[name]:
                found.append(Listed(name, root.at, now=False))
        had |= here
    left = Counter(newest.messages)
    for one in reversed(found):
        if left[one.id] > 0:
            left[one.id] -= 1
            one.now = True
    return found


def workspace_of(text: str) -> str | None:
    """Return the folder that the context in a message names."""
    _, found, rest = text.partition("Workspace Path:")
    return rest.partition("\n")[0].strip() or None if found else None
