"""``show --files`` and ``show --commands``: what a session touched and ran."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from store.engine.database import Database
from store.queries.context import context_ids
from store.queries.summaries import Summary
from store.queries.touches import Call, CommandUse, FileRow, FileUse, Touches, touches
from store.text.exact_json import encode_for_output
from store.text.figures import count_of
from tui.cli.output import Printer, home_path, local_time, note
from tui.kit.text import one_line
from tui.words import touched as words

if TYPE_CHECKING:
    from store.exports.reading import View


def print_files(database: Database, summary: Summary, view: View, *, as_json: bool) -> None:
    """Print the files, the newest touch first.

    Args:
        database: The store.
        summary: The session.
        view: Which messages' calls.
        as_json: Print a JSON document.
    """
    found = touches(database, summary["id"])
    kept = _kept(database, found, view)
    rows = [
        replace(row, uses=[use for use in row.uses if kept(use.call)])
        for row in found.files.values()
    ]
    rows = sorted((row for row in rows if row.uses), key=lambda row: -row.last.call.at)
    left_out = sum(not kept(use.call) for row in found.files.values() for use in row.uses)
    if as_json:
        _print_json(summary, view, "files", map(_file_json, rows), left_out)
        return
    printer = Printer()
    head, counts = words.files_words(rows)
    printer.line(printer.paint(head, "bold"), printer.paint(f"  {counts}", "faint"))
    for row in rows:
        printer.line(*_file_line(printer, row))
    _tell(found, view, left_out)


def print_commands(
    database: Database, summary: Summary, view: View, *, as_json: bool, full: bool
) -> None:
    """Print the commands in the order in which they ran.

    Args:
        database: The store.
        summary: The session.
        view: Which messages' calls.
        as_json: Print a JSON document.
        full: Print all lines of each command.
    """
    found = touches(database, summary["id"], whole=as_json or full)
    kept = _kept(database, found, view)
    uses = [use for use in found.commands if kept(use.call)]
    left_out = len(found.commands) - len(uses)
    if as_json:
        _print_json(summary, view, "commands", map(_command_json, uses), left_out)
        return
    printer = Printer()
    head, counts = words.commands_words([use.call for use in uses])
    printer.line(printer.paint(head, "bold"), printer.paint(f"  {counts}", "faint"))
    for use in uses:
        _print_command(printer, use, found, full=full)
    _tell(found, view, left_out)


def _kept(database: Database, found: Touches, view: View) -> Callable[[Call], bool]:
    """Return the test for the calls of a view."""
    if view == "context":
        ids = frozenset(context_ids(database, found.places.session_id))
        return lambda call: call.place.message_id in ids
    return lambda call: view != "display" or not call.place.hidden


def _tell(found: Touches, view: View, left_out: int) -> None:
    """Print on stderr what is not in the list."""
    if left_out and view == "context":
        note(f"{count_of(left_out, 'call')} omitted that the model would not be sent now.")
    elif left_out:
        note(f"{count_of(left_out, 'hidden call')} omitted. Use --hidden to include them.")
    if found.places.subagents:
        agents = count_of(found.places.subagents, "subagent")
        note(f"The calls of {agents} are not included. Use `backscroll tree` to list them.")


def _file_line(printer: Printer, row: FileRow) -> list[Any]:
    plus, minus = words.line_words(row)
    did = words.changed_words(row)
    reads = words.read_words(row)
    failed, marks = words.failed_words(row), words.marked_words(row)
    place = row.last.call.place
    return [
        printer.paint(f"  {one_line(row.shown)}", "bold" if did else "faint"),
        printer.paint(f"  {did}" if did else ""), printer.paint(f"  {plus}" if plus else "", "ok"),
        printer.paint(f"  {minus}" if minus else "", "error"),
        printer.paint(f"  {reads}" if reads else "", "faint"),
        printer.paint(f"  {failed}" if failed else "", "error"),
        printer.paint(f"  {marks}" if marks else "", "fork"),
        printer.paint(f"  turn {place.turn}, {local_time(row.last.call.at)}", "faint"),
    ]  # fmt: skip


def _print_command(printer: Printer, use: CommandUse, found: Touches, *, full: bool) -> None:
    lines = use.text.strip("\n").split("\n")
    more = "" if full or len(lines) == 1 else f"  … {len(lines) - 1} more lines"
    ended = use.call.outcome
    end = ", ".join(filter(None, (words.end_words(use.call), words.took_words(use.call))))
    folder = "" if use.folder in ("", found.places.root) else f"  in {home_path(use.folder)}"
    marks = words.mark_words(use.call)
    printer.line(
        printer.paint(f"  {local_time(use.call.at)}  ", "faint"),
        printer.paint("! " if use.by == "user" else "$ ", "user" if use.by == "user" else "tool"),
        printer.paint(lines[0]), printer.paint(more, "faint"),
        printer.paint(f"  {end}", "ok" if ended.status == "ok" else "error"),
        printer.paint(f"{folder}{'  ' if marks else ''}{marks}", "faint"),
    )
    for line in lines[1:] if full else []:
        printer.line(printer.paint(f"      {line}", "faint"))


def _print_json(
    summary: Summary, view: View, name: str, items: Iterable[dict[str, Any]], left_out: int
) -> None:
    write = sys.stdout.write
    write(f'{{"session":{encode_for_output(summary)},"view":"{view}","{name}":[')
    between = "\n"
    for item in items:
        write(between + encode_for_output(item))
        between = ",\n"
    write(f'\n],"left_out":{left_out}}}\n')


def _call_json(call: Call) -> dict[str, Any]:
    return {
        "message_id": call.place.message_id, "part_id": call.part_id or None,
        "turn": call.place.turn, "at": call.at, "tool": call.tool,
        "status": call.outcome.status, "hidden": call.place.hidden, "copied": call.place.copied,
    }  # fmt: skip


def _file_json(row: FileRow) -> dict[str, Any]:
    plus, minus = row.lines
    names = ("read", "write", "edit", "move", "delete", "change")
    kinds = {f"{kind}s": row.count(kind) for kind in names}
    return {
        "path": row.key, "shown": row.shown, **kinds, "added": plus, "removed": minus,
        "lines_known": row.lines_known, "not_done": len(row.uses) - sum(
            use.call.outcome.done for use in row.uses),
        "last_at": row.last.call.at, "calls": [_use_json(use) for use in row.uses],
    }  # fmt: skip


def _use_json(use: FileUse) -> dict[str, Any]:
    plus, minus = use.lines or (None, None)
    return {
        "kind": use.kind, "path": use.path, "moved_to": use.moved_to or None, "added": plus,
        "removed": minus, **_call_json(use.call),
    }  # fmt: skip


def _command_json(use: CommandUse) -> dict[str, Any]:
    return {
        "command": use.text, "folder": use.folder or None, "by": use.by,
        "exit_code": use.call.outcome.exit_code, "duration_ms": use.call.outcome.milliseconds,
        "word": use.call.outcome.word or None, **_call_json(use.call),
    }  # fmt: skip
