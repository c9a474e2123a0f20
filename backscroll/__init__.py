"""Backscroll for other programs: the names of the store package, and the command's entry.

    from backscroll import Store

Our packages are called ``store`` and ``tui``. They are loaded from beside this package, so
that no folder or package of the same name on the import path is imported in their place.
Names are imported when they are first used.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from store import (
        BackscrollError,
        Change,
        Config,
        Database,
        Event,
        Form,
        Hit,
        Hits,
        IdMinter,
        Invalid,
        MessageRow,
        Model,
        NotFound,
        PartRow,
        PermissionRule,
        Recorder,
        Refused,
        SavePolicy,
        Session,
        SessionFilter,
        SessionRow,
        Spent,
        Store,
        StoreError,
        UIMessage,
        Watch,
        load_config,
        open_database,
        open_target,
        recognise,
    )

__version__ = "0.1.0"

__all__ = [
    "BackscrollError", "Change", "Config", "Database", "Event", "Form", "Hit", "Hits", "IdMinter",
    "Invalid", "MessageRow", "Model", "NotFound", "PartRow", "PermissionRule", "Recorder",
    "Refused", "SavePolicy", "Session", "SessionFilter", "SessionRow", "Spent", "Store",
    "StoreError", "UIMessage", "Watch",
    "load_config", "open_database", "open_target", "recognise",
]  # fmt: skip

NEEDS_WSL = (
    "backscroll: Windows itself is not supported; run backscroll in WSL"
    " (https://learn.microsoft.com/windows/wsl)"
)
_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> int:
    """Run the command.

    Returns:
        The exit code.
    """
    if os.name == "nt":
        print(NEEDS_WSL, file=sys.stderr)
        return 1
    try:
        load_package("store")
        load_package("tui")
    except ImportError as error:
        print(f"backscroll: {error}", file=sys.stderr)
        return 1
    from tui.__main__ import main as run

    return run()


def load_package(name: str) -> ModuleType:
    """Return our own package of a name, loaded from beside this one.

    Args:
        name: ``store`` or ``tui``.

    Raises:
        ImportError: It is missing, or the program has imported another module of that name.
    """
    loaded = sys.modules.get(name)
    if loaded is not None:
        return _checked(loaded)
    found = _found(name)
    if found is not None and found.origin == _file_of(name):
        return _checked(__import__(name))
    # Most programs have no other package of that name, and start without these.
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec(name, [_FOLDER])
    if spec is None or spec.loader is None:
        raise ImportError(f"the package {name!r} is missing in {_FOLDER}; install backscroll again")
    package = module_from_spec(spec)
    sys.modules[name] = package
    try:
        spec.loader.exec_module(package)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return package


def _found(name: str) -> ModuleSpec | None:
    """Return what an import of a name would load, without importing it; None for nothing.

    ``importlib`` has a function for it, which would take 0.4 ms of each start.
    """
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)  # Very old ones have none.
        spec: ModuleSpec | None = find(name, None) if find is not None else None
        if spec is not None:
            return spec
    return None


def _file_of(name: str) -> str:
    """Return the file that our own package of a name begins with."""
    return os.path.join(_FOLDER, name, "__init__.py")


def _checked(module: ModuleType) -> ModuleType:
    """Return a module that is imported already, where it is ours."""
    name, file = module.__name__, getattr(module, "__file__", None)
    if file is not None and os.path.realpath(file) == os.path.realpath(_file_of(name)):
        return module
    raise ImportError(
        f"this program has imported another module {name!r} ({file or 'built in'}), and"
        " backscroll needs that name for its own; rename the other one or run backscroll in a"
        " process of its own"
    )


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(load_package("store"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
