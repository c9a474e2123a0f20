"""A place in a session, by keys: to come back to it later, in this run or another."""

from __future__ import annotations

from typing import Any, TypedDict

from tui.transcript.shown import ShownSession

MOST_FOLDS = 200
"""Folds that are kept with a place."""


class Place(TypedDict, total=False):
    """A place in a session, by key, as it is kept between two runs.

    Attributes:
        message: Id of the message at the top of the screen.
        index: Index of the part there.
        line: Which of its lines.
        selected: ``[message id, index]`` of the selected part.
        folds: ``[message id, index, level]`` of what the user folded or opened.
        at_end: Whether the end was followed.
    """

    message: str
    index: int
    line: int
    selected: list[Any]
    folds: list[list[Any]]
    at_end: bool


def read_place(value: object) -> Place | None:
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


def place_of(shown: ShownSession) -> Place | None:
    """Return the present place in a session, for the state file; None without a session."""
    if not shown.has_parts:
        return None
    document, scroller = shown.document, shown.view.scroller
    message_id, index = document.skeleton.key(min(scroller.part, len(document) - 1))
    chosen = document.skeleton.key(shown.cursor)
    folds = list(document.folds.items())[-MOST_FOLDS:]
    return Place(
        message=message_id, index=index, line=scroller.line, selected=list(chosen),
        folds=[[key[0], key[1], level] for key, level in folds], at_end=shown.view.at_end,
    )
