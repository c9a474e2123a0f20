"""viben's small settings files, in all the spellings of their keys.

They are one ``key: <JSON value>`` per line, though named YAML. Keys came as ``agent_id``,
``agentId`` and a mixture (the viben format page); here they are all ``agent_id``.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.json_lines import LineError, parse_line, parse_value

_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*:(?:\s+(.*))?$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def parse_settings(body: bytes) -> dict[str, Any]:
    """Return a file's values by key; lines that are none are left out."""
    found: dict[str, Any] = {}
    for line in body.decode("utf-8", "replace").split("\n"):
        match = _LINE.match(line.rstrip("\r"))
        if match is not None:
            found[snake(match[1])] = _value((match[2] or "").strip())
    return found


def parse_object(body: bytes) -> dict[str, Any]:
    """Return a JSON object's values, by keys in the one spelling.

    Raises:
        LineError: It is no JSON object.
    """
    value, _ = parse_line(body)
    return {snake(key): item for key, item in value.items()}


def snake(key: str) -> str:
    """Return a key as ``agent_id``."""
    return _HUMP.sub("_", key).lower()


def _value(text: str) -> Any:
    if not text:
        return None
    try:
        return parse_value(text)
    except LineError:
        quoted = len(text) > 1 and text[0] == text[-1] == "'"
        return text[1:-1].replace("''", "'") if quoted else text
