"""The page of the statistics screen: figures, a plot over time or a year, tables with bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta, tzinfo
from functools import partial
from typing import Literal, NamedTuple

from store.language.query import quoted
from store.stats.statistics import Figures, Group
from store.text.figures import count_of, duration, tokens
from tui.kit.glyphs import glyphs
from tui.kit.lines import BLANK, Line, Run, cut, set_width, width_of
from tui.kit.plots import (
    BarRow,
    Series,
    TimeBar,
    bar_rows,
    bars_that_fit,
    calendar,
    curve,
    legend,
    stacked_bars,
)
from tui.kit.text import cells, fit, fit_path, one_line
from tui.stats.measures import (
    Measure,
    all_words,
    covers,
    dollars,
    percent,
    unknown_words,
)
from tui.stats.ranges import (
    Between,
    Bucket,
    Slot,
    dates_query,
    day_between,
    day_of,
    range_words,
    slot_words,
    time_words,
)
from tui.stats.reading import Board, Counted, Table, TimeBucket
from tui.stats.view import Key, Page, Spot
from tui.words.agents import OTHERS, agent_series
from tui.words.costs import cost_words, money_short
from tui.words.sessions import age, folder, model_name, short_kind

TWO_COLUMNS = 100
"""From this width of the screen tables are side by side, and figures have a column each."""
GAP = 6
"""Cells between two columns of tables."""
ROWS = 6
"""Rows of a table before it is unfolded."""
MOST_SERIES = 5
NEARLY_USED = 90
"""From this percentage on a window of a plan is shown as a warning."""
MORE = "\0more"
_PER: dict[Bucket, str] = {
    "hour": "an hour", "day": "a day", "week": "a week", "month": "a month",
}


class Target(NamedTuple):
    """What a spot leads to.

    Attributes:
        kind: ``sessions`` has the list show those of a query; ``session`` opens one; ``fold``
            shows all rows of a table, or the first ones again.
        words: Says what the spot stands for and what it comes to.
        query: Of the sessions.
        counted: Which sessions these are.
        session_id: The session.
        message_id: The message to show it at.
        name: What it is, as plain text.
    """

    kind: Literal["sessions", "session", "fold"]
    words: Sequence[Run]
    query: str = ""
    counted: Counted = Counted(Between(None, None))
    session_id: str = ""
    message_id: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page is made of.

    Attributes:
        board: What was read.
        measure: What bars and rows show.
        query: What narrows it, as it was typed.
        zone: The time zone; None is the computer's own.
        rows: Rows of the plot.
        now: Epoch ms.
        year: The last day of the year that is shown as a calendar; None for the plot.
        textured: Whether series have patterns of their own.
        unfolded: Tables of which all rows are shown.
    """

    board: Board
    measure: Measure
    query: str
    zone: tzinfo | None
    rows: int
    now: int
    year: date | None = None
    textured: bool = False
    unfolded: frozenset[str] = frozenset()


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        name: What it stands for in its table.
        bar: What is drawn.
        target: What it leads to.
    """

    name: str
    bar: BarRow
    target: Target


@dataclass(frozen=True, slots=True)
class Section:
    """A table.

    Attributes:
        name: The same in every page.
        title: Its heading.
        heads: What its values are, at the right of the heading.
        rows: From the top.
        cut: Shortens a label.
        label_share: Share of the width that labels may have.
    """

    name: str
    title: str
    heads: str
    rows: list[Row]
    cut: Callable[[str, int], str] = fit
    label_share: float = 0.3


@dataclass(slots=True)
class StatsPage(Page):
    """A page with what its spots lead to."""

    targets: dict[Key, Target] = field(default_factory=dict)


def page_of(shown: Shown, width: int, selected: Key | None) -> StatsPage:
    """Return the page for a width.

    Args:
        shown: What it is made of.
        width: Cells of a line.
        selected: The selected spot, which plots mark themselves.
    """
    page = StatsPage()
    board = shown.board
    wide = width + 2 >= TWO_COLUMNS
    page.lines.append(BLANK)
    if board.whole is None:
        page.lines.append(Line([(f"counting{glyphs().more}", "faint")]))
        return page
    page.lines += figure_lines(board.whole, _agents(board), width, wide=wide)
    page.lines.append(BLANK)
    if shown.year is not None:
        _add_year(page, shown, width, selected)
    elif not (board.whole.answers or board.whole.calls or board.whole.turns):
        page.lines.append(Line([(f"Nothing was counted for {_when(shown)}.", "muted")]))
    else:
        _add_plot(page, shown, width, selected)
    page.lines.append(BLANK)
    _add_tables(page, _sections(shown), shown, width, wide=wide)
    return page


def _when(shown: Shown) -> str:
    words = range_words(shown.board.between, shown.zone)
    return f"{words} and this query" if shown.query.strip() else words


# Figures


class Figure(NamedTuple):
    """One of the figures at the top.

    Attributes:
        value: Bold.
        names: What it is, the longest words first; the first that fit are shown.
        detail: More about it.
        ink: Of the value.
    """

    value: str
    names: tuple[str, ...]
    detail: str
    ink: str = "text bold"


def figures_of(whole: Figures, agents: int) -> list[Figure]:
    """Return the four figures.

    Args:
        whole: All of the range.
        agents: How many agents are in it.
    """
    cost, share, covered = whole.cost_usd, whole.cache_share, covers(whole)
    if whole.is_estimate:
        detail = f"{glyphs().about} {money_short(whole.estimated_usd)} of it estimated"
    else:
        detail = unknown_words(whole) or ("as the agents tell" if whole.answers else "")
    unknown = f"{whole.unknown_answers:,}"
    noun = "session" if whole.sessions == 1 else "sessions"
    in_agents = f"{noun} in {count_of(agents, 'agent')}"
    return [
        Figure("not known" if cost is None and whole.answers else money_short(cost or 0.0),
               (f"spent, {covered}", f"spent, {unknown} answers not known",
                f"spent, {unknown} unknown") if covered else ("spent",), detail),
        Figure(tokens(whole.total), ("tokens",),
               f"{100 * share:.0f} % cache read" if share is not None else ""),
        Figure(f"{whole.sessions:,}", (in_agents, noun) if agents > 1 else (noun,),
               count_of(whole.turns, "turn")),
        Figure(percent(whole.failed, whole.calls) or "0 %", ("tool calls failed", "failed"),
               f"{whole.failed:,} of {whole.calls:,} calls",
               "error bold" if whole.failed else "text bold"),
    ]


def figure_lines(whole: Figures, agents: int, width: int, *, wide: bool) -> list[Line]:
    """Return the four figures, each in a column of its own or all in a line.

    Args:
        whole: All of the range.
        agents: How many agents are in it.
        width: Cells of a line.
        wide: Whether each has a column.
    """
    found = figures_of(whole, agents)
    if not wide:
        return _in_a_line(found, width)
    column = width // 4
    values: list[Run] = []
    names: list[Run] = []
    details: list[Run] = []
    for one in found:
        values += set_width([(one.value, one.ink)], column)
        names += set_width([(_fitting(one.names, column - 2), "muted")], column)
        details += set_width([(fit(one.detail, column - 2), "faint")], column)
    return [Line(values), Line(names), Line(details)]


def _in_a_line(found: Sequence[Figure], width: int) -> list[Line]:
    """Return the figures side by side, in the longest words that fit."""
    names = [one.names[-1] for one in found]

    def columns() -> list[int]:
        return [max(cells(one.value) + 1 + cells(name), cells(one.detail))
                for one, name in zip(found, names, strict=True)]

    for at, one in enumerate(found):
        for name in one.names:
            before, names[at] = names[at], name
            if sum(columns()) + 2 * (len(found) - 1) <= width:
                break
            names[at] = before
    sizes = columns()
    spare = max(2, min(8, max(0, width - sum(sizes)) // max(1, len(found) - 1)))
    first: list[Run] = []
    second: list[Run] = []
    for one, name, size in zip(found, names, sizes, strict=True):
        column = size + (spare if one is not found[-1] else 0)
        first += set_width([(one.value, one.ink), (f" {name}", "muted")], column)
        second += set_width([(one.detail, "faint")], column)
    return [Line(cut(first, width)), Line(cut(second, width))]


def _fitting(candidates: Sequence[str], room: int) -> str:
    return next((each for each in candidates if cells(each) <= room), fit(candidates[-1], room))


def _agents(board: Board) -> int:
    agents = board.tables.get("agent")
    if agents is not None:
        return len(agents.groups)
    return len({agent for bucket in board.buckets for agent in bucket.parts})


# Over time


def _series(shown: Shown) -> list[tuple[str, Series]]:
    """Return the agents of the plot, the largest first, in their colours."""
    sums: dict[str, list[float]] = {}
    for bucket in shown.board.buckets:
        for agent, part in bucket.parts.items():
            both = sums.setdefault(agent, [0.0, 0.0])
            both[0] += shown.measure.of(part)
            both[1] += part.total
    ranked = sorted(sums, key=lambda agent: (-sums[agent][0], -sums[agent][1], agent))
    return agent_series(ranked, MOST_SERIES)


def _amounts(
    parts: dict[str, Figures], series: Sequence[tuple[str, Series]], measure: Measure
) -> tuple[float, ...]:
    """Return the amount of each series, those of all further agents as the last one's."""
    named = {name for name, _ in series}
    rest = sum(measure.of(part) for agent, part in parts.items() if agent not in named)
    empty = Figures()
    return tuple(
        rest if name == OTHERS else measure.of(parts.get(name, empty)) for name, _ in series
    )


