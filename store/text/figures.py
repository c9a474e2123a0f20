"""Figures and names as people read them: tokens, bytes, times, money, folders, models."""

from __future__ import annotations

import os
import time
from functools import lru_cache

from store.text.neutral import neutral_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_DATED = r"[-@]20(\d{6}|\d\d-\d\d-\d\d)$|-latest$"
_VERSION = r"(?<=[a-z]-)(\d)-(\d{1,2})(?=$|-)"


def tokens(count: int) -> str:
    """Return a count of tokens in few cells, such as ``1.2M``, ``84k``, ``950``."""
    if count < 1_000:
        return str(count)
    if count < 9_950:
        return f"{count / 1_000:.1f}k"
    if count < 999_500:
        return f"{count / 1_000:.0f}k"
    return f"{count / 1_000_000:.1f}M" if count < 999_500_000 else f"{count / 1e9:.1f}G"


def size(count: float) -> str:
    """Return a number of bytes, such as ``1.4 kB`` and ``310 kB``."""
    if count < 999.5:
        return f"{count:.0f} B"
    units = iter(("kB", "MB", "GB", "TB"))
    amount, unit = count / 1_000, next(units)
    while amount >= 999.5 and unit != "TB":
        amount, unit = amount / 1_000, next(units)
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


def duration(milliseconds: float) -> str:
    """Return a duration, such as ``40 ms``, ``0.2 s``, ``48 s``, ``3m 04s``, ``3d 4h``."""
    if milliseconds < 95:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 9_950:
        return f"{milliseconds / 1_000:.1f} s".replace(".0 s", " s")
    seconds = round(milliseconds / 1_000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes:02}m"
    return f"{hours // 24}d {hours % 24}h"


def clock(at: int) -> str:
    """Return a time of day, local, to the second."""
    return time.strftime("%H:%M:%S", time.localtime(at / 1_000))


def moment(at: int) -> str:
    """Return a date and time, local."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1_000))


def money(dollars: float) -> str:
    """Return a cost: three digits after the point below a dollar, else two."""
    return f"${dollars:.3f}" if dollars < 1 else f"${dollars:,.2f}"


def estimate(dollars: float) -> str:
    """Return an estimated cost, marked as one: ``≈ $0.12``; at most seven cells below $1,000."""
    if 0 < dollars < 0.01:
        return "≈ <$.01"
    return f"≈ ${dollars:.2f}" if dollars < 10 else f"≈ ${dollars:,.0f}"


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, such as ``1 line`` or ``1,038 lines``.

    Args:
        number: How many.
        noun: The singular.
        plural: The plural where it is not the noun with an "s".
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def home_path(path: str) -> str:
    """Return a path with ``~`` for the home folder."""
    home = os.path.expanduser("~")
    is_below = home != "/" and (path == home or path.startswith(home + "/"))
    return "~" + path[len(home):] if is_below else path


def model(name: str | None) -> str:
    """Return a model's id without its vendor's prefix and its date; "" where none is known."""
    if not name or name == "unknown":
        return ""
    dated, version = _patterns()
    short = dated.sub("", neutral_line(name, 100).rpartition("/")[2])
    return version.sub(r"\1.\2", short.removeprefix("claude-"))


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    import re  # The first rows, which have no model, are drawn without.

    return re.compile(_DATED), re.compile(_VERSION)
