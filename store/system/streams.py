"""The one writer of standard output and standard error.

``guard_streams`` replaces both streams by ones through which only harmless text passes,
whoever writes: ``print``, argparse, a warning, a traceback. Escape sequences reach a
terminal only as ``Painted`` text, whose content is neutral and whose sequences are ours.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import TextIO, cast

from store.text.masking import masked
from store.text.neutral import neutral

NAMES = {"stdin": "standard input", "stdout": "standard output", "stderr": "standard error"}


class Painted(str):
    """Neutral text with our own escape sequences, which the writer passes on unchanged.

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

    def __init__(
        self, raw: TextIO, name: str, translate: Callable[[str], str] | None = None
    ) -> None:
        """Write to a stream.

        Args:
            raw: The stream that lies beneath.
            name: What errors call it.
            translate: Replaces what the terminal cannot show, ahead of the escapes for that.
        """
        super().__init__()
        self._raw, self._name, self._translate = raw, name, translate
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
        shown = text if type(text) is Painted else self._harmless(text)
        if self._translate is not None:
            shown = self._translate(shown)
        try:
            self._raw.write(shown)
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


def speaks_unicode(environment: dict[str, str] | None = None) -> bool:
    """Say whether the locale's character set is Unicode.

    Args:
        environment: Where the variables are looked up; the process's by default.
    """
    variables = os.environ if environment is None else environment
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = variables.get(name)
        if name == "LC_CTYPE" and environment is None and _python_set_it():
            continue
        if value:
            return value.upper().split(".")[0] not in ("C", "POSIX") or "UTF" in value.upper()
    return True


def _python_set_it() -> bool:
    """Say whether ``LC_CTYPE`` is Python's own: it makes UTF-8 of the locale C (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as given:
            return not any(line.startswith(b"LC_CTYPE=") for line in given.read().split(b"\0"))
    except OSError:
        return False


def guard_streams(plain: Callable[[str], str] | None = None) -> None:
    """Replace ``sys.stdout`` and ``sys.stderr``; doing it again changes nothing.

    Pipes get UTF-8; terminals show what their encoding lacks as an escape. Standard streams
    that are closed become the null device, so that no file that is opened later takes
    their place.

    Args:
        plain: Replaces our own glyphs by ASCII, for terminals without Unicode.
    """
    _occupy_closed()
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if isinstance(stream, SafeStream):
            continue
        translate = None
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                # Without Unicode, a byte of a UTF-8 character may be a C1 control.
                encoding, translate = (None, None) if speaks_unicode() else ("ascii", plain)
                stream.reconfigure(encoding=encoding, errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        setattr(sys, name, cast(TextIO, SafeStream(stream, NAMES[name], translate)))
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
