"""``workspace.yaml``: a flat list of keys, which needs no YAML library."""

from __future__ import annotations

import json

_BLOCKS = ("|", "|-", "|+", ">", ">-", ">+")


def parse_workspace(body: bytes) -> dict[str, str]:
    """Return the keys of the file; lines that are none are left out."""
    found: dict[str, str] = {}
    block: str | None = None
    for line in body.decode("utf-8", "replace").splitlines():
        if block is not None and (line.startswith((" ", "\t")) or not line.strip()):
            found[block] = f"{found[block]}\n{line.strip()}".strip("\n")
            continue
        block = None
        key, colon, value = line.partition(":")
        if not colon or not key.strip() or line.startswith((" ", "#", "-")):
            continue
        name, value = key.strip(), value.strip()
        if value in _BLOCKS:
            block, value = name, ""
        found[name] = _scalar(value)
    return found


def _scalar(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return "" if value in ("null", "~") else value
