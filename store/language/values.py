"""Compares values of fields with what a filter asks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache

from store.language.fields import FIELDS
from store.language.folding import fold
from store.language.query import Operator, Value

_STARTS = re.compile(r"(?<![^\W_])[^\W_]|(?<=[a-z0-9])[A-Z]|[\u3040-\u9fff\uac00-\ud7af]")
"""The first letters of words, also inside ``camelCase``; in Chinese, Japanese and Korean any."""
_PATHS = frozenset(("workspace", "file"))
_GLOB = re.compile(r"[*?]")


@lru_cache(maxsize=512)
def value_test(field: str, operator: Operator, wanted: str) -> Callable[[str], bool]:
    """Return a test of a field's value, as text; case and accents make no difference.

    ``=`` asks for the whole value, ``*`` and ``?`` stand for any characters and for one. Else
    a name fits where a word of it begins with what is wanted, an id where it begins with it,
    and any other text where it is anywhere in it.

    Args:
        field: A field that is a name or a text.
        operator: ``:`` or ``=``.
        wanted: What the filter asks for.
    """
    is_path = field in _PATHS
    asked = _slashed(fold(wanted)) if is_path else fold(wanted)
    if operator == "=":
        end = asked.rstrip("/") if is_path else asked
        return lambda value: _folded(value, is_path) == end
    if _GLOB.search(asked):
        pattern = _glob_pattern(asked, is_path)
        return lambda value: pattern.fullmatch(_folded(value, is_path)) is not None
    if field == "id":
        return lambda value: fold(value).startswith(asked)
    if FIELDS[field].kind == "name":
        return lambda value: begins_word(value, asked)
    if is_path and asked.endswith("/"):
        # That folder and what is below it.
        return lambda value: asked in _folded(value, is_path) + "/"
    return lambda value: asked in _folded(value, is_path)


def begins_word(name: str, wanted: str) -> bool:
    """Return whether a word of a name begins with something.

    Args:
        name: Such as ``claude-code`` or ``NotebookEdit``.
        wanted: The beginning, folded.
    """
    folded = fold(name)
    if folded.startswith(wanted):
        return True
    if wanted not in folded:
        return False
    return any(fold(name[at.start():]).startswith(wanted) for at in _STARTS.finditer(name))


def compares(value: float, operator: Operator, wanted: Value) -> bool:
    """Return whether a number compares as a filter asks.

    Args:
        value: The number.
        operator: How it is compared.
        wanted: With what.
    """
    limit = float(wanted)
    return {
        "<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit,
    }.get(operator, value == limit)


def _folded(value: str, is_path: bool) -> str:
    return _slashed(fold(value)).rstrip("/") if is_path else fold(value)


def _slashed(path: str) -> str:
    return path.replace("\\", "/")


def _glob_pattern(wanted: str, is_path: bool) -> re.Pattern[str]:
    """Return the pattern of a glob; of a path its end is enough."""
    pattern = translate(wanted.replace("[", "[[]"))
    if not is_path:
        return re.compile(pattern)
    inside = translate("*/" + wanted.replace("[", "[[]"))
    return re.compile(pattern if wanted.startswith("/") else f"(?:{pattern}|{inside})")