def merged(buckets: Sequence[TimeBucket], per: int) -> list[TimeBucket]:
    """Return the buckets with so many of them in one; the same ones where that is 1.

    How many sessions are in several together is not known, as one may be in more than one.
    """
    if per <= 1:
        return list(buckets)
    found = []
    for at in range(0, len(buckets), per):
        group = buckets[at:at + per]
        whole, parts = Figures(), dict[str, Figures]()
        for one in group:
            whole.add(one.figures)
            for agent, part in one.parts.items():
                parts.setdefault(agent, Figures()).add(part)
        marked = next((one.slot for one in group if one.slot.major), group[0].slot)
        slot = Slot(group[0].slot.start, group[-1].slot.end, marked.label, marked.major)
        found.append(TimeBucket(slot, whole, parts))
    return found


def _add_plot(page: StatsPage, shown: Shown, width: int, selected: Key | None) -> None:
    board, measure = shown.board, shown.measure
    series = _series(shown)
    per = -(-len(board.buckets) // bars_that_fit(width))
    buckets = merged(board.buckets, per)
    keys: list[Key] = [("time", str(one.slot.start)) for one in buckets]
    bars = [
        TimeBar(_amounts(one.parts, series, measure), one.slot.label, one.slot.major,
                measure.name == "cost" and unknown_words(one.figures) is not None)
        for one in buckets
    ]
    chosen = keys.index(selected) if selected in keys else None
    plot = stacked_bars(
        bars, [one for _, one in series], width, shown.rows, written=measure.tick,
        textured=shown.textured, selected=chosen, whole=measure.whole,
    )
    title = f"{measure.title} {_PER[board.bucket]}"
    title += f", {per} {board.bucket}s a bar" if per > 1 else ""
    most = f"at most {measure.written(plot.highest)}" if plot.highest else ""
    room = width - cells(title) - cells(most) - 6
    shown_series = [one for _, one in series]
    page.lines.append(Line(
        [(title, "text bold"), ("   ", "blank"),
         *legend(shown_series, textured=shown.textured, room=room)],
        [(most, "faint")] if most else (),
    ))
    top = len(page.lines)
    page.lines += plot.lines
    for key, one, (left, right) in zip(keys, buckets, plot.columns, strict=True):
        page.spots.append(Spot(key, top, top + shown.rows, left, right, -1, marks=False))
        between = Between(one.slot.start, one.slot.end)
        words = slot_words(one.slot, board.bucket, shown.zone) if per == 1 else range_words(
            between, shown.zone)
        page.targets[key] = Target(
            "sessions", [(words, "text bold"), ("  ", "text"), *all_words(one.figures)],
            _query(shown, dates_query(between, shown.zone)), Counted(between), name=words)


def _query(shown: Shown, *pieces: str) -> str:
    return " ".join(filter(None, (shown.query.strip(), *pieces)))


# A year


def _add_year(page: StatsPage, shown: Shown, width: int, selected: Key | None) -> None:
    board, measure, last = shown.board, shown.measure, shown.year
    assert last is not None
    days = board.days
    title: list[Run] = [(f"{measure.title} a day", "text bold")]
    if days is None:
        page.lines.append(Line([*title, (f"   counting{glyphs().more}", "faint")]))
        return
    first = last - timedelta(days=52 * 7 + last.weekday())
    amounts = {day: measure.of(group.figures) for day, group in days.items() if day >= first}
    unknown = frozenset(
        day for day, group in days.items()
        if measure.name == "cost" and unknown_words(group.figures)
    )
    chosen = selected[1] if selected is not None and selected[0] == "day" else None
    year = calendar(
        amounts, last, width, written=measure.written, unknown=unknown,
        selected=date.fromisoformat(chosen) if chosen is not None else None,
    )
    most = max(amounts.values(), default=0.0)
    between = Between(day_between(max(first, year.first), shown.zone).start,
                      day_between(last, shown.zone).end)
    page.lines.append(Line(
        [*title, (f"   {range_words(between, shown.zone)}", "faint")],
        [(f"at most {measure.written(most)}", "faint")] if most else ()))
    top = len(page.lines)
    page.lines += year.lines
    day = max(first, year.first)
    while day <= last:
        row, cell = year.place_of(day)
        key: Key = ("day", day.isoformat())
        page.spots.append(Spot(key, top + row, top + row + 1, cell, cell + 1, -1, marks=False))
        words = f"{day:%a} {day.day} {day:%b} {day.year}"
        group, its = days.get(day), day_between(day, shown.zone)
        told = all_words(group.figures) if group is not None else [("nothing", "muted")]
        page.targets[key] = Target(
            "sessions", [(words, "text bold"), ("  ", "text"), *told],
            _query(shown, dates_query(its, shown.zone)), Counted(its), name=words)
        day += timedelta(days=1)


# Tables


def _sections(shown: Shown) -> list[Section]:
    """Return the tables of a page, in pairs: the left one, then the right one."""
    board, series = shown.board, _series(shown)
    found: list[Section | None] = [
        _groups(shown, series, "model", "By model", _model_label),
        _tools(shown),
        _groups(shown, series, "workspace", "By workspace", _workspace_label, fit_path),
        _groups(shown, series, "agent", "By agent", partial(_named, "unknown agent")),
        _groups(shown, series, "branch", "By branch", partial(_named, "no branch")),
        _windows(shown), _busiest(shown, series), _longest(shown), _cache(shown, series),
        _contexts(shown),
    ]
    return [one for one in found if one is not None and one.rows] if board.whole else []


def _named(otherwise: str, key: str) -> str:
    return one_line(key, 120) or otherwise


def _model_label(key: str) -> str:
    return model_name(key) or one_line(key, 100) or "unknown"


def _workspace_label(key: str) -> str:
    return folder(key) if key else "no folder"


def _groups(
    shown: Shown, series: Sequence[tuple[str, Series]],
    by: Literal["model", "workspace", "agent", "branch"], title: str,
    label: Callable[[str], str], shorten: Callable[[str, int], str] = fit,
) -> Section | None:
    table, measure = shown.board.tables.get(by), shown.measure
    if table is None or shown.board.whole is None:
        return None
    labels = [label(group.key) for group in table.groups]
    twice = {each for each in labels if labels.count(each) > 1}
    rows = []
    whole = measure.of(shown.board.whole)
    for group, name in zip(table.groups, labels, strict=True):
        full = one_line(group.key, 120) if name in twice and group.key else name
        row = _group_row(shown, series, group, full, whole)
        if row is not None:
            counted = Counted(shown.board.between, by, group.key)
            rows.append(row._replace(target=row.target._replace(counted=counted)))
    rows.sort(key=lambda row: -sum(row.bar.amounts))
    rest = _others_row(table, measure, whole)
    return Section(by, title, measure.name, [*rows, *rest], shorten)


def _group_row(
    shown: Shown, series: Sequence[tuple[str, Series]], group: Group, label: str, whole: float
) -> Row | None:
    """Return the row of a group; None where it has nothing of the measure."""
    measure = shown.measure
    unknown = unknown_words(group.figures) if measure.name == "cost" else None
    amount = measure.of(group.figures)
    if not amount and unknown is None and (measure.name != "cost" or not group.figures.answers):
        return None
    values: tuple[Run, ...] = (
        (measure.words(group.figures), "muted"), (percent(amount, whole), "faint"))
    if unknown is not None:
        values = ((unknown, "muted"),)
    inks = tuple(one.ink for _, one in series)
    bar = BarRow(label, _amounts(group.parts, series, measure), inks, values)
    words = [(label, "text bold"), ("  ", "text"), *all_words(group.figures)]
    return Row(group.key, bar, Target("sessions", words, group.query, name=label))


def _others_row(table: Table, measure: Measure, whole: float) -> list[Row]:
    if table.others is None or not measure.of(table.others):
        return []
    amount = measure.of(table.others)
    bar = BarRow("all others", (amount,), ("faint",), (
        (measure.words(table.others), "muted"), (percent(amount, whole), "faint")), "muted")
    words = [("all others", "text bold"), ("  ", "text"), *all_words(table.others)]
    return [Row("\0others", bar, Target("fold", words, name="all others"))]


def _tools(shown: Shown) -> Section | None:
    table = shown.board.tables.get("tool")
    if table is None:
        return None
    rows = []
    for group in sorted(table.groups, key=lambda one: -one.figures.calls):
        found, label = group.figures, _named("unknown tool", group.key)
        failed = percent(found.failed, found.calls)
        mark = f" {glyphs().failed}" if found.failed else "  "
        took = duration(found.tool_ms) if found.tool_ms else ""
        bar = BarRow(label, (found.calls - found.failed, found.failed), ("tool", "error"), (
            (f"{found.calls:,}", "muted"),
            (f"{failed}{mark}", "error" if found.failed > found.calls // 100 else "faint"),
            (took, "faint"),
        ))
        denied = f", {found.denied:,} denied" if found.denied else ""
        told = f"{count_of(found.calls, 'call')}, {found.failed:,} failed{denied}"
        told += f", {took} in {found.timed:,} of them" if took else ""
        words: list[Run] = [(label, "text bold"), ("  ", "text"), (told, "muted")]
        counted = Counted(shown.board.between, "tool", group.key)
        rows.append(Row(group.key, bar, Target(
            "sessions", words, group.query, counted, name=label)))
    return Section("tool", "Tools", "calls, failed, time", rows)


def _busiest(shown: Shown, series: Sequence[tuple[str, Series]]) -> Section | None:
    found, measure = shown.board.sessions, shown.measure
    if found is None:
        return None
    rows = []
    for group in found:
        label = one_line(group.label, 200) or "untitled"
        row = _group_row(shown, series, group, label, 0.0)
        if row is not None:
            rows.append(_opening(row, group.key))
    return Section("session", "Busiest sessions", measure.name, rows, label_share=0.5)


def _opening(row: Row, session_id: str, message_id: str | None = None) -> Row:
    """Return a row that opens a session.

    Args:
        row: The row.
        session_id: The session.
        message_id: Where to show it.
    """
    values = row.bar.values if len(row.bar.values) == 1 else row.bar.values[:1]
    return row._replace(bar=row.bar._replace(values=values), target=row.target._replace(
        kind="session", session_id=session_id, message_id=message_id))


def _longest(shown: Shown) -> Section | None:
    if shown.board.turns is None:
        return None
    rows = []
    for turn in shown.board.turns:
        title = one_line(turn.title, 200) or "untitled"
        took, when = duration(turn.milliseconds), age(turn.at, shown.now)
        day = day_of(turn.at, shown.zone)
        bar = BarRow(title, (turn.milliseconds,), ("user",), ((took, "muted"), (when, "faint")))
        words: list[Run] = [
            (title, "text bold"), (f"  {took}, {day:%a} {day.day} {day:%b} {day.year}", "muted")]
        rows.append(Row(f"{turn.session_id} {turn.message_id}", bar, Target(
            "session", words, session_id=turn.session_id, message_id=turn.message_id,
            name=title)))
    return Section("turn", "Longest turns", "time, age", rows, label_share=0.5)


def _contexts(shown: Shown) -> Section | None:
    if shown.board.contexts is None:
        return None
    rows = []
    for group, held in shown.board.contexts:
        spent = group.figures.total
        if not spent:
            continue
        title = one_line(group.label, 200) or "untitled"
        context = "not known" if held is None else tokens(held)
        bar = BarRow(title, (spent,), ("reasoning",), (
            (tokens(spent), "muted"), (context, "muted" if held else "faint")))
        words: list[Run] = [(title, "text bold"), (
            f"  {tokens(spent)} tokens spent, {context} in context now", "muted")]
        rows.append(Row(group.key, bar, Target(
            "session", words, session_id=group.key, name=title)))
    rows.sort(key=lambda row: -sum(row.bar.amounts))
    return Section("context", "Spent and in context", "spent, in context", rows, label_share=0.5)


def _cache(shown: Shown, series: Sequence[tuple[str, Series]]) -> Section | None:
    """Return the share of the cache over time, of each agent."""
    agents = shown.board.tables.get("agent")
    if agents is None or shown.board.whole is None:
        return None
    inks = {name: one.ink for name, one in series}
    found: list[tuple[str, str, Figures, list[float | None], str]] = []
    buckets = shown.board.buckets
    if len(agents.groups) > 1:
        found.append(("", "all", shown.board.whole,
                      [one.figures.cache_share for one in buckets], "muted"))
    empty = Figures()
    for group in agents.groups:
        shares = [one.parts.get(group.key, empty).cache_share for one in buckets]
        found.append((group.key, _named("unknown agent", group.key), group.figures, shares,
                      inks.get(group.key, "faint")))
    queries = {group.key: group.query for group in agents.groups}
    rows = []
    for key, label, figures, shares, ink in found:
        if figures.cache_share is None or not any(shares):
            continue
        share = f"{100 * figures.cache_share:.0f} %"
        bar = BarRow(label, (), (), ((share, "muted"),),
                     draw=partial(_drawn_curve, tuple(shares), ink))
        words: list[Run] = [(label, "text bold"), (
            f"  {share} of what models were given came from the cache", "muted")]
        query = queries.get(key) or _query(shown, dates_query(shown.board.between, shown.zone))
        counted = Counted(shown.board.between, "agent" if key in queries else None, key)
        rows.append(Row(key or "\0all", bar, Target(
            "sessions", words, query, counted, name=label)))
    return Section("cache", "Cache share over time", "of the input", rows)


def _windows(shown: Shown) -> Section:
    """Return the windows of plans: how much is used where that is known, else the time gone."""
    rows = []
    for window in shown.board.windows:
        agent = _named("unknown agent", window.agent)
        label = f"{window.name} ({short_kind(agent)})"
        gone = (shown.now - window.start) / max(1, window.end - window.start)
        used = window.used_percent
        spent = cost_words(window.figures)
        until = time_words(window.end, shown.now, shown.zone)
        ends = until if window.recorded else f"{until} guessed"
        share = f"{used:.0f} %" if used is not None else ""
        ink = "faint" if used is None else "error" if used >= NEARLY_USED else "ok"
        bar = BarRow(label, (gone if used is None else used / 100,), (ink,), (
            (share, "muted"), (spent, "muted"), (ends, "faint")))
        rate = money_short(window.per_hour(dollars(window.figures), shown.now))
        of_limit = f" of {one_line(window.limit, 40)}" if window.limit else ""
        pieces = [f"{share}{of_limit} used" if share else f"{100 * gone:.0f} % of its time is gone",
                  unknown_words(window.figures) or f"{spent} spent, {rate} an hour",
                  f"resets {until}" if window.recorded else f"ends {until}, guessed"]
        words: list[Run] = [(label, "text bold"), ("  " + ", ".join(pieces), "muted")]
        since = Between(window.start, None)
        query = f"agent:={quoted(window.agent)} " + dates_query(since, shown.zone)
        rows.append(Row(f"{window.agent} {window.length} {window.limit}", bar,
                        Target("sessions", words, query, Counted(since, "agent", window.agent),
                               name=label)))
    return Section("window", "Windows of plans", "used, spent, end", rows, label_share=0.5)


def _drawn_curve(shares: Sequence[float | None], ink: str, width: int) -> list[Run]:
    return [(curve(shares, width, highest=1.0), ink)]


def _add_tables(
    page: StatsPage, sections: Sequence[Section], shown: Shown, width: int, *, wide: bool
) -> None:
    left = (width - GAP) // 2 if wide else width
    labels = _label_cells(sections, shown, left)
    if not wide:
        for section in sections:
            place = Place(len(page.lines), 0, 0, width)
            page.lines += [*_table_lines(page, section, shown, place, labels), BLANK]
        return
    for at in range(0, len(sections), 2):
        top = len(page.lines)
        places = Place(top, 0, 0, left), Place(top, left + GAP, 1, width - GAP - left)
        sides = [
            _table_lines(page, section, shown, place, labels)
            for section, place in zip(sections[at:at + 2], places, strict=False)
        ]
        for number in range(max(map(len, sides))):
            runs: list[Run] = []
            for lines, place in zip(sides, places, strict=False):
                line = lines[number] if number < len(lines) else BLANK
                runs += [(" " * GAP, "blank")] if place.column else []
                runs += set_width(line.runs, place.width)
            page.lines.append(Line(runs))
        page.lines.append(BLANK)


class Place(NamedTuple):
    """Where a table is in the page.

    Attributes:
        top: Its first line.
        left: Its first cell.
        column: 0 or 1.
        width: Cells of its lines.
    """

    top: int
    left: int
    column: int
    width: int


def _shown_rows(section: Section, shown: Shown) -> list[Row]:
    folds = len(section.rows) > ROWS + 1 and section.name not in shown.unfolded
    return section.rows[:ROWS] if folds else section.rows


def _label_cells(sections: Sequence[Section], shown: Shown, width: int) -> int:
    """Return the cells of labels, the same in all tables whose labels are short."""
    longest = max((
        cells(row.bar.label) for section in sections if section.label_share < 0.5
        for row in _shown_rows(section, shown)
    ), default=0)
    return min(longest, max(12, int(width * 0.3)))


def _table_lines(
    page: StatsPage, section: Section, shown: Shown, place: Place, labels: int
) -> list[Line]:
    """Return the lines of a table, and add its spots to the page.

    Args:
        page: The page.
        section: The table.
        shown: What the page is made of.
        place: Where the table is in the page.
        labels: Cells of short labels.
    """
    rows, width = _shown_rows(section, shown), place.width
    title: list[Run] = [(section.title, "text bold")]
    gap = width - width_of(title) - cells(section.heads)
    lines = [Line(cut([*title, (" " * gap, "blank"), (section.heads, "faint")], width))]
    if section.label_share >= 0.5:
        longest = max((cells(row.bar.label) for row in rows), default=0)
        labels = min(longest, int(width * section.label_share))
    lines += bar_rows([row.bar for row in rows], width, textured=shown.textured,
                      cut=section.cut, label_cells=labels)

    def add(name: str, number: int, target: Target) -> None:
        key, top = (section.name, name), place.top + number
        page.spots.append(Spot(key, top, top + 1, place.left, place.left + width, place.column))
        page.targets[key] = target

    for number, row in enumerate(rows, 1):
        add(row.name, number, row.target)
    if len(section.rows) > ROWS + 1:
        hidden = len(section.rows) - len(rows)
        words = f"{glyphs().more} {hidden} more" if hidden else "fewer rows"
        told = f"{section.title}: {count_of(hidden, 'more row')}" if hidden else section.title
        add(MORE, len(lines), Target("fold", [(told, "muted")]))
        lines.append(Line([(words, "faint")]))
    return lines
