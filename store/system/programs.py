"""Command lines, and the only module that starts programs.

A command line consists of a program and fixed words from the code, and of values, each in a
place where the program cannot misread it as an option. Values of a session reach a program in
no other way, and the program itself never comes from a session, host or import.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from store.errors import Refused
from store.text.neutral import neutral, neutral_row

if TYPE_CHECKING:
    from asyncio.subprocess import Process

LONGEST_VALUE = 120_000
"""Most bytes of one argument; Linux allows 131,071 (``MAX_ARG_STRLEN`` in execve(2))."""
PIPE = subprocess.PIPE
NOWHERE = subprocess.DEVNULL
TooSlow = subprocess.TimeoutExpired
"""Raised when waiting for a process times out."""
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WORD = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]*=?|-")
_OPTION = re.compile(r"--[a-z][a-z0-9-]*|-[A-Za-z]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE_BREAKS = re.compile(r"[\t\n\u2028\u2029]")


class CommandLine(tuple[str, ...]):
    """A program with its arguments, as a tuple of words; every method returns a new one.

    Made by ``of``, ``python`` or ``of_user``. ``run`` and ``start`` accept nothing else.
    """

    __slots__ = ()

    def __new__(cls, *words: object) -> CommandLine:
        """Raise: use one of the named constructors."""
        raise TypeError("use CommandLine.of, CommandLine.python or CommandLine.of_user")

    @classmethod
    def _of_words(cls, words: Iterable[str]) -> CommandLine:
        return tuple.__new__(cls, words)

    @classmethod
    def of(cls, program: str, *words: str) -> CommandLine:
        """Return a command of a program and fixed words, such as subcommands.

        Args:
            program: Its name on ``PATH``; never a value from a session.
            words: Subcommands and options without a value; never values from a session.

        Raises:
            ValueError: One of them has characters of a value.
        """
        if not _PROGRAM.fullmatch(program):
            raise ValueError(f"{program!r} is not a program name")
        return cls._of_words((program, *map(_word, words)))

    @classmethod
    def python(cls, module: str, *words: str) -> CommandLine:
        """Return the command that runs one of this program's modules in this Python.

        ``-P`` prevents imports from the current folder.
        """
        return cls._of_words((sys.executable, "-P", "-m", _word(module), *map(_word, words)))

    @classmethod
    def of_user(cls, words: Sequence[str]) -> CommandLine:
        """Return a command from the user's own environment or configuration."""
        return cls._of_words(words)

    @property
    def program(self) -> str:
        """The program as it was named."""
        return self[0]

    def flag(self, name: str) -> CommandLine:
        """Add a fixed word."""
        return self._added(_word(name))

    def option(self, name: str, value: str, *, lines: bool = False) -> CommandLine:
        """Add ``--name=value``.

        Args:
            name: The option with its dashes.
            value: Any value.
            lines: Whether it may have several lines.

        Raises:
            Refused: The value cannot be an argument.
        """
        value = value if self._is_ours else passable(value, lines=lines)
        return self._added(f"{_option(name)}={value}")

    def separate(self, name: str, value: str) -> CommandLine:
        """Add ``--name value``, for programs that do not support ``--name=value``.

        Raises:
            Refused: The value cannot be an argument, or begins with ``-``.
        """
        return self._added(_option(name), bare(value))

    def operand(self, value: str, *, lines: bool = False) -> CommandLine:
        """Add a value after ``--``, where nothing is read as an option.

        Args:
            value: Any value.
            lines: Whether it may have several lines.

        Raises:
            Refused: The value cannot be an argument.
        """
        value = value if self._is_ours else passable(value, lines=lines)
        return self._of_words((*self, value) if "--" in self else (*self, "--", value))

    def bare_operand(self, value: str, *, lines: bool = False, marks: str = "") -> CommandLine:
        """Add a value for a program that does not support ``--``.

        Args:
            value: Any value.
            lines: Whether it may have several lines.
            marks: Further characters with a meaning at the start of a value, beside ``-``.

        Raises:
            Refused: The value cannot be an argument, or begins with ``-`` or a mark.
        """
        return self._added(bare(value, lines=lines, marks=marks))

    def path(self, path: str | Path) -> CommandLine:
        """Add an absolute path, which no program reads as an option.

        Raises:
            Refused: It is not absolute, or cannot be an argument.
        """
        return self._added(absolute(str(path)))

    @property
    def _is_ours(self) -> bool:
        """Whether it runs one of this program's modules, which accept any path unchanged."""
        return self[1:3] == ("-P", "-m")

    def shown(self) -> str:
        """Return the command as typed in a shell, with every character visible."""
        return " ".join(map(quoted, self))

    def _added(self, *words: str) -> CommandLine:
        if "--" in self:
            raise ValueError("behind -- there are operands only")
        return self._of_words((*self, *words))


def _word(word: str) -> str:
    if not _WORD.fullmatch(word):
        raise ValueError(f"{word!r} is not a fixed word")
    return word


def _option(name: str) -> str:
    if not _OPTION.fullmatch(name):
        raise ValueError(f"{name!r} is not an option")
    return name


