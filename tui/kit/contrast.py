"""Contrast of colours as WCAG 2 counts it, and its repair."""

from __future__ import annotations

from collections.abc import Iterable

AA = 4.5
"""The least contrast ratio for text, WCAG 2.2 success criterion 1.4.3."""


def channels(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _linear(channel: int) -> float:
    share = channel / 255
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    """Return the relative luminance, 0 (black) to 1 (white)."""
    red, green, blue = (_linear(channel) for channel in channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def blend(colour: str, other: str, share: float) -> str:
    """Return ``colour`` with a share (0 to 1) of ``other`` mixed in.

    Args:
        colour: ``#rrggbb``.
        other: What is mixed in.
        share: How much of it, 0 to 1.
    """
    mixed = (
        round(a + (b - a) * share)
        for a, b in zip(channels(colour), channels(other), strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def readable(colour: str, grounds: Iterable[str], least: float = AA) -> str:
    """Return the colour, moved towards black or white as far as every ground needs.

    Args:
        colour: The wanted text colour.
        grounds: All backgrounds that it is drawn on.
        least: The contrast ratio to reach.
    """
    grounds = tuple(grounds)
    if all(contrast(colour, ground) >= least for ground in grounds):
        return colour
    ends = sorted(
        ("#000000", "#ffffff"),
        key=lambda end: min(contrast(end, ground) for ground in grounds), reverse=True,
    )
    for step in range(1, 51):
        moved = blend(colour, ends[0], step / 50)
        if all(contrast(moved, ground) >= least for ground in grounds):
            return moved
    return ends[0]
