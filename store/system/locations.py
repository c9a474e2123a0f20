"""Locations of Backscroll's own files: the XDG variables, else the platform's folders.

``pathlib`` takes a tenth of all before the first rows, and is imported when a path is asked for:
the picture of the last screen is found without it.
"""

from __future__ import annotations

import os
import stat
import sys

from store.system.paths import resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

APP = "backscroll"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


_BY_XDG = {"data": "~/.local/share", "config": "~/.config", "cache": "~/.cache",
           "state": "~/.local/state"}
"""The defaults of the XDG specification."""


def folder_name(kind: str) -> str:
    """Return ``$XDG_<KIND>_HOME/backscroll`` if that is an absolute path, else the platform's.

    Args:
        kind: ``data``, ``config``, ``cache`` or ``state``.
    """
    named = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    if os.path.isabs(named):
        return os.path.join(named, APP)
    if not named and sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        # As platformdirs says; its import takes 3 ms of each start.
        return os.path.join(os.path.expanduser(_BY_XDG[kind]), APP)
    import platformdirs

    folder: str = getattr(platformdirs, f"user_{kind}_dir")(APP, appauthor=False)
    return folder


def _folder(kind: str) -> Path:
    from pathlib import Path

    return Path(folder_name(kind))


def data_dir() -> Path:
    """Return the folder of the library and other data that cannot be recreated."""
    return _folder("data")


def config_dir() -> Path:
    """Return the folder of ``config.toml``."""
    return _folder("config")


def cache_dir() -> Path:
    """Return the folder of data that can be recreated, such as stores of opened sources."""
    return _folder("cache")


def state_dir() -> Path:
    """Return the folder of the log and the saved layout."""
    return _folder("state")


LIBRARY, CONFIG = "library.db", "config.toml"
"""Names of the library, in the data folder, and of the configuration, in its folder."""
VIEW_NAME = "view-{}.json"
"""Name of what is remembered of a store, by its number."""
_CRC = (
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
)
"""CRC-32 of four bits: loading ``zlib`` for the numbers of stores takes longer than they do, and
``hashlib`` would load OpenSSL."""


def view_file(store: str | Path) -> str:
    """Return the file of what is remembered of a store.

    Args:
        store: Path of the store's file.
    """
    return os.path.join(folder_name("state"), VIEW_NAME.format(file_number(resolved(store))))


def last_screens() -> str:
    """Return the folder of the pictures of last screens, which hold texts of sessions."""
    return os.path.join(folder_name("state"), "screens")


def file_number(path: str) -> str:
    """Return what names the files that are kept for a store.

    Args:
        path: Of the store's file, with links resolved.

    Returns:
        What ``zlib.crc32`` says of it, in hexadecimal.
    """
    rest = 0xFFFFFFFF
    for byte in os.fsencode(path):
        rest = rest >> 4 ^ _CRC[(rest ^ byte) & 15]
        rest = rest >> 4 ^ _CRC[(rest ^ byte >> 4) & 15]
    return f"{rest ^ 0xFFFFFFFF:08x}"


def library_file() -> str:
    """Return the path of the user's library, the default store."""
    return os.path.join(folder_name("data"), LIBRARY)


def library_path() -> Path:
    """Return the result of ``library_file`` as a ``Path``."""
    return data_dir() / LIBRARY


def log_path() -> Path:
    """Return the path of the log file that error messages name."""
    return state_dir() / "backscroll.log"


def config_file() -> str:
    """Return the path of the configuration file."""
    return os.path.join(folder_name("config"), CONFIG)


def config_path() -> Path:
    """Return the result of ``config_file`` as a ``Path``."""
    return config_dir() / CONFIG


def private_folder(path: Path) -> Path:
    """Create a private folder (0700) if it is missing, and return it.

    Missing parents are created the same way; existing folders are not changed.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return path


def scratch_dir() -> Path:
    """Return a folder for data that can be recreated: the cache folder if it is writable.

    Otherwise, as in a read-only home, it is a private folder in the temporary folder.

    Raises:
        OSError: That cannot be created either.
    """
    try:
        cache = private_folder(cache_dir())
        if os.access(cache, os.W_OK):
            return cache
    except OSError:
        pass
    import tempfile
    from pathlib import Path

    shared = Path(tempfile.gettempdir()) / f"{APP}-{os.getuid() if hasattr(os, 'getuid') else 0}"
    shared.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    status = shared.lstat()
    ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if stat.S_ISDIR(status.st_mode) and ours and not status.st_mode & 0o077:
        return shared
    # The name is taken by another user.
    return Path(tempfile.mkdtemp(prefix=f"{APP}-"))


def private_file(path: Path) -> Path:
    """Create an empty private file (0600) if it is missing, and return its path."""
    private_folder(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    except FileExistsError:
        return path
    return path
