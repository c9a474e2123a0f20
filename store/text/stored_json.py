"""JSON that others wrote into a store's columns, read so that no value can end a program.

A host's column may hold anything: no JSON, half surrogate pairs, numbers past 64 bits, or
lists a million levels deep, which the recursive functions that draw and copy a value could
not follow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_LEVELS = 200
"""How deep a value may be nested; what is deeper counts as damaged and is shown as text."""


class DamagedJson(ValueError):
    """Text that is no JSON, or is nested too deep."""


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    What orjson refuses (a lone surrogate, NaN) the standard library reads, and all of it while
    orjson is not loaded.

    Raises:
        DamagedJson: The text is no JSON, or is nested deeper than ``MOST_LEVELS``.
    """
    orjson = _orjson()
    try:
        value = _loads_slowly(text) if orjson is None else orjson.loads(text)
    except ValueError:
        value = _loads_slowly(text)
    refuse_deep(text, value)
    return value


def array_of(values: Iterable[str | int]) -> str:
    """Return a JSON array, for SQLite's ``json_each``."""
    given, orjson = list(values), _orjson()
    if orjson is not None:
        array: str = orjson.dumps(given).decode()
        return array
    texts = "".join(value for value in given if isinstance(value, str))
    if texts.isascii() and texts.isprintable() and not {'"', "\\"} & {*texts}:
        # As ids are; ``json`` and what it imports are a tenth of all before the first rows.
        quoted = [f'"{value}"' if isinstance(value, str) else str(value) for value in given]
        return f"[{','.join(quoted)}]"
    import json

    return json.dumps(given)


_loaded: ModuleType | None = None


def _orjson() -> ModuleType | None:
    """Return the faster library where it is loaded, as by all that reads more than a page.

    Its import takes 8 ms, more than all else that the first page of a list needs.
    """
    global _loaded
    found = sys.modules.get("orjson")
    if found is None or found is _loaded:
        return found
    import orjson  # Waits where another thread is still importing it.

    _loaded = orjson
    return orjson


def refuse_deep(text: str | bytes, value: Any) -> None:
    """Refuse a value that is nested deeper than ``MOST_LEVELS``.

    Raises:
        DamagedJson: It is.
    """
    if len(text) <= MOST_LEVELS:
        return
    if isinstance(text, bytes):
        openings = text.count(b"[") + text.count(b"{")
    else:
        openings = text.count("[") + text.count("{")
    if openings > MOST_LEVELS and _is_deep(value):
        raise DamagedJson(f"nested deeper than {MOST_LEVELS} levels")


def _loads_slowly(text: str | bytes) -> Any:
    import json

    try:
        return json.loads(text)
    except RecursionError:
        raise DamagedJson(f"nested deeper than {MOST_LEVELS} levels") from None
    except (ValueError, TypeError) as error:
        raise DamagedJson(str(error)) from None


def _is_deep(value: Any) -> bool:
    """Tell whether a value is nested too deep, level by level: nothing here recurses."""
    level = [value]
    for _ in range(MOST_LEVELS):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += (child for child in item.values() if isinstance(child, dict | list))
            elif isinstance(item, list):
                below += (child for child in item if isinstance(child, dict | list))
        if not below:
            return False
        level = below
    return True


def readable_json(value: Any) -> str:
    """Return a value as indented JSON for people; half surrogate pairs are escaped."""
    import orjson

    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        import json

        return json.dumps(value, indent=2)


def as_dict(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []
