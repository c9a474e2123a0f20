"""How many frames a second Textual draws at most."""

from __future__ import annotations

import os

_VARIABLE, FRAMES_A_SECOND = "TEXTUAL_FPS", 120
"""Textual draws at the ticks of a clock. With as many ticks as a held key has repeats, 60, the
frame of a key waits a whole sixtieth in the worst case. What changes by itself is drawn more seldom
than either, and the terminal gets no more frames than it takes."""


def set_frame_rate() -> None:
    """Set it, unless the user has; before any other module of Textual is imported.

    Textual reads the variable once. Programs that are started from here do not get it.
    """
    if _VARIABLE in os.environ:
        return
    os.environ[_VARIABLE] = str(FRAMES_A_SECOND)
    try:
        import textual.constants  # noqa: F401
    finally:
        del os.environ[_VARIABLE]
