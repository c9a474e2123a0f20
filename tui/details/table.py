"""The table of turns: a line each, with what fits in the width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from store.queries.details import Turn
from store.text.figures import count_of, duration, moment, tokens
from tui.details.columns import horizontal
from tui.details.measures import Measure
from tui.kit.blocks import Block, Spot
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Link, Run, cut, set_width
from tui.kit.text import one_line
from tui.kit.usage import BUCKETS, cost_words

BEGAN = 12
"""Cells of the column of times: a turn's time, and the date of the first one of a day."""

TASK = 14
"""Characters of a task's name in a line of the table."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Which columns the table has at a width.

    Attributes:
        buckets: One for each bucket, in place of one for all tokens.
        names: Tools by name, in place of their number.
        cost: One for the cost.
        bar: Cells of the bar.
    """

    buckets: bool
    names: bool
    cost: bool
    bar: int

    @classmethod
    def at(cls, width: int, cost: bool) -> Shape:
        """Return the columns for a width; ``cost`` is whether any cost is known."""
        return cls(width >= 132, width >= 96, cost, 12 if width >= 96 else 6)

    @property
    def tools(self) -> int:
        """Cells of the column of tools."""
        return 24 if self.names else 8


def has_cost(turns: Sequence[Turn]) -> bool:
    """Return whether the cost of any turn is known."""
    return any(cost_words(turn.spent) for turn in turns)


def head_line(turns: Sequence[Turn], width: int) -> Line:
    """Return the names of the columns."""
    shape = Shape.at(width, has_cost(turns))
    began = "began".rjust(BEGAN - 1) + " "
    runs: list[Run] = [("turn".rjust(5) + "  " + began + "took".rjust(8), "faint")]
    if shape.buckets:
        runs += [(bucket.short.rjust(7), bucket.ink) for bucket in BUCKETS]
    else:
        runs.append(("tokens".rjust(8), "faint"))
    if shape.cost:
        runs.append(("cost".rjust(9), "faint"))
    runs.append((" " * (shape.bar + 4) + "tools".ljust(shape.tools) + "  prompt", "faint"))
    return Line(cut(runs, width))


class TurnTable(Block):
    """A block with one line a turn."""

    def __init__(self, session_id: str, turns: Sequence[Turn], measure: Measure) -> None:
        """Take the turns.

        Args:
            session_id: Their session, for the links.
            turns: The turns.
            measure: What their bars show.
        """
        self._session_id, self._turns, self._measure = session_id, turns, measure
        sums = (sum(amount for amount, _ in measure.of(turn)) for turn in turns)
        self._highest = max(sums, default=0.0)
        self._cost = has_cost(turns)

    def height(self, width: int) -> int:
        """Return the number of turns."""
        return len(self._turns)

    def line(self, number: int, width: int) -> Line:
        """Return the line of a turn."""
        turn, shape = self._turns[number], Shape.at(width, self._cost)
        text, support = ("muted", "faint") if turn.hidden or turn.copied else ("text", "muted")
        runs: list[Run] = [
            (("·" if turn.hidden else str(turn.number)).rjust(5) + "  ", support),
            (self._began(number).rjust(BEGAN - 1) + " ", support),
            (duration(turn.milliseconds).rjust(8) if turn.milliseconds else "·".rjust(8), text),
            *_token_runs(turn, shape, text),
        ]
        runs += [("  ", "text"), *self._bar(turn, shape.bar), ("  ", "text")]
        runs += set_width(tool_runs(turn, shape.names), shape.tools)
        runs += [("  ", "text"), *_prompt_runs(turn, text)]
        return Line(cut(runs, width), link=Link("turn", self._session_id, turn.message_id))

    def _began(self, number: int) -> str:
        """Return the time of day, after the date where that is another than the line above's."""
        shown = moment(self._turns[number].at)
        before = moment(self._turns[number - 1].at) if number else ""
        if before[:10] == shown[:10]:
            return shown[11:16]
        return shown[5:16]

    def _bar(self, turn: Turn, width: int) -> list[Run]:
        pieces = horizontal(self._measure.of(turn), self._highest, width)
        runs: list[Run] = [("█" * cells, look) for cells, look in pieces]
        return [*set_width(runs, width)]

    def find(self, needle: str, width: int) -> list[Spot]:
        """Return the turns whose prompt, task or tools hold the needle."""
        return [
            number for number, turn in enumerate(self._turns)
            if needle in turn.prompt.casefold() or needle in turn.task.casefold()
            or any(needle in tool.casefold() for tool in turn.tools)
        ]


def _token_runs(turn: Turn, shape: Shape, look: str) -> list[Run]:
    runs: list[Run] = []
    if shape.buckets:
        for bucket in BUCKETS:
            count = getattr(turn.spent, bucket.key)
            runs.append((tokens(count).rjust(7), look) if count else ("·".rjust(7), "faint"))
    else:
        runs.append((tokens(turn.spent.total).rjust(8), look))
    if shape.cost:
        runs.append((cost_words(turn.spent).rjust(9), look))
    return runs


def tool_runs(turn: Turn, names: bool) -> list[Run]:
    """Return the tools of a turn: with their names, or just how many calls."""
    if not turn.tools:
        return [("·", "faint")]
    failed: list[Run] = [(f"✗{turn.failed} ", "error")] if turn.failed else []
    if not names:
        return [(f"{turn.tools.total()} ", "tool"), *failed]
    told = "  ".join(
        f"{one_line(name, 24)} {count}" if count > 1 else one_line(name, 24)
        for name, count in turn.tools.most_common()
    )
    return [*failed, (told, "tool")]


def _prompt_runs(turn: Turn, look: str) -> list[Run]:
    mark: list[Run] = []
    if turn.hidden:
        mark.append(("hidden ", "fork"))
    if turn.copied:
        mark.append(("copied ", "fork"))
    if turn.favorite:
        mark.append((f"{glyphs().star} ", "tool"))
    if turn.task:
        # Ids of tasks begin alike.
        named = f"task {turn.task_number:,}" if turn.task_number else one_line(turn.task, TASK)
        mark.append((f"{named}  ", "faint"))
    if not turn.number and not turn.hidden:
        return [*mark, ("before the first prompt", "faint italic")]
    return [*mark, (one_line(turn.prompt), look)]


def turn_line(turn: Turn, width: int) -> Line:
    """Return the selected turn in one line: its buckets, cost, tools and model."""
    named = "hidden turn" if turn.hidden else f"turn {turn.number}"
    runs: list[Run] = [(named, "text bold"), ("  ", "text")]
    for bucket in BUCKETS:
        count = tokens(getattr(turn.spent, bucket.key))
        runs += [(f"{bucket.short} ", "faint"), (count, bucket.ink), ("  ", "text")]
    if cost := cost_words(turn.spent):
        runs.append((f"{cost}  ", "text"))
    runs += tool_runs(turn, True)
    told = count_of(turn.messages, "message")
    if turn.task:
        number = f"{turn.task_number:,}  " if turn.task_number else ""
        told = f"task {number}{one_line(turn.task, 40)}  {told}"
    models = "  ".join(one_line(model.rpartition("/")[2], 40) for model in turn.models)
    return Line(cut(runs, max(10, width - len(told) - len(models) - 5)),
                ((f"{models}  ", "muted"), (told, "faint")))
