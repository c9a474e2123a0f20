"""Hands a text to the pager, to the editor, or to a file."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from textual.app import SuspendNotSupported

from store.errors import Refused
from store.system.files import write_whole
from store.system.paths import expanded
from store.system.programs import CommandLine, find, run
from store.text.neutral import neutral
from tui.host import Terminal

Program = Callable[[Terminal, str, str], None]
"""Shows a text with a file suffix; raises ``Refused`` with the reason when it cannot."""

PAGERS = ("less -R", "more")
EDITORS = ("nano", "vi")


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """Return the pager to run: ``$PAGER``, else less, else more.

    Raises:
        Refused: There is none.
    """
    return _command("pager", (environment.get("PAGER"),), "$PAGER", PAGERS, environment)


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the editor to run: ``$VISUAL``, ``$EDITOR``, else nano, else vi.

    Raises:
        Refused: There is none.
    """
    wanted = (environment.get("VISUAL"), environment.get("EDITOR"))
    return _command("editor", wanted, "$EDITOR", EDITORS, environment)


def _command(
    kind: str, wanted: Sequence[str | None], variable: str, defaults: Sequence[str],
    environment: Mapping[str, str],
) -> list[str]:
    for text in wanted:
        if not text or not text.strip():
            continue
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise Refused(f"{variable} cannot be read as a command: {error}") from error
        if find(words[0], environment) is None:
            raise Refused(f"the {kind} {words[0]} (from {variable}) is not installed")
        return words
    for default in defaults:
        words = shlex.split(default)
        if find(words[0], environment) is not None:
            return words
    raise Refused(f"no {kind} is installed; set {variable}")


@contextmanager
def private_copy(text: str, suffix: str) -> Iterator[Path]:
    """Hold a text in a file of a private folder (0700), read only for its owner (0400).

    Args:
        text: What the file holds, as UTF-8; lone surrogates become U+FFFD.
        suffix: The file's suffix, from which editors tell its language.
    """
    folder = Path(tempfile.mkdtemp(prefix="backscroll-"))
    try:
        path = folder / f"value{suffix}"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(handle, "wb") as file:
            file.write(_bytes(text))
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def open_in_pager(terminal: Terminal, text: str, suffix: str = ".txt") -> None:
    """Show a text, made harmless, in the pager; the app waits meanwhile.

    Args:
        terminal: Hands the terminal over.
        text: What is shown.
        suffix: The file suffix that fits it.

    Raises:
        Refused: There is no pager, or the terminal cannot be handed over.
    """
    command = pager_command(os.environ)
    # Keeps less from running commands, editors and other files on the text's behalf.
    environment = {**os.environ, "LESSSECURE": "1"}
    with private_copy(neutral(text), suffix) as path:
        _show(terminal, CommandLine.of_user(command).path(path), environment)


def open_in_editor(terminal: Terminal, text: str, suffix: str = ".txt") -> None:
    """Open a copy of a text in the editor; what is changed in it is not kept.

    Args:
        terminal: Hands the terminal over.
        text: What is shown.
        suffix: The file suffix that fits it.

    Raises:
        Refused: There is no editor, or the terminal cannot be handed over.
    """
    command = editor_command(os.environ)
    with private_copy(text, suffix) as path:
        _show(terminal, CommandLine.of_user(command).path(path), os.environ)


def run_in_terminal(
    terminal: Terminal, command: CommandLine, *, folder: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Hand the terminal to a program until it ends, and return its exit code.

    Args:
        terminal: Gives the terminal away and takes it back.
        command: The program.
        folder: Where it runs; None for this process's own folder.
        environment: Its variables; None for those of this process.

    Raises:
        Refused: It cannot be started, or the terminal cannot be handed over.
    """
    try:
        with terminal.suspend():
            return run(command, folder=folder, environment=environment).code
    except SuspendNotSupported as error:
        raise Refused("this terminal cannot be handed to another program") from error


def _show(terminal: Terminal, command: CommandLine, environment: Mapping[str, str]) -> None:
    code = run_in_terminal(terminal, command, environment=environment)
    if code not in (0, 130):
        raise Refused(f"{command.program} ended with exit code {code}")


def save_text(path: Path, text: str, *, overwrite: bool = False, raw: bool = False) -> int:
    """Write a text to a file (0600 when it is made) and return its size in bytes.

    Args:
        path: Where to; ``~`` is the home folder.
        text: The text.
        overwrite: Replace a file that is there.
        raw: Keep terminal escapes and other controls as they are.

    Raises:
        Refused: The file is there, its folder is not, or it cannot be written.
    """
    if not expanded(path).parent.is_dir():
        raise Refused(f"the folder {expanded(path).parent} does not exist")
    return write_whole(path, [_bytes(text if raw else neutral(text))], replace=overwrite)
