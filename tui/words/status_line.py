"""The line for a status bar, such as tmux's: what its placeholders stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import Formatter

from store.stats.figures import Figures
from store.stats.windows import FIVE_HOURS_MS, WEEK_MS, Window
from store.text import figures as words
from store.text.neutral import neutral_line
from tui.words.spending import cost_words

DEFAULT = "{cost} {tokens}"
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """What a line is made of.

    Attributes:
        figures: Of the time that is asked for.
        models: The models, the one with most tokens first.
        windows: The open windows of plans.
        now: Epoch ms.
    """

    figures: Figures
    models: Sequence[str] = ()
    windows: Sequence[Window] = ()
    now: int = 0


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder.

    Attributes:
        help: What it stands for.
        value: Returns that.
    """

    help: str
    value: Callable[[Shown], str]


def _bucket(key: int) -> Callable[[Shown], str]:
    return lambda shown: words.tokens(shown.figures.tokens[key])


def _of_window(length: int, write: Callable[[Window, int], str]) -> Callable[[Shown], str]:
    def value(shown: Shown) -> str:
        fitting = [window for window in shown.windows if window.length == length]
        # Of several plans, the one that is used now.
        newest = max(fitting, key=lambda window: (window.seen_at or window.start), default=None)
        return "-" if newest is None else write(newest, shown.now)

    return value


def _used(window: Window, now: int) -> str:
    return "?" if window.used_percent is None else f"{window.used_percent:.0f}%"


def _rate(window: Window, now: int) -> str:
    cost = window.figures.cost_usd
    return "unknown" if cost is None else f"{words.money(window.per_hour(cost, now))}/h"


def _left(window: Window, now: int) -> str:
    about = "" if window.recorded else "~"
    return about + words.duration(max(0, window.end - now) // 60_000 * 60_000).replace(" 00s", "")


PLACEHOLDERS: dict[str, Placeholder] = {
    "cost": Placeholder("the cost; ≈ marks an estimate", lambda s: cost_words(s.figures) or "$0"),
    "usd": Placeholder("the cost as a number, empty if unknown", lambda s: (
        "" if s.figures.cost_usd is None and s.figures.answers
        else f"{s.figures.cost_usd or 0:.2f}")),
    "covered": Placeholder("answers whose cost is known", lambda s: f"{s.figures.covered:,}"),
    "unknown": Placeholder("answers whose cost is not", lambda s: f"{s.figures.unknown_answers:,}"),
    "tokens": Placeholder("all tokens", lambda s: words.tokens(s.figures.total)),
    "input": Placeholder("input tokens", _bucket(0)),
    "output": Placeholder("output tokens", _bucket(1)),
    "reasoning": Placeholder("reasoning tokens", _bucket(2)),
    "cache_read": Placeholder("tokens read from the cache", _bucket(3)),
    "cache_write": Placeholder("tokens written to the cache", _bucket(4)),
    "answers": Placeholder("answers of models", lambda s: f"{s.figures.answers:,}"),
    "sessions": Placeholder("sessions", lambda s: f"{s.figures.sessions:,}"),
    "turns": Placeholder("turns", lambda s: f"{s.figures.turns:,}"),
    "calls": Placeholder("tool calls", lambda s: f"{s.figures.calls:,}"),
    "failed": Placeholder("failed tool calls", lambda s: f"{s.figures.failed:,}"),
    "active": Placeholder("time in turns", lambda s: words.duration(s.figures.active_ms)),
    "model": Placeholder("the model with most tokens", lambda s: s.models[0] if s.models else "-"),
    **{
        f"{name}_{what}": Placeholder(f"{help} of the plan's {title}", _of_window(length, write))
        for name, title, length in (("window", "five hours", FIVE_HOURS_MS),
                                    ("week", "week", WEEK_MS))
        for what, help, write in (
            ("cost", "cost", lambda window, now: cost_words(window.figures) or "$0"),
            ("tokens", "tokens", lambda window, now: words.tokens(window.figures.total)),
            ("used", "share used as the server said", _used),
            ("rate", "dollars an hour", _rate),
            ("left", "time left, ~ if guessed,", _left),
        )
    },
}  # fmt: skip


class BadFormat(ValueError):
    """A format with a placeholder that there is not; the message names those that there are."""


def names_in(text: str) -> set[str]:
    """Return the placeholders of a format.

    Raises:
        BadFormat: One is unknown, or a brace is alone.
    """
    return {name for _, name in _pieces(text) if name is not None}


def status_line(text: str, shown: Shown) -> str:
    """Return a format with its placeholders replaced; values are harmless text of one line.

    Args:
        text: The format, as ``{cost} {tokens}``; a doubled brace is a brace.
        shown: What is shown.

    Raises:
        BadFormat: The format cannot be read.
    """
    return "".join(
        literal + ("" if name is None
                   else neutral_line(PLACEHOLDERS[name].value(shown), _LONGEST))
        for literal, name in _pieces(text)
    )  # fmt: skip


def _pieces(text: str) -> list[tuple[str, str | None]]:
    try:
        found = list(Formatter().parse(text))
    except ValueError as error:
        raise BadFormat(f"{error} in the format {text!r}; write {{{{ for a brace") from None
    for _, name, form, conversion in found:
        if name is not None and (name not in PLACEHOLDERS or form or conversion):
            listed = ", ".join(PLACEHOLDERS)
            raise BadFormat(f"there is no placeholder {{{name}}}. There are: {listed}")
    return [(literal, name) for literal, name, _, _ in found]
