"""Print tokens, cost and tool calls, each answer of a model counted once.

Totals are the sums of the rows, whatever they are grouped by. A cost is what the agent told; where
it told none it is estimated by the table of prices (`backscroll prices`), and marked with ≈; where
no price is known the cost is unknown, which is never 0. A sum says how many answers it covers.

--since and --until take dates as in a query (docs/search.md): 2026-11-01, 3d, monday, "last week";
--until is the first moment that is left out. --query narrows to sessions, and with model:, tool:,
role:, after: and before: to answers and calls. With SESSION it is about these sessions alone.
Days, weeks and months begin as [stats] zone and month_starts say.

--format prints one line for a status bar. Its placeholders, in braces, are cost, usd, covered,
unknown, tokens, input, output, reasoning, cache_read, cache_write, answers, sessions, turns, calls,
failed, active and model; and of the plan's five hours and week window_cost, window_tokens,
window_used, window_rate, window_left, week_cost, week_tokens, week_used, week_rate and week_left.
--live is a quick line about today, by default "{cost} {tokens}": it reads the counts that the
browser keeps beside the store, and what changed since then for a second at most.

--windows prints the windows of plans that are open now: five hours and a week. Where an agent keeps
what its server says (Codex does), that is printed; else a window is guessed to begin with the first
request after the last one. Several agents may share a plan, which is not known here.

--json prints {"spent": figures, "by": NAME, "groups": [figures and more, ...], "others": figures
or null (of what --limit leaves out), "since", "until" (epoch ms or null), "zone", "coverage":
{"counted", "total" (sessions), "why" (not everything was searched; or "")}, "context": {...},
"windows": [...]}. Figures are "sessions", "turns", "answers", "copies", "spent": {"input",
"output", "reasoning", "cache_read", "cache_write"}, "total", "cost_usd" (told and estimated),
"told_usd", "told_answers", "estimated_usd", "estimated_answers", "covered_answers",
"unknown_answers", "calls", "failed", "denied", "tool_ms" and "active_ms"; dollars are null if
unknown. A group has also "group" (its key; "" without one), "label", "query" (opens its sessions),
"start" and "end" (of a period). With sessions named, "context" has the tokens in the context of
each now, by id (null if unknown), and "families" its figures together with the subagents and forks
below it: {"spent": figures, "members": [{"id", "kind" (null for the session itself), "depth",
"title", "share" (of the cost, else of the tokens; 0 to 1), "spent": figures}, ...]}, or null
without any. With --windows, a window has "agent", "name", "limit", "start",
"end", "recorded" (else guessed), "used_percent" and "seen_at" (or null), "spent": figures,
"usd_per_hour" (or null) and "tokens_per_hour". --csv has the same columns; a text that a
spreadsheet would take for a formula begins with an apostrophe.

--sizes shows what the store itself takes, not what was spent: the sizes of its files, its rows, and
SQLite's settings; of your library, or with --store PATH of another store. --store without a path is
the same as --sizes. With --json:
{"path", "form", "files": [{"path", "what", "size", "mode"}, ...], "total", "wal", "free_in_file",
"free_on_disk", "rows": {table: count}, "pragmas": {name: value}, "events"}; "events" is null
without an event log, else {"count", "size"}. Of a store on a server: {"path", "form", "tables":
[{"name", "place", "size", "indexes", "rows", "is_estimate"}, ...], "total", "database", "rows",
"settings", "search"}; rows are estimates of the server where there are millions.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, get_args

from store.config import Settings, load_config, quick_config, zone_of
from store.engine.database import Database
from store.language import dates
from store.language.query import Query, parse, quoted
from store.prices.loading import load_prices
from store.prices.table import PriceTable
from store.queries.sessions import resolve
from store.stats.counting import Progress, no_progress
from store.stats.families import Family, family
from store.stats.rollups import Rollups, open_rollups
from store.stats.statistics import (
    Answer,
    Dimension,
    Figures,
    Group,
    Order,
    Span,
    context_tokens,
    figures,
)
from store.stats.tables import StatisticsUnusable
from store.stats.times import Calendar
from store.stats.windows import Window, open_windows
from store.system.clock import system_clock
from store.text import figures as words
from store.text.neutral import neutral_line
from tui.cli.output import Printer, UsageError, as_text, home_path, note, print_json
from tui.cli.store_sizes import StoreOrSizes, print_sizes
from tui.cli.stores import needs_store, store_for_reading
from tui.kit.text import fit
from tui.words.spending import copies_of, cost_words, covered_words, csv_of, figures_json, flat
from tui.words.status_line import DEFAULT, BadFormat, Shown, names_in, status_line

EXAMPLES = (
    ("backscroll stats", "tokens and cost by model"),
    ('backscroll stats --by day --since "last week"', "each day since Monday of last week"),
    ("backscroll stats --by tool --query workspace:.", "calls, failures and time of tools"),
    ("backscroll stats --by month --csv > months.csv", "for a spreadsheet"),
    ("backscroll stats --windows", "what the five hours and the week have come to"),
    ("backscroll stats --today --format '{cost} {tokens}'", "a line of your own"),
    ("backscroll stats --sizes", "sizes, rows and settings of your library's files"),
    ("backscroll stats --sizes --store host.db", "the same of another store"),
    ("set -g status-right '#(backscroll stats --live)'", "the same in tmux's status bar"),
)

BY = ("all", *get_args(Dimension))
_PERIODS = ("hour", "day", "week", "month")
_LIVE_S = 1.0
"""Seconds for which a quick line counts what is not counted yet."""
_QUIET_S, _TOLD_EVERY_S = 0.5, 0.1
"""Seconds before the progress of the counting shows, and between two of its lines."""
_LONG_S = 5.0
"""Seconds of counting after which it is said how the next time is quick."""
_WIDE = 110
"""Columns from which a table has all of its columns."""
_WITH_IDS = 160
"""Columns from which sessions have their ids behind."""
_ID_WIDTH = 32
_LEAST_NAME, _LONGEST_NAME = 10, 48
_ORDERS: dict[str, Order] = {"tool": "calls"}


def add_store(parser: argparse.ArgumentParser) -> None:
    """Declare ``--store``, which may have no path here."""
    parser.add_argument(
        "--store", metavar="PATH", nargs="?", action=StoreOrSizes,
        help="use this store instead of your library; without a path, the same as --sizes",
    )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="only these sessions")
    parser.add_argument("--by", choices=BY, default="model", help="what to group by")
    parser.add_argument("--since", metavar="DATE", help="from this moment on")
    parser.add_argument("--until", metavar="DATE", help="before this moment")
    parser.add_argument("--today", action="store_true", help="since the day began")
    parser.add_argument("--query", metavar="QUERY", help="only what fits (docs/search.md)")
    parser.add_argument("--limit", type=_limit, metavar="N", help="at most N rows, the largest")
    parser.add_argument("--sizes", action="store_true", help="what the store takes on the disk")
    parser.add_argument("--windows", action="store_true", help="the windows of plans, open now")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--csv", action="store_true", help="print the rows as CSV")
    parser.add_argument("--format", metavar="FORMAT", help="print one line, such as '{cost}'")
    parser.add_argument("--live", action="store_true", help="a quick line about today")


@dataclass(frozen=True, slots=True)
class Named:
    """What is printed of a session that is named, beside its figures.

    Attributes:
        context: The tokens in its context now; None if unknown.
        family: The session with its subagents and forks; None without any.
    """

    context: int | None
    family: Family | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for.

    Attributes:
        by: None for the whole alone.
        ids: The sessions that are named; None for all.
    """

    by: Dimension | None
    span: Span
    query: Query
    calendar: Calendar
    now: int
    ids: list[str] | None = None
    limit: int | None = None

    def figures(self, db: Database, stats: Rollups, by: Dimension | None) -> Answer:
        """Return the figures.

        Args:
            db: The store.
            stats: Its counts.
            by: What to group by; None for the whole alone.
        """
        return figures(
            db, stats, by=by, span=self.span, query=self.query, zone=self.calendar.zone,
            limit=self.limit, order=_ORDERS.get(by or "", "tokens"),
            month_starts=self.calendar.month_starts,
        )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Print the figures."""
    if options.sizes:
        return print_sizes(options)
    _check(options)
    config = quick_config() if options.live else load_config()
    calendar, now = Calendar(zone_of(config.stats.zone), config.stats.month_starts), system_clock()
    span = _span(options, calendar, now)
    _query(options, [], calendar, now)
    with store_for_reading(options) as opened:
        if opened is None and options.format is not None:
            print(status_line(options.format, Shown(Figures(), now=now)))
            return 0
        db = needs_store(opened)
        ids = [resolve(db, name).id for name in options.sessions]
        query = _query(options, ids, calendar, now)
        by = None if options.by == "all" else options.by
        asked = Asked(by, span, query, calendar, now, ids or None, options.limit)
        prices = load_prices(config.prices)
        if options.format is not None:
            return _print_line(options, db, asked, prices)
        try:
            answer, windows = _read(db, prices, asked, by, windows=options.windows)
        except StatisticsUnusable:  # Its file is gone now.
            answer, windows = _read(db, prices, asked, by, windows=options.windows)
        named = {name: Named(context_tokens(db, name), family(db, name, prices)) for name in ids}
    if not answer.coverage.whole:
        note(f"{answer.coverage.counted:,} of {answer.coverage.total:,} sessions are counted yet")
    if answer.why:
        note(f"Not everything was searched: {answer.why}")
    _print(options, asked, answer, windows, named, config)
    return 0


def _read(
    db: Database, prices: PriceTable, asked: Asked, by: Dimension | None, *, windows: bool
) -> tuple[Answer, list[Window]]:
    with _telling_progress() as progress, open_rollups(db, prices, progress=progress) as stats:
        answer = asked.figures(db, stats, by)
        return answer, open_windows(db, stats, now=asked.now) if windows else []


@contextmanager
def _telling_progress() -> Iterator[Progress]:
    """Yield what tells on a terminal how far the counting is, where it takes long."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    printer, begun = Printer(sys.stderr), time.monotonic()
    due = begun + _QUIET_S
    counted_now = False

    def tell(counted: int, total: int) -> None:
        nonlocal due, counted_now
        if time.monotonic() >= due:
            counted_now, due = True, time.monotonic() + _TOLD_EVERY_S
            printer.status(f"counting {counted:,} of {total:,} sessions")

    try:
        yield tell
    finally:
        if counted_now:
            with suppress(OSError):
                printer.status("")
    if counted_now and time.monotonic() - begun > _LONG_S:
        note("All of this was counted now. While the browser is open it keeps the counts beside"
             " the store; from then on this is quick")


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: They do not.
    """
    if options.live and options.format is None:
        options.format = DEFAULT
    options.today = options.today or options.live
    kinds = [f"--{name}" for name in ("json", "csv") if getattr(options, name)]
    if options.format is not None:
        kinds.append("--live" if options.live else "--format")
        try:
            names_in(as_text(options.format))
        except BadFormat as error:
            raise UsageError(str(error)) from None
    if len(kinds) > 1:
        raise UsageError(f"{kinds[0]} and {kinds[-1]} do not go together")
    if options.today and (options.since or options.until):
        raise UsageError("--today does not go with --since or --until")


def _span(options: argparse.Namespace, calendar: Calendar, now: int) -> Span:
    if options.today:
        return Span(calendar.start(now, "day"), None)
    ends = []
    for name in ("since", "until"):
        given = getattr(options, name)
        try:
            ends.append(None if given is None else dates.moment(
                as_text(given), now=now, zone=calendar.zone))  # fmt: skip
        except dates.BadDate:
            raise UsageError(
                f"--{name}: {given!r} is not a date. Dates look like {dates.EXAMPLES}"
            ) from None
    return Span(*ends)


def _query(
    options: argparse.Namespace, ids: Sequence[str], calendar: Calendar, now: int
) -> Query:
    """Return the query, and the sessions that are named.

    Raises:
        UsageError: A piece of it cannot be read.
    """
    pieces = [as_text(options.query or "").strip()]
    if ids:
        pieces.append("id:" + ",".join(f"={quoted(one)}" for one in ids))
    query = parse(" ".join(filter(None, pieces)), now=now, zone=calendar.zone)
    if query.problems:
        raise UsageError(" ".join(f"{each.message}." for each in query.problems))
    return query


def _print_line(options: argparse.Namespace, db: Database, asked: Asked, prices: Any) -> int:
    wanted = names_in(options.format)
    has_windows = any(name.startswith(("window_", "week_")) for name in wanted)
    start = asked.span.start
    recent = start if options.live and not has_windows else None
    with open_rollups(db, prices, seconds=_LIVE_S if options.live else None, since=recent) as stats:
        answer = asked.figures(db, stats, "model" if "model" in wanted else None)
        windows = open_windows(db, stats, now=asked.now) if has_windows else []
    models = [group.key for group in answer.groups]
    print(status_line(options.format, Shown(answer.whole, models, windows, asked.now)))
    return 0


def _print(
    options: argparse.Namespace, asked: Asked, answer: Answer, windows: Sequence[Window],
    named: dict[str, Named], config: Settings,
) -> None:  # fmt: skip
    if options.json:
        found = _json(asked, answer, config) | {
            "context": {name: one.context for name, one in named.items()},
            "families": {name: _family_json(one.family) for name, one in named.items()},
        }
        if options.windows:
            found["windows"] = [_window_json(window, asked.now) for window in windows]
        print_json(found)
    elif options.csv:
        sys.stdout.write(_csv(asked, answer, windows, only_windows=options.windows))
    elif options.windows:
        _print_windows(Printer(), windows, asked)
    else:
        _print_table(Printer(), asked, answer, named)


# JSON and CSV


def _json(asked: Asked, answer: Answer, config: Settings) -> dict[str, Any]:
    coverage = answer.coverage
    return {
        "spent": {"group": ""} | figures_json(answer.whole),
        "by": asked.by or "all",
        "groups": [_group_json(group, asked.by) for group in answer.groups]
        if asked.by else [{"group": ""} | figures_json(answer.whole)],
        "others": None if answer.others is None else _others(answer.others),
        "since": asked.span.start,
        "until": asked.span.end,
        "zone": config.stats.zone,
        "coverage": {"counted": coverage.counted, "total": coverage.total, "why": answer.why},
    }  # fmt: skip


def _group_json(group: Group, by: str | None) -> dict[str, Any]:
    start, end = group.span if group.span is not None and by in _PERIODS else (None, None)
    own = {"group": group.key, "label": group.label, "query": group.query}
    return own | ({"start": start, "end": end} if by in _PERIODS else {}) | figures_json(
        group.figures)


def _others(found: Figures) -> dict[str, Any]:
    """Return the figures of what is left out; sessions of several groups do not add up."""
    return figures_json(found) | {"sessions": None}


def _family_json(found: Family | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "spent": figures_json(found.whole),
        "members": [
            {"id": each.session_id, "kind": each.kind or None, "depth": each.depth,
             "title": each.title, "share": found.share(each), "spent": figures_json(each.own)}
            for each in found.members
        ],
    }  # fmt: skip


def _window_json(window: Window, now: int) -> dict[str, Any]:
    names = ("agent", "name", "limit", "start", "end", "recorded", "used_percent", "seen_at")
    cost = window.figures.cost_usd
    return {name: getattr(window, name) for name in names} | {
        "spent": figures_json(window.figures),
        "usd_per_hour": None if cost is None else round(window.per_hour(cost, now), 6),
        "tokens_per_hour": round(window.per_hour(window.figures.total, now)),
    }


def _csv(
    asked: Asked, answer: Answer, windows: Sequence[Window], *, only_windows: bool
) -> str:
    rows = [_window_json(window, asked.now) for window in windows] if only_windows else [
        {"group": group.key, "label": group.label} | figures_json(group.figures)
        for group in answer.groups
    ]  # fmt: skip
    if not only_windows and answer.others is not None:
        rows.append({"group": "(others)", "label": "(others)"} | _others(answer.others))
    if not only_windows and asked.by is None:
        rows.append({"group": "all", "label": "all"} | figures_json(answer.whole))
    cells = [flat(row) for row in rows]
    named: dict[str, Any] = {"agent": "", "name": ""} if only_windows else {
        "group": "", "label": ""} | figures_json(Figures())  # fmt: skip
    heads = list(cells[0] if cells else flat(named))
    return csv_of(heads, [list(row.values()) for row in cells])


# Tables


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of figures.

    Attributes:
        head: Its heading.
        cell: Returns what is in it.
        wide: Whether it is there in wide tables only, or in narrow ones only; None for both.
    """

    head: str
    cell: Callable[[Figures], str]
    wide: bool | None = None


