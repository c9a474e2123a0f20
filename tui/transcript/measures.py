"""What follows from a skeleton alone: hidden runs, the newest message, likely heights."""

from __future__ import annotations

from store.rows import is_tool_type
from tui.transcript.heights import Heights
from tui.transcript.item import Setting
from tui.transcript.skeleton import HIDDEN, QUEUED, SILENT, Skeleton

_NOT_HIDDEN = bytes(flags for flags in range(256) if not flags & HIDDEN)


def newest_message(skeleton: Skeleton) -> int:
    """Return the last message that is neither hidden nor queued, -1 where there is none."""
    for message in range(len(skeleton.flags) - 1, -1, -1):
        if not skeleton.flags[message] & (HIDDEN | QUEUED):
            return message
    return -1


def hidden_runs(skeleton: Skeleton) -> list[tuple[int, int]]:
    """Return first and last message of each run hidden by one batch."""
    runs: list[tuple[int, int]] = []
    # For each message that comes in: among a million parts, a look at every flag takes 5 ms.
    if not skeleton.flags.translate(None, _NOT_HIDDEN):
        return runs
    for message, flag in enumerate(skeleton.flags):
        if not flag & HIDDEN:
            continue
        if runs and runs[-1][1] == message - 1 and (
            skeleton.hidden_at[runs[-1][0]] == skeleton.hidden_at[message]
        ):
            runs[-1] = (runs[-1][0], message)
        else:
            runs.append((message, message))
    return runs


def estimate(skeleton: Skeleton, part: int, setting: Setting) -> int:
    """Guess a part's lines from its type and size, before it is read.

    Args:
        skeleton: Holds type and size of the part.
        part: The part.
        setting: Widths and modes.
    """
    name, size = skeleton.type_names[skeleton.types[part]], skeleton.sizes[part]
    if name in SILENT:
        return 0
    if name == "text":
        return 3 + size * 10 // (9 * setting.measure)
    if name == "reasoning" and setting.reasoning == "whole":
        return 2 + size * 10 // (9 * setting.measure)
    if is_tool_type(name):
        if setting.tools == "off":
            return 1
        lines = size // 60
        return 1 + (min(lines, 5) if setting.tools == "short" else lines)
    return 2


def estimates(skeleton: Skeleton, setting: Setting) -> Heights:
    """Return the estimated heights of all parts."""
    return Heights(estimate(skeleton, part, setting) for part in range(len(skeleton)))
