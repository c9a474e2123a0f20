"""Locations of Backscroll's own files: the XDG variables, else the platform's folders."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

APP = "backscroll"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


_BY_XDG = {"data": "~/.local/share", "config": "~/.config", "cache": "~/.cache",
           "state": "~/.local/state"}
"""The defaults of the XDG specification."""


def _folder(kind: str) -> Path:
    """Return ``$XDG_<KIND>_HOME/backscroll`` if that is an absolute path, else the platform's."""
    named = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    if os.path.isabs(named):
        return Path(named) / APP
    if not named and sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        # As platformdirs says; its import takes 3 ms of each start.
        return Path(os.path.expanduser(_BY_XDG[kind])) / APP
    import platformdirs

    return Path(getattr(platformdirs, f"user_{kind}_dir")(APP, appauthor=False))


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


def library_path() -> Path:
    """Return the path of the user's library, the default store."""
    return data_dir() / "library.db"


def log_path() -> Path:
    """Return the path of the log file that error messages name."""
    return state_dir() / "backscroll.log"


def config_path() -> Path:
    """Return the path of the configuration file."""
    return config_dir() / "config.toml"


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