def _tokens(*places: int) -> Callable[[Figures], str]:
    return lambda found: words.tokens(sum(found.tokens[place] for place in places))


def _sessions(found: Figures) -> str:
    return f"{found.sessions:,}" if found.sessions else ""


def _known(found: Figures) -> str:
    """Return how many answers a cost covers, where it is not all of them."""
    return f"of {found.covered:,}/{found.answers:,}" if found.unknown_answers else ""


def _time(milliseconds: float) -> str:
    return words.duration(milliseconds) if milliseconds else ""


_SPENT = (
    _Column("sessions", _sessions, wide=True),
    _Column("answers", lambda found: f"{found.answers:,}"),
    _Column("input", _tokens(0)),
    _Column("output", _tokens(1), wide=True),
    _Column("reasoning", _tokens(2), wide=True),
    _Column("output", _tokens(1, 2), wide=False),
    _Column("cache read", _tokens(3), wide=True),
    _Column("cache write", _tokens(4), wide=True),
    _Column("cache", _tokens(3, 4), wide=False),
    _Column("total", lambda found: words.tokens(found.total)),
    _Column("cost", cost_words),
    _Column("covers", _known),
)
_CALLED = (
    _Column("sessions", _sessions),
    _Column("calls", lambda found: f"{found.calls:,}"),
    _Column("failed", lambda found: f"{found.failed:,}" if found.failed else ""),
    _Column("denied", lambda found: f"{found.denied:,}" if found.denied else ""),
    _Column("time", lambda found: _time(found.tool_ms)),
    _Column("average", lambda found: _time(found.tool_ms / found.timed if found.timed else 0)),
)


