"""The command ``backscroll``, whatever the folder that it is started in holds.

Our packages are called ``store`` and ``tui``. A folder of the same name on ``PYTHONPATH``
(often the folder itself: ``PYTHONPATH=.``) would be imported in their place, so they are
loaded from where this module lies before anything is imported by name.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

PACKAGES = ("store", "tui")
NEEDS_WSL = (
    "backscroll: Windows itself is not supported; run backscroll in WSL"
    " (https://learn.microsoft.com/windows/wsl)"
)


def main() -> int:
    """Run the command; returns its exit code."""
    if os.name == "nt":
        print(NEEDS_WSL, file=sys.stderr)
        return 1
    load_packages()
    from tui.__main__ import main as run

    return run()


def load_packages() -> None:
    """Load our packages from the folder of this module.

    Raises:
        ImportError: They are not there.
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in PACKAGES:
        spec = PathFinder.find_spec(name, [folder])
        if spec is None or spec.loader is None:
            raise ImportError(f"the package {name} is missing in {folder}; install again")
        package = module_from_spec(spec)
        sys.modules[name] = package
        spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.exit(main())
