"""Print a session as a transcript, in colour on a terminal.

Tool calls have one line with their state, and the first lines of their output (--full prints
everything). Hidden messages are omitted unless --hidden is given, and their number is reported on
stderr. Queued messages come last.

--json prints one document: {"session": an element of sessions --json, "view": "display"|
"hidden"|"context", "messages": [{"message": row, "parts": [row, ...]}, ...], "queued":
[the same], "hidden_left_out": number}; rows by column name with JSON columns decoded.

--files lists each file that the session read, wrote or edited, the newest touch first; --commands
each command with its exit code and duration, in order. Files that a shell command reads or
writes are not known. Calls of subagents are not included: each is a session of its own. Calls that
failed, were denied or have no result do not count as edits.

--files --json prints {"session", "view", "files": [{"path": resolved, "shown": from the session's
folder on, "reads", "writes", "edits", "moves", "deletes", "changes": in the agent's list of what
differs after a step, but by no call, "added", "removed", "lines_known": false if the lines of an
edit are not recorded, "not_done": calls that did nothing, "last_at", "calls":
[{"kind": "read"|"write"|"edit"|"move"|"delete"|"change", "path": as written, "moved_to", "added",
"removed", "message_id", "part_id", "turn", "at", "tool", "status", "hidden", "copied"}, ...]},
...], "left_out": calls outside of the view}. --commands --json prints {"session", "view",
"commands": [{"command", "folder", "by": "agent"|"user", "exit_code", "duration_ms", "word",
"message_id", "part_id", "turn", "at", "tool", "status", "hidden", "copied"}, ...], "left_out"}.
"status" is ok, ended (how is not known), failed, denied, interrupted, pending or waiting.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from store.conversation.outline_marks import NOT_READ
from store.engine.database import Database
from store.errors import Refused
from store.exports.reading import SessionReading, queued_messages, read_session
from store.queries.sessions import resolve
from store.queries.summaries import Summary, summaries_of
from store.system.clock import system_clock
from store.text import figures
from store.text.exact_json import encode_for_output
from tui.cli.exporting import add_view_arguments, tell_left_out, view_of
from tui.cli.output import Printer, home_path, local_time
from tui.cli.show_touched import print_commands, print_files
from tui.cli.stores import needs_store, store_for_reading
from tui.cli.transcript_text import TranscriptText

EXAMPLES = (
    ("backscroll show 4f1c | less", "read a session in the pager"),
    ("backscroll show 4f1c --full", "with whole tool outputs"),
    ("backscroll show 4f1c --files", "which files it read and edited"),
    ("backscroll show 4f1c --commands --json", "which commands it ran, as JSON"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_view_arguments(parser)
    parser.add_argument("--full", action="store_true", help="print everything")
    listed = parser.add_mutually_exclusive_group()
    listed.add_argument(
        "--files", action="store_true", help="list the files that it read, wrote or edited"
    )
    listed.add_argument("--commands", action="store_true", help="list the commands that it ran")
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def run(options: argparse.Namespace) -> int:
    """Print the session."""
    view = view_of(options)
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        row = resolve(database, options.session)
        (summary,) = summaries_of(database, [row], now=system_clock())
        if summary["message_count"] is None:
            raise Refused(NOT_READ)
        database.connection.execute("BEGIN")
        if options.files:
            print_files(database, summary, view, as_json=options.json)
            return 0
        if options.commands:
            print_commands(database, summary, view, as_json=options.json, full=options.full)
            return 0
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
        for line in text.message(item) if item.is_said else ():
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
