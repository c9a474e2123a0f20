"""Print a session as a transcript, in colour on a terminal.

Tool calls have one line with their state, and the first lines of their output (--full prints
everything). Hidden messages are omitted unless --hidden is given, and their number is reported on
stderr. Queued messages come last.

--json prints one document: {"session": an element of sessions --json, "view": "display"|
"hidden"|"context", "messages": [{"message": row, "parts": [row, ...]}, ...], "queued":
[the same], "hidden_left_out": number}; rows by column name with JSON columns decoded.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from store.engine.database import Database
from store.exports.reading import SessionReading, queued_messages, read_session
from store.queries.sessions import resolve
from store.queries.summaries import Summary, summaries_of
from store.system.clock import system_clock
from store.text.exact_json import encode_for_output
from tui.cli.exporting import add_view_arguments, tell_left_out, view_of
from tui.cli.output import Printer, home_path, local_time
from tui.cli.stores import needs_store, store_for_reading
from tui.cli.transcript_text import TranscriptText
from tui.kit import figures

EXAMPLES = (
    ("backscroll show 4f1c | less", "read a session in the pager"),
    ("backscroll show 4f1c --full", "with whole tool outputs"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_view_arguments(parser)
    parser.add_argument("--full", action="store_true", help="print everything")
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(options: argparse.Namespace) -> int:
    """Print the session."""
    view = view_of(options)
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        row = resolve(database, options.session)
        (summary,) = summaries_of(database, [row], now=system_clock())
        database.connection.execute("BEGIN")
        reading = read_session(database, row.id, view)
        if options.json:
            _print_json(database, summary, reading, view)
        else:
            _print_text(database, summary, reading, full=options.full)
            tell_left_out(reading)
    return 0


def _print_json(database: Database, summary: Summary, reading: SessionReading, view: str) -> None:
    write = sys.stdout.write
    write(f'{{"session":{encode_for_output(summary)},"view":"{view}","messages":[')
    between = "\n"
    for item in reading.messages:
        write(between + encode_for_output({"message": item.message, "parts": item.parts}))
        between = ",\n"
    waiting = [
        {"message": item.message, "parts": item.parts}
        for item in queued_messages(database, summary["id"])
    ]
    write(f'\n],"queued":{encode_for_output(waiting)},')
    write(f'"hidden_left_out":{reading.hidden_left_out}}}\n')


def _print_text(
    database: Database, summary: Summary, reading: SessionReading, *, full: bool
) -> None:
    printer = Printer()
    text = TranscriptText(printer, summary["workspace_root"], full=full)
    _print_head(printer, summary)
    for item in reading.messages:
        for line in text.message(item):
            printer.line(line)
    for item in queued_messages(database, summary["id"]):
        for line in text.message(item, queued=True):
            printer.line(line)


def _activity(summary: Summary, metadata: dict[str, Any]) -> str:
    """Return a session's activity; the source's own word for it if it is unknown."""
    state, stored = summary["activity"], metadata.get("activity")
    word = stored.get("word") if isinstance(stored, dict) else None
    if state == "unknown" and isinstance(word, str):
        return word
    is_guess = summary["activity_from"] == "guessed" and state not in ("idle", "unknown")
    return f"~{state}" if is_guess else str(state)


def _print_head(printer: Printer, summary: Summary) -> None:
    model = summary["model"] if isinstance(summary["model"], dict) else {}
    metadata = summary["metadata"] if isinstance(summary["metadata"], dict) else {}
    title = " ".join((summary["title"] or "untitled").split())
    printer.line(printer.paint(title, "bold"))
    facts = (
        summary["agent"], model.get("model_id"), home_path(summary["workspace_root"]),
        metadata.get("git_branch"), _activity(summary, metadata),
    )  # fmt: skip
    printer.line(printer.paint(" · ".join(str(fact) for fact in facts if fact), "faint"))
    hidden = f", {summary['hidden_count']} hidden" if summary["hidden_count"] else ""
    waiting = f", {summary['queued_count']} queued" if summary["queued_count"] else ""
    cost = f" · {figures.money(summary['cost_usd'])}" if summary["cost_usd"] else ""
    printer.line(printer.paint(
        f"{figures.count_of(summary['message_count'], 'message')}{hidden}{waiting} · "
        f"{figures.tokens(summary['total_tokens'])} tokens{cost} · "
        f"{local_time(summary['created_at'])} to {local_time(summary['updated_at'])} · "
        f"{summary['id']}", "faint",
    ))  # fmt: skip
