"""Changes of files as hunks: ``{file, oldStart, oldLines, newStart, newLines, lines}``."""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.values import mapping

Hunk = dict[str, Any]
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def structured_patch(changes: object) -> dict[str, Any]:
    """Return ``{filePath, files, structuredPatch}`` of a patch's changes; empty without any.

    Args:
        changes: By path ``{type: add | delete, content}`` or ``{type: update,
            unified_diff, move_path}``; before 0.100 ``{add: {content}}`` and so on.
    """
    hunks: list[Hunk] = []
    files: list[dict[str, str]] = []
    for path, given in mapping(changes).items():
        kind, change = _change(mapping(given))
        entry = {"path": path, "change": kind}
        if isinstance(change.get("move_path"), str):
            entry["moved_to"] = change["move_path"]
        files.append(entry)
        hunks += [{"file": path, **hunk} for hunk in _hunks(kind, change)]
    if not files:
        return {}
    return {"filePath": files[0]["path"], "files": files, "structuredPatch": hunks}


def _change(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    kind = given.get("type")
    if isinstance(kind, str):
        return kind, given
    for kind in ("add", "delete", "update"):
        if isinstance(given.get(kind), dict):
            return kind, given[kind]
    return "unknown", given


def _hunks(kind: str, change: dict[str, Any]) -> list[Hunk]:
    content, diff = change.get("content"), change.get("unified_diff")
    if kind in ("add", "delete") and isinstance(content, str):
        lines = content.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        sign, count = ("+", len(lines)) if kind == "add" else ("-", len(lines))
        old, new = (0, count) if kind == "add" else (count, 0)
        return [_hunk((min(old, 1), old, min(new, 1), new), [sign + line for line in lines])]
    return _unified(diff) if isinstance(diff, str) else []


def _unified(diff: str) -> list[Hunk]:
    hunks: list[Hunk] = []
    for line in diff.split("\n"):
        found = _HUNK.match(line)
        if found:
            old, new = int(found[1]), int(found[3])
            hunks.append(_hunk((old, int(found[2] or 1), new, int(found[4] or 1)), []))
        elif hunks and line[:1] in ("+", "-", " ", "\\"):
            hunks[-1]["lines"].append(line)
    return hunks


def _hunk(numbers: tuple[int, int, int, int], lines: list[str]) -> Hunk:
    names = ("oldStart", "oldLines", "newStart", "newLines")
    return {**dict(zip(names, numbers, strict=True)), "lines": lines}
