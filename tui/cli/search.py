"""Search everything: what was typed, said, thought, run and printed, and titles.

QUERY is words, "phrases", -without, re:/expressions/i and fields such as agent:codex, tool:bash,
file:worker.py, is:error or after:30d; all of them have to fit. A list of fields is printed for an
unknown one. Put the query in quotes for the shell. Hits are printed by session, the newest
first, each with the line in which the words are. Archived sessions are searched with is:archived,
what a rewind has hidden with is:hidden. A message that a fork has copied is found once.

Without a search index everything is read, for a minute at most; what was not searched is reported
on stderr.

--json prints one document: {"query", "order" (newest, best), "hits": [hit, ...], "sessions": {id:
session}, "counts": {"hits", "sessions", "archived_hits", "archived_sessions", "all_sessions",
"wanted_sessions" (that fulfil the filters on sessions), "whole" (whether all are counted)},
"facets": {"agent"|"workspace"|"tool"|"role"|"where"|"month": {value: hits}}, "coverage":
{"searched", "total" (messages), "indexed", "why" (not everything was searched; or "")}, "cursor":
of the next page or null, "problems": [text]}. A hit has session_id, message_id and part_id (null
for a title), index (of the part in its message, -1 for a title), created_at, where (prompt, text,
reasoning, input, output, title), role, tool, state, failed, excerpt {"text", "marks": [[start,
end], ...] (characters of text), "line" (its number in the part's text), "cut_before",
"cut_after"}, matches (how many the part has) and score (0 with newest). A session has title,
agent, source, model, workspace, branch, parent_id, created_at, updated_at, archived_at, starred
and tags. Times are epoch ms. Hits are ordered by (created_at, message_id) downwards and index
upwards, or by score. With a cursor, counts and facets are of what follows it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NoReturn, get_args

from store.config import load_config
from store.conversation.calls import Call
from store.engine.database import Database
from store.errors import NotFound, StoreError
from store.language.query import Query, parse
from store.queries.listing import ListRow
from store.search.hits import Excerpt, Hit, Order, SessionHits, Update
from store.search.running import PAGE, Request, Run, read_cursor, with_index
from store.system.clock import system_clock
from store.system.streams import Painted
from store.text import figures
from tui.cli.output import Printer, UsageError, as_text, home_path, local_time, note, print_json
from tui.cli.stores import store_for_reading
from tui.start.wanted import BrowserWanted, Place
from tui.words.calls import describe

EXAMPLES = (
    ('backscroll search "retry loop"', "where both words are"),
    ("backscroll search '\"could not connect\" tool:bash after:30d'", "a phrase in commands"),
    ("backscroll search 'file:src/worker.py role:assistant'", "who touched this file"),
    ("backscroll search 'is:error tool:bash' --json", "failed commands, for a program"),
    ("backscroll search 'retry loop' --open", "open the browser at the first hit"),
)

SCAN_S = 60.0
"""Seconds of work after which a search without an index ends."""
COUNT_S = 2.0
"""Seconds for which hits behind the page are counted."""
_MOST_CONTEXT = 100
_INDENT = "      "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to search for")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    parser.add_argument(
        "--order", choices=get_args(Order), default="newest", help="newest hits first, or best"
    )
    parser.add_argument(
        "--limit", type=_number, default=PAGE, metavar="N",
        help=f"at most N hits (default: {PAGE})",
    )  # fmt: skip
    parser.add_argument(
        "--context", type=_number, default=0, metavar="N",
        help="lines before and after the one with the words (default: 0)",
    )  # fmt: skip
    parser.add_argument("--cursor", help="start after the last hit of the previous page")
    parser.add_argument(
        "--open", action="store_true", dest="browse", help="open the browser at the first hit"
    )
    parser.add_argument(
        "--helpers", action="store_true",
        help="also runs that agents started for themselves (setting: ui.helpers)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Print the hits, or open the browser at the first one."""
    text = as_text(" ".join(map(str.strip, options.query)))
    query = parse(text, now=system_clock())
    _refuse_problems(query)
    try:
        read_cursor(options.cursor, options.order)
    except StoreError as error:
        raise UsageError(str(error)) from None
    request = Request(
        query, options.order, 1 if options.browse else options.limit, options.cursor,
        helpers=options.helpers or load_config().ui.helpers, counting=not options.browse,
        context=min(options.context, _MOST_CONTEXT), scan_s=SCAN_S, count_s=COUNT_S,
    )  # fmt: skip
    with store_for_reading(options) as database:
        if database is None:
            note("The library is empty. Run `backscroll sync` first.")
            if options.json:
                print_json(_document(query, options.order, None))
            return 0
        found = _found(database, request)
        if options.browse:
            _browse(options, found)
        if options.json:
            print_json(_document(query, options.order, found))
        else:
            _print_hits(found)
    _tell(query, found, limit=options.limit)
    return 0


