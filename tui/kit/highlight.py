"""Code with colours, as runs."""

from __future__ import annotations

from store.text.code import coloured
from tui.kit.lines import Run
from tui.kit.text import clean


def code_lines(code: str, language: str) -> list[list[Run]]:
    """Return the lines of a piece of code as runs.

    Args:
        code: As the session has it.
        language: What the fence names; as in ``coloured``.
    """
    return list(coloured(clean(code), language))
