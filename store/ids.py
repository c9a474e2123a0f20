"""Ids of the contract: ``ses_``, ``msg_`` and ``prt_``, 30 characters each.

An id is a prefix, a 12-hex stamp and 14 base62 characters. The stamp is
``milliseconds * 4096 + counter`` cut to 48 bits, so it wraps every 2**36 ms (the last
time on 2026-08-14): ids are never compared, sorted or paged by. Order lives in
``(updated_at, id)`` of sessions, ``(created_at, id)`` of messages and ``"index"`` of parts.

``hashlib`` and ``secrets`` load OpenSSL, 3.6 MB that a browser that only reads does without, so
they are imported where an id is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from store.system.clock import Clock, system_clock

Prefix = Literal["ses", "msg", "prt"]

IDS_PER_MILLISECOND = 4096
STAMP_MASK = (1 << 48) - 1
TAIL_LENGTH = 14
ID_SHAPE = r"^[A-Za-z0-9_][A-Za-z0-9_.:~@=+-]{0,199}$"
"""What an id may be that comes from elsewhere: no path, no option, no control character."""
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# Two digits at a time, of numbers that fit a machine word: an import of 200,000 messages
# spends its time elsewhere.
_PAIRS = tuple(low + high for high in _BASE62 for low in _BASE62)
_FOUR_DIGITS = 3844 * 3844


def _base62(number: int) -> str:
    number, a = divmod(number, _FOUR_DIGITS)
    number, b = divmod(number, _FOUR_DIGITS)
    number, c = divmod(number, _FOUR_DIGITS)
    p = _PAIRS
    return (
        f"{p[a % 3844]}{p[a // 3844]}{p[b % 3844]}{p[b // 3844]}"
        f"{p[c % 3844]}{p[c // 3844]}{p[number % 3844]}"
    )


def _assemble(prefix: Prefix, ticks: int, tail: int) -> str:
    return f"{prefix}_{ticks & STAMP_MASK:012x}{_base62(tail)}"


class IdMinter:
    """Mints ids whose stamps never repeat or step back within one process.

    Past 4,096 ids in one millisecond the next millisecond is borrowed; a clock that
    steps back is ignored until it catches up.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        """Start a minter.

        Args:
            clock: Returns the present as epoch ms.
        """
        self._clock = clock
        self._lock = threading.Lock()
        self._ticks = -1

    def mint(self, prefix: Prefix) -> str:
        """Return a new id of 30 characters with the given prefix."""
        import secrets

        with self._lock:
            self._ticks = max(self._clock() * IDS_PER_MILLISECOND, self._ticks + 1)
            ticks = self._ticks
        return _assemble(prefix, ticks, secrets.randbits(84))

    def reserve(self, count: int) -> int:
        """Take ``count`` ticks in a row for ids that SQL assembles; returns the first.

        The block never spans the wrap of the stamp, so that the stamps of rows that share
        a ``created_at`` keep their order.
        """
        with self._lock:
            first = max(self._clock() * IDS_PER_MILLISECOND, self._ticks + 1)
            if (first & STAMP_MASK) + count > STAMP_MASK:
                first = (first | STAMP_MASK) + 1
            self._ticks = first + count - 1
        return first


def derived_id(prefix: Prefix, at: int, position: int, *names: str) -> str:
    """Return the id that an imported row has on every machine.

    Args:
        prefix: The namespace of the id.
        at: The row's ``created_at`` in epoch ms; it fills the stamp.
        position: The row's position among the rows of the same millisecond, 0 to 4095.
        names: What identifies the row at its source: kind, session id, row id.
    """
    ticks = at * IDS_PER_MILLISECOND + position
    return f"{prefix}_{ticks & STAMP_MASK:012x}{derived_tail(*names)}"


def derived_tail(*names: str) -> str:
    """Return the last 14 characters of ``derived_id``, which the names alone decide."""
    return derived_tails(*names[:-1])(names[-1])


def derived_tails(*names: str) -> Callable[[str], str]:
    """Return a function from the last name of rows to their ``derived_tail``.

    Args:
        names: The names that all of the rows have before it.
    """
    import hashlib

    begin = "".join(f"{name}\0" for name in names).encode("utf-8", "surrogatepass")
    begun = hashlib.blake2b(begin, digest_size=11).copy

    def tail(name: str) -> str:
        digest = begun()
        digest.update(name.encode("utf-8", "surrogatepass"))
        return _base62(int.from_bytes(digest.digest(), "big"))

    return tail


def derived_session_id(kind: str, source_id: str) -> str:
    """Return the id of an imported session, from its source's kind and its id there.

    Its stamp comes from the names as well: the start time of a session may become
    known late, its id must not change then.
    """
    import hashlib

    names = f"{kind}\0{source_id}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(names, digest_size=17).digest()
    stamp = int.from_bytes(digest[:6], "big")
    return f"ses_{stamp:012x}{_base62(int.from_bytes(digest[6:], 'big'))}"
