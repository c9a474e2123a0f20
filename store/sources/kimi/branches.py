"""Which lines of a file are still part of the conversation: an undo begins a branch."""

from __future__ import annotations

MAIN = "main"


class Branches:
    """The branches of one file, by the lines at which they begin.

    A line belongs to the branch that is current when it is written. The past of a branch are the
    lines of another one, up to its base.

    Attributes:
        current: The branch of the next line.
    """

    def __init__(self) -> None:
        """Start with the branch that every file begins with."""
        self.current = MAIN
        self._bases: dict[str, tuple[str, int]] = {}

    def switch(self, name: str, base: tuple[str, int] | None) -> None:
        """Begin a branch, or go back to one.

        Args:
            name: The branch.
            base: The branch that it goes on from, and the last line of that which it keeps;
                None where it goes on as it was.
        """
        if base is not None:
            self._bases[name] = base
        self.current = name

    def has(self, branch: str, line: int) -> bool:
        """Return whether a line of a branch is part of the current one, or of its past."""
        at, seen = self.current, set[str]()
        while at != branch:
            if at in seen or at not in self._bases:
                return False
            seen.add(at)
            at, last_kept = self._bases[at]
            if line > last_kept:
                return False
        return True