def _print_table(
    printer: Printer, asked: Asked, answer: Answer, named: dict[str, Named]
) -> None:
    is_wide = printer.width is None or printer.width >= _WIDE
    columns = [column for column in (_CALLED if asked.by == "tool" else _SPENT)
               if column.wide in (None, is_wide)]  # fmt: skip
    rows = [(_name(group, asked.by), group.figures) for group in answer.groups]
    rows += [("(others)", answer.others)] if answer.others is not None else []
    cells = [[column.cell(found) for column in columns] for _, found in [*rows, ("", answer.whole)]]
    kept = [place for place, column in enumerate(columns)
            if column.head != "covers" or any(row[place] for row in cells)]  # fmt: skip
    widths = {
        place: max(len(columns[place].head), *(len(row[place]) for row in cells)) for place in kept
    }
    has_ids = asked.by in ("session", "family") and (printer.width is None or
                                                     printer.width >= _WITH_IDS)  # fmt: skip
    most = _LONGEST_NAME if printer.width is None else max(
        _LEAST_NAME, printer.width - sum(widths.values()) - 2 * len(widths) - 1
        - (_ID_WIDTH if has_ids else 0))  # fmt: skip
    names = [fit(name, most) for name, _ in rows] + ["all"]
    width = max(map(len, names))
    heads = "".join(f"  {columns[place].head:>{widths[place]}}" for place in kept)
    printer.line(printer.paint(" " * width + heads, "faint"))
    for number, name in enumerate(names):
        line = "".join(f"  {cells[number][place]:>{widths[place]}}" for place in kept)
        styles = ("bold",) if number == len(rows) else ()
        pieces = [printer.paint(f"{name:<{width}}", *styles), printer.paint(line, *styles)]
        if has_ids and number < len(answer.groups):
            pieces.append(printer.paint(f"  {answer.groups[number].key}", "faint"))
        printer.line(*pieces)
    _print_notes(printer, answer, named)