def _refuse_problems(query: Query) -> None:
    """Report what could not be read in a query; refuse one of which a piece is missing."""
    if not query:
        reason = "; ".join(each.message for each in query.problems)
        raise UsageError(reason or "nothing to search for")
    used = [*(each.span for each in query.terms), *(each.span for each in query.filters)]
    for problem in query.problems:
        start, end = problem.span
        if not any(begin <= start and end <= stop for begin, stop in used):
            raise UsageError(problem.message)
        note(problem.message)


def _found(database: Database, request: Request) -> Update:
    """Return the last update of a search."""
    last: Update | None = None
    for update in with_index(database.path, lambda index: Run(database, request, index).steps()):
        last = update or last
    assert last is not None
    return last


def _browse(options: argparse.Namespace, found: Update) -> NoReturn:
    """Go on in the browser, at the first hit."""
    hit = next(iter(found.page.hits), None)
    if hit is None:
        raise NotFound("no hits")
    raise BrowserWanted(options.store, Place(hit.session_id, hit.message_id, hit.part_id))


# JSON


def _document(query: Query, order: Order, found: Update | None) -> dict[str, Any]:
    found = Update.nothing() if found is None else found
    return {
        "query": query.text,
        "order": order,
        "hits": [_hit_json(hit) for hit in found.page.in_order],
        "sessions": {each.row.id: _session_json(each.row) for each in found.page.sessions},
        "counts": {name: getattr(found.counts, name) for name in (
            "hits", "sessions", "archived_hits", "archived_sessions", "all_sessions",
            "wanted_sessions", "whole")},
        "facets": found.facets,
        "coverage": {name: getattr(found.coverage, name)
                     for name in ("searched", "total", "indexed", "why")},
        "cursor": found.page.cursor,
        "problems": [each.message for each in query.problems],
    }  # fmt: skip


def _hit_json(hit: Hit) -> dict[str, Any]:
    names = ("session_id", "message_id", "part_id", "index", "created_at", "where", "role", "tool",
             "state", "failed")
    excerpt = hit.excerpt
    shown = {
        "text": excerpt.text, "marks": [list(mark) for mark in excerpt.marks],
        "line": excerpt.line, "cut_before": excerpt.cut_before, "cut_after": excerpt.cut_after,
    }
    return {name: getattr(hit, name) for name in names} | {
        "excerpt": shown, "matches": hit.matches, "score": hit.score}


def _session_json(row: ListRow) -> dict[str, Any]:
    names = ("title", "agent", "source", "model", "workspace", "branch", "parent_id", "created_at",
             "updated_at", "archived_at")
    return {name: getattr(row, name) for name in names} | {
        "starred": row.star, "tags": list(row.tags)}


# Lines


def _print_hits(found: Update) -> None:
    printer = Printer()
    for number, session in enumerate(found.page.sessions):
        if number:
            printer.line()
        printer.line(*_heading(printer, session))
        for hit in session.hits:
            if hit.message_id is not None:
                printer.line(*_hit_line(printer, hit, session.row.workspace))
            for line in _excerpt_lines(printer, hit.excerpt):
                printer.line(printer.paint(_INDENT), *line)


