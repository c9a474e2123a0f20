"""A place in a session, as it is remembered between two runs."""

from __future__ import annotations

from typing import Any, TypedDict

MOST_FOLDS = 200


class Place(TypedDict, total=False):
    """A place by key, so that it holds when parts come or go.

    Attributes:
        message: Id of the message at the top of the screen.
        index: Index of the part there.
        line: Which of its lines.
        selected: ``[message id, index]`` of the selected part.
        folds: ``[message id, index, level]`` of what the user folded or opened.
        at_end: The end was shown.
    """

    message: str
    index: int
    line: int
    selected: list[Any]
    folds: list[list[Any]]
    at_end: bool


def read_place(value: Any) -> Place | None:
    """Return a place that was read from a file, None where it is damaged."""
    if not isinstance(value, dict) or not isinstance(value.get("message"), str):
        return None
    place = Place(message=value["message"], at_end=value.get("at_end") is True)
    for name in ("index", "line"):
        number = value.get(name)
        place[name] = number if isinstance(number, int) else 0
    selected = value.get("selected")
    if isinstance(selected, list) and [type(item) for item in selected] == [str, int]:
        place["selected"] = selected
    folds = value.get("folds")
    place["folds"] = [
        fold for fold in (folds if isinstance(folds, list) else [])
        if isinstance(fold, list) and [type(item) for item in fold] == [str, int, str]
        and fold[2] in ("off", "short", "whole")
    ]
    return place