def _name(group: Group, by: str | None) -> str:
    if by in _PERIODS:
        return group.key.replace("T", " ") + (":00" if by == "hour" else "")
    if by == "workspace":
        return neutral_line(home_path(group.key)) or "(none)"
    return neutral_line(group.label) or "(none)"


def _print_notes(printer: Printer, answer: Answer, named: dict[str, Named]) -> None:
    whole, notes = answer.whole, []
    if whole.answers:
        told = f", {words.money(whole.told_usd)} told by agents" \
            if whole.is_estimate and whole.told_usd else ""
        notes.append(covered_words(whole) + told)
    if whole.copies:
        notes.append(copies_of(whole.copies))
    joined = "; ".join(notes)
    fits = printer.width is None or len(joined) <= printer.width
    for line in [joined] if fits and notes else notes:
        printer.line(printer.paint(line, "faint"))
    for name, one in named.items():
        known = "unknown" if one.context is None else f"{one.context:,} tokens"
        printer.line(printer.paint(f"in context now  {known}  "), printer.paint(name, "faint"))
        if one.family is not None:
            others = words.count_of(one.family.children, "session")
            printer.line(
                printer.paint(f"with the {others} below it  {covered_words(one.family.whole)}, "
                              f"{words.tokens(one.family.whole.total)} tokens  "),
                printer.paint(name, "faint"),
            )  # fmt: skip


