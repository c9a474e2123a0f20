"""Remove old sessions and their subagents permanently, as `backscroll forget` does.

A session is kept if it or one of its subagents is starred, runs or waits, or if another session
was forked from it. The newest --keep-newest sessions are kept too, of --source where it is given.
The age is that of the last change. No later sync adds removed sessions again; the agent's own files
are not changed, and backups still have them.

--older-than takes an age or a date as in a query (docs/search.md): 90d, 2026-01-01. Asks first;
scripts use --yes. --dry-run lists what would be removed.

--json prints {"pruned": [id, ...], "sessions", "kept": {"starred", "running", "forked", "newest"},
"dry_run"}; "pruned" has the subagents too, except in a dry run.
"""

from __future__ import annotations

import argparse

from store.config import load_config, zone_of
from store.engine.database import Database
from store.language.dates import BadDate, moment
from store.system.clock import system_clock
from store.text import figures
from store.upkeep.pruning import Plan, Wish, kinds_of_sources, plan, prune
from tui.cli.confirming import confirm
from tui.cli.output import Printer, UsageError, as_text, local_time, print_json
from tui.cli.stores import library_for_upkeep
from tui.cli.working import showing

EXAMPLES = (
    ("backscroll prune --older-than 90d --dry-run", "what is older than 90 days"),
    ("backscroll prune --older-than 1y --keep-newest 500", "but never one of the newest 500"),
    ("backscroll prune --keep-newest 100 --source codex", "all of Codex but the newest 100"),
)
_MOST_SHOWN = 20
_KEPT = {
    "newest": "among the newest", "starred": "starred", "running": "running or waiting",
    "forked": "forked from",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--older-than", metavar="AGE", type=as_text, help="only what changed last before this")
    parser.add_argument(
        "--keep-newest", metavar="N", type=_count, default=0, help="keep the newest N sessions")
    parser.add_argument(
        "--source", metavar="KIND", type=as_text, help="only sessions of this kind of source")
    parser.add_argument("--dry-run", action="store_true", help="only list them")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _count(words: str) -> int:
    if not words.isdecimal() or len(words) > 12:
        raise argparse.ArgumentTypeError("give a number of sessions, such as 100")
    return int(words)


def run(options: argparse.Namespace) -> int:
    """Remove the sessions, after confirmation."""
    wish = _wish(options)
    with library_for_upkeep(options) as database:
        space = ("`backscroll vacuum` gives their space back" if database.server is None
                 else "the server uses their space again by itself")
        _known_source(database, wish.source)
        planned = plan(database, wish, now=system_clock())
        gone = [one.id for one in planned.old]
        if not options.dry_run and planned.old:
            if not options.yes:
                confirm(_lines(planned), f"Remove {_sessions(planned)} permanently?",
                        otherwise="nothing was removed")
            with showing() as shown:
                gone = prune(database, wish,
                             telling=lambda done, total: shown("removing", done, total))
    if options.json:
        print_json({
            "pruned": gone, "sessions": len(planned.old), "dry_run": options.dry_run,
            "kept": {reason: planned.kept[reason] for reason in
                     ("starred", "running", "forked", "newest")},
        })  # fmt: skip
        return 0
    printer = Printer()
    lines = _lines(planned) if options.dry_run or not planned.old else [
        f"removed {_sessions(planned)}; {space}"]
    for line in lines:
        printer.line(printer.paint(line))
    return 0


def _wish(options: argparse.Namespace) -> Wish:
    if options.older_than is None and not options.keep_newest:
        raise UsageError("say which sessions: --older-than AGE, --keep-newest N, or both")
    before = None
    if options.older_than is not None:
        try:
            before = moment(options.older_than, now=system_clock(),
                            zone=zone_of(load_config().stats.zone))
        except BadDate as error:
            raise UsageError(f"{options.older_than!r} is no age and no date; try 90d") from error
    return Wish(before, options.keep_newest, options.source)


def _known_source(database: Database, source: str | None) -> None:
    """Refuse a kind of source that no session has."""
    if source is None:
        return
    kinds = kinds_of_sources(database)
    if source not in kinds:
        raise UsageError(f"no session is of the source {source!r}; there are {', '.join(kinds)}"
                         if kinds else "no session in the store has a source")


def _sessions(planned: Plan) -> str:
    subagents = sum(one.subagents for one in planned.old)
    also = f" with {figures.count_of(subagents, 'subagent')}" if subagents else ""
    return f"{figures.count_of(len(planned.old), 'session')}{also}"


def _lines(planned: Plan) -> list[str]:
    lines = [f"{local_time(one.at)}  {one.id}  {one.title or 'untitled'}"
             for one in planned.old[:_MOST_SHOWN]]
    if len(planned.old) > _MOST_SHOWN:
        lines.append(f"and {len(planned.old) - _MOST_SHOWN:,} more")
    lines.append(_sessions(planned) if planned.old else "no session is to be removed")
    kept = [f"{count:,} {_KEPT[reason]}" for reason, count in planned.kept.items()]
    if kept:
        lines.append(f"kept: {', '.join(kept)}")
    return lines