def passable(value: str, *, lines: bool = False) -> str:
    """Return the value if it can be a program's argument.

    Args:
        value: Any text.
        lines: Whether it may contain newlines and tabs.

    Raises:
        Refused: It contains control characters or, without ``lines``, several lines; it is
            too long; or the system cannot encode it.
    """
    found = _CONTROLS.search(value) or (None if lines else _LINE_BREAKS.search(value))
    if found:
        raise Refused(f"{_named(value)} holds a control character (U+{ord(found[0]):04X})")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise Refused(f"{_named(value)} holds characters that no program can be given") from error
    if size > LONGEST_VALUE:
        raise Refused(f"{_named(value)} is too long for a command line ({size:,} bytes)")
    return value


def bare(value: str, *, lines: bool = False, marks: str = "") -> str:
    """Return the value if it cannot be misread as an option.

    Args:
        value: Any text.
        lines: Whether it may have several lines.
        marks: Characters that it may not start with, beside ``-``.

    Raises:
        Refused: It cannot be an argument, or starts with one of them.
    """
    passable(value, lines=lines)
    if value.startswith(("-", *marks)):
        what = "an option" if value[0] == "-" else "a file or command"
        raise Refused(f"{_named(value)} begins with {value[0]!r} and would be read as {what}")
    return value


def absolute(path: str) -> str:
    """Return the path if it is absolute and has one line.

    Raises:
        Refused: It is not.
    """
    passable(path)
    if not os.path.isabs(path):
        raise Refused(f"{_named(path)} is not an absolute path")
    return path


def _named(value: str) -> str:
    line = neutral_row(value)
    return f"“{line[:32]}{'…' if len(line) > 32 else ''}”"


def quoted(word: str) -> str:
    """Return a word quoted for a shell, with escapes for characters a terminal does not show.

    The escapes are those of ``$'…'``, supported by bash, zsh, ksh and POSIX 2024.
    """
    if neutral(word) == word and "\u00ad" not in word:
        return shlex.quote(word)
    escaped = (_escape(character) for character in word)
    return f"$'{''.join(escaped)}'"


def _escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character in "\n\t":
        return {"\n": "\\n", "\t": "\\t"}[character]
    if neutral(character) == character and character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def find(program: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a program's path on ``PATH``, or None.

    Relative folders in ``PATH`` are ignored: they would be resolved in the resumed session's
    folder.
    """
    if os.path.dirname(program):
        return shutil.which(program)
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(program, path=os.pathsep.join(filter(os.path.isabs, folders)))


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a program.

    Attributes:
        code: Its exit code.
        output: Its stdout; empty if that was not captured.
    """

    code: int
    output: bytes = b""


def run(
    command: CommandLine,
    *,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
    given: bytes | None = None,
    timeout_s: float | None = None,
) -> Ended:
    """Run a program, wait for it and return its result.

    Args:
        command: The program.
        folder: Absolute path of the folder to run it in; None for the current one.
        environment: Its variables; None for this process's own.
        given: Its stdin; with this it has no terminal, and its output is captured.
        timeout_s: Timeout in seconds.

    Raises:
        Refused: There is no such program or folder, or it cannot be started.
        TimeoutError: The timeout passed; the program was killed.
    """
    variables = dict(os.environ if environment is None else environment)
    if folder is not None:
        variables["PWD"] = absolute(folder)
    try:
        done = subprocess.run(
            command, executable=_executable(command, variables), cwd=folder, env=variables,
            input=given, capture_output=given is not None, timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{command.program} takes too long") from error
    except OSError as error:
        raise Refused(f"{command.program} could not be started: {error.strerror}") from error
    return Ended(done.returncode, done.stdout or b"")


def _executable(command: CommandLine, environment: Mapping[str, str]) -> str:
    found = find(command.program, environment)
    if found is None:
        raise Refused(f"{command.program} is not on PATH")
    return found


def start(
    command: CommandLine,
    *,
    environment: Mapping[str, str],
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    apart: bool = False,
) -> subprocess.Popen[bytes]:
    """Start one of this program's modules (``CommandLine.python``) and return its process.

    Args:
        command: The command.
        environment: Its variables.
        stdin: As in ``subprocess.Popen``.
        stdout: As in ``subprocess.Popen``.
        stderr: As in ``subprocess.Popen``.
        apart: Whether Ctrl+C and other signals of the terminal shall not reach it.
    """
    return subprocess.Popen(
        command, env=dict(environment), stdin=stdin, stdout=stdout, stderr=stderr,
        process_group=0 if apart else None,
    )  # fmt: skip


async def start_piped(
    command: CommandLine, *, environment: Mapping[str, str], limit: int
) -> Process:
    """Start one of this program's modules with three pipes and return its process.

    Args:
        command: The command.
        environment: Its variables.
        limit: Longest line that can be read from it, in bytes.
    """
    # Imported here, as a third of what a process loads that only starts others.
    import asyncio

    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=limit,
        env=dict(environment),
    )


async def stop_piped(process: Process, patience_s: float) -> None:
    """Close a process's standard input, which it takes as its end, and wait for it.

    Args:
        process: The process.
        patience_s: It is killed if it has not ended after so many seconds.
    """
    import asyncio

    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), patience_s)
    except TimeoutError:
        process.kill()
        await process.wait()


def open_page(path: Path) -> None:
    """Open one of our own pages in the person's web browser; it may take long to start.

    Args:
        path: A file that this program wrote.
    """
    import webbrowser

    webbrowser.open(path.as_uri())