def _heading(printer: Printer, session: SessionHits) -> list[Painted]:
    row = session.row
    title = " ".join((row.title or "untitled").split())
    facts = (
        figures.count_of(len(session.hits) + session.more, "hit"), row.agent,
        home_path(row.workspace), local_time(row.updated_at), row.id,
    )
    return [printer.paint(title, "bold"),
            printer.paint("  " + " · ".join(fact for fact in facts if fact), "faint")]


_SPEAKERS = {"user": ("You", "user"), "assistant": ("Assistant", "assistant"),
             "system": ("System", "faint")}
_STATUS_STYLES = {"failed": "error", "denied": "error", "interrupted": "error"}


def _hit_line(printer: Printer, hit: Hit, workspace: str | None) -> Iterator[Painted]:
    yield printer.paint(f"  {local_time(hit.created_at, '%m-%d %H:%M')}  ", "faint")
    if hit.tool is not None:
        call: Call = describe(dict(hit.data), workspace, hit.times)
        yield printer.paint(call.name, "tool", "bold")
        yield printer.paint(f"  {call.what}")
        if call.word:
            yield printer.paint(f"  {call.word}", _STATUS_STYLES.get(call.status, "faint"))
        return
    name, style = _SPEAKERS.get(hit.role, (hit.role, "faint"))
    if hit.where == "reasoning":
        name, style = "Reasoning", "reasoning"
    yield printer.paint(name, style, "bold")


def _excerpt_lines(printer: Printer, excerpt: Excerpt) -> Iterator[list[Painted]]:
    """Yield the lines of an excerpt with its matches in bold."""
    start = 0
    lines = excerpt.text.split("\n")
    for number, line in enumerate(lines):
        end = start + len(line)
        pieces, at = [], start
        for low, high in excerpt.marks:
            low, high = max(low, start), min(high, end)
            if low < high:
                pieces += [printer.paint(excerpt.text[at:low]),
                           printer.paint(excerpt.text[low:high], "match")]
                at = high
        pieces.append(printer.paint(excerpt.text[at:end]))
        before = "… " if excerpt.cut_before and len(lines) == 1 else ""
        after = " …" if excerpt.cut_after and number == len(lines) - 1 and len(lines) == 1 else ""
        yield [printer.paint(before, "faint"), *pieces, printer.paint(after, "faint")]
        start = end + 1


# Counts


def _tell(query: Query, found: Update, *, limit: int) -> None:
    """Report on stderr how much was found, and what was not searched."""
    counts = found.counts
    if counts.hits or counts.archived_hits:
        note(counted(found))
    elif query.filters and not counts.wanted_sessions:
        note(f"No session fulfils the filters ({counts.all_sessions:,} in the store)")
    else:
        note(f"No hits in {figures.count_of(max(counts.wanted_sessions, 0), 'session')}")
    if found.coverage.why:
        note(uncovered(found))
    if found.page.cursor and limit:
        note(f"There are more. Continue with --cursor {found.page.cursor}")


def counted(found: Update) -> str:
    """Return how much a search found, such as ``48 in 12 sessions of 3,214``."""
    counts = found.counts
    text = (
        f"{_at_least(counts.hits, 'hit', whole=counts.whole)} in "
        f"{_at_least(counts.sessions, 'session', whole=counts.whole)} of {counts.all_sessions:,}"
    )
    archived = f"; {counts.archived_hits:,} more in archived ones (is:archived)"
    return text + (archived if counts.archived_hits else "")


def _at_least(count: int, noun: str, *, whole: bool) -> str:
    return figures.count_of(count, noun) if whole else f"{count:,}+ {noun}s"


def uncovered(found: Update) -> str:
    """Return what part of the store was not searched, and why."""
    coverage = found.coverage
    if coverage.searched >= coverage.total:
        return f"Not everything was searched: {coverage.why}"
    return (
        f"Only the newest {coverage.searched:,} of {coverage.total:,} messages were searched: "
        f"{coverage.why}"
    )


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"not a number: {text!r}")
    return int(text)
