"""The only writer of standard output and standard error.

``guard_streams`` replaces both streams by ones that neutralise all text, whether it comes
from ``print``, argparse, a warning or a traceback. Escape sequences reach a terminal only in
``Painted`` text, whose content is neutral and whose sequences come from this program.
"""

from __future__ import annotations

import io
import os
import sys

from store.text.neutral import neutral

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TextIO

NAMES = {"stdin": "standard input", "stdout": "standard output", "stderr": "standard error"}

ERASED_FROM = 13
"""Erasing so many blanks, and moving behind them, takes fewer bytes than the blanks."""
ALTERNATE_SCREEN = "\x1b[?1049h"
"""Switches to the alternate screen, which many terminals clear on it, also when they show it."""


def erases_in_colour(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal erases with the selected colour; GNU screen does not."""
    name = environment.get("TERM", "")
    if name.startswith("screen"):
        return "TMUX" in environment
    return "STY" not in environment and name.startswith((
        "xterm", "tmux", "rxvt", "alacritty", "foot", "kitty", "wezterm", "ghostty", "konsole",
        "vte", "gnome", "st-", "iterm", "contour", "linux"))


class Painted(str):
    """Neutral text with this program's escape sequences, which is written unchanged.

    Made by ``paint`` or ``joined``, which neutralise their input.
    """

    __slots__ = ()


def paint(text: str, codes: str = "") -> Painted:
    """Return text, neutralised, in a style.

    Args:
        text: Any text.
        codes: Parameters of an SGR sequence, such as ``"1;31"``; empty for no style.
    """
    text = neutral(text)
    if not codes or not text:
        return Painted(text)
    if "\n" in text:
        text = text.replace("\n", f"\x1b[0m\n\x1b[{codes}m")
    return Painted(f"\x1b[{codes}m{text}\x1b[0m")


def erased(cells: int, codes: str) -> Painted:
    """Return what erases some cells with the ground of a style, and moves behind them.

    Args:
        cells: How many.
        codes: Parameters of an SGR sequence.
    """
    return Painted(f"\x1b[{codes}m\x1b[{cells}X\x1b[{cells}C\x1b[0m")


def joined(pieces: Iterable[str], between: str = "") -> Painted:
    """Return joined texts; those that are not ``Painted`` are neutralised."""
    return Painted(paint(between).join(
        piece if type(piece) is Painted else neutral(piece) for piece in pieces
    ))


def status(text: str) -> Painted:
    """Return text that replaces the cursor's line."""
    return Painted(f"\r\x1b[K{neutral(text)}")


def at_column(column: int) -> Painted:
    """Return text that moves the cursor to a column of its row, the first one being 0."""
    return Painted(f"\x1b[{int(column) + 1}G")


def picture(rows: Iterable[Iterable[str]]) -> Painted:
    """Return text that shows a picture in the alternate screen, whole at once.

    Args:
        rows: From the top, each as its pieces; what is not ``Painted`` is neutralised.
    """
    drawn = "".join(f"\x1b[{at};1H{_in_one(joined(row))}" for at, row in enumerate(rows, start=1))
    return Painted(f"\x1b[?2026h{ALTERNATE_SCREEN}\x1b[?25l{drawn}\x1b[?2026l")


def _in_one(row: str) -> str:
    """Return a row whose styles reset the one before as they begin."""
    for codes in ("1;", "38;", "48;"):
        row = row.replace(f"\x1b[0m\x1b[{codes}", f"\x1b[0;{codes}")
    return row


class SafeStream(io.TextIOBase):
    """A text stream that neutralises everything except ``Painted`` text.

    On standard error, passwords are masked too. The ``OSError`` of a failed write has the
    stream's name, such as ``standard output``, as its filename.
    """

    def __init__(
        self, raw: TextIO, name: str, translate: Callable[[str], str] | None = None
    ) -> None:
        """Wrap a stream.

        Args:
            raw: The underlying stream.
            name: Its name in errors.
            translate: Replaces characters that the terminal cannot show, before they would
                be escaped.
        """
        super().__init__()
        self._raw, self._name, self._translate = raw, name, translate
        self._hides = name == NAMES["stderr"]

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the underlying stream."""
        return self._raw.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """The error handler of the underlying stream's encoding."""
        return self._raw.errors

    def write(self, text: str) -> int:
        """Write text; return its number of characters."""
        shown = text if type(text) is Painted else self._harmless(text)
        if self._translate is not None:
            shown = self._translate(shown)
        try:
            self._raw.write(shown)
        except OSError as error:
            raise self._named(error) from None
        return len(text)

    def _harmless(self, text: str) -> str:
        if not self._hides:
            return neutral(text)
        from store.text.masking import masked  # Nothing that is drawn needs it.

        return masked(neutral(text))

    def flush(self) -> None:
        """Flush the underlying stream."""
        try:
            self._raw.flush()
        except OSError as error:
            raise self._named(error) from None

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, self._name)

    def raw(self) -> TextIO:
        """Return the underlying stream; only for what no terminal reads (``protocol_output``)."""
        return self._raw

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return whether the underlying stream is a terminal."""
        return self._raw.isatty()

    def fileno(self) -> int:
        """Return the underlying stream's descriptor."""
        return self._raw.fileno()


def speaks_unicode(environment: dict[str, str] | None = None) -> bool:
    """Return whether the locale's character set is Unicode.

    Args:
        environment: The variables; the process's by default.
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
    """Return whether Python set ``LC_CTYPE`` itself, to coerce the C locale (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as given:
            return not any(line.startswith(b"LC_CTYPE=") for line in given.read().split(b"\0"))
    except OSError:
        return False


def guard_streams(plain: Callable[[str], str] | None = None) -> None:
    """Replace ``sys.stdout`` and ``sys.stderr`` by safe streams; repeating it is harmless.

    Pipes get UTF-8; on terminals, characters missing in their encoding are escaped. Closed
    standard streams are opened on the null device, so that no file opened later gets their
    descriptor.

    Args:
        plain: Replaces this program's glyphs by ASCII, for terminals without Unicode.
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
        setattr(sys, name, SafeStream(stream, NAMES[name], translate))
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115


def _occupy_closed() -> None:
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The system assigns the lowest free number, which is this one.
            os.open(os.devnull, os.O_RDWR)


def silence_streams() -> None:
    """Discard buffered output that cannot be written, so that exiting reports no error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
