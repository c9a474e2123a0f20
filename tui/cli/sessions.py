"""List sessions, newest first. Archived sessions are omitted by default.

Forks and subagents are listed too, and sessions without messages if they have any of these. Runs
that an agent started for itself (to suggest a prompt, to compact) are omitted unless --helpers or
the setting ui.helpers is given. A line has: id, last change, messages, tokens, agent, folder,
title.

--query takes the language of the browser's filter (docs/search.md): words stand in titles, folders,
models, branches or tags; fields such as agent:, after:3d or is:running select sessions, and
tool:, file:, role: and in: those that have such a part.

--json prints one array. Each element has the contract's columns of chat_sessions (JSON
columns decoded: model, permissions, metadata) and: title, source {kind, id, path} or null,
lineage {kind, parent_id, parent_message_id} or null, activity (idle, running,
waiting-approval, waiting-input, queued, retrying, interrupted, error, ended, unknown),
activity_from (stored, guessed), message_count (visible, without queued), hidden_count,
queued_count, turn_count; these four are null while a session is listed and not read yet. Times
are epoch ms.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from store.config import load_config
from store.engine.database import Database
from store.language.query import Query, parse
from store.queries import sessions
from store.queries.summaries import Summary
from store.queries.user_marks import is_starred
from store.search.listed import Listed
from store.system.clock import system_clock
from store.system.streams import Painted
from store.text import figures
from store.text.stored_json import as_dict
from tui.cli.output import Printer, UsageError, as_text, home_path, local_time, note
from tui.cli.stores import store_for_reading
from tui.words.sessions import STATE_WORDS

_ABSOLUTE = re.compile(r"^(/|[A-Za-z]:\\|\\\\)")
_MARKS = {"fork": "↱ ", "subagent": "↳ ", "continuation": "↱ ", "unknown": "↱ "}
_STATE_MARKS = {
    "running": ("●", "ok"), "retrying": ("●", "ok"), "error": ("✗", "error"),
    "interrupted": ("✗", "error"),
}  # fmt: skip

EXAMPLES = (
    ("backscroll sessions --workspace . --limit 10", "the newest of this folder"),
    ("backscroll sessions --agent codex --json", "all of one agent, for a script"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    parser.add_argument(
        "--archived", choices=get_args(sessions.Archived),
        help="archived sessions (default: exclude, unless the query asks for them)",
    )  # fmt: skip
    parser.add_argument("--agent", help="only sessions of this agent")
    parser.add_argument("--workspace", metavar="FOLDER", help="only sessions of this folder")
    parser.add_argument("--source", metavar="KIND", help="only sessions of this source")
    parser.add_argument(
        "--query", metavar="QUERY",
        help="only sessions that match, as in the browser's filter (docs/search.md)",
    )  # fmt: skip
    parser.add_argument(
        "--helpers", action="store_true",
        help="also runs that agents started for themselves (setting: ui.helpers)",
    )  # fmt: skip
    parser.add_argument("--limit", type=_limit, metavar="N", help="at most N (default: all)")
    parser.add_argument(
        "--cursor", type=_cursor, metavar="UPDATED_AT:ID",
        help="start after this row, the last one of the previous page",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    now = system_clock()
    asked = _asked(options.query, now)
    filter = sessions.SessionFilter(
        agent=options.agent, workspace=_workspace(options.workspace), source=options.source,
        archived=options.archived or "exclude", skip_empty=True,
        helpers=options.helpers or load_config().ui.helpers,
    )  # fmt: skip
    with store_for_reading(options) as database:
        if database is None:
            note("The library is empty. Run `backscroll sync` first.")
            _print(options, iter(()))
            return 0
        listed = Listed(
            database, asked, filter, now, is_archived_chosen=options.archived is not None)
        last = _print(options, listed.page(options.cursor, options.limit))
        if listed.why:
            note(f"Not everything was searched: {listed.why}")
        if last is None and options.limit != 0:
            note(_nothing(options, database, listed.filter))
        elif last is not None and options.limit is not None:
            cursor = (last["updated_at"], last["id"])
            if next(listed.page(cursor, 1), None):
                note(f"There are more. Continue with --cursor {cursor[0]}:{cursor[1]}")
    return 0


def _asked(text: str | None, now: int) -> Query:
    """Return the query of the command line.

    Raises:
        UsageError: A piece of it cannot be read.
    """
    query = parse(as_text(text or "").strip(), now=now)
    if query.problems:
        raise UsageError(" ".join(f"{each.message}." for each in query.problems))
    return query


def _nothing(
    options: argparse.Namespace, database: Database, filter: sessions.SessionFilter
) -> str:
    """Return why nothing was printed: an empty store, no match, or only empty sessions."""
    every = sessions.total(database, sessions.SessionFilter(archived="include"))
    if not every:
        return "The store has no sessions. Run `backscroll sync` first."
    if options.cursor is not None:
        return "no more sessions"
    empty = 0 if options.query else sessions.total(database, replace(filter, skip_empty=False))
    if empty:
        return f"No matching sessions with messages ({empty:,} are empty)"
    return f"No matching sessions ({every:,} in the store)"


def _print(options: argparse.Namespace, found: Iterator[Summary]) -> Summary | None:
    """Print the list and return its last row."""
    return _print_json(found) if options.json else _print_lines(found)


def _print_json(found: Iterator[Summary]) -> Summary | None:
    from store.text.exact_json import encode_for_output

    last: Summary | None = None
    between = "["
    for last in found:
        sys.stdout.write(between + "\n" + encode_for_output(last))
        between = ","
    sys.stdout.write("[]\n" if between == "[" else "\n]\n")
    return last


def _print_lines(found: Iterator[Summary]) -> Summary | None:
    printer = Printer()
    last: Summary | None = None
    for last in found:
        printer.line(*_line(printer, last))
    return last


def _line(printer: Printer, summary: Summary) -> list[Painted]:
    lineage = summary["lineage"]
    mark = _MARKS.get(lineage["kind"], "↱ ") if lineage else ""
    title = " ".join((summary["title"] or "untitled").split())
    star = " ★" if is_starred(as_dict(summary["metadata"])) else ""
    archived = "  archived" if summary["archived_at"] is not None else ""
    known = "  prompts only" if _own(summary).get("prompts_only") is True else ""
    pieces = [
        printer.paint(summary["id"], "faint"),
        printer.paint(f"  {local_time(summary['updated_at'])}", "faint"),
        printer.paint(_amounts(summary)),
        printer.paint(f"  {summary['agent']:<11} ", "tool"),
        printer.paint(f"{home_path(summary['workspace_root']) or '-':<18}", "faint"),
        printer.paint(f"  {mark}", "fork"),
        printer.paint(f"{title}{star}", "bold"),
        printer.paint(f"{known}{archived}", "faint"),
    ]
    word = STATE_WORDS.get(summary["activity"])
    if word:
        mark, style = _STATE_MARKS.get(summary["activity"], ("◐", "tool"))
        guessed = "~" if summary["activity_from"] == "guessed" else ""
        pieces.append(printer.paint(f"  {mark} {guessed}{word}", style))
    return pieces


def _amounts(summary: Summary) -> str:
    """Return the messages and tokens of a session, 21 characters wide."""
    if summary["message_count"] is None:
        return f"{'not read yet':>21}"
    return f"{summary['message_count']:>6} msgs{figures.tokens(summary['total_tokens']):>6} tok"


def _own(summary: Summary) -> dict[str, Any]:
    return as_dict(as_dict(summary["metadata"]).get("backscroll"))


def _workspace(given: str | None) -> str | None:
    """Return a folder in the stored form: absolute, without a trailing slash."""
    if not given:
        return given
    folder = os.path.expanduser(given)
    if not _ABSOLUTE.match(folder):
        folder = os.path.abspath(folder)
    return folder.rstrip("/") or "/"


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"not a number: {text!r}")
    return int(text)


def _cursor(text: str) -> tuple[int, str]:
    try:
        return sessions.cursor_in(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not UPDATED_AT:ID: {text!r}") from None
