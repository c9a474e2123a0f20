"""Locations of Backscroll's own files: the XDG variables, else the platform's folders."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs

APP = "backscroll"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def _folder(variable: str, fallback: str) -> Path:
    """Return ``$variable/backscroll`` if the variable is an absolute path, else the fallback."""
    named = os.environ.get(variable, "")
    return Path(named) / APP if os.path.isabs(named) else Path(fallback)


def data_dir() -> Path:
    """Return the folder of the library and other data that cannot be recreated."""
    return _folder("XDG_DATA_HOME", platformdirs.user_data_dir(APP, appauthor=False))


def config_dir() -> Path:
    """Return the folder of ``config.toml``."""
    return _folder("XDG_CONFIG_HOME", platformdirs.user_config_dir(APP, appauthor=False))


def cache_dir() -> Path:
    """Return the folder of data that can be recreated, such as stores of opened sources."""
    return _folder("XDG_CACHE_HOME", platformdirs.user_cache_dir(APP, appauthor=False))


def state_dir() -> Path:
    """Return the folder of the log and the saved layout."""
    return _folder("XDG_STATE_HOME", platformdirs.user_state_dir(APP, appauthor=False))


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
