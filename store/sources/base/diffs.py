"""Unified diffs as hunks: ``{oldStart, oldLines, newStart, newLines, lines}``."""

from __future__ import annotations

import re
from typing import Any

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def hunks_of(diff: object) -> list[dict[str, Any]]:
    """Return the hunks of a unified diff of one file; none for anything else."""
    hunks: list[dict[str, Any]] = []
    if not isinstance(diff, str):
        return hunks
    old = new = 0
    for line in diff.split("\n"):
        found = _HUNK.match(line)
        if found:
            old, new = int(found[2] or 1), int(found[4] or 1)
            hunks.append(
                {"oldStart": int(found[1]), "oldLines": old,
                 "newStart": int(found[3]), "newLines": new, "lines": []}
            )  # fmt: skip
        elif hunks and (old > 0 or new > 0 or line.startswith("\\")):
            old -= line[:1] in ("-", " ", "")
            new -= line[:1] in ("+", " ", "")
            hunks[-1]["lines"].append(line or " ")
    return hunks
