"""Marks by letter: kept beside a library, or in the state folder for a store that is not ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from store.engine.database import Database
from store.system.locations import private_folder
from store.system.paths import read_regular
from store.system.records import NamedTuple
from tui.state.view_state import state_path


class Mark(NamedTuple):
    """What a letter is on.

    Attributes:
        session_id: The session.
        message_id: The message; "" for the session as a whole.
        part: The part's index in the message.
        at: When it was set, epoch ms.
    """

    session_id: str
    message_id: str = ""
    part: int = 0
    at: int = 0

    def is_at(self, other: Mark) -> bool:
        """Return whether it is on the same part as another mark."""
        return self[:3] == other[:3]


def marks_paths(database: Database) -> list[Path]:
    """Return the files of a store's marks: where they are written first.

    A host's file and a store that cannot be written have them in the state folder. A library
    has them beside it; what was set while it could not be written is read as well.
    """
    state = state_path(database.path)
    apart = state.with_name(state.name.replace("view-", "marks-", 1))
    if database.form.name != "own":
        return [apart]
    beside = database.path.with_name(f"{database.path.name}.marks.json")
    return [apart, beside] if database.file_read_only else [beside, apart]


class Marks:
    """The marks of a store; another browser on the same store may change them too.

    Attributes:
        by_letter: The marks.
    """

    def __init__(self, paths: list[Path]) -> None:
        """Read the marks.

        Args:
            paths: As ``marks_paths`` returns them.
        """
        self._paths = paths
        self.by_letter: dict[str, Mark] = {}
        self.read()

    def read(self) -> None:
        """Read again what is kept; of two marks with a letter the newer one counts."""
        found: dict[str, Mark] = {}
        for path in self._paths:
            for letter, mark in _read(path).items():
                if letter not in found or found[letter].at < mark.at:
                    found[letter] = mark
        self.by_letter = dict(sorted(found.items()))

    def set(self, letter: str, mark: Mark) -> None:
        """Put a letter on something.

        Raises:
            OSError: It cannot be written anywhere.
        """
        self._change(letter, mark)

    def remove(self, letter: str) -> None:
        """Take a letter away.

        Raises:
            OSError: A file that has it cannot be written.
        """
        self._change(letter, None)

    def _change(self, letter: str, mark: Mark | None) -> None:
        written = False
        for path in self._paths:
            kept = _read(path)
            before = kept.pop(letter, None)
            if mark is not None and not written:
                try:
                    _write(path, {**kept, letter: mark})
                except OSError:
                    if path is self._paths[-1]:
                        raise
                else:
                    written = True
            elif before is not None and mark is None:
                _write(path, kept)
        self.read()

    def of_session(self, session_id: str) -> dict[tuple[str, int], str]:
        """Return the letters in a session by message id and index."""
        return {(mark.message_id, mark.part): letter
                for letter, mark in self.by_letter.items() if mark.session_id == session_id}


def _read(path: Path) -> dict[str, Mark]:
    """Return the marks of a file; what is missing or damaged in it is left out."""
    try:
        text = read_regular(path)
    except (OSError, ValueError):
        return {}
    import orjson  # The first screen does without, where there are no marks.

    try:
        found = orjson.loads(text)
    except ValueError:
        return {}
    return {
        letter: Mark(*value) for letter, value in found.items() if _is_mark(letter, value)
    } if isinstance(found, dict) else {}


def _is_mark(letter: str, value: Any) -> bool:
    return len(letter) == 1 and letter.isascii() and letter.isalpha() and (
        isinstance(value, list) and [type(item) for item in value] == [str, str, int, int])


def _write(path: Path, marks: dict[str, Mark]) -> None:
    """Write a file of marks, whole or not at all."""
    import orjson

    private_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps({letter: list(mark) for letter, mark in marks.items()}))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
