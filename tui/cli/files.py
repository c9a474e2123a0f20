"""List the files of a session as they were, show what differs, and save copies of them.

A file's content is taken from what says it best: an agent's copy (the file histories of Claude
Code and Kimi, y-agent's journal, the snapshots of opencode and Kilo, Gemini's checkpoints), the
text beside a result, a call that wrote or read all of the file. From there on the edits are made
again; such a content is marked as replayed. Where nothing says the content, it is not known.
What shell commands did to files shows only where a later copy or reading has it.

Without --path every file is listed as it was at the end of the session, or after the message of
--at, and how it is to the file on disk today. --path lists each point of one file; with --at it
prints the file. --diff prints what differs: from before the session, or from --since, to --at;
with --disk, from --at to the file on disk.

--out saves the files that calls changed, or that of --path, below a folder: paths from the
session's folder on, made safe. Links are not followed. A file that is there is replaced only
with --force.

--json prints {"session", "at", "files": [{"path": resolved, "shown": from the session's folder
on, "changed", "content": content at that point or null, "disk": {"state": file|missing|other|
unreadable, "size", "changed_at", "sha256", "standing": same|changed|gone|there|other|unknown},
"points": [{"number", "kind": found|write|edit|delete|move|change|seen, "operation": as the
agent's journal calls it or null, "turn", "at", "message_id", "part_id", "hidden", "content":
{"origin": copy|recorded|written|read|replayed|missing|unknown, "source", "edits", "size",
"sha256"}}, ...], "text" or "base64": with --path, "diff": with --diff, "saved": with --out},
...], "checkpoints": [{"name", "kept_by", "message_id", "part_id", "turn", "at", "after": whether
it is behind the message}, ...]}.
"""

from __future__ import annotations

import argparse
import base64
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from store.engine.database import Database
from store.errors import NotFound, Refused
from store.files.comparing import as_text, differences
from store.files.disk import Present, Standing, present, standing
from store.files.history import (
    UNKNOWN,
    Content,
    Point,
    SessionFile,
    SessionFiles,
    at_message,
    checkpoints,
    points_of,
    session_files,
)
from store.files.saving import Folder
from store.queries.messages import resolve_message
from store.queries.sessions import resolve
from store.queries.summaries import summaries_of
from store.system.clock import system_clock
from store.system.files import AlreadyThere
from store.text.diffs import as_text as diff_text
from store.text.diffs import tally
from store.text.figures import count_of, size
from store.text.neutral import neutral, neutral_row
from tui.cli.output import (
    NAME_HELP,
    Printer,
    UsageError,
    local_time,
    named_path,
    note,
    print_json,
)
from tui.cli.stores import needs_store, store_for_reading
from tui.words.files import (
    origin_words,
    point_words,
    since_words,
    source_words,
    standing_words,
)
from tui.words.touched import changed_words, read_words

