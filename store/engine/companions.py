"""Files beside a database: their paths, change signatures and private copies.

Paths are taken as text, too: the first rows of a list are read before ``pathlib`` is imported.
"""

from __future__ import annotations

import os

from store.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal, TypeVar

    File = TypeVar("File", str, Path)

    Way = Literal["live", "immutable", "copy"]
    """How a database is opened for reading; ``store.engine.access`` describes each."""

Signature = tuple[int, ...]

_COPY_ATTEMPTS = 5


def beside(path: File, ending: str) -> File:
    """Return the path of a file that SQLite keeps beside a database, such as ``-wal``."""
    return type(path)(f"{path}{ending}")


def size_of(path: str | Path) -> int:
    """Return a file's size in bytes; -1 if it is missing."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def signature(path: str | Path, way: Way) -> Signature:
    """Return values that change when a file must be opened again for reading.

    A ``live`` connection sees every write, so only replacing the file or its ``-wal`` changes
    its signature. Empty if the file cannot be examined.
    """
    try:
        main = os.stat(path)
        if way == "live":
            return (main.st_dev, main.st_ino, inode(f"{path}-wal"))
        signs = [main.st_dev, main.st_ino, main.st_size, main.st_mtime_ns]
        for ending in ("-wal", "-journal"):
            try:
                status = os.stat(f"{path}{ending}")
            except FileNotFoundError:
                signs += [-1, -1]
            else:
                signs += [status.st_size, status.st_mtime_ns]
    except OSError:
        return ()
    return tuple(signs)


def inode(path: str | Path) -> int:
    """Return the inode number of a file; -1 if it is missing."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return -1


def same_file(one: Signature, other: Signature) -> bool:
    """Return whether two signatures belong to the same main file."""
    return one[:2] == other[:2]


def copy_aside(file: str | Path) -> tuple[Signature, Path]:
    """Copy a database with its ``-wal`` or ``-journal`` into a private folder.

    Returns:
        The signature of the copied file, and the folder (0700).

    Raises:
        StoreError: The file kept changing, or could not be copied.
    """
    # Imported here, as the first rows of a list are read from the file itself.
    import shutil
    import tempfile
    from pathlib import Path

    from store.system.locations import private_folder, scratch_dir

    path = Path(file)
    copies = private_folder(scratch_dir() / "copies")
    _sweep(copies)
    scratch = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=copies))
    try:
        for _ in range(_COPY_ATTEMPTS):
            before = signature(path, "copy")
            for ending in ("", "-wal", "-journal"):
                copy = beside(scratch / path.name, ending)
                copy.unlink(missing_ok=True)
                if beside(path, ending).exists():
                    shutil.copyfile(beside(path, ending), copy)
            if before and signature(path, "copy") == before:
                return before, scratch
    except OSError as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise StoreError(f"{path} cannot be copied to be read: {error}") from error
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    shutil.rmtree(scratch, ignore_errors=True)
    raise StoreError(f"{path} kept changing while it was copied to be read; try again")


def _sweep(copies: Path) -> None:
    """Remove the copies of processes that have ended."""
    import shutil

    from store.system.processes import is_alive

    for folder in copies.iterdir():
        owner = folder.name.partition("-")[0]
        if not owner.isdigit():
            continue
        if is_alive({"pid": int(owner)}) is False:
            shutil.rmtree(folder, ignore_errors=True)