def _print_windows(printer: Printer, windows: Sequence[Window], asked: Asked) -> None:
    now, zone = asked.now, asked.calendar.zone
    if not windows:
        printer.line(printer.paint("No window is open: nothing was asked within a week"))
    for window in windows:
        found = window.figures
        used = "" if window.used_percent is None else f"  {window.used_percent:.0f}% used"
        name = " ".join(filter(None, (window.agent, window.limit if window.limit != window.agent
                                      else "", window.name)))  # fmt: skip
        printer.line(printer.paint(neutral_line(name), "bold"), printer.paint(used))
        cost = found.cost_usd
        rate = f"{words.tokens(round(window.per_hour(found.total, now)))} tokens/h"
        if cost is not None:
            rate = f"{words.money(window.per_hour(cost, now))}/h, {rate}"
        printer.line(printer.paint(
            f"  {covered_words(found)}, {words.tokens(found.total)} tokens; {rate}"))
        how = "as its server said" if window.recorded else "guessed from the first request"
        if window.seen_at is not None:
            how += f" at {_clock(window.seen_at, zone):%H:%M}"
        left = words.duration((window.end - now) // 60_000 * 60_000).replace(" 00s", "")
        printer.line(printer.paint(
            f"  until {_clock(window.end, zone):%Y-%m-%d %H:%M}, {left} left ({how})", "faint"))


def _clock(at: int, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at / 1000, zone)


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"not a number: {text!r}")
    return int(text)
