"""The one writer of standard output and standard error.

``guard_streams`` replaces both streams by ones through which only harmless text passes,
whoever writes: ``print``, argparse, a warning, a traceback. Escape sequences reach a
terminal only as ``Painted`` text, whose content is neutral and whose sequences are ours.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import TextIO, cast

from store.masking import masked
from store.neutral import neutral

NAMES = {"stdin": "standard input", "stdout": "standard output", "stderr": "standard error"}


class Painted(str):
    """Neutral text with escape sequences of ours; the writer passes it on as it is.

    Make one with ``paint`` or ``joined``, which neutralise what they are given.
    """

    __slots__ = ()


def paint(text: str, codes: str = "") -> Painted:
    """Return text, made harmless, in a style.

    Args:
        text: Any text.
        codes: Parameters of an SGR sequence, such as ``"1;31"``; empty for no style.
    """
    text = neutral(text)
    if not codes or not text:
        return Painted(text)
    return Painted("\n".join(f"\x1b[{codes}m{line}\x1b[0m" for line in text.split("\n")))


def joined(pieces: Iterable[str], between: str = "") -> Painted:
    """Join texts; what is not ``Painted`` is made harmless."""
    return Painted(paint(between).join(
        piece if type(piece) is Painted else neutral(piece) for piece in pieces
    ))


def status(text: str) -> Painted:
    """Return text that replaces the line on which the cursor is."""
    return Painted(f"\r\x1b[K{neutral(text)}")


class SafeStream(io.TextIOBase):
    """A text stream that writes everything but ``Painted`` text through ``neutral``.

    Standard error, which says what a user did wrong, hides passwords as well.

    A write that fails names the stream: its ``OSError`` has ``standard output`` as filename.
    """

    def __init__(self, raw: TextIO, name: str) -> None:
        """Write to a stream.

        Args:
            raw: The stream that lies beneath.
            name: What errors call it.
        """
        super().__init__()
        self._raw, self._name = raw, name
        self._hides = name == NAMES["stderr"]

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream beneath."""
        return self._raw.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """What the stream beneath does with what its encoding lacks."""
        return self._raw.errors

    def write(self, text: str) -> int:
        """Write text; return how many characters were given."""
        try:
            self._raw.write(text if type(text) is Painted else self._harmless(text))
        except OSError as error:
            raise self._named(error) from None
        return len(text)

    def _harmless(self, text: str) -> str:
        return masked(neutral(text)) if self._hides else neutral(text)

    def flush(self) -> None:
        """Hand on what is buffered."""
        try:
            self._raw.flush()
        except OSError as error:
            raise self._named(error) from None

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, self._name)

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Say whether the stream beneath is a terminal."""
        return self._raw.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream beneath."""
        return self._raw.fileno()


def guard_streams() -> None:
    """Replace ``sys.stdout`` and ``sys.stderr``; doing it again changes nothing.

    Pipes get UTF-8; terminals show what their encoding lacks as an escape. Standard streams
    that are closed become the null device, so that no file that is opened later takes
    their place.
    """
    _occupy_closed()
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if isinstance(stream, SafeStream):
            continue
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        setattr(sys, name, cast(TextIO, SafeStream(stream, NAMES[name])))
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115


def _occupy_closed() -> None:
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is taken, which is this one.
            os.open(os.devnull, os.O_RDWR)


def silence_streams() -> None:
    """Send the rest of the output nowhere, so that the end of the program says nothing of it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