EXAMPLES = (
    ("backscroll files 4f1c", "the files of a session, and how they are on disk today"),
    ("backscroll files 4f1c --path worker.py", "each point of a file"),
    ("backscroll files 4f1c --path worker.py --diff --disk", "what has changed since"),
    ("backscroll files 4f1c --at msg_05c6 --out recovered", "save them as they were then"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session", metavar="SESSION", help=NAME_HELP)
    parser.add_argument("--at", metavar="MESSAGE", help="as they were after this message")
    parser.add_argument("--path", metavar="FILE", help="only this file: its path, or its end")
    parser.add_argument("--diff", action="store_true", help="print what differs")
    parser.add_argument(
        "--since", metavar="MESSAGE", help="with --diff: from after this message on")
    parser.add_argument(
        "--disk", action="store_true", help="with --diff: to the file that is on disk today")
    parser.add_argument("--out", type=named_path, metavar="DIR",
                        help="save the files below this folder")
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    parser.add_argument("--json", action="store_true", help="print a JSON document")


@dataclass(slots=True)
class _Shown:
    """A file with the point that is asked for.

    Attributes:
        point: None where nothing is known of the file.
        since: The content that a diff starts from.
        now: What is on disk.
    """

    file: SessionFile
    points: list[Point]
    point: Point | None
    since: Content
    now: Present
    saved: str = ""
    refused: str = ""

    @property
    def content(self) -> Content:
        """The content at the point."""
        return self.point.content if self.point is not None else UNKNOWN


def run(options: argparse.Namespace) -> int:
    """Print or save the files; 1 where one could not be saved, or none."""
    if (options.since or options.disk) and not options.diff:
        raise UsageError("--since and --disk are for --diff")
    if options.since and options.disk:
        raise UsageError("--since and --disk exclude each other")
    with store_for_reading(options) as opened:
        database = needs_store(opened)
        row = resolve(database, options.session)
        (summary,) = summaries_of(database, [row], now=system_clock())
        database.connection.execute("BEGIN")
        at, since = (
            None if name is None else resolve_message(database, row.id, name).id
            for name in (options.at, options.since)
        )
        of = session_files(database, row.id)
        shown = [
            _shown(database, of, file, at, since) for file in _chosen(of, options.path)
        ]
        if options.out is not None:
            _save(shown, options)
        found = {"session": summary, "at": at, "files": shown,
                 "checkpoints": [asdict(one) for one in checkpoints(database, of.places)]}
    if options.json:
        print_json(found | {"files": [_json(each, options) for each in shown]})
    elif options.diff:
        _print_diffs(shown, options)
    elif options.out is None:
        _print(found, options)
    nothing = options.out is not None and not any(each.saved for each in shown)
    return 1 if nothing or any(each.refused for each in shown) else 0


def _chosen(of: SessionFiles, path: str | None) -> list[SessionFile]:
    """Return the files that are meant: all, those that calls changed first, or one.

    Raises:
        NotFound: No file has the path.
        Refused: Several have it.
    """
    files = sorted(of.files.values(), key=lambda file: (not file.changed, file.row.shown))
    if path is None:
        return files
    wanted = path.strip("/")
    found = [file for file in files if path in (file.row.key, file.row.shown)] or [
        file for file in files if f"/{file.row.key}".endswith(f"/{wanted}")]
    if not found:
        raise NotFound(f"No file {path!r} in session {of.places.session_id}. "
                       "Leave --path out to list them.")
    if len(found) > 1:
        names = ", ".join(neutral_row(file.row.shown) for file in found[:8])
        raise Refused(f"Several files end in {path!r}: {names}. Name one of them.")
    return found


def _shown(
    database: Database, of: SessionFiles, file: SessionFile, at: str | None, since: str | None
) -> _Shown:
    points = points_of(database, of, file.row.key)
    point = points[-1] if points and at is None else (
        at_message(of, points, at) if at is not None else None)
    first = points[0].content if points else UNKNOWN
    before = at_message(of, points, since) if since is not None else None
    return _Shown(file, points, point, before.content if before is not None else first,
                  present(file.row.key))


# Saving


def _save(shown: list[_Shown], options: argparse.Namespace) -> None:
    folder = Folder(Path(options.out))
    for each in shown:
        content = each.content
        if content.body is None or not (each.file.changed or options.path):
            continue
        row = each.file.row
        parts = folder.place(row.key, row.shown)
        try:
            saved = folder.write(parts, content.body, replace=options.force)
        except Refused as error:
            each.refused = neutral(str(error))
            note(each.refused + _way_out(error, content, folder.path.joinpath(*parts)))
            continue
        each.saved = str(saved.path)
        if not options.json:
            note(f"{size(saved.size)} written to {neutral(each.saved)} ({source_words(content)})")
    unknown = [each for each in shown if each.file.changed and not each.content.is_known]
    if unknown:
        names = ", ".join(neutral_row(each.file.row.shown) for each in unknown[:8])
        note(f"Not saved, as the content is not known: {names}"
             + (f" and {len(unknown) - 8:,} more" if len(unknown) > 8 else ""))
    if not any(each.saved or each.refused for each in shown):
        note("Nothing was saved: no file has a known content at this point.")


def _way_out(error: Refused, content: Content, path: Path) -> str:
    """Return what is known of a file that is in the way; nothing of links, folders and so on.

    Args:
        error: Why the content was not saved.
        content: The content.
        path: Where it was to be saved.
    """
    there = present(str(path))
    if not isinstance(error, AlreadyThere) or there.state != "file" or path.is_symlink():
        return ". Name another folder with --out."
    since = since_words(content, there, standing(content, there))
    return f". {since or 'It is the same.'} Use --force to replace it."


# Printing


def _print(found: dict[str, Any], options: argparse.Namespace) -> None:
    printer = Printer()
    shown: list[_Shown] = found["files"]
    if options.path is not None and options.at is not None:
        _print_content(printer, shown[0])
        return
    if options.path is not None:
        _print_points(printer, shown[0])
        return
    changed = sum(each.file.changed for each in shown)
    head = count_of(len(shown), "file")
    printer.line(printer.paint(head, "bold"), printer.paint(f"  {changed:,} changed", "faint"))
    for each in shown:
        row = each.file.row
        state = standing(each.content, each.now)
        ink = {"same": "ok", "gone": "error", "changed": "tool", "other": "tool"}.get(
            state, "faint")
        did = changed_words(row) if row.uses else ""
        printer.line(
            printer.paint(f"  {neutral_row(row.shown)}", "bold" if each.file.changed else "faint"),
            printer.paint(f"  {did or (read_words(row) if row.uses else '')}"),
            printer.paint(f"  {origin_words(each.content)}", "faint"),
            printer.paint(f"  {_standing_words(each, state)}", ink),
        )
    for one in found["checkpoints"]:
        printer.line(printer.paint(
            f"  checkpoint {one['name']}  {one['kept_by']}, turn {one['turn']}, "
            f"{local_time(one['at'])}, {one['message_id']}", "fork"))


def _standing_words(shown: _Shown, state: Standing) -> str:
    """Return how the file on disk is to a content that is known, else nothing."""
    return standing_words(state) if shown.content.is_known else ""


def _print_points(printer: Printer, shown: _Shown) -> None:
    printer.line(printer.paint(neutral_row(shown.file.row.shown), "bold"))
    for point in shown.points:
        content = point.content
        length = size(len(content.body)) if content.body is not None else ""
        call = point.use.call if point.use is not None else None
        hidden = "  hidden" if call is not None and call.place.hidden else ""
        where = f"turn {point.turn}, " if point.turn else ""
        message = f", {call.place.message_id}" if call is not None else ""
        printer.line(
            printer.paint(f"  {point_words(point)}"), printer.paint(f"  {length}"),
            printer.paint(f"  {source_words(content)}", "error" if not content.is_known else "ok"),
            printer.paint(f"  {where}{local_time(point.at)}{message}{hidden}", "faint"),
        )
    state = standing(shown.content, shown.now)
    words = since_words(shown.content, shown.now, state)
    printer.line(printer.paint(words or f"  {standing_words(state)}", "faint"))


def _print_content(printer: Printer, shown: _Shown) -> None:
    """Print a file; where it is from goes to stderr.

    Raises:
        Refused: It is not known, or is no text.
    """
    content, name = shown.content, neutral_row(shown.file.row.shown)
    text = as_text(content.body)
    if content.body is None:
        raise Refused(f"{name} cannot be shown: {source_words(content)}")
    if text is None:
        raise Refused(f"{name} is no text ({size(len(content.body))}). "
                      "Use --out to save it.")
    note(source_words(content))
    for line in printer.lines(text.removesuffix("\n")):
        printer.line(line)


def _print_diffs(shown: list[_Shown], options: argparse.Namespace) -> None:
    printer = Printer()
    for each in shown:
        if not (each.file.changed or options.path):
            continue
        lines, told = _diff(each, options)
        if not lines and not told:
            continue
        printer.line(printer.paint(neutral_row(each.file.row.shown), "bold"),
                     printer.paint(f"  {source_words(each.content)}", "faint"))
        if told:
            printer.line(printer.paint(f"  {told}", "error"))
        for line in lines:
            style = {"+": "added", "-": "removed", "@": "faint"}.get(line.sign)
            number = "" if line.number is None else str(line.number)
            printer.line(printer.paint(f"{number:>6} {line.sign} {line.text}",
                                       *([style] if style else [])))


def _diff(shown: _Shown, options: argparse.Namespace) -> tuple[list[Any], str]:
    """Return the lines of a diff, and why there are none."""
    old, new = (shown.content, _on_disk(shown.now)) if options.disk else (
        shown.since, shown.content)
    for content in (old, new):
        if not content.is_known:
            return [], f"no diff: {source_words(content)}"
    before, after = as_text(old.body), as_text(new.body)
    if before is None or after is None:
        return [], "" if old.body == new.body else "no diff: it is no text"
    return differences(before, after), ""


def _on_disk(now: Present) -> Content:
    if now.state == "missing":
        return Content("missing", source="not on disk")
    if now.body is None:
        return Content("unknown", source="the file on disk cannot be read")
    return Content("read", now.body, source="on disk")


# JSON


def _json(shown: _Shown, options: argparse.Namespace) -> dict[str, Any]:
    row, now = shown.file.row, shown.now
    made: dict[str, Any] = {
        "path": row.key, "shown": row.shown, "changed": shown.file.changed,
        "content": _content_json(shown.content) if shown.point is not None else None,
        "disk": {"state": now.state, "size": now.size, "changed_at": now.changed_at or None,
                 "sha256": now.digest or None, "standing": standing(shown.content, now)},
        "points": [_point_json(point) for point in shown.points],
    }  # fmt: skip
    body = shown.content.body
    if options.path is not None and body is not None:
        text = as_text(body)
        made |= {"base64": base64.b64encode(body).decode()} if text is None else {"text": text}
    if options.diff:
        lines, told = _diff(shown, options)
        plus, minus = tally(lines)
        made["diff"] = {"text": diff_text(lines), "added": plus, "removed": minus,
                        "why_not": told or None}
    if options.out is not None:
        made["saved"] = shown.saved or None
        made["refused"] = shown.refused or None
    return made


def _content_json(content: Content) -> dict[str, Any]:
    return {
        "origin": content.origin, "source": content.source, "edits": content.edits,
        "size": len(content.body) if content.body is not None else None,
        "sha256": content.digest or None,
    }


def _point_json(point: Point) -> dict[str, Any]:
    call = point.use.call if point.use is not None else None
    return {
        "number": point.number, "kind": point.kind, "operation": point.operation or None,
        "turn": point.turn, "at": point.at,
        "message_id": call.place.message_id if call is not None else None,
        "part_id": (call.part_id or None) if call is not None else None,
        "hidden": call.place.hidden if call is not None else False,
        "content": _content_json(point.content),
    }  # fmt: skip
