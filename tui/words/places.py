"""Where sessions come from, in lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from store.sync.places import Place
from store.sync.problems import StoredProblem
from store.text import figures
from tui.kit.lines import Line, Run
from tui.kit.text import cells, one_line


def found_words(place: Place) -> str:
    """Return what was found at a place."""
    if not place.enabled:
        return "disabled in the configuration"
    if place.reason is not None:
        return f"{figures.count_of(place.sessions, 'session')}; it {place.reason}"
    if not place.found:
        return "nothing there"
    counts = (figures.count_of(place.sessions, "session"), figures.count_of(place.files, "file"),
              figures.size(place.size_bytes))
    return ", ".join(counts)


def sorted_out(places: Iterable[Place]) -> tuple[list[Place], list[Place]]:
    """Return the places that matter, and those where nothing is."""
    listed = [*places]
    return [one for one in listed if one.matters], [one for one in listed if not one.matters]


def more_places(count: int) -> str:
    """Say how many places have nothing."""
    return f"nothing in {figures.count_of(count, 'other place')}"


def place_lines(places: Iterable[Place], problems: Sequence[StoredProblem]) -> list[Line]:
    """Return a line for each place that matters, with what could not be read below it.

    Args:
        places: Where sessions are looked for.
        problems: What could not be read.
    """
    lines: list[Line] = []
    shown, empty = sorted_out(places)
    labels = max((cells(place.label) for place in shown), default=0)
    for place in shown:
        mark: Run = ("● ", "ok") if place.found else ("○ ", "faint")
        label = place.label + " " * (labels - cells(place.label))
        lines.append(Line((
            mark, (f"{label} ", "text bold"), (f"{one_line(place.path)}  ", "muted"),
            (found_words(place), "text"),
        )))
        for problem in problems:
            if (problem.kind, problem.root) == (place.kind, place.path):
                where = f"{problem.path}:{problem.line}" if problem.line else problem.path
                lines.append(Line((
                    (f"    ✗ {one_line(where)}  ", "muted"), (one_line(problem.reason), "error"))))
    if empty:
        lines.append(Line(((f"{more_places(len(empty))}: backscroll sources --all", "muted"),)))
    return lines
