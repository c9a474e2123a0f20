"""Facts of a session in the few cells that a list has for them."""

from __future__ import annotations

import time
from datetime import date

from store.queries.list_options import Group
from store.text import figures
from tui.kit.masked import shown
from tui.kit.text import one_line

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000

_SHORT_KINDS = {"claude-code": "claude"}

STATE_WORDS = {
    "running": "running", "retrying": "retrying", "waiting-approval": "needs approval",
    "waiting-input": "waiting", "queued": "queued", "interrupted": "interrupted",
    "error": "failed",
}
"""What a session does, where that is worth a word."""
FILTER_WORDS = "type to filter"
"""In the line of the filter while it is empty."""


def title_of(title: str | None) -> str:
    """Return a session's title in one line, and a word where it has none."""
    return one_line(shown(title) or "") or "untitled"


def age(at: int, now: int) -> str:
    """Return how long ago something was, in at most four cells."""
    gone = max(0, now - at)
    if gone < MINUTE:
        return "now"
    if gone < HOUR:
        return f"{gone // MINUTE}m"
    if gone < DAY:
        return f"{gone // HOUR}h"
    days = gone // DAY
    if days < 14:
        return f"{days}d"
    if days < 70:
        return f"{days // 7}w"
    return f"{days // 30}mo" if days < 365 else f"{days // 365}y"


def age_until(at: int, now: int) -> int:
    """Return until when ``age`` has the same words, or an earlier time.

    Args:
        at: When something was, epoch ms.
        now: Epoch ms.
    """
    gone = max(0, now - at)
    step = MINUTE if gone < HOUR else HOUR if gone < DAY else DAY
    return max(at, now - gone) + (gone // step + 1) * step


def short_kind(kind: str) -> str:
    """Return the shorter name that people know a source by, where it has one."""
    return _SHORT_KINDS.get(kind, kind)


def model_name(model: str | None) -> str:
    """Return a model's id without its vendor's prefix and its date."""
    return one_line(figures.model(model))


def folder(path: str) -> str:
    """Return a folder as people write it, with ``~`` for the home."""
    return figures.home_path(one_line(shown(path)))


def heading(name: str, group: Group, today: date) -> str:
    """Return the words above a group.

    Args:
        name: As in ``ListKeys.group_names``.
        group: What the list is grouped by.
        today: The local date.
    """
    if not name:
        return group.unnamed
    if group.heading == "folder":
        return folder(name)
    return _day(name, today) if group.heading == "day" else one_line(name) or group.unnamed


def _day(name: str, today: date) -> str:
    day = date.fromisoformat(name)
    gone = (today - day).days
    if gone == 0:
        return "Today"
    if gone == 1:
        return "Yesterday"
    if 1 < gone < 7:
        return time.strftime("%A", day.timetuple())
    words = time.strftime("%a %d %b", day.timetuple())
    return words if day.year == today.year else f"{words} {day.year}"
