"""What was spent, as lines: the buckets of a turn, the bars of a session."""

from __future__ import annotations

from collections.abc import Sequence

from store import usage
from store.usage import Spent
from tui.inspector.subject import Subject
from tui.kit.figures import count_of, money, tokens
from tui.kit.lines import BLANK, Line, Run, cut, heading

LOOKS = {
    "cache_read": "tool", "cache_write": "ok", "input": "user", "output": "assistant",
    "reasoning": "reasoning",
}  # fmt: skip
"""The colour of each bucket, in the order of every plot."""
_BY_KEY = {bucket.key: bucket for bucket in usage.BUCKETS}
BUCKETS = tuple((key, _BY_KEY[key].label, look) for key, look in LOOKS.items())
"""The five buckets: key, name, colour."""
SHORT = {bucket.key: bucket.short for bucket in usage.BUCKETS}
"""Names for narrow columns, by key."""
FIRST = ("input", "output", "reasoning")
"""The buckets in the first of two lines; the second has the cache."""


def turn_lines(subject: Subject, width: int) -> list[Line]:
    """Return what the turn around the part spent."""
    turn = subject.detail.turn
    if turn is None or not turn.total:
        return []
    noun = count_of(subject.detail.turn_messages, "model call")
    lines = [heading("Turn", [noun], width), *spent_lines(turn, width), BLANK]
    return lines


def spent_lines(spent: Spent, width: int) -> list[Line]:
    """Return the five buckets in two lines, the cost at the right where it is known."""
    first = _figures([(SHORT[key], getattr(spent, key)) for key in FIRST])
    second: list[Run] = [("cache", "faint")]
    second += [(f" {tokens(spent.cache_read)}", "text"), (" read", "faint")]
    second += [(f"  {tokens(spent.cache_write)}", "text"), (" write", "faint")]
    cost: tuple[Run, ...] = ()
    if spent.cost is not None:
        cost = ((money(spent.cost), "text"),)
    return [Line(cut(first, width)), Line(cut(second, width), cost)]


def _figures(named: Sequence[tuple[str, int]]) -> list[Run]:
    runs: list[Run] = []
    for at, (name, count) in enumerate(named):
        runs += [("  " if at else "", "text"), (name, "faint"), (f" {tokens(count)}", "text")]
    return runs


def session_lines(subject: Subject, width: int) -> list[Line]:
    """Return the session's tokens as one bar a bucket."""
    spent = subject.detail.session
    if not spent.total:
        return []
    facts = [f"{tokens(spent.total)} tokens"]
    if spent.cost:
        facts.append(money(spent.cost))
    return [heading("Session", facts, width), *bar_lines(spent, width)]


def bar_lines(spent: Spent, width: int) -> list[Line]:
    """Return one bar for each bucket: its name, share, bar and count."""
    cells = max(6, width - 24)
    lines = []
    for key, name, look in BUCKETS:
        count = getattr(spent, key)
        share = count / spent.total if spent.total else 0.0
        percent = "<1%" if 0 < share < 0.01 else f"{share:.0%}"
        full = bar(share, cells)
        runs: tuple[Run, ...] = (
            (name.ljust(11), "faint"), (percent.rjust(5) + " ", "muted"),
            (full, look), (" " * (cells - len(full)), "text"),
        )
        lines.append(Line(runs, ((tokens(count).rjust(5), "muted"),)))
    return lines


def bar(share: float, cells: int) -> str:
    """Return a bar of full and partial blocks for a share from 0 to 1."""
    eighths = round(share * cells * 8)
    if share > 0 and not eighths:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")
