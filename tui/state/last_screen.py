"""The picture of the last screen: kept when the browser ends, and shown by the next start at once.

It is on the screen before the store is opened, with transcript and inspector beside the list. It is
shown only where all that it depends on is as it was (``Setting``): the files of the store, of the
remembered view and of the config, the terminal, the program itself; and only on the same day. Once
an age in the list would be another one, the list is drawn from the store beside the other panes of
the picture. ``forget`` deletes all pictures.

What is imported up to this module is imported before the picture is shown, so it imports no paths,
no SQLite, no patterns and no ``collections``, which others import behind it.
"""

from __future__ import annotations

import os
import time

from store.system.locations import (
    PRIVATE_FILE,
    config_file,
    file_number,
    last_screens,
    library_file,
    private_folder,
    view_file,
)
from store.system.paths import expanded_name, open_regular, resolved
from store.system.records import NamedTuple
from store.system.streams import (
    ERASED_FROM,
    Painted,
    at_column,
    erased,
    erases_in_colour,
    paint,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui.terminal.cells import Piece

    Setting = str
    """All that a picture depends on, in one line."""

_FORM = "backscroll screen 1"
_LARGEST = 4_000_000
_VARIABLES = ("TERM", "COLORTERM", "COLORFGBG", "LANG", "LC_ALL", "LC_CTYPE", "HOME", "TZ")
_CELL, _PIECE, _HALF = "\x1f", "\x1e", "\x1d"
"""Between column, codes and text of a piece; between the pieces of a row; and before what is beside
the list. None of them is in neutral text."""


def setting_of(
    store: str | None, size: tuple[int, int], environment: Mapping[str, str]
) -> Setting | None:
    """Return what the picture of a store depends on; None where the store is not there.

    Args:
        store: Path of its file; None for the library.
        size: Columns and rows of the terminal.
        environment: The process's variables.
    """
    path = _store_path(store)
    main = _signs(path)
    if main == "-":
        return None
    wal = _signs(f"{path}-wal")
    files = (main, wal, _signs(view_file(path)), *map(_signs, program_files()),
             _signs(config_file()))  # fmt: skip
    named = [f"{name}={environment.get(name, '')}" for name in _VARIABLES]
    named.append(f"TMUX={'TMUX' in environment}")  # Its value tells sessions of tmux apart.
    named += sorted(f"{name}={value}" for name, value in environment.items()
                    if name.startswith("BACKSCROLL"))
    columns, rows = size
    return repr((path, columns, rows, *files, *named))


class LastScreen(NamedTuple):
    """The picture of the last screen, as it is written.

    Attributes:
        columns: Of the list; what is right of them is ``beside``.
        rows: Of the list, with the lines above and below the panes, which have the whole width.
        beside: Of the other panes, each beginning with a move to its column.
        is_current: Whether the ages in the list are still right.
    """

    columns: int
    rows: list[list[Painted]]
    beside: list[list[Painted]]
    is_current: bool

    def whole(self) -> list[list[Painted]]:
        """Return the rows of the screen."""
        return [row + beside for row, beside in zip(self.rows, self.beside, strict=True)]


def last_screen(
    store: str | None, size: tuple[int, int], environment: Mapping[str, str]
) -> LastScreen | None:
    """Return the picture of a store that may be shown; None where there is none.

    Args:
        store: Path of the store's file; None for the library.
        size: Columns and rows of the terminal.
        environment: The process's variables.
    """
    text = _read(_picture_path(_store_path(store)))
    if text is None:
        return None
    try:
        form, facts, setting, *rows = text.split("\n")
        kept, until, midnight, columns = map(int, facts.split(" "))
        now = int(time.time())
        if form != _FORM or not kept <= now < midnight or len(rows) != size[1]:
            return None
        if setting != setting_of(store, size, environment):
            return None
        halves, erases = [row.split(_HALF) for row in rows], erases_in_colour(environment)
        return LastScreen(
            columns, [list(_painted(row, erases)) for row, _beside in halves],
            [list(_painted(beside, erases)) for _row, beside in halves], now < until)
    except ValueError:
        return None


def _painted(row: str, erases: bool) -> Iterator[Painted]:
    """Yield the pieces of a row as they are written, through the one safe writer.

    Args:
        row: As it was kept.
        erases: Whether many blanks are erased.

    Raises:
        ValueError: The row is none that was kept.
    """
    for piece in row.split(_PIECE) if row else ():
        column, codes, text = piece.split(_CELL)
        if codes and not (codes.isascii() and codes.replace(";", "").isdecimal()):
            raise ValueError(codes)
        if column:
            yield at_column(int(column))
        if erases and codes.startswith("48;") and len(text) >= ERASED_FROM and text.isspace():
            yield erased(len(text), codes)
        else:
            yield paint(text, codes)


class Drawn(NamedTuple):
    """A picture to keep.

    Attributes:
        columns: As in ``LastScreen``.
        rows: As in ``LastScreen``, in pieces.
        beside: Likewise.
        until: Epoch seconds at which an age in the list is another one.
        midnight: Epoch seconds at which the day ends.
    """

    columns: int
    rows: list[list[Piece]]
    beside: list[list[Piece]]
    until: int
    midnight: int


def keep_screen(store: str, setting: Setting, drawn: Drawn) -> None:
    """Keep a picture for the next start.

    Args:
        store: Path of the store's file.
        setting: What the picture depends on.
        drawn: The picture.

    Raises:
        OSError: It cannot be kept.
    """
    head = [_FORM, f"{int(time.time())} {drawn.until} {drawn.midnight} {drawn.columns}", setting]
    lines = [f"{_joined(row)}{_HALF}{_joined(beside)}"
             for row, beside in zip(drawn.rows, drawn.beside, strict=True)]
    path = _picture_path(resolved(store))
    from pathlib import Path

    private_folder(Path(path).parent)
    draft = f"{path}.{os.getpid()}.new"
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, PRIVATE_FILE)
    try:
        with open(descriptor, "wb") as file:
            file.write("\n".join([*head, *lines]).encode("utf-8", "replace"))
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _joined(row: Iterable[Piece]) -> str:
    return _PIECE.join(f"{column}{_CELL}{codes}{_CELL}{text}" for column, codes, text in row)


def drop_screen(store: str) -> None:
    """Delete the picture of a store, where there is one.

    Raises:
        OSError: It cannot be deleted.
    """
    path = _picture_path(resolved(store))
    if os.path.lexists(path):
        os.unlink(path)


def _store_path(store: str | None) -> str:
    """Return the real path of a store's file, whether it is there or not."""
    if store is None:
        return resolved(library_file())
    return resolved(expanded_name(store))


def _picture_path(store: str) -> str:
    return os.path.join(last_screens(), f"{file_number(store)}.screen")


def _signs(path: str) -> str:
    """Return what changes with a file; ``-`` where there is none, or nothing in it."""
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    if not found.st_size:
        return "-"
    return f"{found.st_dev}.{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_mode}"


def program_files() -> tuple[str, str]:
    """Return the files that another version of the program has others of: this, and its number."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return __file__, os.path.join(top, "backscroll", "__init__.py")


def _read(path: str) -> str | None:
    """Return a kept file; None where there is none that this user alone can read."""
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            private = status.st_mode & 0o777 == PRIVATE_FILE and status.st_uid == os.getuid()
            if not private or status.st_size > _LARGEST:
                return None
            return file.readall().decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
