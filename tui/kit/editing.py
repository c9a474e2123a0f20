"""Lets a text be edited in the user's editor, and takes back what was saved."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import Refused
from store.system.programs import CommandLine
from tui.kit.external import editor_command, run_in_terminal

if TYPE_CHECKING:
    from tui.host import Terminal


def edit_text(terminal: Terminal, text: str, suffix: str = ".md") -> str:
    """Open a text in the editor; the app waits meanwhile.

    Args:
        terminal: Gives the terminal away and takes it back.
        text: What the file holds at first; in a private folder, gone afterwards.
        suffix: The file's suffix.

    Returns:
        The text as it was saved, without the line break that editors add.

    Raises:
        Refused: There is no editor, it failed, or the terminal cannot be handed over.
    """
    command = editor_command(os.environ)
    folder = Path(tempfile.mkdtemp(prefix="backscroll-"))
    try:
        path = folder / f"prompt{suffix}"
        path.write_text(text, encoding="utf-8", errors="replace")
        code = run_in_terminal(terminal, CommandLine.of_user(command).path(path))
        if code != 0:
            raise Refused(f"{command[0]} ended with exit code {code}; nothing is taken")
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
