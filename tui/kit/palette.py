"""The colours that panes paint with, by role; resolved from the theme that is active."""

from __future__ import annotations

from typing import NamedTuple


class Palette(NamedTuple):
    """Colours as ``#rrggbb``, named by role; see the drawings' palette.

    Draw ``faint`` on ``background`` and ``panel`` only; on a raised ground (``raised``,
    ``focus``, ``hit``, ``added``, ``removed``) use ``muted`` in its place. Text that is
    selected with the mouse is drawn in ``text`` on ``selected``.
    """

    background: str = "#14161b"
    panel: str = "#181b21"
    raised: str = "#232834"
    focus: str = "#2b3242"
    rule: str = "#2c323e"
    text: str = "#d5d9e0"
    muted: str = "#a3abb9"
    faint: str = "#7b8597"
    user: str = "#7aa2f7"
    assistant: str = "#73daca"
    tool: str = "#e0af68"
    reasoning: str = "#a8a1e6"
    ok: str = "#9ece6a"
    error: str = "#f7768e"
    fork: str = "#bb9af7"
    hit: str = "#3d3718"
    added: str = "#1d3326"
    removed: str = "#3a2229"
    selected: str = "#33467c"
    dark: bool = True
