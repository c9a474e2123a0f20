"""The lines of the main screen around the list, which are there before its panes are loaded.

The first frame draws them before Textual is imported, and the widgets draw them after it.
"""

from __future__ import annotations

from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run

TOP, BOTTOM = 1, 1
"""Lines above and below the panes."""


def store_runs(name: str, *, read_only: bool, masked: bool = False) -> list[Run]:
    """Return what the top line begins with: the program and the store.

    Args:
        name: Of the store.
        read_only: Whether nothing can be written to it.
        masked: Whether the view is masked.
    """
    runs: list[Run] = [(" backscroll", "text bold"), (f"  {name}", "text")]
    if read_only:
        runs.append(("  read only", "tool"))
    if masked:
        runs.append(("  masked", "tool"))
    return runs


def opening_line(name: str | None, y: int) -> Line:
    """Return a line of the transcript while it is not loaded: what is being opened.

    Args:
        name: The title of that; None where nothing is.
        y: The line.
    """
    if name is None or y > 1:
        return Line()
    words = f" opening{glyphs().more}" if y else f" {name}"
    return Line(((words, "faint" if y else "text bold"),))
