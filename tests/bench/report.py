"""One line of the bench, and the table of them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """What a figure may be at most; None where that is no limit.

    Attributes:
        ratio: Times the floor.
        value: In the line's unit.
        over: More than the floor, in the line's unit.
    """

    ratio: float | None = None
    value: float | None = None
    over: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One figure beside its floor.

    Attributes:
        name: Of the bench, as ``--only`` takes it.
        what: What was measured.
        unit: Of figure and floor.
        details: Whatever else was measured, for the JSON.
        paired: The median of the rounds' own ratios, where each round had its own floor.
    """

    name: str
    what: str
    figure: float
    unit: str
    floor: float | None = None
    limits: Limits = Limits()
    details: dict[str, Any] = field(default_factory=dict)
    paired: float | None = None

    @property
    def ratio(self) -> float | None:
        """The figure as a multiple of the floor."""
        if self.paired is not None:
            return self.paired
        return self.figure / self.floor if self.floor else None

    @property
    def met(self) -> bool | None:
        """Whether every limit is kept; None where there is none."""
        limits, kept = self.limits, []
        if limits.ratio is not None and self.ratio is not None:
            kept.append(self.ratio <= limits.ratio)
        if limits.value is not None:
            kept.append(self.figure <= limits.value)
        if limits.over is not None and self.floor is not None:
            kept.append(self.figure - self.floor <= limits.over)
        return all(kept) if kept else None

    def cells(self) -> tuple[str, str, str, str, str, str]:
        """Return the columns of the table."""
        limits, unit = self.limits, self.unit
        at_most = [f"x{limits.ratio:g}"] if limits.ratio is not None else []
        if limits.over is not None:
            at_most.append(f"+{limits.over:g} {unit}")
        if limits.value is not None:
            at_most.append(f"{limits.value:g} {unit}")
        floor = "" if self.floor is None else _number(self.floor, unit)
        met = {True: "yes", False: "NO", None: ""}[self.met]
        return (
            self.what, _number(self.figure, unit), floor, self._compared(), ", ".join(at_most), met
        )

    def _compared(self) -> str:
        if self.floor is not None and self.limits.over is not None:
            return f"{self.figure - self.floor:+.1f} {self.unit}"
        return "" if self.ratio is None else f"x{self.ratio:.2f}"

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}


HEADINGS = ("what", "figure", "floor", "ratio or more", "at most", "met")


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 1_000 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def table(lines: Iterable[Line]) -> str:
    """Return the lines as a table in Markdown, its columns aligned."""
    rows: list[Sequence[str]] = [HEADINGS, *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    drawn = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    drawn.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(drawn)


def p95(values: Sequence[float]) -> float:
    """Return the least value that 95 of 100 do not exceed."""
    return sorted(values)[math.ceil(len(values) * 0.95) - 1]


def processor_ms(*processes: int) -> tuple[float, float]:
    """Return how long threads of processes had a processor so far, and how long they queued."""
    ran = queued = 0
    for process in processes:
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                one, other, _ = map(int, (thread / "schedstat").read_text().split())
                ran, queued = ran + one, queued + other
    return ran / 1e6, queued / 1e6
