"""Names of rollout files: the thread, the segment, when.

Source: the Codex format page, sections 3.1 and 3.3. A file's physical key is the last
UUID in its name: the segment's, else the thread's.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NAME = re.compile(
    rf"rollout-(?P<at>.*?)-?(?P<thread>{_UUID})(?:_(?P<segment>{_UUID}))?"
    rf"(?P<copy>[ (~._-][^/]*?)?\.json(?:l(?P<zst>\.zst)?)?"
)
PACKED = ".jsonl.zst"
DOCUMENT = ".json"
"""Ends the rollouts of early 2025, which are one object each, written anew at every turn."""


@dataclass(frozen=True, slots=True)
class RolloutName:
    """What a rollout file's name says.

    Attributes:
        key: The physical key, lower case: the segment's UUID, else the thread's.
        packed: Whether it is compressed.
        copied: Whether it is a copy by its name, such as ``rollout-... (1).jsonl``.
    """

    thread: str
    key: str
    packed: bool
    copied: bool = False


def rollout_name(path: str) -> RolloutName | None:
    """Return what a path's last part says; None where it is no rollout's name."""
    found = _NAME.fullmatch(os.path.basename(path))
    if found is None:
        return None
    thread = found["thread"].lower()
    key = (found["segment"] or thread).lower()
    return RolloutName(thread, key, found["zst"] is not None, found["copy"] is not None)


def uuid7_ms(name: str) -> int | None:
    """Return the time in a UUID of version 7, epoch ms; None for other UUIDs."""
    digits = name.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return int(digits[:12], 16)
    except ValueError:
        return None
